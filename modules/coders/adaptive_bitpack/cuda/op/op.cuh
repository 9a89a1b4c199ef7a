#pragma once

// The coder at the end of a fused group, or alone behind the field: block sizes that are powers of
// two from 32 on. Device code only; must compile with NVRTC.

#include "backends/cuda/group/front.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/adaptive_bitpack/cuda/op/decode.cuh"
#include "coders/adaptive_bitpack/cuda/op/encode.cuh"
#include "coders/adaptive_bitpack/cuda/op/place.cuh"
#include "coders/adaptive_bitpack/cuda/policy.h"

namespace fz::adaptive_bitpack {

/// kGroups: groups of 32 values in a block, 0 when only the arguments tell.
template <class S, bool kOutlier, unsigned kGroups>
struct GroupsOp {
  using Args = GroupsArgs;

  /// A thread block takes tile after tile. A tile's payload waits in shared memory until the next
  /// tile is coded; by then the bytes before it are known. One more warp, the queue warp, does
  /// everything that has to do with other blocks, so that no other warp waits for it.
  template <class Front>
  struct Encoding {
    static constexpr unsigned kStagingBytes = group::stagingBytesOf<Front, kGroupValues>();
    static constexpr unsigned kWarps = encodeWarps(kStagingBytes);
    static constexpr unsigned kBlocks = encodeBlocks(kStagingBytes);
    static constexpr unsigned kThreads = (kWarps + 1) * cuda::kWarp;
    static constexpr unsigned kTileValues = kWarps * kWarpValues;
    static constexpr bool kIsPersistent = true;
    /// A warp's payload and a word behind it.
    static constexpr unsigned kSlotWords = cuda::kWarp * (kValueBits<S> + 1) + 4;

    struct Shared {
      uint4 staging[kWarps][kStagingBytes / 16];
      __align__(16) std::uint32_t slots[kWarps][kSlotWords];
      TileExchange<kWarps> exchange;
    };
    static constexpr unsigned kSharedBytes = sizeof(Shared);
  };

  /// A warp at a time, on its own.
  template <class Front>
  struct Decoding {
    static constexpr unsigned kWarps = kDecodeWarps;
    static constexpr unsigned kThreads = kWarps * cuda::kWarp;
    /// Its payload, later its values. A stream that no encoder wrote may have the outlier form at
    /// the full rate.
    static constexpr unsigned kPayloadBytes =
        cuda::stagingBytes(cuda::kWarp * (4 * (kValueBits<S> + 1) +
                                          (kOutlier ? static_cast<unsigned>(sizeof(S)) : 0u)));
    static constexpr unsigned kStagingBytes = group::stagingBytesOf<Front, kGroupValues>();
    static constexpr unsigned kSlotBytes =
        kPayloadBytes > kStagingBytes ? kPayloadBytes : kStagingBytes;
    static constexpr unsigned kBlocks = decodeBlocks(kSlotBytes, kOutlier);
    static constexpr unsigned kTileValues = kWarps * kWarpValues;
    static constexpr bool kIsPersistent = false;
    static constexpr unsigned kSharedBytes = kWarps * kSlotBytes;
  };

  template <class Front>
  static __device__ __forceinline__ void encode(const Args& args, const Front& front) {
    using Way = Encoding<Front>;
    using Shared = typename Way::Shared;
    static_assert(sizeof(typename Front::Value) == sizeof(S));
    if (!front.isNeeded()) {
      return;
    }
    auto& shared = *reinterpret_cast<Shared*>(group::dynamicShared());
    const EncodeShape shape(front.count(), {args.block_values, kOutlier});
    const TileQueue<S, Way::kWarps> queue{
        args, shape,
        static_cast<std::uint32_t>(bits::ceilDiv(shape.n_values, std::uint64_t{Way::kTileValues})),
        shared.exchange};
    queue.start();
    if (shared.exchange.ticket[0] == 0) {
      if (cuda::warpId() == 0) {
        queue.scan();
      }
    } else if (cuda::warpId() == Way::kWarps) {
      queue.serve();
    } else {
      encodeTiles(args, front, queue, shared);
    }
    queue.finish();
    front.finish();
  }

