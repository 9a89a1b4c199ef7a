#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "archive/chunk_grid.h"
#include "fz/archive.h"
#include "pipeline/compressor.h"

namespace fz {

/// Memory that is taken once and used again: what a call writes to pages that it has used before
/// costs half of what fresh ones do.
class KeptBytes {
 public:
  /// n_bytes of anything; what was there before is not used any more. Throws std::bad_alloc.
  MutableByteView take(std::size_t n_bytes);

 private:
  std::unique_ptr<void, void (*)(void*)> memory_{nullptr, &std::free};
  std::size_t capacity_bytes_ = 0;
};

/// What one chunk is decoded with, and leaves to the next.
struct ChunkSlot {
  std::uint64_t chunk = 0;
  KeptBytes frame_memory;
  ByteView frame;
  KeptBytes values;  ///< of the chunk
  KeptBytes part;    ///< of what is wanted of it
  Pipeline pipeline;
};

/// How many chunks are decoded at once, and what each may take.
struct ChunkTeam {
  std::size_t n_at_once = 1;
  DecompressOptions each;
};
/// Chunks side by side use threads better than threads inside of one: reading, checking and copying
/// are done by all. One at a time where the memory limit leaves no room for more, where a device
/// decodes and where somebody follows the stages.
ChunkTeam teamFor(const ChunkGrid& grid, std::uint64_t n_chunks, const DecompressOptions& options);

}  // namespace fz
