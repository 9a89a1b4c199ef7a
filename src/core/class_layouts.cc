#include "core/class_layouts.h"

#include "core/class_layouts_inl.h"

namespace fz::detail {

std::span<const ClassLayout> classLayouts() {
  return kClassLayouts;
}

}  // namespace fz::detail
