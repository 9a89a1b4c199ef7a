#include "transforms/negabinary/negabinary_cpu.h"

#include <cstdint>

#include "shared/bits.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/negabinary/negabinary_cpu.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::negabinary::HWY_NAMESPACE {  // NOLINT

template <class T>
void encodeLoop(const void* in, std::size_t n_values, void* out) {
  const T* from = static_cast<const T*>(in);
  auto* to = static_cast<std::make_unsigned_t<T>*>(out);
  for (std::size_t i = 0; i < n_values; ++i) {
    to[i] = bits::negabinary(from[i]);
  }
}

template <class T>
void decodeLoop(const void* in, std::size_t n_values, void* out) {
  const auto* from = static_cast<const std::make_unsigned_t<T>*>(in);
  T* to = static_cast<T*>(out);
  for (std::size_t i = 0; i < n_values; ++i) {
    to[i] = bits::unnegabinary(from[i]);
  }
}

void encode(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  switch (value_bytes) {
    case 1:
      return encodeLoop<std::int8_t>(in, n_values, out);
    case 2:
      return encodeLoop<std::int16_t>(in, n_values, out);
    case 4:
      return encodeLoop<std::int32_t>(in, n_values, out);
    default:
      return encodeLoop<std::int64_t>(in, n_values, out);
  }
}

void decode(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  switch (value_bytes) {
    case 1:
      return decodeLoop<std::int8_t>(in, n_values, out);
    case 2:
      return decodeLoop<std::int16_t>(in, n_values, out);
    case 4:
      return decodeLoop<std::int32_t>(in, n_values, out);
    default:
      return decodeLoop<std::int64_t>(in, n_values, out);
  }
}

}  // namespace fz::negabinary::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::negabinary {

HWY_EXPORT(encode);
HWY_EXPORT(decode);

void encodeValues(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  HWY_DYNAMIC_DISPATCH(encode)(in, n_values, value_bytes, out);
}
void decodeValues(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  HWY_DYNAMIC_DISPATCH(decode)(in, n_values, value_bytes, out);
}

}  // namespace fz::negabinary
#endif
