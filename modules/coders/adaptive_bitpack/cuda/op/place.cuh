#pragma once

// Tiles for the thread blocks of an encoder, and the bytes before each tile. A block draws tickets;
// the one with ticket 0 codes nothing, but adds up what the others publish and tells each tile its
// base, as soon as the sums before it are there: one block that looks at all sums is faster than
// every tile walking back over its predecessors. A tile waits only for tiles that were taken
// before, so for blocks that run. Device code only; must compile with NVRTC.

#include "backends/cuda/block_barrier.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "coders/adaptive_bitpack/cuda/op/blocks.cuh"

namespace fz::adaptive_bitpack {

inline constexpr unsigned kTickets = 4;  ///< that a block keeps; a warp is two ahead at most

/// What the coding warps of a block and its queue warp exchange, in shared memory. Tile k of the
/// block uses the halves k & 1: no warp comes to tile k + 2 before all are done with tile k, since
/// the base of tile k + 1 needs the bytes of every warp.
template <unsigned kWarps>
struct TileExchange {
  cuda::BlockBarrier counted[2];  ///< all warps, with their bytes of tile k
  /// All lanes of the queue warp, since each has written something that the warps read behind it:
  /// the base of tile k - 1, the bytes before each warp in it, ticket k + 2.
  cuda::BlockBarrier based[2];
  std::uint64_t base[2];            ///< of tile k - 1
  std::uint32_t bytes[2][kWarps];   ///< of tile k
  std::uint32_t before[2][kWarps];  ///< in tile k, before each warp's
  std::uint32_t ticket[kTickets];

  __device__ __forceinline__ void open() {
    for (unsigned i = 0; i < 2; ++i) {
      counted[i].init(kWarps);
      based[i].init(cuda::kWarp);
    }
  }
  /// One lane of each coding warp.
  __device__ __forceinline__ void putBytes(unsigned k, unsigned warp, std::uint32_t n_bytes) {
    bytes[k & 1u][warp] = n_bytes;
    counted[k & 1u].arrive();
  }
  __device__ __forceinline__ void waitForBase(unsigned k) const { based[k & 1u].wait(k >> 1 & 1u); }
};

template <class S, unsigned kWarps>
struct TileQueue {
  static constexpr std::uint64_t kKnown = std::uint64_t{1} << 63;

  const GroupsArgs& args;
  EncodeShape shape;
  std::uint32_t n_tiles;
  TileExchange<kWarps>& exchange;

  /// All threads; ends with a barrier.
  __device__ __forceinline__ void start() const {
    if (threadIdx.x == 0) {
      exchange.open();
      exchange.ticket[0] = isAlone() ? 1 : take();
      exchange.ticket[1] = isAlone() ? 2 : exchange.ticket[0] == 0 ? 0 : take();
    }
    __syncthreads();
  }

  /// The queue warp: draws tickets, publishes the bytes of the tiles, fetches bases.
  __device__ __forceinline__ void serve() const {
    std::uint32_t tile = exchange.ticket[0] - 1;
    std::uint32_t next_tile = exchange.ticket[1] - 1;
    std::uint32_t last_tile = 0;
    std::uint64_t last_base = 0;  // of a block that is alone
    std::uint64_t n_bytes = 0;    // its bytes so far
    for (unsigned k = 0;; ++k) {
      const bool has_tile = tile < n_tiles;
      const std::uint32_t ticket = has_tile ? takeTicket(next_tile) : 0;
      if (cuda::laneId() == 0) {
        exchange.ticket[(k + 2) % kTickets] = ticket;
      }
      bool is_published = !has_tile;
      bool is_based = false;
      std::uint64_t own_base = 0;
      while (!is_published || !is_based) {
        if (!is_based) {
          const std::uint64_t found =
              k == 0 || isAlone() ? kKnown | last_base : lookForBase(last_tile);
          if (found != 0) {
            is_based = true;
            if (cuda::laneId() == 0) {
              exchange.base[k & 1u] = found & ~kKnown;
              if (k > 0 && !isAlone()) {
                store(args.bases + last_tile, 0);
              }
            }
            exchange.based[k & 1u].arrive();
          }
        }
        // The lanes look one by one, and go on together.
        if (!is_published &&
            __all_sync(cuda::kAllLanes, exchange.counted[k & 1u].isPast(k >> 1 & 1u))) {
          is_published = true;
          const unsigned warp = cuda::laneId();
          const std::uint32_t own = warp < kWarps ? exchange.bytes[k & 1u][warp] : 0;
          const std::uint32_t sum = cuda::warpInclusiveSum(own);
          if (warp < kWarps) {
            exchange.before[k & 1u][warp] = sum - own;
          }
          own_base = n_bytes;
          n_bytes += __shfl_sync(cuda::kAllLanes, sum, cuda::kWarp - 1);
          if (cuda::laneId() == cuda::kWarp - 1 && !isAlone()) {
            store(args.sums + tile, kKnown | sum);
          }
        }
      }
      if (!has_tile) {
        break;
      }
      last_base = own_base;
      last_tile = tile;
      tile = next_tile;
      next_tile = ticket - 1;
    }
    if (isAlone() && cuda::laneId() == 0) {
      conclude(n_bytes);
    }
  }

