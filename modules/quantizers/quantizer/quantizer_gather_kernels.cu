// The outlier lists, from the masks of the tiles that have any. The values are read a second time,
// but only where there are outliers; a tile that waited for its place in the lists while it holds
// its codes would cost more.
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "quantizers/quantizer/quantizer_lists.cuh"

namespace fz::quantizer::device {

namespace {

/// Groups without outliers need no prefix, but some of them must find theirs, or a later group
/// would walk back too far.
constexpr unsigned kPrefixEvery = 32;

template <class T>
struct Lists {
  const BitsOf<T>* in;
  BitsOf<T>* values;
  std::uint32_t* indices;
  std::uint64_t room;  ///< entries

  explicit __device__ __forceinline__ Lists(const EncodeJob& job)
      : in(reinterpret_cast<const BitsOf<T>*>(job.input.data)),
        values(reinterpret_cast<BitsOf<T>*>(job.outlier_values.data)),
        indices(reinterpret_cast<std::uint32_t*>(job.outlier_indices.data)) {
    const std::uint64_t room_values = job.outlier_values.capacity_bytes / sizeof(T);
    const std::uint64_t room_indices = job.outlier_indices.capacity_bytes / sizeof(std::uint32_t);
    room = room_values < room_indices ? room_values : room_indices;
  }

  __device__ __forceinline__ void put(std::uint64_t at, std::uint64_t index) const {
    if (at < room) {
      values[at] = in[index];
      indices[at] = static_cast<std::uint32_t>(index);
    }
  }
};

/// A full warp: the outliers of one tile to entries from `at` on.
template <class T>
__device__ __forceinline__ void gatherTile(const EncodeJob& job,
                                           const Lists<T>& lists,
                                           std::uint64_t tile,
                                           unsigned count,
                                           std::uint64_t at) {
  constexpr unsigned kValues = TileShape<T, kVecs>::kValues;
  constexpr unsigned kWords = TileMask<T>::kWords;
  const unsigned lane = cuda::laneId();
  const std::uint64_t begin = tile * kValues;
  const std::uint32_t* words = job.tile_masks + tile * kWords;
  if (count < kValues / 8) {
    // Few: each lane looks for its own among neighbouring values.
    constexpr unsigned kPart = kValues / cuda::kWarp;
    constexpr unsigned kPartsPerWord = 32 / kPart;
    unsigned mask = words[lane / kPartsPerWord] >> (lane % kPartsPerWord * kPart);
    mask &= (1u << kPart) - 1u;
    const auto own = static_cast<unsigned>(__popc(mask));
    at += cuda::warpInclusiveSum(own) - own;
    for (; mask != 0; mask &= mask - 1) {
      const auto bit = static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1;
      lists.put(at++, begin + lane * kPart + bit);
    }
    return;
  }
  const unsigned own_word = lane < kWords ? words[lane] : 0;
#pragma unroll 4
  for (unsigned w = 0; w < kWords; ++w) {
    const unsigned word = __shfl_sync(cuda::kAllLanes, own_word, w);
    if ((word >> lane & 1u) != 0) {
      const auto before = static_cast<unsigned>(__popc(word & ((1u << lane) - 1u)));
      lists.put(at + before, begin + w * 32 + lane);
    }
    at += static_cast<unsigned>(__popc(word));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) gatherKernel(const EncodeJob job) {
  constexpr unsigned kValues = TileShape<T, kVecs>::kValues;
  __shared__ unsigned warp_sums[kWarps];
  __shared__ std::uint64_t lists_begin;
  const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(valuesOf<T>(job), kValues);
  const std::uint64_t n_groups = n_tiles == 0 ? 1 : bits::ceilDiv<std::uint64_t>(n_tiles, kThreads);
  const std::uint64_t group = blockIdx.x;
  if (group >= n_groups) {
    return;
  }
  const bool is_last = group + 1 == n_groups;
  const std::uint64_t tile = group * kThreads + threadIdx.x;
  const unsigned count = tile < n_tiles ? job.tile_counts[tile] : 0;
  unsigned total = 0;
  const unsigned before = cuda::blockExclusiveSum<kThreads>(count, warp_sums, &total);
  if (cuda::warpId() == 0) {
    const cuda::LookBack scan{job.group_states};
    if (cuda::laneId() == 0) {
      scan.publish(group, total);
    }
    if (total != 0 || is_last || group % kPrefixEvery == kPrefixEvery - 1) {
      const std::uint64_t n_before = scan.prefix(group, total);
      if (cuda::laneId() == 0) {
        lists_begin = n_before;
        if (is_last) {
          const std::uint64_t n_outliers = n_before + total;
          job.record->value[kSlotOutliers] = n_outliers;
          cuda::publishSize(job.record, 1, n_outliers * sizeof(T),
                            job.outlier_values.capacity_bytes);
          cuda::publishSize(job.record, 2, n_outliers * sizeof(std::uint32_t),
                            job.outlier_indices.capacity_bytes);
        }
      }
    }
  }
  if (total == 0) {
    return;
  }
  __syncthreads();
  const Lists<T> lists(job);
  const std::uint64_t warp_tile = tile - cuda::laneId();
  for (unsigned left = __ballot_sync(cuda::kAllLanes, count != 0); left != 0; left &= left - 1) {
    const auto from = static_cast<unsigned>(__ffs(static_cast<int>(left))) - 1;
    gatherTile<T>(job, lists, warp_tile + from, __shfl_sync(cuda::kAllLanes, count, from),
                  lists_begin + __shfl_sync(cuda::kAllLanes, before, from));
  }
}

}  // namespace

void launchGather(const EncodeJob& job, cudaStream_t stream) {
  const auto n_blocks = static_cast<unsigned>(job.n_groups);
  if (job.value_bytes == 4) {
    gatherKernel<float><<<n_blocks, kThreads, 0, stream>>>(job);
  } else {
    gatherKernel<double><<<n_blocks, kThreads, 0, stream>>>(job);
  }
  cuda::checkLaunch("quantizer gatherKernel");
}

}  // namespace fz::quantizer::device
