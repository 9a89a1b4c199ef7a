#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fz/bound.h"

namespace fz::report {

/// Safe inside elements and quoted attributes, whatever the bytes are: marks are escaped, control
/// characters become visible.
std::string escapeHtml(std::string_view text);
/// A name of outside, which may also try to turn the direction of writing.
std::string nameHtml(std::string_view name);

/// The shortest digits that give the number back.
std::string exactNumber(double value);
/// Three to five digits for people, as HTML: 0.0123, 1.23 x 10^-7 with a raised exponent.
std::string roundNumber(double value, int digits = 4);
/// 1 234 567 with narrow spaces, as HTML.
std::string groupedNumber(std::uint64_t value);
/// 2.62 MB, decimal units.
std::string roundBytes(std::uint64_t n_bytes);
/// Ten to the power of `exponent`, as HTML.
std::string powerOfTen(int exponent);
/// 128 x 64 x 80 with real signs, as HTML; trailing axes of length 1 are left out.
std::string shapeHtml(const std::array<std::size_t, 3>& dims);

}  // namespace fz::report
