// Maps between signed and unsigned integers as plain loops, for files compiled once per vector
// target: the compiler vectorises them.
#if defined(FZ_SIGNED_MAP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_SIGNED_MAP_INL
#undef FZ_SIGNED_MAP_INL
#else
#define FZ_SIGNED_MAP_INL
#endif

#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

template <class From, class To, class Map>
void mapLoop(const void* in, std::size_t n_values, void* out, Map map) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (std::size_t i = 0; i < n_values; ++i) {
    to[i] = map(from[i]);
  }
}

/// map(signed) -> unsigned for values of value_bytes bytes.
template <class Map>
void mapToUnsigned(
    const void* in, std::size_t n_values, std::size_t value_bytes, void* out, Map map) {
  switch (value_bytes) {
    case 1:
      return mapLoop<std::int8_t, std::uint8_t>(in, n_values, out, map);
    case 2:
      return mapLoop<std::int16_t, std::uint16_t>(in, n_values, out, map);
    case 4:
      return mapLoop<std::int32_t, std::uint32_t>(in, n_values, out, map);
    default:
      return mapLoop<std::int64_t, std::uint64_t>(in, n_values, out, map);
  }
}

/// map(unsigned) -> signed for values of value_bytes bytes.
template <class Map>
void mapToSigned(
    const void* in, std::size_t n_values, std::size_t value_bytes, void* out, Map map) {
  switch (value_bytes) {
    case 1:
      return mapLoop<std::uint8_t, std::int8_t>(in, n_values, out, map);
    case 2:
      return mapLoop<std::uint16_t, std::int16_t>(in, n_values, out, map);
    case 4:
      return mapLoop<std::uint32_t, std::int32_t>(in, n_values, out, map);
    default:
      return mapLoop<std::uint64_t, std::int64_t>(in, n_values, out, map);
  }
}

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
