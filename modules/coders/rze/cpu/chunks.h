#pragma once

#include <cstddef>
#include <cstdint>

#include "coders/rze/codec.h"
#include "fz/span.h"

namespace fz::rze {

/// What a first pass found out about a chunk, kept until it is written.
struct ChunkPlan {
  /// Rows of `bitmaps`, each behind 64 zero bytes and with room for whole 64-bit words.
  static constexpr std::size_t kBitmapAt[kMaxLevels + 1] = {0, 64, 2176, 2496, 2624};
  static constexpr std::size_t kBitmapBytes = 2688;

  std::uint64_t offset;  ///< of the stored chunk; set by the caller between the passes
  std::uint32_t entry;
  std::uint32_t kept[kMaxLevels];
  alignas(64) std::uint8_t bitmaps[kBitmapBytes];
};

/// Chunk i of an input is bytes [i * chunk_bytes, ...), shorter at the end.
std::uint32_t chunkLength(const ChunkFormat& format, std::size_t n_bytes, std::size_t chunk);

/// Plans chunks [first, first + n_plans). Never throws.
void planChunks(const ChunkFormat& format,
                ByteView in,
                std::size_t first,
                std::size_t n_plans,
                ChunkPlan* plans);
/// Writes planned chunks, each exactly where its plan says. Never throws.
void writeChunks(const ChunkFormat& format,
                 ByteView in,
                 std::size_t first,
                 std::size_t n_plans,
                 const ChunkPlan* plans,
                 std::uint8_t* out);

/// Decodes chunk `chunk` of `out` from an entry and its bytes, which lie in [stored, stream_end).
/// False when they are not such a chunk; its part of `out` is then undefined. Never throws.
bool readChunk(const ChunkFormat& format,
               std::uint32_t entry,
               const std::uint8_t* stored,
               const std::uint8_t* stream_end,
               MutableByteView out);

}  // namespace fz::rze
