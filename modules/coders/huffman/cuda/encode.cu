// Writing codes. A warp takes a partition: every lane looks up the codes of a run of its values, a
// sum over the lanes gives each run its first bit, and the runs are put together in shared memory.
// The words go out in one piece per partition, at a place that a look-back over tiles tells.
#include <algorithm>
#include <type_traits>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/huffman/cuda/kernels.h"
#include "coders/huffman/cuda/setup.h"
#include "fz/cuda_part.h"

namespace fz::huffman {

namespace {

constexpr unsigned kThreads = kEncodeThreads;
constexpr unsigned kTilePartitions = kThreads / cuda::kWarp;

/// The packed codes of a lane's values; 0, a code of no bits, behind the end of the partition.
template <class T, unsigned kPerLane, class Lookup>
__device__ __forceinline__ void lookUpRun(const T* partition,
                                          std::uint32_t n_values,
                                          Lookup code_of,
                                          std::uint32_t (&packed)[kPerLane]) {
  constexpr unsigned kRunBytes = kPerLane * sizeof(T);
  using Vec = std::conditional_t<kRunBytes % 16 == 0, uint4, uint2>;
  static_assert(kRunBytes % sizeof(Vec) == 0);
  const unsigned begin = cuda::laneId() * kPerLane;
  if (n_values == cuda::kWarp * kPerLane) {
    union {
      Vec raw[kRunBytes / sizeof(Vec)];
      T v[kPerLane];
    } run;
    // Neighbouring lanes share sectors, so these loads do go through L1.
    const Vec* from = reinterpret_cast<const Vec*>(partition + begin);
#pragma unroll
    for (unsigned j = 0; j < kRunBytes / sizeof(Vec); ++j) {
      run.raw[j] = __ldg(from + j);
    }
#pragma unroll
    for (unsigned k = 0; k < kPerLane; ++k) {
      packed[k] = code_of(run.v[k]);
    }
  } else {
#pragma unroll
    for (unsigned k = 0; k < kPerLane; ++k) {
      packed[k] = begin + k < n_values ? code_of(partition[begin + k]) : 0;
    }
  }
}

/// ORs a lane's codes into zeroed words from bit `start` on; lanes meet in their outer words.
/// kMerge codes at a time, which must have fewer than 32 bits together.
template <unsigned kMerge, unsigned kPerLane>
__device__ __forceinline__ void appendRun(const std::uint32_t (&packed)[kPerLane],
                                          std::uint32_t start,
                                          std::uint32_t* words) {
  std::uint32_t* at = words + start / 32;
  std::uint32_t n_pending = start % 32;  // the bits before the run count as zeros
  std::uint32_t hi = 0;
  std::uint32_t lo = 0;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; k += kMerge) {
    // Funnel shifts look at 5 bits of the distance, so lengths need not be unpacked.
    std::uint32_t code = codeOf(packed[k]);
    std::uint32_t sum = packed[k];
#pragma unroll
    for (unsigned j = k + 1; j < k + kMerge; ++j) {
      code = __funnelshift_l(0, code, packed[j]) | codeOf(packed[j]);
      sum += packed[j];
    }
    hi = __funnelshift_l(lo, hi, sum);
    lo = __funnelshift_l(0, lo, sum) | code;
    n_pending += codeBits(sum);
    if (n_pending >= 32) {
      n_pending -= 32;
      atomicOr(at++, __funnelshift_r(lo, hi, n_pending));
    }
  }
  if (n_pending > 0) {
    atomicOr(at, lo << (32 - n_pending));
  }
}

/// Bits of a run, and in how large groups it can be appended.
struct RunLength {
  std::uint32_t n_bits;
  bool by_twos;
  bool by_fours;
};

template <unsigned kPerLane>
__device__ __forceinline__ RunLength lengthOf(const std::uint32_t (&packed)[kPerLane]) {
  static_assert(kPerLane % 4 == 0);
  std::uint32_t n_bits = 0;
  std::uint32_t any_two = 0;  // lengths ORed: none has more than 31 bits if no bit above shows
  std::uint32_t any_four = 0;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; k += 4) {
    const std::uint32_t a = packed[k] + packed[k + 1];
    const std::uint32_t b = packed[k + 2] + packed[k + 3];
    any_two |= a | b;
    any_four |= a + b;
    n_bits += codeBits(a + b);
  }
  return {n_bits, codeBits(any_two) < 32, codeBits(any_four) < 32};
}

