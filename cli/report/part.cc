#include "report/part.h"

#include <algorithm>

namespace fz::report {

namespace {

constexpr std::size_t kMaxValues = std::size_t{1} << 25;

}  // namespace

FieldView middlePart(const FieldView& field) {
  if (field.count() <= kMaxValues) {
    return field;
  }
  FieldView part = field;
  std::size_t axis = 2;
  while (axis > 0 && field.dims[axis] == 1) {
    --axis;
  }
  const std::size_t n_slab = field.count() / field.dims[axis];
  part.dims[axis] = std::clamp<std::size_t>(kMaxValues / n_slab, 1, field.dims[axis]);
  const std::size_t first = (field.dims[axis] - part.dims[axis]) / 2;
  part.bytes = field.bytes.subspan(first * n_slab * field.valueBytes(),
                                   part.dims[axis] * n_slab * field.valueBytes());
  return part;
}

CompressOptions optionsForPart(const Input& input, const FieldView& part, double bound) {
  CompressOptions options = *input.options;
  options.dims = part.dims;
  options.extents.reset();
  // The bound replaces one that a setting gave.
  std::erase_if(options.params, [](const auto& setting) {
    const std::string key = setting.first.substr(setting.first.rfind('.') + 1);
    return key == "error_bound" || key == "error_bound_mode";
  });
  const BoundInfo& own = *input.info.bound;
  const bool is_part = part.bytes.size() != input.original.bytes.size();
  const bool use_absolute = is_part && own.mode == ErrorBoundMode::NOA;
  options.mode = use_absolute ? ErrorBoundMode::ABS : own.mode;
  options.error_bound = use_absolute ? own.absolute * (bound / own.requested) : bound;
  return options;
}

}  // namespace fz::report
