#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fz {

/// Axes along which a predictor takes differences. Those that the data do not have make none.
struct Axes {
  bool x = true;
  bool y = true;
  bool z = true;

  bool operator==(const Axes&) const = default;

  /// "xyz", "xz", "y", "" ...: each letter at most once, in any order. Throws InvalidArgument with
  /// a message that begins with `stage`.
  static Axes fromText(std::string_view text, std::string_view stage);
  std::string text() const;

  /// As a config stores it: bit 0 for x, 1 for y, 2 for z, set where one of the first ndim axes is
  /// left out; 0 for all.
  std::uint8_t leftOut(int ndim) const {
    const auto bits = static_cast<unsigned>((x ? 0 : 1) | (y ? 0 : 2) | (z ? 0 : 4));
    return static_cast<std::uint8_t>(bits & ((1u << ndim) - 1));
  }
  static Axes fromLeftOut(std::uint8_t bits) {
    return {(bits & 1u) == 0, (bits & 2u) == 0, (bits & 4u) == 0};
  }
};

}  // namespace fz
