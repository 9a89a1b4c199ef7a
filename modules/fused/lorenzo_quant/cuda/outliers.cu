// The two lists of an encode, in index order: places of the chunks by a scan over their counts,
// then the entries of each chunk that has any, found again from the values. Where there are few
// chunks, those that have entries add up the counts before them instead: a launch less.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "fused/lorenzo_quant/cuda/kernels.h"
#include "fused/lorenzo_quant/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::lorenzo_quant::device {

namespace {

constexpr unsigned kScanThreads = 1024;
constexpr unsigned kScanItems = 4;                  // chunks per thread and round
constexpr unsigned kWriteThreads = kChunkSegments;  // a flag word each
constexpr unsigned kLanes = 32;                     // flags of a word

/// Both counts of a chunk in one number that a whole field cannot overflow.
__device__ __forceinline__ std::uint64_t widened(std::uint32_t counts) {
  return (counts & 0xffffu) | std::uint64_t{counts >> 16} << 32;
}

/// `counts` of the whole field, range entries in the low half.
template <class T>
__device__ __forceinline__ bool listsFit(const EncodeRun& run, std::uint64_t counts) {
  const std::uint64_t n_entries = (counts & 0xffffffffu) + (counts >> 32);
  return n_entries * sizeof(T) <= run.values_capacity &&
         n_entries * sizeof(std::uint32_t) <= run.indices_capacity;
}
template <class T>
__device__ __forceinline__ void publishLists(const EncodeRun& run, std::uint64_t counts) {
  if (run.n_clear != 0 && !run.scans_range && run.size.on_device == nullptr) {
    run.record->value[kBoundSlot] = fp::bits(run.bound);
    run.record->value[kBaseSlot] = fp::bits(run.base);
    run.record->value[kAbsoluteSlot] = fp::bits(static_cast<double>(run.bound));
    run.record->value[kCountSlot] = run.size.n_bytes / sizeof(T);
  }
  const std::uint64_t n_entries = (counts & 0xffffffffu) + (counts >> 32);
  cuda::publishSize(run.record, 1, n_entries * sizeof(T), run.values_capacity);
  cuda::publishSize(run.record, 2, n_entries * sizeof(std::uint32_t), run.indices_capacity);
  run.record->value[kRangeSlot] = counts & 0xffffffffu;
  run.record->value[kVersionSlot] = versionFor(counts >> 32);
}

/// One block: chunks before each chunk, totals, sizes of the lists.
template <class T>
__global__ void __launch_bounds__(kScanThreads) placeChunks(const EncodeRun run) {
  auto& plan = *static_cast<EncodePlan<T>*>(run.plan);
  __shared__ std::uint64_t warp_sums[kScanThreads / cuda::kWarp];
  const std::uint64_t n_chunks =
      bits::ceilDiv<std::uint64_t>(plan.layout.n_segments, kChunkSegments);
  // A list has fewer than 2^32 entries, so each half of the sum holds its own.
  std::uint64_t before = 0;
  for (std::uint64_t base = 0; base < n_chunks; base += kScanThreads * kScanItems) {
    const std::uint64_t first = base + threadIdx.x * kScanItems;
    std::uint64_t counts[kScanItems];
    std::uint64_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < kScanItems; ++i) {
      counts[i] = first + i < n_chunks ? widened(run.counts[first + i]) : 0;
      sum += counts[i];
    }
    std::uint64_t total = 0;
    std::uint64_t place = before + cuda::blockExclusiveSum<kScanThreads>(sum, warp_sums, &total);
#pragma unroll
    for (unsigned i = 0; i < kScanItems; ++i) {
      if (first + i < n_chunks) {
        run.firsts[first + i] = {static_cast<std::uint32_t>(place),
                                 static_cast<std::uint32_t>(place >> 32)};
      }
      place += counts[i];
    }
    before += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    publishLists<T>(run, before);
    plan.n_range = before & 0xffffffffu;
    plan.lists_fit = listsFit<T>(run, before);
  }
}

/// A lane's share of a row, worked out again.
template <class T, int kDim>
struct Share {
  static constexpr unsigned kV = kLaneValues<T>;
  T values[kV];
  IntOf<T> deltas[kV];
  std::uint64_t at;
  unsigned range_bits = 0;
  unsigned exact_bits = 0;

