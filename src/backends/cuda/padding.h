#pragma once

#include <type_traits>

namespace fz::cuda {

/// Zeros between the members of a kernel's arguments: a batch learns from their bytes what differs
/// from field to field.
template <class T>
void clearPadding([[maybe_unused]] T& arguments) {
  static_assert(std::is_trivially_copyable_v<T>);
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&arguments);
#endif
#endif
}

}  // namespace fz::cuda
