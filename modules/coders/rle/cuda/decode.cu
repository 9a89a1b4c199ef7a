// Two passes: the first adds the lengths up, checks them and records where every 128th run begins;
// the second fills the output tile by tile, so that one long run is shared out as well as many
// short ones.

#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/rle/cuda/tile.cuh"
#include "fz/cuda_part.h"

namespace fz::rle {

namespace {

using cuda::kAllLanes;
using cuda::kRowsPerWarp;
using cuda::kWarp;
using cuda::laneId;
using cuda::pieceAt;
using cuda::warpId;

constexpr unsigned kRowsOfBatch = kBatchRuns / kWarp;
constexpr unsigned kBatchesPerWarp = kTileBatches / (kThreads / kWarp);
static_assert(kTileBatches == kWarp);

/// A stream that is as long as its count says; `good` is false when it is not.
struct Runs {
  std::uint64_t n_runs;
  Layout layout;
  bool good;
};

__device__ __forceinline__ Runs runsOf(const DecodeArgs& args, std::uint64_t value_bytes) {
  const std::uint64_t n_stream = cuda::load(args.in.size);
  if (n_stream < kValuesAt) {
    return {0, {0, 0}, false};
  }
  const std::uint64_t n_runs = *reinterpret_cast<const std::uint32_t*>(args.in.data);
  const Layout layout = layoutOf(n_runs, value_bytes);
  return {n_runs, layout, layout.n_bytes == n_stream};
}

/// By one thread that knows the sum of all lengths.
__device__ void confirm(const DecodeArgs& args, std::uint64_t sum, std::uint64_t value_bytes) {
  const std::uint64_t n_values = args.record->value[kValuesSlot];
  if (sum != n_values) {
    cuda::recordError(args.record, DeviceError::kCorrupt, sum);
    args.record->error_value = kLengthsAreWrong;
    return;
  }
  *args.confirmed = 1;
  cuda::publishSize(args.record, 0, n_values * value_bytes, args.out.capacity_bytes);
}

__global__ void __launch_bounds__(kThreads) addKernel(DecodeArgs args, std::uint32_t value_bytes) {
  __shared__ std::uint64_t batch_sums[kTileBatches];
  const Runs runs = runsOf(args, value_bytes);
  const std::uint64_t n_tiles =
      runs.good ? bits::ceilDiv(runs.n_runs, std::uint64_t{kTileBatches * kBatchRuns}) : 0;
  const std::uint32_t tile = blockIdx.x;
  if (tile >= n_tiles) {
    if (tile == 0 && threadIdx.x == 0) {
      if (runs.good) {
        confirm(args, 0, value_bytes);
      } else {
        cuda::recordError(args.record, DeviceError::kCorrupt, runs.n_runs);
        args.record->error_value = kCountIsWrong;
      }
    }
    return;
  }
  const auto* lengths =
      reinterpret_cast<const std::uint32_t*>(args.in.data + runs.layout.lengths_at);
  const std::uint64_t first =
      (std::uint64_t{tile} * kTileBatches + warpId() * kBatchesPerWarp) * kBatchRuns + laneId();
  std::uint32_t loaded[kBatchesPerWarp][kRowsOfBatch];
#pragma unroll
  for (unsigned g = 0; g < kBatchesPerWarp; ++g) {
#pragma unroll
    for (unsigned r = 0; r < kRowsOfBatch; ++r) {
      const std::uint64_t run = first + (g * kRowsOfBatch + r) * kWarp;
      loaded[g][r] = run < runs.n_runs ? lengths[run] : 0u;
    }
  }
#pragma unroll
  for (unsigned g = 0; g < kBatchesPerWarp; ++g) {
    std::uint64_t sum = 0;
#pragma unroll
    for (unsigned r = 0; r < kRowsOfBatch; ++r) {
      sum += loaded[g][r];
    }
    sum = cuda::warpSum(sum);
    if (laneId() == 0) {
      batch_sums[warpId() * kBatchesPerWarp + g] = sum;
    }
  }
  __syncthreads();
  if (warpId() != 0) {
    return;
  }
  const std::uint64_t own = batch_sums[laneId()];
  const std::uint64_t until = cuda::warpInclusiveSum(own);
  // Any tile that exceeds 2^32 spoils the sum; capped, a million of them fit the look-back.
  constexpr std::uint64_t kCap = std::uint64_t{1} << 33;
  std::uint64_t of_tile = __shfl_sync(kAllLanes, until, kWarp - 1);
  of_tile = of_tile < kCap ? of_tile : kCap;
  const cuda::LookBack look_back{args.states};
  if (laneId() == 0) {
    look_back.publish(tile, of_tile);
  }
  __syncwarp();
  const std::uint64_t before = look_back.prefix(tile, of_tile);
  args.batch_start[std::uint64_t{tile} * kTileBatches + laneId()] =
      static_cast<std::uint32_t>(before + until - own);
  if (tile == n_tiles - 1 && laneId() == 0) {
    confirm(args, before + of_tile, value_bytes);
  }
}

template <class U>
struct Work {
  static constexpr unsigned kLength = kTileBytes / sizeof(U);
  alignas(16) U values[kLength];             ///< of the runs that begin here
  alignas(16) std::uint8_t begins[kLength];  ///< 1 where a run begins
  std::uint32_t row_last[kRows];             ///< one more than where the last run begins, or 0
  std::uint64_t first_batch;
};

/// Decoded positions of a tile; all positions are below 2^32.
struct Span {
  std::uint32_t begin;
  std::uint32_t end;
};

/// Puts down the runs of batch `batch` that have a part in the span. Returns whether runs of later
/// batches may have one too. By a full warp.
template <class U>
__device__ __forceinline__ bool placeBatch(
    const DecodeArgs& args, const Runs& runs, std::uint64_t batch, Span span, Work<U>& work) {
  const auto* lengths =
      reinterpret_cast<const std::uint32_t*>(args.in.data + runs.layout.lengths_at);
  const auto* values = reinterpret_cast<const U*>(args.in.data + kValuesAt);
  std::uint32_t position = args.batch_start[batch];
  if (position >= span.end) {
    return false;
  }
  const std::uint64_t first = batch * kBatchRuns + laneId();
  std::uint32_t loaded[kRowsOfBatch];
#pragma unroll
  for (unsigned r = 0; r < kRowsOfBatch; ++r) {
    loaded[r] = first + r * kWarp < runs.n_runs ? lengths[first + r * kWarp] : 0u;
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsOfBatch; ++r) {
    const std::uint32_t until = cuda::warpInclusiveSum(loaded[r]);
    const std::uint32_t end = position + until;
    const std::uint32_t begin = end - loaded[r];
    if (loaded[r] != 0 && begin < span.end && end > span.begin) {
      const std::uint32_t at = begin <= span.begin ? 0u : begin - span.begin;
      work.begins[at] = 1;
      work.values[at] = values[first + r * kWarp];
    }
    position += __shfl_sync(kAllLanes, until, kWarp - 1);
  }
  return position < span.end;
}

/// Fills the tile from the values that were put down, and stores it.
template <class U>
__device__ __forceinline__ void fillTile(Work<U>& work, std::uint64_t n_left, std::uint8_t* out) {
  constexpr unsigned kValues = kPieceValues<U>;
  std::uint32_t marks[kRowsPerWarp];
  std::uint32_t from[kRowsPerWarp];  // one more than where the run of the value before begins
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t first = pieceAt(r) / static_cast<std::uint32_t>(sizeof(U));
    if constexpr (sizeof(U) == 1) {
      marks[r] = cuda::byteMarks16(*reinterpret_cast<const uint4*>(work.begins + first));
    } else if constexpr (sizeof(U) == 2) {
      const uint2 x = *reinterpret_cast<const uint2*>(work.begins + first);
      marks[r] = cuda::byteMarks8(x.x, x.y);
    } else {
      marks[r] = cuda::byteMarks8(*reinterpret_cast<const std::uint32_t*>(work.begins + first), 0);
    }
    const std::uint32_t own = marks[r] != 0 ? first + highestMark(marks[r]) + 1 : 0u;
    const std::uint32_t lanes = __ballot_sync(kAllLanes, marks[r] != 0);
    const std::uint32_t lower = lanes & ((1u << laneId()) - 1u);
    const std::uint32_t last = __shfl_sync(kAllLanes, own, lower != 0 ? highestMark(lower) : 0);
    from[r] = lower != 0 ? last : 0u;
    const std::uint32_t of_row = __shfl_sync(kAllLanes, own, lanes != 0 ? highestMark(lanes) : 0);
    if (laneId() == 0) {
      work.row_last[warpId() * kRowsPerWarp + r] = of_row;
    }
  }
  __syncthreads();
  const std::uint32_t rows = __ballot_sync(kAllLanes, work.row_last[laneId()] != 0);
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t at = pieceAt(r);
    const std::uint32_t lower = rows & ((1u << (warpId() * kRowsPerWarp + r)) - 1u);
    if (from[r] == 0 && lower != 0) {
      from[r] = work.row_last[highestMark(lower)];
    }
    // Only the first value of a tile has none before it, and it begins a run.
    std::uint32_t value = from[r] == 0 ? 0u : static_cast<std::uint32_t>(work.values[from[r] - 1]);
    const uint4 x =
        *reinterpret_cast<const uint4*>(reinterpret_cast<const std::uint8_t*>(work.values) + at);
    std::uint32_t words[4] = {};
#pragma unroll
    for (unsigned i = 0; i < kValues; ++i) {
      value = (marks[r] >> i & 1u) != 0 ? valueOf<U>(x, i) : value;
      words[i * sizeof(U) / 4] |= value << (i * sizeof(U) % 4 * 8);
    }
    cuda::storeUpTo16(out + at, make_uint4(words[0], words[1], words[2], words[3]),
                      at < n_left ? n_left - at : 0);
  }
}