  /// A full warp of the block with ticket 0: bases for all tiles.
  __device__ __forceinline__ void scan() const {
    constexpr unsigned kLooks = 4;
    std::uint64_t before = 0;
    std::uint32_t at = 0;
    while (at < n_tiles) {
      std::uint64_t state[kLooks];
#pragma unroll
      for (unsigned j = 0; j < kLooks; ++j) {
        const std::uint32_t tile = at + j * cuda::kWarp + cuda::laneId();
        state[j] = tile < n_tiles ? load(args.sums + tile) : 0;
      }
      std::uint32_t n_done = 0;
#pragma unroll
      for (unsigned j = 0; j < kLooks; ++j) {
        if (n_done != j * cuda::kWarp) {
          break;
        }
        const unsigned known = __ballot_sync(cuda::kAllLanes, state[j] != 0);
        const unsigned n_known =
            known == ~0u ? cuda::kWarp : static_cast<unsigned>(__ffs(static_cast<int>(~known))) - 1;
        const bool is_mine = cuda::laneId() < n_known;
        const std::uint32_t own = is_mine ? static_cast<std::uint32_t>(state[j]) : 0;
        const std::uint32_t sum = cuda::warpInclusiveSum(own);
        if (is_mine) {
          const std::uint32_t tile = at + j * cuda::kWarp + cuda::laneId();
          store(args.sums + tile, 0);
          store(args.bases + tile, kKnown | (before + sum - own));
        }
        before += __shfl_sync(cuda::kAllLanes, sum, cuda::kWarp - 1);
        n_done += n_known;
      }
      at += n_done;
    }
    if (cuda::laneId() == 0) {
      conclude(before);
    }
  }

  /// All threads, at the end: the last block leaves everything as it was.
  __device__ __forceinline__ void finish() const {
    __syncthreads();
    if (threadIdx.x == 0 && !isAlone()) {
      __threadfence();  // no ticket is taken after this
      // The last one cleans up.
      if (atomicAdd(&args.control->n_blocks_done, 1u) == gridDim.x - 1) {  // order-free: a count
        args.control->n_blocks_done = 0;
        args.control->next_ticket = 0;
      }
    }
  }

 private:
  /// A block that is alone has no other to wait for.
  __device__ __forceinline__ bool isAlone() const {
    return gridDim.x == 1;
  }
  __device__ __forceinline__ std::uint32_t take() const {
    return cuda::TileTicket{&args.control->next_ticket}.take();
  }
  /// A full warp: the ticket after that of next_tile.
  __device__ __forceinline__ std::uint32_t takeTicket(std::uint32_t next_tile) const {
    if (isAlone()) {
      return next_tile + 2;
    }
    const std::uint32_t ticket = cuda::laneId() == 0 ? take() : 0;
    return __shfl_sync(cuda::kAllLanes, ticket, 0);
  }

  /// A full warp: the base of a tile, 0 while it is not known. One lane looks, since it is gone
  /// when it has been seen.
  __device__ __forceinline__ std::uint64_t lookForBase(std::uint32_t tile) const {
    const std::uint64_t found = cuda::laneId() == 0 ? load(args.bases + tile) : 0;
    return __shfl_sync(cuda::kAllLanes, found, 0);
  }

  /// One thread of the grid: what only the device knows after encoding.
  __device__ __forceinline__ void conclude(std::uint64_t payload_bytes) const {
    const std::uint64_t in_bytes = cuda::load(args.in_size);
    if (in_bytes % sizeof(S) != 0) {
      args.record->value[kCameSlot] = in_bytes;
      cuda::recordError(args.record, DeviceError::kCorrupt, in_bytes);
    }
    args.record->value[kCountSlot] = shape.n_values;
    cuda::publishSize(args.record, 0, shape.meta_bytes + payload_bytes, args.capacity_bytes);
  }

  static __device__ __forceinline__ std::uint64_t load(const std::uint64_t* p) {
    std::uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
  }
  static __device__ __forceinline__ void store(std::uint64_t* p, std::uint64_t v) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
  }
};

}  // namespace fz::adaptive_bitpack
