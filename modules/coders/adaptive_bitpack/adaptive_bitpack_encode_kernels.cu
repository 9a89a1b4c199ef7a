#include "backends/cuda/bit_transpose.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/adaptive_bitpack/adaptive_bitpack_groups.cuh"

namespace fz::adaptive_bitpack {

namespace {

template <class T>
inline constexpr unsigned kEncodeWarps = kEncodeThreads<T> / cuda::kWarp;
template <class T>
inline constexpr std::uint32_t kTileValues = kEncodeWarps<T>* kWarpValues;

/// Thread blocks per multiprocessor that the registers must allow.
template <class T>
inline constexpr unsigned kThreadBlocks = sizeof(T) == 4 ? 5 : 4;

/// Words of shared memory per warp: its values, later its payload and a word behind it.
template <class T>
inline constexpr unsigned kEncodeSlotWords = cuda::kWarp*(kValueBits<T> + 1) + 4;

/// A group in the registers of its thread. 16-bit magnitudes i and i + 16 share row i, which
/// halves both the registers and the work.
template <class T>
struct Group {
  std::uint32_t row[kGroupValues];  ///< magnitudes, later planes
  std::uint32_t signs = 0;
  std::uint32_t rest = 0;  ///< OR of the magnitudes but value 0's

  __device__ __forceinline__ std::uint32_t first() const {
    return sizeof(T) == 4 ? row[0] : row[0] & 0xFFFFu;
  }
  __device__ __forceinline__ void dropFirst() {
    row[0] = sizeof(T) == 4 ? 0 : row[0] & 0xFFFF0000u;
  }
  template <unsigned kPlanes>
  __device__ __forceinline__ void toPlanes() {
    if constexpr (sizeof(T) == 4) {
      cuda::toPlanes<kPlanes>(row);
    } else {
      cuda::pairsToPlanes<kPlanes>(row);
    }
  }
};

__device__ __forceinline__ void readGroup(const uint4* pieces, Group<std::int32_t>& group) {
#pragma unroll
  for (unsigned c = 0; c < kPieces<std::int32_t>; ++c) {
    cuda::Vec16<std::int32_t> piece;
    piece.raw = pieces[pieceAt<std::int32_t>(cuda::laneId(), c)];
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned i = 4 * c + k;
      group.row[i] = bits::magnitude(piece.v[k]);
      group.rest |= i == 0 ? 0 : group.row[i];
      group.signs |= (piece.v[k] < 0 ? 1u : 0u) << i;
    }
  }
}

/// Magnitudes of both halves, and their signs in bits 0 and 16.
__device__ __forceinline__ std::uint32_t halfMagnitudes(std::uint32_t pair, std::uint32_t* signs) {
  *signs = pair >> 15 & 0x00010001u;
  return (pair ^ *signs * 0xFFFFu) + *signs;  // no carry: a negative half does not become 2^16
}

__device__ __forceinline__ void readGroup(const uint4* pieces, Group<std::int16_t>& group) {
  using Words = cuda::Vec16<std::uint32_t>;
#pragma unroll
  for (unsigned c = 0; c < 2; ++c) {
    Words low;
    Words high;
    low.raw = pieces[pieceAt<std::int16_t>(cuda::laneId(), c)];
    high.raw = pieces[pieceAt<std::int16_t>(cuda::laneId(), c + 2)];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      const unsigned i = 8 * c + k;
      const std::uint32_t pair =
          __byte_perm(low.v[k / 2], high.v[k / 2], k % 2 == 0 ? 0x5410 : 0x7632);
      std::uint32_t signs;
      group.row[i] = halfMagnitudes(pair, &signs);
      group.signs |= signs << i;
      group.rest |= i == 0 ? group.row[i] & 0xFFFF0000u : group.row[i];
    }
  }
  group.rest = (group.rest | group.rest >> 16) & 0xFFFFu;
}

/// Form of the thread's block.
template <bool kOutlier, bool kOneGroup, class T>
__device__ __forceinline__ BlockForm chooseGroupForm(const Group<T>& group,
                                                     BlockLayout layout,
                                                     Lanes<kOneGroup> lanes) {
  const bool has_first = kOutlier && lanes.group() == 0;
  std::uint32_t any = has_first ? group.rest : group.rest | group.first();
  if constexpr (!kOneGroup) {
    for (unsigned step = 1; step < lanes.count(); step *= 2) {
      any |= __shfl_xor_sync(cuda::kAllLanes, any, step);
    }
  }
  if constexpr (!kOutlier) {
    return {bits::bitWidth(any), 0};
  }
  std::uint32_t first = group.first();
  if constexpr (!kOneGroup) {
    first = __shfl_sync(cuda::kAllLanes, first, cuda::laneId() & ~(lanes.count() - 1));
  }
  return chooseForm(first, bits::bitWidth(any), layout);
}