template <class U>
__global__ void __launch_bounds__(kThreads) fillKernel(DecodeArgs args) {
  __shared__ Work<U> work;
  const std::uint64_t n_values = args.record->value[kValuesSlot];
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * Work<U>::kLength;
  if (*args.confirmed == 0 || begin >= n_values || n_values * sizeof(U) > args.out.capacity_bytes) {
    return;
  }
  const Runs runs = runsOf(args, sizeof(U));
  const std::uint64_t n_batches = bits::ceilDiv(runs.n_runs, std::uint64_t{kBatchRuns});
  const std::uint64_t n_left = n_values - begin;
  const Span span{
      static_cast<std::uint32_t>(begin),
      static_cast<std::uint32_t>(n_left < Work<U>::kLength ? n_values : begin + Work<U>::kLength)};
  for (unsigned i = threadIdx.x; i < Work<U>::kLength / 16; i += kThreads) {
    reinterpret_cast<uint4*>(work.begins)[i] = make_uint4(0, 0, 0, 0);
  }
  if (warpId() == 0) {
    const std::uint64_t batch =
        lastWhere(n_batches, [&](std::uint64_t g) { return args.batch_start[g] <= span.begin; });
    if (laneId() == 0) {
      work.first_batch = batch;
    }
  }
  __syncthreads();
  for (std::uint64_t batch = work.first_batch + warpId(); batch < n_batches;
       batch += kThreads / kWarp) {
    if (!placeBatch(args, runs, batch, span, work)) {
      break;
    }
  }
  __syncthreads();
  fillTile(work, n_left * sizeof(U), args.out.data + begin * sizeof(U));
}

template <class U>
void launch(const DecodeArgs& args, const cuda::Call& call) {
  addKernel<<<args.n_run_tiles, kThreads, 0, call.stream>>>(args, sizeof(U));
  cuda::checkLaunch("rle add");
  fillKernel<U><<<args.n_fill_tiles, kThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("rle fill");
}

}  // namespace

void launchDecode(const DecodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  cuda::withUnsigned(value_bytes, [&]<class U>(U) { launch<U>(args, call); });
}

}  // namespace fz::rle
