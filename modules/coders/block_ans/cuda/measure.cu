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
// A warp takes eight blocks at a time, four values a lane from two blocks at once.
constexpr unsigned kLoads = 4;
constexpr unsigned kLoadValues = 4 * kWarp;

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T v[4];
};

/// Four values; zeros past the end.
template <class T>
__device__ __forceinline__ Four<T> loadFour(const T* values,
                                            std::uint64_t first,
                                            std::uint64_t n_values) {
  if (first + 4 <= n_values) {
    return *reinterpret_cast<const Four<T>*>(values + first);
  }
  Four<T> four;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    four.v[i] = first + i < n_values ? values[first + i] : T{0};
  }
  return four;
}

/// What a lane has of eight blocks.
template <class T>
struct Piece {
  Four<T> fours[kLoads];

  __device__ __forceinline__ void load(const T* values,
                                       std::uint64_t first,
                                       std::uint64_t n_values) {
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
      fours[j] = loadFour(values, first + j * kLoadValues, n_values);
    }
  }
};

struct Shared {
  std::uint32_t symbols[kClasses * kSymbols];  // by class; none of class 0 is counted
  std::uint32_t contexts[kContexts * kContextStride];
  alignas(4) std::uint8_t classes[kWarps][kGroupBlocks];
  unsigned long long weight;
};

/// Class of the block that this lane's four numbers are in: lanes up to 15 have one, the others the
/// next.
__device__ __forceinline__ std::uint32_t classOfFour(const std::uint32_t* u) {
  std::uint32_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    sum += min(u[i], 1u << kMaxClass);  // decides the class alone, and does not overflow
  }
  const bool is_first = laneId() < kWarp / 2;
  const std::uint32_t first = __reduce_add_sync(kAllLanes, is_first ? sum : 0u);
  const std::uint32_t second = __reduce_add_sync(kAllLanes, is_first ? 0u : sum);
  return min(bits::bitWidth(is_first ? first : second), kMaxClass);
}

/// Eight blocks of a group.
template <class T, Map kMap>
__device__ __forceinline__ void measureBlocks(const Piece<T>& piece,
                                              std::uint32_t* counts,
                                              std::uint8_t* classes) {
#pragma unroll
  for (unsigned j = 0; j < kLoads; ++j) {
    std::uint32_t four[4];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      four[i] = numberOf<kMap>(piece.fours[j].v[i]);
    }
    const std::uint32_t block_class = classOfFour(four);
    if (laneId() % (kWarp / 2) == 0) {
      classes[2 * j + laneId() / (kWarp / 2)] = static_cast<std::uint8_t>(block_class);
    }
    if (block_class != 0) {
      if ((four[0] | four[1] | four[2] | four[3]) >= 16) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          four[i] = four[i] < 16 ? four[i] : largeSymbol(four[i]);
        }
      }
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        atomicAdd(&counts[block_class * kSymbols + four[i]], 1u);  // order-free: counts
      }
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
  piece.load(values, g * kGroupValues + 4 * laneId(), endOf(g));
  for (; g < n_groups; g += n_warps) {
    const std::uint64_t first = g * kGroupValues + 4 * laneId();
    const std::uint64_t end = endOf(g);
#pragma unroll 1
    for (unsigned b = 0; b < kGroupBlocks; b += 2 * kLoads) {
      // The next piece is on its way while this one is measured.
      const bool is_last = b + 2 * kLoads == kGroupBlocks;
      Piece<T> next;
      next.load(values,
                is_last ? first + n_warps * kGroupValues : first + (b + 2 * kLoads) * kBlockValues,
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
