// The outlier lists, from the masks of the tiles that have any. The values are read a second time,
// but only where there are outliers (behind a fused group, marks and masks are left at zero, as the
// group's ops must find them); a tile that waited for its place in the lists while it holds
// its codes would cost more.
#include "backends/cuda/each_field.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "fz/cuda_part.h"
#include "quantizers/quantizer/cuda/op/tile.cuh"

namespace fz::quantizer::device {

namespace {

/// Batches without outliers need no prefix, but some of them must find theirs, or a later batch
/// would walk back too far.
constexpr unsigned kPrefixEvery = 32;

template <class T>
struct Lists {
  const BitsOf<T>* __restrict__ in;
  BitsOf<T>* __restrict__ values;
  std::uint32_t* __restrict__ indices;
  group::Holes holes = {};
  std::uint64_t n_values;
  std::uint64_t room;  ///< entries

  explicit __device__ __forceinline__ Lists(const EncodeJob& job)
      : in(reinterpret_cast<const BitsOf<T>*>(job.input.data)),
        values(reinterpret_cast<BitsOf<T>*>(job.outlier_values.data)),
        indices(reinterpret_cast<std::uint32_t*>(job.outlier_indices.data)),
        n_values(valuesOf<T>(job)) {
    if (job.counts_are_marks) {
      holes = holesOf(job);
    }
    const std::uint64_t room_values = job.outlier_values.capacity_bytes / sizeof(T);
    const std::uint64_t room_indices = job.outlier_indices.capacity_bytes / sizeof(std::uint32_t);
    room = room_values < room_indices ? room_values : room_indices;
  }