/// A full warp, in the largest groups that suit all its lanes.
template <unsigned kPerLane>
__device__ __forceinline__ void appendRun(const std::uint32_t (&packed)[kPerLane],
                                          const RunLength& run,
                                          std::uint32_t start,
                                          std::uint32_t* words) {
  if (__all_sync(cuda::kAllLanes, run.by_fours)) {
    appendRun<4>(packed, start, words);
  } else if (__all_sync(cuda::kAllLanes, run.by_twos)) {
    appendRun<2>(packed, start, words);
  } else {
    appendRun<1>(packed, start, words);
  }
}

/// Called by one thread of the tile that knows the number of words: the rest of the header.
__device__ void finishBlob(const EncodeArgs& args, std::uint64_t n_words) {
  const std::uint64_t n_bytes = args.layout.words + 4 * n_words;
  if (n_bytes > kMaxBlobBytes) {
    cuda::recordError(args.record, DeviceError::kDoesNotFit, 0);
    args.record->value[kReasonSlot] = static_cast<std::uint64_t>(Reason::kTooLarge);
    args.record->error_value = n_bytes;
    return;
  }
  cuda::publishSize(args.record, 0, n_bytes, args.capacity_bytes);
  if (n_bytes <= args.capacity_bytes) {
    *reinterpret_cast<std::uint64_t*>(args.out + 32) = n_words;  // SPEC: stream
    *reinterpret_cast<std::uint32_t*>(args.out + 60) = static_cast<std::uint32_t>(n_bytes);
  }
}

/// Stores a word at a byte offset; after a book of an odd size words are unaligned.
__device__ __forceinline__ void putWord(std::uint8_t* table,
                                        bool is_aligned,
                                        std::uint64_t index,
                                        std::uint32_t word) {
  if (is_aligned) {
    reinterpret_cast<std::uint32_t*>(table)[index] = word;
  } else {
    storeWord(table, index, word);
  }
}

/// One warp: the entries of partition p in the tables, and its words, which it clears behind it.
__device__ __forceinline__ void storePartition(const EncodeArgs& args,
                                               std::uint64_t p,
                                               std::uint32_t n_bits,
                                               std::uint64_t offset,
                                               std::uint32_t* words) {
  const bool is_aligned = args.layout.partition_bits % 4 == 0;
  const std::uint32_t n_words = (n_bits + 31) / 32;
  if (cuda::laneId() == 0 && args.layout.words <= args.capacity_bytes) {
    putWord(args.out + args.layout.partition_bits, is_aligned, p, n_bits);
    putWord(args.out + args.layout.partition_offsets, is_aligned, p,
            static_cast<std::uint32_t>(offset));
  }
  const bool fits = args.layout.words + 4 * (offset + n_words) <= args.capacity_bytes;
  for (std::uint32_t i = cuda::laneId(); i < n_words; i += cuda::kWarp) {
    if (fits) {
      putWord(args.out + args.layout.words, is_aligned, offset + i, words[i]);
    }
    words[i] = 0;
  }
}

/// A tile whose words stand in shared memory, as one warp sees it.
struct ReadyTile {
  std::uint64_t tile;
  std::uint32_t tile_words;
  std::uint32_t words_before;  ///< of the warps before this one
  std::uint32_t n_bits;        ///< of the warp's partition; 0: it has none
};