/// Stores a word at any byte address of shared memory; its neighbours' bytes stay as they are.
__device__ __forceinline__ void storeAnywhere(std::uint8_t* at, std::uint32_t word) {
  const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) & 3u);
  if (skew == 0) {
    *reinterpret_cast<std::uint32_t*>(at) = word;
  } else if (skew == 2) {
    reinterpret_cast<std::uint16_t*>(at)[0] = static_cast<std::uint16_t>(word);
    reinterpret_cast<std::uint16_t*>(at)[1] = static_cast<std::uint16_t>(word >> 16);
  } else {
    at[0] = static_cast<std::uint8_t>(word);
    *reinterpret_cast<std::uint16_t*>(at + 1) = static_cast<std::uint16_t>(word >> 8);
    at[3] = static_cast<std::uint8_t>(word >> 24);
  }
}

/// Writes signs and planes of a group to shared memory; `at` is where the block's signs begin.
/// Rows of the block are 4 bytes per group, so a block of one group is one run of words.
template <unsigned kPlanes, bool kOutlier, bool kOneGroup, class T>
__device__ __forceinline__ void stageRows(const Group<T>& group,
                                          std::uint32_t rate,
                                          Lanes<kOneGroup> lanes,
                                          std::uint8_t* at) {
  if constexpr (!kOutlier) {
    auto* words = reinterpret_cast<std::uint32_t*>(at) + lanes.group();
    words[0] = group.signs;
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      if (p < rate) {
        words[(1 + p) * lanes.count()] = group.row[p];
      }
    }
  } else if constexpr (kOneGroup) {
    // Whole words inside the block; the two words it shares with its neighbours byte by byte.
    const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) & 3u);
    auto* words = reinterpret_cast<std::uint32_t*>(at - skew);
    std::uint32_t last = group.signs;
    if (skew == 0) {
      words[0] = last;
    } else {
      for (unsigned k = 0; k < 4 - skew; ++k) {
        at[k] = static_cast<std::uint8_t>(last >> (8 * k));
      }
    }
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      if (p < rate) {
        words[1 + p] = __funnelshift_l(last, group.row[p], 8 * skew);
        last = group.row[p];
      }
    }
    for (unsigned k = 4 - skew; k < 4; ++k) {
      at[4 * rate + k] = static_cast<std::uint8_t>(last >> (8 * k));
    }
  } else {
    storeAnywhere(at + 4 * lanes.group(), group.signs);
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      if (p < rate) {
        storeAnywhere(at + 4 * ((1 + p) * lanes.count() + lanes.group()), group.row[p]);
      }
    }
  }
}

/// The payload of the warp's blocks in shared memory; the thread's block begins at `block_at`.
template <class T, bool kOutlier, bool kOneGroup>
__device__ __forceinline__ void stageBlock(Group<T>& group,
                                           BlockForm form,
                                           Lanes<kOneGroup> lanes,
                                           std::uint8_t* block_at) {
  const std::uint32_t most_planes = __reduce_max_sync(cuda::kAllLanes, form.rate);
  const bool stored = form.rate != 0 || (kOutlier && form.outlier_bytes != 0);
  if constexpr (kOutlier) {
    if (lanes.group() == 0 && form.outlier_bytes != 0) {
      for (unsigned k = 0; k < form.outlier_bytes; ++k) {
        block_at[k] = static_cast<std::uint8_t>(group.first() >> (8 * k));
      }
      group.dropFirst();
    }
  }
  if (!__any_sync(cuda::kAllLanes, stored)) {
    return;
  }
  withPlanes<T>(most_planes, [&]<unsigned kPlanes>() {
    group.template toPlanes<kPlanes>();
    if (stored) {
      stageRows<kPlanes, kOutlier>(group, form.rate, lanes, block_at + form.outlier_bytes);
    }
  });
}

/// What a thread block keeps in shared memory; a thread's registers are full of its group.
template <class T>
struct EncodeTile {
  __align__(16) std::uint32_t slots[kEncodeWarps<T>][kEncodeSlotWords<T>];
  std::uint32_t warp_bytes[kEncodeWarps<T>];
  EncodeShape shape;
  std::uint64_t begin;  ///< of the tile's payload in the output

  __device__ __forceinline__ std::uint32_t bytesBefore(unsigned warp) const {
    std::uint32_t n_bytes = 0;
#pragma unroll
    for (unsigned w = 0; w < kEncodeWarps<T>; ++w) {
      n_bytes += w < warp ? warp_bytes[w] : 0;
    }
    return n_bytes;
  }
};

