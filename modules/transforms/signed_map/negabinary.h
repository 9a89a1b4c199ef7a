#pragma once

#include <cstdint>
#include <type_traits>

namespace fz {

/// Two's complement <-> base -2: small magnitudes of either sign have zero high bits.
template <class T>
struct Negabinary {
  static_assert(std::is_integral_v<T> && std::is_signed_v<T>);
  using SInt = T;                        // NOLINT(readability-identifier-naming)
  using UInt = std::make_unsigned_t<T>;  // NOLINT(readability-identifier-naming)
  /// The digits whose weight is negative.
  static constexpr UInt MASK =  // NOLINT(readability-identifier-naming)
      static_cast<UInt>(0xAAAAAAAAAAAAAAAAull);

  static constexpr UInt encode(SInt value) {
    return static_cast<UInt>(static_cast<UInt>(static_cast<UInt>(value) + MASK) ^ MASK);
  }
  static constexpr SInt decode(UInt code) {
    return static_cast<SInt>(static_cast<UInt>(static_cast<UInt>(code ^ MASK) - MASK));
  }
};

using Negabinary8 = Negabinary<std::int8_t>;
using Negabinary16 = Negabinary<std::int16_t>;
using Negabinary32 = Negabinary<std::int32_t>;
using Negabinary64 = Negabinary<std::int64_t>;

}  // namespace fz
