#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "archive/chunk_grid.h"
#include "fz/archive.h"
#include "fz/bound.h"

// The index at the end of an archive of chunks: docs/format.md.
namespace fz {

/// Where the frame of a chunk stands; 0 bytes: it is absent.
struct ChunkEntry {
  std::uint64_t offset = 0;
  std::uint64_t n_bytes = 0;
  std::uint32_t header_checksum = 0;
};

struct ArchiveIndex {
  DataType type = DataType::UNKNOWN;
  std::optional<BoundInfo> bound;
  std::uint64_t array_id = 0;
  ChunkGrid grid;
  std::vector<ChunkEntry> chunks;
};

inline constexpr std::size_t kArchiveTailBytes = 32;
inline constexpr std::uint32_t kArchiveTailMagic = 0x45415A46;

/// Index and tail, as they follow `frames_end` bytes of frames.
std::vector<std::uint8_t> putIndex(const ArchiveIndex& index, std::uint64_t frames_end);

/// Where the index stands, from the last bytes of a file.
struct IndexPlace {
  std::uint64_t offset = 0;
  std::uint64_t n_bytes = 0;
};
/// Nothing when these bytes are no tail. Throws Error(kCorrupt) where they are one of another
/// length of file.
std::optional<IndexPlace> findIndex(ByteView tail, std::uint64_t file_bytes);
/// Reads index and tail, which follow each other in `bytes`. An absent chunk takes a byte there and
/// a whole entry in memory, so `max_memory_bytes` (0: no limit) holds for both. Throws Error
/// (kCorrupt, kUnsupported, kLimit).
ArchiveIndex getIndex(ByteView bytes, std::uint64_t file_bytes, std::uint64_t max_memory_bytes = 0);

}  // namespace fz
