#pragma once

#include <cstddef>
#include <cstdint>

/// Launch shapes and sizes of tables; no byte depends on them.
namespace fz::huffman {

// Counting: one thread block per multiprocessor, with all of its shared memory.
inline constexpr unsigned kCountThreads = 1024;
inline constexpr unsigned kCountLoads = 4;  ///< per thread at once, 16 bytes each

struct CountShape {
  std::uint32_t n_bins;       ///< symbols per row of blocks; more symbols take more rows
  std::uint32_t copies_log2;  ///< of the histogram
};
/// For a block that may have shared_bytes.
constexpr CountShape countShape(std::uint32_t n_symbols, std::size_t shared_bytes) {
  const auto room = static_cast<std::uint32_t>(shared_bytes / sizeof(std::uint32_t));
  const std::uint32_t n_fitting = n_symbols < room ? n_symbols : room;
  const std::uint32_t n_rows = (n_symbols + n_fitting - 1) / n_fitting;
  CountShape shape{(n_symbols + n_rows - 1) / n_rows, 0};
  while (shape.copies_log2 < 5 && shape.n_bins << (shape.copies_log2 + 1) <= room) {
    ++shape.copies_log2;
  }
  return shape;
}

// Encoding: a warp per partition; blocks take tile after tile.
inline constexpr unsigned kEncodeThreads = 256;
inline constexpr std::uint32_t kMaxSharedCodes = 8192;  ///< 32 KiB; larger books stay in the caches
constexpr unsigned encodeBlocks(std::uint64_t n_tiles, unsigned n_processors) {
  const unsigned n_resident = 6 * n_processors;
  return n_tiles < n_resident ? static_cast<unsigned>(n_tiles) : n_resident;
}

// Decoding: a thread per partition.
inline constexpr unsigned kPlanThreads = 1024;
inline constexpr unsigned kDecodeThreads = 128;
/// Of the decoder's look-up table, in the form of DecodeTable. With fewer bits more codes take the
/// slow path; more take shared memory from the other threads and the cache.
inline constexpr std::uint32_t kDeviceTableBits = 11;

}  // namespace fz::huffman
