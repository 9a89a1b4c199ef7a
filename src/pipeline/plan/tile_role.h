#pragma once

#include <cstdint>

#include "fz/tile_op.h"

namespace fz {

/// The alternatives of TileOp in the order in which they may stand in a group.
enum class TileRole : std::uint8_t { kNone, kMap, kOrder, kRows, kPlanes, kCoder };

inline TileRole roleOf(const TileOp& op) {
  static_assert(std::variant_size_v<TileOp> == 6);
  return static_cast<TileRole>(op.index());
}

/// Whether the op works on values, not on the bytes behind planes.
inline bool takesValues(const TileOp& op) {
  return roleOf(op) < TileRole::kPlanes;
}

}  // namespace fz
