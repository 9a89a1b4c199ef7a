// Classes of blocks, weights of groups, and how often each symbol of each table occurs.
#include "backends/cuda/launch.h"
#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::block_ans {

namespace {

constexpr unsigned kThreads = kMeasureThreads;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kContextStride = 32;
// A warp takes pieces of blocks, 16 bytes a lane from two or four blocks at once.
constexpr unsigned kLoads = 4;
template <class T>
constexpr unsigned kLoadValues = 16 / sizeof(T) * kWarp;
template <class T>
constexpr unsigned kLoadBlocks = kLoadValues<T> / kBlockValues;
template <class T>
constexpr unsigned kPieceBlocks = kLoads* kLoadBlocks<T>;

/// What a lane has of the blocks of a load, as words; zeros past the end.
template <class T>
__device__ __forceinline__ uint4 loadWords(const T* values,
                                           std::uint64_t first,
                                           std::uint64_t n_values) {
  constexpr unsigned kCount = 16 / sizeof(T);
  if (first + kCount <= n_values) {
    return *reinterpret_cast<const uint4*>(values + first);
  }
  std::uint32_t words[4] = {};
#pragma unroll
  for (unsigned i = 0; i < kCount; ++i) {
    const std::uint32_t value = first + i < n_values ? values[first + i] : T{0};
    words[i * sizeof(T) / 4] |= value << (i * sizeof(T) % 4 * 8);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

/// What a lane has of a piece.
template <class T>
struct Piece {
  uint4 loads[kLoads];

  __device__ __forceinline__ void load(const T* values,
                                       std::uint64_t first,
                                       std::uint64_t n_values) {
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
      loads[j] = loadWords(values, first + j * kLoadValues<T>, n_values);
    }
  }
};

struct Shared {
  std::uint32_t symbols[kClasses * kSymbols];  // by class; none of class 0 is counted
  std::uint32_t contexts[kContexts * kContextStride];
  alignas(4) std::uint8_t classes[kWarps][kGroupBlocks];
  unsigned long long weight;
};

/// Numbers of two values of 16 bits at once.
template <Map kMap>
__device__ __forceinline__ std::uint32_t numbersOfPair(std::uint32_t word) {
  if constexpr (kMap == Map::kNone) {
    return word;
  } else {
    const std::uint32_t signs = word >> 15 & 0x00010001u;
    return ((word ^ signs * 0xffffu) << 1) + signs;
  }
}

/// Sums over the lanes of each block of a load: of two blocks, or of four.
template <class T>
__device__ __forceinline__ std::uint32_t sumOfBlock(std::uint32_t sum) {
  if constexpr (kLoadBlocks<T> == 2) {
    const bool is_first = laneId() < kWarp / 2;
    const std::uint32_t first = __reduce_add_sync(kAllLanes, is_first ? sum : 0u);
    const std::uint32_t second = __reduce_add_sync(kAllLanes, is_first ? 0u : sum);
    return is_first ? first : second;
  } else {
#pragma unroll
    for (unsigned step = kWarp / kLoadBlocks<T> / 2; step > 0; step /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, step);
    }
    return sum;
  }
}

__device__ __forceinline__ void count(std::uint32_t* counts, std::uint32_t u) {
  atomicAdd(&counts[u < 16 ? u : largeSymbol(u)], 1u);  // order-free: counts
}

/// The blocks of a load. Returns the class of this lane's.
template <class T, Map kMap>
__device__ __forceinline__ std::uint32_t measureLoad(const uint4& load, std::uint32_t* counts) {
  std::uint32_t words[4] = {load.x, load.y, load.z, load.w};
  std::uint32_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 2) {
      words[i] = numbersOfPair<kMap>(words[i]);
      sum += (words[i] & 0xffffu) + (words[i] >> 16);
    } else {
      words[i] = numberOf<kMap>(words[i]);
      sum += min(words[i], 1u << kMaxClass);  // decides the class alone, and does not overflow
    }
  }
  const std::uint32_t block_class = min(bits::bitWidth(sumOfBlock<T>(sum)), kMaxClass);
  if (block_class == 0) {
    return 0;
  }
  counts += block_class * kSymbols;
  constexpr std::uint32_t kLarge = sizeof(T) == 2 ? 0xfff0fff0u : 0xfffffff0u;
  if (((words[0] | words[1] | words[2] | words[3]) & kLarge) == 0) {
#pragma unroll
    for (unsigned i = 0; i < 16 / sizeof(T); ++i) {
      const std::uint32_t word = words[i * sizeof(T) / 4];
      const std::uint32_t u = sizeof(T) == 4 ? word : i % 2 == 0 ? word & 15u : word >> 16;
      atomicAdd(&counts[u], 1u);  // order-free: counts
    }
  } else {
#pragma unroll
    for (unsigned i = 0; i < 16 / sizeof(T); ++i) {
      const std::uint32_t word = words[i * sizeof(T) / 4];
      count(counts, sizeof(T) == 4 ? word : i % 2 == 0 ? word & 0xffffu : word >> 16);
    }
  }
  return block_class;
}

