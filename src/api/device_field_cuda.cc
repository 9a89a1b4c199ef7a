#include <cmath>

#include "api/device_field.h"
#include "api/missing_values.h"
#include "backends/cuda/field_look.h"
#include "core/require.h"
#include "pipeline/fill_check.h"

namespace fz {

namespace {

template <class T>
ValueEnds<T> endsAs(const ValueEnds<double>& ends) {
  return {static_cast<T>(ends.low), static_cast<T>(ends.next_low), static_cast<T>(ends.high),
          static_cast<T>(ends.next_high)};
}

}  // namespace

DeviceField::Room::Room() = default;
DeviceField::Room::~Room() = default;

DeviceField::DeviceField(Room& room,
                         int device,
                         DataType type,
                         const void* values,
                         std::size_t n_bytes,
                         std::span<const double> fill,
                         cudaStream_t stream)
    : type_(type),
      values_(values),
      n_bytes_(n_bytes),
      fill_(fill),
      stream_(stream),
      device_(device) {
  requireFewFills(fill);
  if (room.look_ == nullptr) {
    room.look_ = std::make_unique<cuda::FieldLook>();
  }
  look_ = room.look_.get();
  const cuda::FieldFindings findings = look_->sample({type, values, n_bytes, fill, device}, stream);
  is_missing_in_sample_ = findings.has_missing;
  sample_ = findings.ends;
}

bool DeviceField::hasMissing() const {
  return is_missing_in_sample_ || (!fill_.empty() && hasAnyMissing());
}

bool DeviceField::hasAnyMissing() const {
  return look_->all({type_, values_, n_bytes_, fill_, device_}, stream_).has_missing;
}

ValidRange DeviceField::rangeOfValid() const {
  const auto ends = look_->all({type_, values_, n_bytes_, fill_, device_}, stream_).ends;
  return ends.isEmpty() ? ValidRange{} : ValidRange{ends.low, ends.high};
}

template <class T>
void DeviceField::check(const BoundInfo& bound) const {
  const cuda::FieldValues field{type_, values_, n_bytes_, fill_, device_};
  checkRangeBound(bound, DistantField<T>{
                             .n_values = n_bytes_ / sizeof(T),
                             .sample = endsAs<T>(sample_),
                             .all = [&] { return endsAs<T>(look_->all(field, stream_).ends); },
                             .count_of =
                                 [&](T value) {
                                   return static_cast<std::size_t>(look_->countEqual(
                                       field, static_cast<double>(value), stream_));
                                 },
                         });
}

void DeviceField::requireRangeWithoutFill(const Pipeline& pipeline) const {
  for (const Stage* stage : pipeline.getStages()) {
    const std::optional<BoundInfo> bound = stage->boundInfo();
    if (bound) {
      type_ == DataType::FLOAT32 ? check<float>(*bound) : check<double>(*bound);
      return;
    }
  }
}

}  // namespace fz
