#include "archive/chunk_slots.h"

#include <algorithm>
#include <new>

#include "backends/cpu/parallel_for.h"
#include "mem/host_memory.h"

namespace fz {

namespace {

/// Of all chunks that are decoded at once, when nobody set a limit.
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{512} << 20;
/// A chunk in memory, its frame, and what stages keep between them.
constexpr std::uint64_t kCopiesOfChunk = 4;

}  // namespace

MutableByteView KeptBytes::take(std::size_t n_bytes) {
  if (n_bytes > capacity_bytes_) {
    memory_.reset();
    capacity_bytes_ = 0;
    memory_.reset(allocateOnHost(n_bytes));
    if (memory_ == nullptr) {
      throw std::bad_alloc();
    }
    capacity_bytes_ = n_bytes;
  }
  return {static_cast<std::uint8_t*>(memory_.get()), n_bytes};
}

ChunkTeam teamFor(const ChunkGrid& grid, std::uint64_t n_chunks, const DecompressOptions& options) {
  ChunkTeam team{1, options};
  const bool may_be_device = options.backend != Backend::CPU && isBackendAvailable(Backend::CUDA);
  if (n_chunks < 2 || may_be_device || options.progress != nullptr) {
    return team;
  }
  const std::size_t n_threads = usableThreads(options.threads);
  const std::uint64_t chunk_bytes = std::max<std::uint64_t>(1, grid.chunkBytes());
  const std::uint64_t limit = options.limits.max_memory_bytes;
  const std::uint64_t n_fit =
      limit == 0 ? kBytesAtOnce / chunk_bytes : limit / kCopiesOfChunk / chunk_bytes;
  team.n_at_once = static_cast<std::size_t>(
      std::min({n_chunks, std::uint64_t{n_threads}, std::max<std::uint64_t>(1, n_fit)}));
  if (team.n_at_once > 1) {
    team.each.threads = n_threads / team.n_at_once;
    if (limit != 0) {
      team.each.limits.max_memory_bytes =
          static_cast<std::size_t>(limit / team.n_at_once - chunk_bytes);
    }
  }
  return team;
}

}  // namespace fz
