#pragma once

#include <algorithm>
#include <cstdint>

/// Launch shapes; no byte depends on them.
namespace fz::interp::device {

inline constexpr unsigned kThreads = 256;  ///< of kernels that go point by point

/// Blocks of a kernel that walks over n items with a stride.
inline unsigned strideBlocks(std::uint64_t n_items, unsigned n_processors) {
  const std::uint64_t n = (n_items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(n, 1, std::uint64_t{16} * n_processors));
}

// Levels: a thread has a column of cells, and goes through it along z.
inline constexpr unsigned kLevelThreads = 320;  ///< 32 x 8 columns, and those that are halo
inline constexpr unsigned kMinChunk = 4;        ///< cells along z of a thread, at least

/// Cells along x for which tiles of 32 are worth their copies.
inline constexpr std::uint32_t kMinTileCells = 16;

/// Cells along z for a thread: long columns share more, but all processors should have work.
inline std::uint32_t levelChunk(std::uint32_t n_cells,
                                std::uint64_t n_tiles,
                                unsigned n_processors) {
  const std::uint64_t wanted = std::uint64_t{16} * n_processors;
  const std::uint64_t n_chunks = std::max<std::uint64_t>(1, (wanted + n_tiles - 1) / n_tiles);
  const auto chunk = static_cast<std::uint32_t>(
      (n_cells + n_chunks - 1) / std::min<std::uint64_t>(n_chunks, std::max(1u, n_cells)));
  const std::uint32_t rounded = (chunk + kMinChunk - 1) / kMinChunk * kMinChunk;
  return std::clamp(rounded, kMinChunk, 64u);
}

// Differences straight from values: planes that a thread goes through.
inline constexpr std::uint32_t kDirectPlanes = 32;
inline constexpr unsigned kBlockThreads = 128;  ///< where they go block by block of codes

// Sums along an axis.
inline constexpr std::uint32_t kMinSumChunk = 256;
inline constexpr unsigned kMaxPlaneThreads = 512;
/// Whether planes are summed up by a thread block each.
inline bool isForPlanes(std::uint32_t n_row, std::uint32_t n_planes, unsigned n_processors) {
  return n_row <= 4 * kMaxPlaneThreads && n_row >= 64 && n_planes >= n_processors / 2;
}
/// Values of a line that are summed up in one go, for lines so long and so many.
inline std::uint32_t sumChunk(std::uint32_t n,
                              std::uint64_t n_lines,
                              std::uint32_t lanes,
                              unsigned n_processors) {
  const std::uint64_t n_workers = std::uint64_t{1024} * n_processors * lanes / 32;
  if (n_lines * 2 >= n_workers || n <= kMinSumChunk) {
    return n;
  }
  const std::uint64_t n_chunks = std::max<std::uint64_t>(1, n_workers / n_lines);
  const std::uint64_t chunk = (n + n_chunks - 1) / n_chunks;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::max<std::uint64_t>(kMinSumChunk, (chunk + 31) / 32 * 32), n));
}

/// Planes of a tile whose sums are known before: the more the fewer sums there are.
inline std::uint32_t sumPlanes(std::uint64_t n_tiles, std::uint32_t n, unsigned n_processors) {
  std::uint32_t planes = 64;
  while (planes > 8 && n_tiles * ((n + planes - 1) / planes) < std::uint64_t{3} * n_processors) {
    planes /= 2;
  }
  return planes;
}

// Rows that wait for the rows before them: a warp each.
inline constexpr unsigned kRowThreads = 128;
inline constexpr unsigned kRowBlocksPerProcessor = 4;

// Outliers: words of 32 marks that a block counts and writes.
inline constexpr std::uint32_t kListWords = 2048;

}  // namespace fz::interp::device