  __device__ __forceinline__ void find(const EncodeRun& run,
                                       const EncodePlan<T>& plan,
                                       std::uint64_t segment,
                                       unsigned lane) {
    constexpr std::uint64_t kEdge = kDim == 1 ? 1024 : (kDim == 2 ? 32 : 8);
    const Grid& grid = plan.layout.grid;
    const T* in = static_cast<const T*>(run.in);
    // A field has fewer than 2^32 values, so 32-bit divisions do.
    const auto row_segments = static_cast<std::uint32_t>(plan.layout.row_segments);
    const auto ny = static_cast<std::uint32_t>(grid.ny);
    const std::uint32_t row = kDim == 1 ? 0 : static_cast<std::uint32_t>(segment) / row_segments;
    const std::uint64_t column = segment - std::uint64_t{row} * row_segments;
    const std::uint64_t x = column * kSegment<T> + lane * kV;
    const std::uint32_t z = kDim == 3 ? row / ny : 0;
    const bool has_up = kDim > 1 && (row - z * ny) % kEdge != 0;
    const bool has_back = kDim == 3 && z % kEdge != 0;
    at = row * grid.nx + x;
    const auto binAt = [&](std::uint64_t i) { return quantize(in[i], plan.step).value; };
    // Difference in y and z, as the prediction takes it before that in x.
    const auto columnAt = [&](std::uint64_t i) {
      IntOf<T> d = binAt(i);
      if (has_up) {
        d -= binAt(i - grid.nx);
      }
      if (has_back) {
        d -= binAt(i - grid.ny * grid.nx);
      }
      if (has_up && has_back) {
        d += binAt(i - (grid.ny + 1) * grid.nx);
      }
      return d;
    };
    IntOf<T> left = x % kEdge != 0 ? columnAt(at - 1) : 0;
#pragma unroll
    for (unsigned j = 0; j < kV; ++j) {
      if (x + j < grid.nx) {
        values[j] = in[at + j];
        const IntOf<T> here = columnAt(at + j);
        deltas[j] = here - left;
        left = here;
        range_bits |= hasCode(deltas[j], static_cast<IntOf<T>>(run.radius)) ? 0u : 1u << j;
        exact_bits |= quantize(values[j], plan.step).usable != 0 ? 0u : 1u << j;
      }
    }
  }

  __device__ __forceinline__ std::uint32_t counts() const {
    return static_cast<std::uint32_t>(__popc(range_bits)) |
           static_cast<std::uint32_t>(__popc(exact_bits)) << 16;
  }

  __device__ __forceinline__ void write(const EncodeRun& run,
                                        std::uint64_t range_place,
                                        std::uint64_t exact_place) const {
    T* list = static_cast<T*>(run.values);
#pragma unroll
    for (unsigned j = 0; j < kV; ++j) {
      if ((range_bits >> j & 1u) != 0) {
        list[range_place] = static_cast<T>(deltas[j]);
        run.indices[range_place++] = static_cast<std::uint32_t>(at + j);
      }
      if ((exact_bits >> j & 1u) != 0) {
        list[exact_place] = values[j];
        run.indices[exact_place++] = static_cast<std::uint32_t>(at + j);
      }
    }
  }
};

/// Where a chunk's entries go; false when it has none, or when the lists are too small.
struct ChunkPlace {
  std::uint64_t range;
  std::uint64_t exact;
};
template <class T>
__device__ __forceinline__ bool knownPlace(const EncodeRun& run, ChunkPlace& place) {
  const auto& plan = *static_cast<const EncodePlan<T>*>(run.plan);
  const std::uint64_t first_segment = std::uint64_t{blockIdx.x} * kChunkSegments;
  if (first_segment >= plan.layout.n_segments || !plan.lists_fit || run.counts[blockIdx.x] == 0) {
    return false;
  }
  place = {run.firsts[blockIdx.x].range, plan.n_range + run.firsts[blockIdx.x].exact};
  return true;
}
/// The same by adding up; the first block also publishes the sizes.
template <class T>
__device__ __forceinline__ bool addedPlace(const EncodeRun& run, ChunkPlace& place) {
  __shared__ std::uint64_t before_sums[kWriteThreads / cuda::kWarp];
  __shared__ std::uint64_t all_sums[kWriteThreads / cuda::kWarp];
  const auto& plan = *static_cast<const EncodePlan<T>*>(run.plan);
  const std::uint64_t n_chunks =
      bits::ceilDiv<std::uint64_t>(plan.layout.n_segments, kChunkSegments);
  const bool has_entries = blockIdx.x < n_chunks && run.counts[blockIdx.x] != 0;
  if (!has_entries && blockIdx.x != 0) {
    return false;
  }
  std::uint64_t own_before = 0;
  std::uint64_t own_all = 0;
  for (std::uint64_t i = threadIdx.x; i < n_chunks; i += kWriteThreads) {
    const std::uint64_t count = widened(run.counts[i]);
    own_all += count;
    own_before += i < blockIdx.x ? count : 0;
  }
  std::uint64_t before = 0;
  std::uint64_t all = 0;
  cuda::blockExclusiveSum<kWriteThreads>(own_before, before_sums, &before);
  cuda::blockExclusiveSum<kWriteThreads>(own_all, all_sums, &all);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    publishLists<T>(run, all);
  }
  place = {before & 0xffffffffu, (all & 0xffffffffu) + (before >> 32)};
  return has_entries && listsFit<T>(run, all);
}

