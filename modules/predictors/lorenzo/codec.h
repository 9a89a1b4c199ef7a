#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/delta.h"
#include "shared/host_device.h"

/// Lorenzo differences in two and three dimensions; those in one are in shared/delta.h.
namespace fz::lorenzo {

/// Values per block in one dimension when none is set. Part of the format.
inline constexpr std::size_t kDefaultBlock = 256;

/// The rows that a row is predicted from; null outside the grid and off the axes. Same plane and
/// one up, one plane back, and both.
template <class T>
struct Neighbours {
  const T* up;
  const T* back;
  const T* up_back;  ///< null when either of the others is
};

/// What the rows around say about place x: the differences along y and z.
template <class T>
FZ_HD T acrossRows(const T* row, const Neighbours<T>& around, std::size_t x) {
  T value = row[x];
  value = around.up == nullptr ? value : delta::minus(value, around.up[x]);
  value = around.back == nullptr ? value : delta::minus(value, around.back[x]);
  return around.up_back == nullptr ? value : delta::plus(value, around.up_back[x]);
}

/// Encodes one row of n values; `along_x` where x is one of the axes.
template <class T, class Team>
FZ_HD void encodeRow(
    Team team, const T* row, Neighbours<T> around, std::uint32_t n, T* out, bool along_x = true) {
  team.each(n, [=](std::uint32_t x) {
    const T value = acrossRows(row, around, x);
    const bool has_left = along_x && x != 0;
    out[x] = has_left ? delta::minus(value, acrossRows(row, around, x - 1)) : value;
  });
}

/// Lines of values through the grid, along one axis.
struct Lines {
  std::uint32_t n_lines;
  std::uint32_t n_values;   ///< per line
  std::size_t line_stride;  ///< from one line to the next
  std::size_t step;         ///< from one value of a line to the next
};

/// Turns the values of every line into running sums, in place. A grid is decoded by doing this
/// along x, then y, then z, in any order, as far as they are axes.
template <class T, class Team>
FZ_HD void sumLines(Team team, Lines lines, T* values) {
  team.each(lines.n_lines, [=](std::uint32_t line) {
    T* at = values + line * lines.line_stride;
    for (std::uint32_t i = 1; i < lines.n_values; ++i) {
      at[i * lines.step] = delta::plus(at[i * lines.step], at[(i - 1) * lines.step]);
    }
  });
}

}  // namespace fz::lorenzo