template <class T, unsigned kValues, bool kCodesShared>
__global__ void __launch_bounds__(kThreads, kValues == kFineValues ? 3 : 4)
    encodeKernel(EncodeArgs args, std::uint64_t n_tiles, std::uint32_t warp_words) {
  constexpr unsigned kPerLane = kValues / cuda::kWarp;
  extern __shared__ std::uint32_t shared[];
  __shared__ std::uint64_t ticket;
  __shared__ std::uint64_t tile_offset;
  __shared__ std::uint32_t partition_words[kTilePartitions];
  std::uint32_t* const words =
      shared + (kCodesShared ? args.n_codes : 0u) + 2 * cuda::warpId() * warp_words;
  if (kCodesShared) {
    for (std::uint32_t i = threadIdx.x; i < args.n_codes; i += kThreads) {
      shared[i] = args.codes[i];
    }
  }
  for (std::uint32_t i = cuda::laneId(); i < 2 * warp_words; i += cuda::kWarp) {
    words[i] = 0;
  }
  const auto code_of = [&](std::uint32_t symbol) {
    return kCodesShared ? shared[symbol] : __ldg(args.codes + symbol);
  };
  // Tiles are taken in turn, so one waits only for tiles that are being worked on.
  auto* tickets = reinterpret_cast<unsigned long long*>(args.states + n_tiles);
  if (threadIdx.x == kThreads - 1) {
    ticket = atomicAdd(tickets, 1ull);  // order-free: says who writes a tile, not what or where
  }
  __syncthreads();
  const cuda::LookBack look_back{args.states};
  ReadyTile last{n_tiles, 0, 0, 0};
  // A tile is written one round after it was made: by then its place is known or nearly so.
  for (unsigned half = 0;; half ^= 1) {
    const std::uint64_t tile = ticket;
    const std::uint64_t first = (tile * kTilePartitions + cuda::warpId()) * kValues;
    const std::uint32_t n_values =
        tile < n_tiles && first < args.n_values
            ? static_cast<std::uint32_t>(min(args.n_values - first, std::uint64_t{kValues}))
            : 0;
    std::uint32_t packed[kPerLane];
    lookUpRun(reinterpret_cast<const T*>(args.in) + first, n_values, code_of, packed);
    const RunLength run = lengthOf(packed);
    const std::uint32_t end = cuda::warpInclusiveSum(run.n_bits);
    const std::uint32_t n_bits = __shfl_sync(cuda::kAllLanes, end, cuda::kWarp - 1);
    if (cuda::laneId() == 0) {
      partition_words[cuda::warpId()] = (n_bits + 31) / 32;
    }
    __syncthreads();
    const std::uint32_t lane_words =
        cuda::laneId() < kTilePartitions ? partition_words[cuda::laneId()] : 0;
    const std::uint32_t tile_words = cuda::warpSum(lane_words);
    const std::uint32_t words_before =
        cuda::warpSum(cuda::laneId() < cuda::warpId() ? lane_words : 0);
    if (threadIdx.x == 0 && tile < n_tiles) {
      look_back.publish(tile, tile_words);
    }
    if (threadIdx.x == kThreads - 1) {
      ticket = atomicAdd(tickets, 1ull);  // order-free: as above
    }
    appendRun(packed, run, end - run.n_bits, words + half * warp_words);
    if (cuda::warpId() == 0 && last.tile < n_tiles) {
      const std::uint64_t before = look_back.prefix(last.tile, last.tile_words);
      if (cuda::laneId() == 0) {
        tile_offset = before;
        if (last.tile == n_tiles - 1) {
          finishBlob(args, before + last.tile_words);
        }
      }
    }
    __syncthreads();
    if (last.n_bits > 0) {
      storePartition(args, last.tile * kTilePartitions + cuda::warpId(), last.n_bits,
                     tile_offset + last.words_before, words + (half ^ 1) * warp_words);
    }
    if (tile >= n_tiles) {
      break;
    }
    last = {tile, tile_words, words_before, n_bits};
  }
}

template <class T, unsigned kValues, bool kCodesShared>
void launchEncodeOf(const EncodeArgs& args, const cuda::Call& call) {
  const std::uint64_t n_tiles = (args.n_partitions + kTilePartitions - 1) / kTilePartitions;
  FZ_CUDA_CHECK(
      cudaMemsetAsync(args.states, 0, (n_tiles + 1) * sizeof(std::uint64_t), call.stream));
  const std::uint32_t warp_words = (kValues * args.longest + 31) / 32;
  const std::size_t shared_bytes =
      sizeof(std::uint32_t) *
      ((kCodesShared ? args.n_codes : 0) + std::size_t{2} * kTilePartitions * warp_words);
  const auto kernel = encodeKernel<T, kValues, kCodesShared>;
  const std::lock_guard lock(sharedLimitMutex());
  FZ_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes)));
  const unsigned grid = encodeBlocks(n_tiles, cuda::multiprocessorCount());
  kernel<<<grid, kThreads, shared_bytes, call.stream>>>(args, n_tiles, warp_words);
  cuda::checkLaunch("huffman::encodeKernel");
}

template <class T, unsigned kValues>
void launchEncodeOf(const EncodeArgs& args, const cuda::Call& call) {
  if (args.n_codes <= kMaxSharedCodes) {
    launchEncodeOf<T, kValues, true>(args, call);
  } else {
    launchEncodeOf<T, kValues, false>(args, call);
  }
}

template <class T>
void launchEncodeOf(const EncodeArgs& args,
                    std::uint32_t partition_values,
                    const cuda::Call& call) {
  if (partition_values == kFineValues) {
    launchEncodeOf<T, kFineValues>(args, call);
  } else {
    launchEncodeOf<T, kCoarseValues>(args, call);
  }
}

}  // namespace

std::size_t encodeStates(std::uint64_t n_partitions) {
  return static_cast<std::size_t>((n_partitions + kTilePartitions - 1) / kTilePartitions + 1);
}

void launchEncode(const EncodeArgs& args,
                  std::size_t value_bytes,
                  std::uint32_t partition_values,
                  const cuda::Call& call) {
  cuda::withUnsigned(value_bytes,
                     [&]<class T>(T) { launchEncodeOf<T>(args, partition_values, call); });
}

}  // namespace fz::huffman