/// All threads of a block that is done: its flags back to 0, if that is wanted, and in the last
/// block the counts of all, which others add up.
__device__ __forceinline__ void leaveZeros(const EncodeRun& run, std::uint64_t n_segments) {
  if (run.n_clear == 0) {
    return;
  }
  const std::uint64_t n_chunks = bits::ceilDiv<std::uint64_t>(n_segments, kChunkSegments);
  const bool has_entries = blockIdx.x < n_chunks && run.counts[blockIdx.x] != 0;
  const std::uint64_t segment = std::uint64_t{blockIdx.x} * kChunkSegments + threadIdx.x;
  if (has_entries && segment < n_segments) {
    run.flags[segment] = 0;
  }
  if (cuda::isLastBlock(blocksDone(run))) {
    for (std::uint64_t i = threadIdx.x; i < n_chunks; i += kWriteThreads) {
      run.counts[i] = 0;
    }
    if (threadIdx.x == 0) {
      *blocksDone(run) = 0;
    }
  }
}

/// A block for each chunk. Flagged lanes are listed first, so that the threads share them evenly.
template <class T, int kDim>
__global__ void __launch_bounds__(kWriteThreads) writeEntries(const EncodeRun run, bool adds_up) {
  const auto& plan = *static_cast<const EncodePlan<T>*>(run.plan);
  const std::uint64_t n_segments = plan.layout.n_segments;
  const std::uint64_t first_segment = std::uint64_t{blockIdx.x} * kChunkSegments;
  ChunkPlace base{};
  if (adds_up ? !addedPlace<T>(run, base) : !knownPlace<T>(run, base)) {
    leaveZeros(run, n_segments);
    return;
  }
  __shared__ std::uint16_t flagged[kChunkSegments * kLanes];
  __shared__ std::uint32_t warp_sums[kWriteThreads / cuda::kWarp];
  std::uint32_t flags =
      first_segment + threadIdx.x < n_segments ? run.flags[first_segment + threadIdx.x] : 0;
  std::uint32_t n_flagged = 0;
  std::uint32_t place = cuda::blockExclusiveSum<kWriteThreads>(
      static_cast<std::uint32_t>(__popc(flags)), warp_sums, &n_flagged);
  while (flags != 0) {
    const unsigned lane = static_cast<unsigned>(__ffs(static_cast<int>(flags))) - 1;
    flagged[place++] = static_cast<std::uint16_t>(threadIdx.x * kLanes + lane);
    flags &= flags - 1;
  }
  __syncthreads();
  for (std::uint32_t begin = 0; begin < n_flagged; begin += kWriteThreads) {
    Share<T, kDim> share;
    if (begin + threadIdx.x < n_flagged) {
      const unsigned own = flagged[begin + threadIdx.x];
      share.find(run, plan, first_segment + own / kLanes, own % kLanes);
    }
    std::uint32_t totals = 0;
    const std::uint32_t before =
        cuda::blockExclusiveSum<kWriteThreads>(share.counts(), warp_sums, &totals);
    share.write(run, base.range + (before & 0xffffu), base.exact + (before >> 16));
    base.range += totals & 0xffffu;
    base.exact += totals >> 16;
    __syncthreads();
  }
  leaveZeros(run, n_segments);
}

}  // namespace

template <class T>
void launchEntries(const EncodeRun& run, const Layout& limit, const cuda::Call& call) {
  const unsigned n_blocks = cuda::gridFor(limit.n_segments, kChunkSegments);
  const bool adds_up = n_blocks <= kMaxAddedChunks;
  if (!adds_up) {
    call.launch("lorenzo_quant chunks", placeChunks<T>, 1, kScanThreads, 0, run);
  }
  const auto kernel = limit.grid.ndim == 1   ? writeEntries<T, 1>
                      : limit.grid.ndim == 2 ? writeEntries<T, 2>
                                             : writeEntries<T, 3>;
  call.launch("lorenzo_quant entries", kernel, n_blocks, kWriteThreads, 0, run, adds_up);
}

template void launchEntries<float>(const EncodeRun&, const Layout&, const cuda::Call&);
template void launchEntries<double>(const EncodeRun&, const Layout&, const cuda::Call&);

}  // namespace fz::lorenzo_quant::device