  __device__ __forceinline__ void put(std::uint64_t at, std::uint64_t index) const {
    if (at < room) {
      values[at] =
          holes.words == nullptr ? in[index] : group::heldValue<BitsOf<T>>(holes, index, n_values);
      indices[at] = static_cast<std::uint32_t>(index);
    }
  }
};

template <class T>
__device__ __forceinline__ void publishLists(const EncodeJob& job, std::uint64_t n_outliers) {
  job.record->value[kSlotOutliers] = n_outliers;
  cuda::publishSize(job.record, 1, n_outliers * sizeof(T), job.outlier_values.capacity_bytes);
  cuda::publishSize(job.record, 2, n_outliers * sizeof(std::uint32_t),
                    job.outlier_indices.capacity_bytes);
}

/// The lane's part of a tile's mask: neighbouring values.
template <class T>
__device__ __forceinline__ unsigned maskPart(const EncodeJob& job, std::uint64_t tile) {
  constexpr unsigned kPart = TileShape<T, kVecs>::kValues / cuda::kWarp;
  constexpr unsigned kPartsPerWord = 32 / kPart;
  const unsigned lane = cuda::laneId();
  const std::uint32_t* words = job.tile_masks + tile * kMaskWords<T>;
  return words[lane / kPartsPerWord] >> (lane % kPartsPerWord * kPart) & ((1u << kPart) - 1u);
}

/// Outliers of a tile, by one thread.
template <class T>
__device__ __forceinline__ unsigned countMask(const EncodeJob& job, std::uint64_t tile) {
  const auto* words = reinterpret_cast<const uint4*>(job.tile_masks + tile * kMaskWords<T>);
  unsigned count = 0;
#pragma unroll
  for (unsigned i = 0; i < kMaskWords<T> / 4; ++i) {
    const uint4 four = words[i];
    count +=
        static_cast<unsigned>(__popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w));
  }
  return count;
}

/// A full warp: the outliers of one tile to entries from `at` on. `places` is the warp's own shared
/// memory: which values they are, so that loads and stores are side by side and do not wait for
/// each other.
template <class T>
__device__ __forceinline__ void gatherTile(const Lists<T>& lists,
                                           std::uint64_t tile,
                                           unsigned mask,
                                           unsigned count,
                                           std::uint64_t at,
                                           std::uint16_t* places) {
  constexpr unsigned kValues = TileShape<T, kVecs>::kValues;
  constexpr unsigned kPart = kValues / cuda::kWarp;
  const auto own = static_cast<unsigned>(__popc(mask));
  unsigned entry = cuda::warpInclusiveSum(own) - own;
  __syncwarp();  // the tile before has been read
  for (; mask != 0; mask &= mask - 1) {
    const auto bit = static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1;
    places[entry++] = static_cast<std::uint16_t>(cuda::laneId() * kPart + bit);
  }
  __syncwarp();
#pragma unroll 4
  for (unsigned i = cuda::laneId(); i < count; i += cuda::kWarp) {
    lists.put(at + i, tile * kValues + places[i]);
  }
}

template <class T>
__device__ __forceinline__ void gather(const EncodeJob& job) {
  constexpr unsigned kValues = TileShape<T, kVecs>::kValues;
  __shared__ unsigned warp_sums[kWarps];
  __shared__ unsigned tile_counts[kMaxBatchTiles];
  __shared__ unsigned tile_entries[kMaxBatchTiles];
  __shared__ std::uint64_t lists_begin;
  __shared__ std::uint16_t places[kWarps][kValues];
  const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(valuesOf<T>(job), kValues);
  const std::uint64_t n_batches =
      n_tiles == 0 ? 1 : bits::ceilDiv<std::uint64_t>(n_tiles, job.batch_tiles);
  const std::uint64_t batch = blockIdx.x;
  if (batch >= n_batches) {
    return;
  }
  const bool is_last = batch + 1 == n_batches;
  const std::uint64_t first_tile = batch * job.batch_tiles;
  unsigned count = threadIdx.x < job.batch_tiles && first_tile + threadIdx.x < n_tiles
                       ? job.tile_counts[first_tile + threadIdx.x]
                       : 0;
  if (job.counts_are_marks && count != 0) {
    count = countMask<T>(job, first_tile + threadIdx.x);
    job.tile_counts[first_tile + threadIdx.x] = 0;
  }
  unsigned total = 0;
  const unsigned before = cuda::blockExclusiveSum<kThreads>(count, warp_sums, &total);
  if (threadIdx.x < job.batch_tiles) {
    tile_counts[threadIdx.x] = count;
    tile_entries[threadIdx.x] = before;
  }
  if (cuda::warpId() == 0) {
    const cuda::LookBack scan{job.batch_states};
    if (cuda::laneId() == 0) {
      scan.publish(batch, total);
    }
    if (total != 0 || is_last || batch % kPrefixEvery == kPrefixEvery - 1) {
      const std::uint64_t n_before = scan.prefix(batch, total);
      if (cuda::laneId() == 0) {
        lists_begin = n_before;
        if (is_last) {
          publishLists<T>(job, n_before + total);
        }
      }
    }
  }
  if (total == 0) {
    return;
  }
  __syncthreads();
  const Lists<T> lists(job);
  // The next mask is on its way while a tile's values are.
  const auto loadMask = [&](unsigned i) {
    return i < job.batch_tiles && tile_counts[i] != 0 ? maskPart<T>(job, first_tile + i) : 0;
  };
  unsigned mask = loadMask(cuda::warpId());
  for (unsigned i = cuda::warpId(); i < job.batch_tiles; i += kWarps) {
    const unsigned next_mask = loadMask(i + kWarps);
    if (tile_counts[i] != 0) {
      gatherTile<T>(lists, first_tile + i, mask, tile_counts[i], lists_begin + tile_entries[i],
                    places[cuda::warpId()]);
      if (job.counts_are_marks && cuda::laneId() < kMaskWords<T>) {
        job.tile_masks[(first_tile + i) * kMaskWords<T> + cuda::laneId()] = 0;
      }
    }
    mask = next_mask;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) gatherKernel(const EncodeJob job) {
  gather<T>(job);
}

template <class T>
__global__ void __launch_bounds__(kThreads) gatherEachKernel(const EachField fields) {
  gather<T>(cuda::argumentsOf<EncodeJob>(fields));
}

}  // namespace

void launchGather(const EncodeJob& job, const cuda::Call& call) {
  const auto n_blocks = static_cast<unsigned>(job.n_batches);
  call.launch("quantizer gatherKernel",
              job.value_bytes == 4 ? cuda::withEach(gatherKernel<float>, gatherEachKernel<float>)
                                   : cuda::withEach(gatherKernel<double>, gatherEachKernel<double>),
              n_blocks, kThreads, 0, job);
}

}  // namespace fz::quantizer::device
