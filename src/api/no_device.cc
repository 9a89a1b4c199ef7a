#include "api/device_field.h"
#include "core/require.h"
#include "fz/batch.h"

namespace fz {

namespace cuda {
class FieldLook {};
}  // namespace cuda

DeviceField::Room::Room() = default;
DeviceField::Room::~Room() = default;

DeviceField::DeviceField(Room& /*room*/,
                         int /*device*/,
                         DataType /*type*/,
                         const void* /*values*/,
                         std::size_t /*n_bytes*/,
                         std::span<const double> /*fill*/,
                         cudaStream_t /*stream*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}

bool DeviceField::hasMissing() const {
  return false;
}
bool DeviceField::hasAnyMissing() const {
  return false;
}
ValidRange DeviceField::rangeOfValid() const {
  return {};
}
void DeviceField::requireRangeWithoutFill(const Pipeline& /*pipeline*/) const {
}

struct DeviceBatch::Impl {};

DeviceBatch::DeviceBatch(DataType /*type*/, const CompressOptions& /*options*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}
DeviceBatch::~DeviceBatch() = default;
std::size_t DeviceBatch::slotBytes(std::size_t /*n_bytes*/) const {
  return 0;
}
void DeviceBatch::compress(std::span<const void* const> /*fields*/,
                           std::size_t /*n_bytes*/,
                           std::span<const DeviceRoom> /*slots*/,
                           FieldResult* /*results*/,
                           cudaStream_t /*stream*/) {
}
void DeviceBatch::decompress(std::span<const DeviceBytes> /*frames*/,
                             std::span<const DeviceRoom> /*outputs*/,
                             FieldResult* /*results*/,
                             cudaStream_t /*stream*/) {
}
void DeviceBatch::setDecodeLimits(const DecodeLimits& /*limits*/) {
}
std::size_t DeviceBatch::fusedFields() const {
  return 0;
}

}  // namespace fz
