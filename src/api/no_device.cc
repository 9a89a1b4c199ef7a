#include "api/device_field.h"
#include "core/require.h"

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

}  // namespace fz
