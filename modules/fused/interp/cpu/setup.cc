// Smallest and largest value of a field.
#include <limits>
#include <type_traits>

#include "fused/interp/cpu/state.h"

// Compiled once per vector target; the plain loop is vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/setup.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

template <class T>
ValueRange rangeOfType(const T* values, std::size_t n) {
  using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Limits = std::numeric_limits<Int>;
  // Integers that are ordered as the values are; the sign of zeros does not matter.
  const auto flip = [](Int bits)
                        HWY_ATTR { return bits ^ ((bits >> (8 * sizeof(T) - 1)) & Limits::max()); };
  constexpr auto kExponent = __builtin_bit_cast(Int, std::numeric_limits<T>::infinity());
  Int low = Limits::max();
  Int high = Limits::min();
  Int others = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Int word = fp::bitCast<Int>(values[i]);
    // All ones or zero, and no branch: so the loop becomes vector code.
    const Int is_other = static_cast<Int>(-static_cast<Int>((word & kExponent) == kExponent));
    const Int key = flip(word) & ~is_other;
    const Int up = key | (is_other & Limits::max());
    const Int down = key | (is_other & Limits::min());
    low = low < up ? low : up;
    high = high > down ? high : down;
    others |= is_other;
  }
  ValueRange range;
  range.has_others = others != 0;
  range.has_finite = low <= high;
  if (range.has_finite) {
    range.min = static_cast<double>(fp::bitCast<T>(flip(low)));
    range.max = static_cast<double>(fp::bitCast<T>(flip(high)));
  }
  return range;
}

ValueRange rangeHere(const void* values, std::size_t n, DataType type) {
  return type == DataType::FLOAT32 ? rangeOfType(static_cast<const float*>(values), n)
                                   : rangeOfType(static_cast<const double*>(values), n);
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(rangeHere);

ValueRange rangeOf(const void* values, std::size_t n_values, DataType type) {
  return HWY_DYNAMIC_DISPATCH(rangeHere)(values, n_values, type);
}

}  // namespace fz::interp
#endif
