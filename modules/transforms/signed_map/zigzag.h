#pragma once

#include <cstdint>
#include <type_traits>

namespace fz {

/// 0, -1, 1, -2, 2 ... <-> 0, 1, 2, 3, 4 ...: small magnitudes of either sign become small codes.
template <class T>
struct Zigzag {
  static_assert(std::is_integral_v<T> && std::is_signed_v<T>);
  using SInt = T;                        // NOLINT(readability-identifier-naming)
  using UInt = std::make_unsigned_t<T>;  // NOLINT(readability-identifier-naming)

  static constexpr UInt encode(SInt value) {
    return static_cast<UInt>(static_cast<UInt>(static_cast<UInt>(value) << 1) ^
                             static_cast<UInt>(value >> (8 * static_cast<int>(sizeof(T)) - 1)));
  }
  static constexpr SInt decode(UInt code) {
    return static_cast<SInt>(static_cast<UInt>(code >> 1) ^
                             static_cast<UInt>(UInt{0} - static_cast<UInt>(code & 1u)));
  }
};

using Zigzag8 = Zigzag<std::int8_t>;
using Zigzag16 = Zigzag<std::int16_t>;
using Zigzag32 = Zigzag<std::int32_t>;
using Zigzag64 = Zigzag<std::int64_t>;

}  // namespace fz
