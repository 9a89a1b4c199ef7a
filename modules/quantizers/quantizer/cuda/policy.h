#pragma once

#include <cstddef>
#include <cstdint>

/// Launch shapes. Work distribution only: no byte depends on any of these numbers. Also compiled at
/// run time.
namespace fz::quantizer::device {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kWarps = kThreads / 32;
/// Thread blocks per multiprocessor of the REL encoder, for which the compiler would take a few
/// registers too many.
inline constexpr unsigned kRelBlocks = 5;
/// 16-byte pieces per lane. A tile is what a warp takes at a time.
inline constexpr unsigned kVecs = 4;
inline constexpr std::size_t kTileBytes = std::size_t{16} * kVecs * 32;
inline constexpr unsigned kScatterThreads = 512;

/// Decoding: narrow codes come in smaller pieces, so more of them are in flight.
constexpr unsigned decodeVecs(std::size_t code_bytes, unsigned codes_per_piece) {
  return code_bytes * codes_per_piece == 16 ? 4 : 8;
}

/// Tiles whose outliers one thread block gathers: more of them where there are enough for all
/// blocks.
inline constexpr unsigned kMaxBatchTiles = kThreads;
constexpr unsigned batchTiles(std::size_t n_tiles) {
  constexpr std::size_t kManyTiles = 65536;
  return n_tiles > kManyTiles ? kMaxBatchTiles : kMaxBatchTiles / 4;
}

/// Thread blocks where each works on many tiles; as many as are resident.
constexpr unsigned residentBlocks(unsigned n_processors) {
  constexpr unsigned kBlocksPerProcessor = 2048 / kThreads;
  return kBlocksPerProcessor * n_processors;
}

/// Thread blocks that scan the range of n_bytes of values.
inline constexpr unsigned kMaxRangeBlocks = 2048;
constexpr unsigned rangeBlocks(std::size_t n_bytes, unsigned n_processors) {
  constexpr std::size_t kBlockBytes = kTileBytes * kWarps;
  const std::size_t n_wanted = n_bytes == 0 ? 1 : (n_bytes + kBlockBytes - 1) / kBlockBytes;
  const unsigned n_resident = residentBlocks(n_processors);
  const unsigned n_most = n_resident < kMaxRangeBlocks ? n_resident : kMaxRangeBlocks;
  return n_wanted < n_most ? static_cast<unsigned>(n_wanted) : n_most;
}

}  // namespace fz::quantizer::device
