#pragma once

#include <cstddef>
#include <cstdint>

#include "predictors/tiled_lorenzo/tiled_lorenzo_codec.h"

namespace fz::tiled_lorenzo {

/// A strip is some tiles side by side: work for one thread, not part of the format.
inline constexpr std::uint32_t kStripValues = 4096;  // leaves room in the first cache
static_assert(kStripValues >= kMaxTileValues);
FZ_HD std::uint64_t stripTiles(const Grid& grid) {
  return kStripValues / grid.tile.values();
}
FZ_HD std::uint64_t stripCount(const Grid& grid) {
  return bits::ceilDiv(grid.tilesX(), stripTiles(grid)) * grid.tilesY() * grid.tilesZ();
}

/// `in` and `out` are the whole field and the whole stream, of values of value_bytes (2 or 4).
void encodeStrip(
    const Grid& grid, std::uint64_t strip, std::size_t value_bytes, const void* in, void* out);
void decodeStrip(
    const Grid& grid, std::uint64_t strip, std::size_t value_bytes, const void* in, void* out);

}  // namespace fz::tiled_lorenzo
