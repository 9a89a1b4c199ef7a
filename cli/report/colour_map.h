#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fz::report {

using Rgb = std::array<std::uint8_t, 3>;

inline constexpr std::size_t kMapColours = 249;

/// Dark blue to light yellow; every step changes the perceived colour by the same amount, and
/// lightness rises throughout, so that it survives grey printing and colour blindness.
const std::vector<Rgb>& sequentialMap();
/// Blue, near white in the middle, red; equal steps, and both sides equally light.
const std::vector<Rgb>& divergingMap();

std::string hexColour(const Rgb& colour);

}  // namespace fz::report
