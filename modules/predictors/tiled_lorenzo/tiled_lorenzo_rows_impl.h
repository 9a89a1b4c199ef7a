#pragma once

#include <cstdint>

#include "predictors/tiled_lorenzo/tiled_lorenzo_cpu.h"

namespace fz::tiled_lorenzo {

/// Row (y, z) of a strip; null outside the grid. `above` is the row that predicts the first value
/// of each tile; null where that is 0.
template <class U>
struct Row {
  U* row = nullptr;
  const U* above = nullptr;
};
template <class U>
inline Row<U> rowAt(
    const Grid& grid, const Strip& strip, const StripRows& rows, std::uint32_t y, std::uint32_t z) {
  if (strip.origin.z + z >= grid.nz || strip.origin.y + y >= grid.ny) {
    return {};
  }
  U* row = static_cast<U*>(rows.first) + z * rows.plane_step + y * rows.row_step;
  return {row, y > 0 ? row - rows.row_step : (z > 0 ? row - rows.plane_step : nullptr)};
}

}  // namespace fz::tiled_lorenzo