/// The blocks of a piece.
template <class T, Map kMap>
__device__ __forceinline__ void measureBlocks(const Piece<T>& piece,
                                              std::uint32_t* counts,
                                              std::uint8_t* classes) {
  constexpr unsigned kBlockLanes = kWarp / kLoadBlocks<T>;
#pragma unroll
  for (unsigned j = 0; j < kLoads; ++j) {
    const std::uint32_t block_class = measureLoad<T, kMap>(piece.loads[j], counts);
    if (laneId() % kBlockLanes == 0) {
      classes[kLoadBlocks<T> * j + laneId() / kBlockLanes] = static_cast<std::uint8_t>(block_class);
    }
  }
}

/// One count more, of many blocks.
__device__ __forceinline__ void addTo(std::uint64_t* sum, std::uint64_t value) {
  auto* counter = reinterpret_cast<unsigned long long*>(sum);
  atomicAdd(counter, static_cast<unsigned long long>(value));  // order-free: only a sum
}

/// What blocks of the grid have counted, all together.
__device__ __forceinline__ void addCounts(const Shared& shared, std::uint64_t* counts) {
  for (unsigned i = threadIdx.x; i < kSymbolTables * kSymbols; i += kThreads) {
    if (shared.symbols[kSymbols + i] != 0) {
      addTo(counts + i, shared.symbols[kSymbols + i]);
    }
  }
  for (unsigned i = threadIdx.x; i < kContexts * kContextStride; i += kThreads) {
    if (shared.contexts[i] != 0) {
      addTo(counts + classTable(i / kContextStride) * kSymbols + i % kContextStride,
            shared.contexts[i]);
    }
  }
}

template <class T, Map kMap>
__global__ void __launch_bounds__(kThreads, kMeasureBlocks) measureKernel(EncodeArgs args) {
  __shared__ Shared shared;
  for (unsigned i = threadIdx.x; i < sizeof(Shared) / 4; i += kThreads) {
    reinterpret_cast<std::uint32_t*>(&shared)[i] = 0;
  }
  __syncthreads();
  const std::uint64_t n_values = cuda::load(args.in.size) / sizeof(T);
  const std::uint64_t n_groups = groupsOf(n_values);
  const T* const values = reinterpret_cast<const T*>(args.in.data);
  std::uint8_t* const classes = shared.classes[warpId()];
  std::uint64_t weight = 0;
  const std::uint64_t n_warps = std::uint64_t{gridDim.x} * kWarps;
  std::uint64_t g = std::uint64_t{blockIdx.x} * kWarps + warpId();
  // So that whole groups are not asked for every four values.
  const auto endOf = [&](std::uint64_t group) {
    return (group + 1) * kGroupValues <= n_values ? ~std::uint64_t{0} : n_values;
  };
  Piece<T> piece;
  constexpr unsigned kLaneValues = 16 / sizeof(T);
  piece.load(values, g * kGroupValues + kLaneValues * laneId(), endOf(g));
  for (; g < n_groups; g += n_warps) {
    const std::uint64_t first = g * kGroupValues + kLaneValues * laneId();
    const std::uint64_t end = endOf(g);
#pragma unroll 1
    for (unsigned b = 0; b < kGroupBlocks; b += kPieceBlocks<T>) {
      // The next piece is on its way while this one is measured.
      const bool is_last = b + kPieceBlocks<T> == kGroupBlocks;
      Piece<T> next;
      next.load(
          values,
          is_last ? first + n_warps * kGroupValues : first + (b + kPieceBlocks<T>)*kBlockValues,
          is_last ? endOf(g + n_warps) : end);
      measureBlocks<T, kMap>(piece, shared.symbols, classes + b);
      piece = next;
    }
    __syncwarp();
    const std::uint32_t both = reinterpret_cast<const std::uint16_t*>(classes)[laneId()];
    const std::uint32_t even = both & 255u;
    const std::uint32_t odd = both >> 8;
    args.classes[g * kLanes + laneId()] = static_cast<std::uint16_t>(both);
    atomicAdd(&shared.contexts[kFirstContext * kContextStride + even], 1u);  // order-free: counts
    atomicAdd(&shared.contexts[even * kContextStride + odd], 1u);            // order-free: counts
    const std::uint32_t of_group =
        __reduce_add_sync(kAllLanes, blockWeight(even) + blockWeight(odd));
    if (laneId() == 0) {
      args.weights[g] = static_cast<std::uint16_t>(of_group);
    }
    weight += of_group;
    __syncwarp();
  }
  if (laneId() == 0) {
    atomicAdd(&shared.weight, static_cast<unsigned long long>(weight));  // order-free: a sum
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    addTo(args.total_weight, shared.weight);
  }
  addCounts(shared, args.counts);
}

}  // namespace

void launchMeasure(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  const unsigned n_resident = kMeasureBlocks * cuda::multiprocessorCount();
  const unsigned n_blocks = std::min(cuda::gridFor(args.max_groups, kWarps), n_resident);
  withTypeAndMap(value_bytes, args.map, [&]<class T, Map kMap>() {
    call.launch("block_ans measure", measureKernel<T, kMap>, n_blocks, kThreads, 0, args);
  });
}

}  // namespace fz::block_ans