  template <class Front>
  static __device__ __forceinline__ void encodeTiles(
      const Args& args,
      const Front& front,
      const TileQueue<S, Encoding<Front>::kWarps>& queue,
      typename Encoding<Front>::Shared& shared) {
    using Way = Encoding<Front>;
    const EncodeShape& shape = queue.shape;
    auto& exchange = shared.exchange;
    const unsigned warp = cuda::warpId();
    uint4* staging = shared.staging[warp];
    std::uint32_t* slot = shared.slots[warp];
    const Lanes<kGroups> lanes(args.block_values);
    const BlockLayout layout{args.block_values, kOutlier};
    const auto mapOf = [&](std::uint32_t tile) {
      return group::LinearMap{std::uint64_t{tile} * Way::kTileValues + warp * kWarpValues,
                              shape.n_values};
    };
    const auto writeLast = [&](unsigned k, std::uint32_t n_bytes) {
      const std::uint64_t to =
          shape.meta_bytes + exchange.base[k & 1u] + exchange.before[(k - 1) & 1u][warp];
      if (to + n_bytes <= args.capacity_bytes) {
        // Rows of a block are whole words where there are no outliers.
        cuda::copyFromStaging<!kOutlier>({cuda::laneId(), cuda::kWarp}, slot, n_bytes,
                                         args.out + to);
      }
    };
    std::uint32_t tile = exchange.ticket[0] - 1;
    std::uint32_t last_bytes = 0;  // this warp's part of the tile before
    if (tile < queue.n_tiles) {
      front.template fetch<kGroupValues>(mapOf(tile), staging);
    }
    for (unsigned k = 0;; ++k) {  // the block's k-th tile
      if (tile >= queue.n_tiles) {
        exchange.waitForBase(k);
        if (k > 0) {
          writeLast(k, last_bytes);
        }
        return;
      }
      const std::uint64_t first_block = mapOf(tile).first >> (5 + lanes.count_log2);
      Group<S> group;
      {
        S v[kGroupValues];
        cuda::waitForCopies();
        __syncwarp();
        takeValues(front, mapOf(tile), staging, v);
        tile = exchange.ticket[(k + 1) % kTickets] - 1;
        if (tile < queue.n_tiles) {
          front.template fetch<kGroupValues>(mapOf(tile), staging);
        }
        makeGroup(v, group);
      }
      const BlockForm form = chooseGroupForm<kOutlier>(group, layout, lanes);
      const std::uint32_t cost = blockCost(form, 4 * lanes.count());
      const std::uint32_t end = cuda::warpInclusiveSum(lanes.group() == 0 ? cost : 0u);
      const std::uint32_t n_bytes = __shfl_sync(cuda::kAllLanes, end, cuda::kWarp - 1);
      if (cuda::laneId() == 0) {
        exchange.putBytes(k, warp, n_bytes);
      }
      const std::uint64_t block = first_block + (cuda::laneId() >> lanes.count_log2);
      if (lanes.group() == 0 && block < shape.n_blocks && shape.meta_bytes <= args.capacity_bytes) {
        putForm(form, layout, args.out + block * layout.metaBytes());
      }
      exchange.waitForBase(k);
      if (k > 0) {
        writeLast(k, last_bytes);
      }
      __syncwarp();
      stageBlock<S, kOutlier>(group, form, lanes,
                              reinterpret_cast<std::uint8_t*>(slot) + (end - cost));
      __syncwarp();
      last_bytes = n_bytes;
    }
  }

  template <class Front>
  static __device__ __forceinline__ void decode(const Args& args, const Front& front) {
    using Way = Decoding<Front>;
    static_assert(!Front::kBlockWide && sizeof(typename Front::Value) == sizeof(S));
    const std::uint64_t tile = std::uint64_t{blockIdx.x} * Way::kWarps + cuda::warpId();
    const DecodeShape shape(args.record->value[kCountSlot], cuda::load(args.in_size),
                            {args.block_values, kOutlier}, args.capacity_bytes / sizeof(S));
    if (!shape.sound || !front.begin(shape.n_values) || tile * kWarpValues >= shape.n_values) {
      return;
    }
    const Lanes<kGroups> lanes(args.block_values);
    const BlockLayout layout{args.block_values, kOutlier};
    const std::uint64_t block = (tile * cuda::kWarp + cuda::laneId()) >> lanes.count_log2;
    BlockForm form;
    if (block < shape.n_blocks) {
      form = soundForm<S>(args.in + block * layout.metaBytes(), layout);
    }
    const std::uint64_t tile_begin = shape.meta_bytes + args.offsets[tile];
    const std::uint32_t cost = blockCost(form, 4 * lanes.count());
    const std::uint32_t end = cuda::warpInclusiveSum(lanes.group() == 0 ? cost : 0u);
    const std::uint32_t tile_bytes = __shfl_sync(cuda::kAllLanes, end, cuda::kWarp - 1);
    if (tile_begin + tile_bytes > shape.stream_bytes) {
      return;  // reported by measureBlocks
    }
    uint4* slot = group::dynamicShared() + cuda::warpId() * (Way::kSlotBytes / 16);
    const cuda::StagedRange range{args.in, shape.stream_bytes, tile_begin, tile_bytes};
    cuda::copyToStaging({cuda::laneId(), cuda::kWarp}, range, slot);
    __syncwarp();
    std::uint32_t row[kGroupValues];
    const std::uint32_t signs = readGroup<S, kOutlier>(reinterpret_cast<const std::uint32_t*>(slot),
                                                       range.skew() + end - cost, form, lanes, row);
    __syncwarp();
    S v[kGroupValues];
    signGroup(row, signs, v);
    putValues(front, {tile * kWarpValues, shape.n_values}, slot, v);
  }

 private:
  /// The lane's values; 0 behind the last one.
  template <class Front>
  static __device__ __forceinline__ void takeValues(const Front& front,
                                                    const group::LinearMap& map,
                                                    const uint4* staging,
                                                    S (&v)[kGroupValues]) {
    typename Front::Value x[kGroupValues];
    front.template take<kGroupValues>(map, staging, x);
#pragma unroll
    for (unsigned i = 0; i < kGroupValues; ++i) {
      v[i] = static_cast<S>(x[i]);
    }
    if (map.first + kWarpValues > map.n_values) {
#pragma unroll
      for (unsigned i = 0; i < kGroupValues; ++i) {
        v[i] = map.first + cuda::laneId() * kGroupValues + i < map.n_values ? v[i] : S{0};
      }
    }
  }
  template <class Front>
  static __device__ __forceinline__ void putValues(const Front& front,
                                                   const group::LinearMap& map,
                                                   uint4* staging,
                                                   const S (&v)[kGroupValues]) {
    typename Front::Value x[kGroupValues];
#pragma unroll
    for (unsigned i = 0; i < kGroupValues; ++i) {
      x[i] = static_cast<typename Front::Value>(v[i]);
    }
    front.template put<kGroupValues>(map, staging, x);
  }
};

}  // namespace fz::adaptive_bitpack