/// The first warp, as late as can be: the tiles before have had time to publish their sums.
template <class T>
__device__ __forceinline__ void findTileBegin(const CudaEncode& args, EncodeTile<T>& tile) {
  const std::uint32_t tile_bytes = tile.bytesBefore(kEncodeWarps<T>);
  const std::uint64_t before = cuda::LookBack{args.states}.prefix(blockIdx.x, tile_bytes);
  if (threadIdx.x == 0) {
    tile.begin = tile.shape.meta_bytes + before;
    if ((std::uint64_t{blockIdx.x} + 1) * kTileValues<T> >= tile.shape.n_values) {
      finishEncode<T>(args, tile.shape, before + tile_bytes);
    }
  }
}

/// One thread block per tile of kEncodeWarps * 1024 values.
template <class T, bool kOutlier, bool kOneGroup>
__global__ void __launch_bounds__(kEncodeThreads<T>, kThreadBlocks<T> - (kOutlier ? 1 : 0))
    encodeGroups(const CudaEncode args) {
  __shared__ EncodeTile<T> tile;
  std::uint32_t* slot = tile.slots[cuda::warpId()];
  const Lanes<kOneGroup> lanes(args.layout.block_values);
  const BlockLayout layout{args.layout.block_values, kOutlier};
  Group<T> group;
  {
    const EncodeShape shape = encodeShape<T>(args);
    const std::uint64_t first_value =
        std::uint64_t{blockIdx.x} * kTileValues<T> + cuda::warpId() * kWarpValues;
    if (std::uint64_t{blockIdx.x} * kTileValues<T> >= shape.n_values) {
      if (blockIdx.x == 0 && threadIdx.x == 0) {
        finishEncode<T>(args, shape, 0);
      }
      return;
    }
    if (threadIdx.x == 0) {
      tile.shape = shape;
    }
    loadWarpValues(reinterpret_cast<const T*>(args.in), first_value, shape.n_values,
                   reinterpret_cast<uint4*>(slot));
  }
  __syncwarp();
  readGroup(reinterpret_cast<const uint4*>(slot), group);
  const BlockForm form = chooseGroupForm<kOutlier>(group, layout, lanes);
  const std::uint32_t cost = blockCost(form, 4 * lanes.count());
  const std::uint32_t end = cuda::warpInclusiveSum(lanes.group() == 0 ? cost : 0u);
  if (cuda::laneId() == cuda::kWarp - 1) {
    tile.warp_bytes[cuda::warpId()] = end;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::LookBack{args.states}.publish(blockIdx.x, tile.bytesBefore(kEncodeWarps<T>));
  }
  const std::uint64_t block =
      (std::uint64_t{blockIdx.x} * kEncodeThreads<T> + threadIdx.x) >> lanes.count_log2;
  if (lanes.group() == 0 && block < tile.shape.n_blocks &&
      tile.shape.meta_bytes <= args.capacity_bytes) {
    putForm(form, layout, args.out + block * layout.metaBytes());
  }
  stageBlock<T, kOutlier>(group, form, lanes, reinterpret_cast<std::uint8_t*>(slot) + end - cost);
  if (cuda::warpId() == 0) {
    findTileBegin<T>(args, tile);
  }
  __syncthreads();
  const std::uint64_t begin = tile.begin + tile.bytesBefore(cuda::warpId());
  const std::uint32_t n_bytes = tile.warp_bytes[cuda::warpId()];
  if (begin + n_bytes <= args.capacity_bytes) {
    cuda::copyFromStaging({cuda::laneId(), cuda::kWarp}, slot, n_bytes, args.out + begin);
  }
}

template <class T, bool kOutlier>
void launch(const CudaEncode& args, unsigned n_thread_blocks, cudaStream_t stream) {
  if (args.layout.block_values == kGroupValues) {
    encodeGroups<T, kOutlier, true><<<n_thread_blocks, kEncodeThreads<T>, 0, stream>>>(args);
  } else {
    encodeGroups<T, kOutlier, false><<<n_thread_blocks, kEncodeThreads<T>, 0, stream>>>(args);
  }
  cuda::checkLaunch("AdaptiveBitpack encodeGroups");
}

}  // namespace

template <class T>
void launchEncodeGroups(const CudaEncode& args, std::size_t n_tiles, cudaStream_t stream) {
  const unsigned n_thread_blocks = cuda::gridFor(n_tiles, 1);
  if (args.layout.outlier_selection) {
    launch<T, true>(args, n_thread_blocks, stream);
  } else {
    launch<T, false>(args, n_thread_blocks, stream);
  }
}

template void launchEncodeGroups<std::int16_t>(const CudaEncode&, std::size_t, cudaStream_t);
template void launchEncodeGroups<std::int32_t>(const CudaEncode&, std::size_t, cudaStream_t);

}  // namespace fz::adaptive_bitpack
