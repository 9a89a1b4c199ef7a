// Values from codes and marked range entries, in one pass: sums along x across the lanes, along y
// and z down the rows of a stripe.

#include <algorithm>
#include <cstdint>

#include "fused/lorenzo_quant/cuda/kernels.h"
#include "fused/lorenzo_quant/cuda/plan.cuh"
#include "fused/lorenzo_quant/cuda/walk.cuh"
#include "fz/cuda_part.h"

namespace fz::lorenzo_quant::device {

namespace {

using cuda::kAllLanes;
using cuda::laneId;

/// Turns the deltas of a row into bins, modulo 2^W; keeps what the next rows need.
template <class T, int kDim>
struct Summer {
  using S = Stripe<T, kDim>;
  using Word = typename Number<T>::Word;
  static constexpr unsigned kV = S::kV;

  Word columns[kV];                             // 2-D: bins above; 3-D: sums in x and y above
  Word planes[kDim == 3 ? kBatchRows : 1][kV];  // 3-D: bins behind
  Word left;                                    // 1-D: bin left of the segment

  __device__ __forceinline__ void start() {
    left = 0;
    clear(columns);
#pragma unroll
    for (auto& plane : planes) {
      clear(plane);
    }
  }
  __device__ __forceinline__ void startBatch() {
    if constexpr (kDim == 3) {
      clear(columns);
    }
  }

  /// In place. All lanes.
  __device__ __forceinline__ void apply(unsigned row, Word (&values)[kV]) {
#pragma unroll
    for (unsigned j = 1; j < kV; ++j) {
      values[j] += values[j - 1];
    }
    const Word own = values[kV - 1];
    Word through = own;  // with the lanes before it in the tile
#pragma unroll
    for (unsigned step = 1; step < S::kTileLanes; step *= 2) {
      const Word other = __shfl_up_sync(kAllLanes, through, step, S::kTileLanes);
      through += laneId() % S::kTileLanes >= step ? other : Word{0};
    }
    Word before = through - own;
    if constexpr (kDim == 1) {
      before += left;
      left += __shfl_sync(kAllLanes, through, cuda::kWarp - 1);
    }
#pragma unroll
    for (unsigned j = 0; j < kV; ++j) {
      values[j] += before;
      if constexpr (kDim > 1) {
        columns[j] += values[j];
        values[j] = columns[j];
      }
      if constexpr (kDim == 3) {
        planes[row][j] += values[j];
        values[j] = planes[row][j];
      }
    }
  }

 private:
  static __device__ __forceinline__ void clear(Word (&words)[kV]) {
#pragma unroll
    for (Word& w : words) {
      w = 0;
    }
  }
};

/// Marks of the rows of a batch: lane r holds those of row r.
template <unsigned kV>
struct BatchMarks {
  std::uint32_t words[kV];
  std::uint32_t any;

  __device__ __forceinline__ void load(const std::uint32_t* p, bool holds) {
    any = 0;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      words[k] = holds ? p[k] : 0;
      any |= words[k];
    }
  }
  /// Whether row r has any. All lanes.
  __device__ __forceinline__ bool isMarked(unsigned r) const {
    return __shfl_sync(kAllLanes, any, static_cast<int>(r)) != 0;
  }
  /// This lane's bits of row r. All lanes.
  __device__ __forceinline__ unsigned bitsOf(unsigned r) const {
    const unsigned first = laneId() * kV;
    unsigned bits = 0;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      const std::uint32_t word = __shfl_sync(kAllLanes, words[k], static_cast<int>(r));
      bits = first / 32 == k ? word >> first % 32 : bits;
    }
    return bits & ((1u << kV) - 1);
  }
};

template <class T, class TCode, int kDim>
__device__ __forceinline__ void loadRows(const Stripe<T, kDim>& stripe,
                                         const TCode* codes,
                                         std::uint64_t at,
                                         unsigned n_rows,
                                         CodePack<TCode, kLaneValues<T>> (&rows)[kBatchRows]) {
#pragma unroll
  for (auto& row : rows) {
    row.set([](unsigned) { return TCode{0}; });
  }
  if (stripe.whole_lanes) {
#pragma unroll
    for (unsigned r = 0; r < kBatchRows; ++r) {
      if (r < n_rows && stripe.own_mask != 0) {
        rows[r].load(codes + at + r * stripe.row_step);
      }
    }
    return;
  }
#pragma unroll
  for (unsigned r = 0; r < kBatchRows; ++r) {
    const std::uint64_t first = at + r * stripe.row_step;
    const unsigned mask = r < n_rows ? stripe.maskAt(first) : 0;
    rows[r].set([&](unsigned j) { return (mask >> j & 1u) != 0 ? codes[first + j] : TCode{0}; });
  }
}

/// The range entries of a row that this lane has: a bit each, and their values.
template <class T>
struct RowEntries {
  unsigned bits = 0;
  cuda::Vec16<T> values;

  /// All lanes. Entries wait in the output, at the places that this lane will write.
  template <int kDim>
  __device__ __forceinline__ void fetch(const Stripe<T, kDim>& stripe,
                                        const BatchMarks<kLaneValues<T>>& marks,
                                        unsigned row,
                                        const T* first) {
    bits = 0;
    if (!marks.isMarked(row)) {
      return;
    }
    bits = marks.bitsOf(row);
    if (bits != 0 && stripe.whole_lanes) {
      values.raw = *reinterpret_cast<const uint4*>(first);
    } else {
#pragma unroll
      for (unsigned j = 0; j < kLaneValues<T>; ++j) {
        if ((bits >> j & 1u) != 0) {
          values.v[j] = first[j];
        }
      }
    }
  }
};

/// Values beyond the layout, which only streams of the original system have.
template <class T>
__device__ __forceinline__ void clearBeyond(const DecodePlan<T>& plan, T* out) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kStripeThreads + threadIdx.x;
  for (std::uint64_t i = plan.layout.n_values + thread; i < plan.n_values;
       i += std::uint64_t{gridDim.x} * kStripeThreads) {
    out[i] = T{0};
  }
}

template <class T, int kDim>
__device__ __forceinline__ void storeRow(const Stripe<T, kDim>& stripe,
                                         std::uint64_t first,
                                         const cuda::Vec16<T>& values,
                                         T* out) {
  const unsigned mask = stripe.maskAt(first);
  if (stripe.whole_lanes) {
    if (mask != 0) {
      cuda::storeStream(out + first, values.raw);
    }
    return;
  }
#pragma unroll
  for (unsigned j = 0; j < stripe.kV; ++j) {
    if ((mask >> j & 1u) != 0) {
      out[first + j] = values.v[j];
    }
  }
}

// Streams of the original system may have deltas that no integer holds. Their sums are in double,
// hence rounded, hence in the order in which the CPU adds.

template <class T, class TCode>
struct WideStream {
  const TCode* codes;
  const std::uint32_t* marks;
  T* out;
  bool zigzag;
};

/// By one warp.
template <class T, class TCode>
__device__ void decodeWideTile(const WideStream<T, TCode>& stream,
                               const DecodePlan<T>& plan,
                               const Tile& tile,
                               double* sums) {
  const Grid& grid = plan.layout.grid;
  for (unsigned i = cuda::laneId(); i < tile.size(); i += cuda::kWarp) {
    const std::uint64_t at = linearIndex(grid, tile, i);
    sums[i] = static_cast<double>(fromCode<IntOf<T>>(stream.codes[at], stream.zigzag));
    const MarkPlace place = markPlace<T>(plan.layout, at);
    if ((stream.marks[place.word] >> place.bit & 1u) != 0) {
      sums[i] = fp::add(sums[i], static_cast<double>(stream.out[at]));
    }
  }
  __syncwarp();
  for (unsigned row = cuda::laneId(); row < tile.wy * tile.wz; row += cuda::kWarp) {
    double sum = 0.0;
    for (unsigned x = 0; x < tile.wx; ++x) {
      sum = fp::add(sum, sums[row * tile.wx + x]);
      sums[row * tile.wx + x] = sum;
    }
  }
  __syncwarp();
  const unsigned plane = tile.wx * tile.wy;
  for (unsigned x = cuda::laneId(); x < tile.wx && grid.ndim > 1; x += cuda::kWarp) {
    for (unsigned i = x; i < tile.size(); i += tile.wx) {
      const bool has_up = i / tile.wx % tile.wy != 0;
      const bool has_back = i >= plane;
      const double up = has_up ? sums[i - tile.wx] : 0.0;
      const double back = has_back ? sums[i - plane] : 0.0;
      const double up_back = has_up && has_back ? sums[i - tile.wx - plane] : 0.0;
      sums[i] = fp::add(sums[i], grid.ndim == 2 ? up : fp::sub(fp::add(up, back), up_back));
    }
  }
  __syncwarp();
  for (unsigned i = cuda::laneId(); i < tile.size(); i += cuda::kWarp) {
    stream.out[linearIndex(grid, tile, i)] = reconstructWide(sums[i], plan.step);
  }
  __syncwarp();
}

/// The tiles of a block, by one warp of it; `sums` is shared memory for kMaxTileValues.
template <class T, class TCode>
__device__ __noinline__ void decodeWideTiles(WideStream<T, TCode> stream,
                                             const DecodePlan<T>* plan,
                                             double* sums) {
  const Grid& grid = plan->layout.grid;
  const std::uint64_t n_tiles = plan->layout.n_values == 0 ? 0 : tileCount(grid);
  for (std::uint64_t t = blockIdx.x; t < n_tiles; t += gridDim.x) {
    decodeWideTile(stream, *plan, tileAt(grid, t), sums);
  }
}

template <class T, class TCode, int kDim>
__global__ void __launch_bounds__(kStripeThreads, kStripeBlocks<kDim>)
    decodeStripes(const DecodeRun run) {
  using S = Stripe<T, kDim>;
  using Int = IntOf<T>;
  using Word = typename Number<T>::Word;
  constexpr unsigned kV = S::kV;
  const auto& plan = *static_cast<const DecodePlan<T>*>(run.plan);
  T* out = static_cast<T*>(run.out);
  clearBeyond(plan, out);
  if (plan.is_wide != 0) {
    __shared__ double sums[kMaxTileValues];
    if (cuda::warpId() == 0) {
      decodeWideTiles<T, TCode>({static_cast<const TCode*>(run.codes), run.marks, out, run.zigzag},
                                &plan, sums);
    }
    return;
  }
  const std::uint64_t index = std::uint64_t{blockIdx.x} * kStripeWarps + cuda::warpId();
  if (index >= plan.layout.n_stripes) {
    return;
  }
  const T step = plan.step;
  const bool has_marks = plan.n_range != 0;
  const S stripe(plan.layout, index);
  Summer<T, kDim> summer;
  summer.start();
  std::uint64_t at = stripe.at;
  std::uint64_t segment = stripe.segment;
  for (unsigned batch = 0; batch < stripe.n_batches; ++batch) {
    const unsigned n_rows = stripe.rowsIn(batch);
    CodePack<TCode, kV> rows[kBatchRows];
    loadRows<T, TCode, kDim>(stripe, static_cast<const TCode*>(run.codes), at, n_rows, rows);
    if (batch + 1 < stripe.n_batches) {
      prefetchRows(stripe, static_cast<const TCode*>(run.codes), at + stripe.batch_step,
                   stripe.rowsIn(batch + 1));
    }
    BatchMarks<kV> marks{};
    if (has_marks) {
      marks.load(run.marks + (segment + laneId() * stripe.segment_row_step) * kV,
                 laneId() < n_rows);
    }
    RowEntries<T> entries;
    if (has_marks) {
      entries.fetch(stripe, marks, 0, out + at);
    }
    summer.startBatch();
#pragma unroll
    for (unsigned r = 0; r < kBatchRows; ++r) {
      if (r < n_rows) {
        const std::uint64_t first = at + r * stripe.row_step;
        Word values[kV];
#pragma unroll
        for (unsigned j = 0; j < kV; ++j) {
          values[j] = static_cast<Word>(fromCode<Int>(rows[r].get(j), run.zigzag));
        }
        if (has_marks) {
#pragma unroll
          for (unsigned j = 0; j < kV; ++j) {
            if ((entries.bits >> j & 1u) != 0) {
              values[j] += static_cast<Word>(static_cast<Int>(entries.values.v[j]));
            }
          }
          if (r + 1 < n_rows) {  // on their way while this row is summed up
            entries.fetch(stripe, marks, r + 1, out + first + stripe.row_step);
          }
        }
        summer.apply(r, values);
        cuda::Vec16<T> decoded;
#pragma unroll
        for (unsigned j = 0; j < kV; ++j) {
          decoded.v[j] = reconstruct(static_cast<Int>(values[j]), step);
        }
        storeRow(stripe, first, decoded, out);
      }
    }
    at += stripe.batch_step;
    segment += stripe.segment_batch_step;
  }
}

}  // namespace

template <class T, class TCode>
void launchDecode(const DecodeRun& run,
                  const Layout& limit,
                  std::uint64_t entry_limit,
                  const cuda::Call& call) {
  launchDecodeSetup<T>(run, sizeof(TCode), call);
  if (entry_limit != 0) {
    launchRangeEntries<T>(run, entry_limit, call);
  }
  const std::uint64_t n_limit = run.codes_size.n_bytes / sizeof(TCode);
  const std::uint64_t beyond_warps = (n_limit - limit.n_values) / kMaxTileValues;
  const auto kernel = limit.grid.ndim == 1   ? decodeStripes<T, TCode, 1>
                      : limit.grid.ndim == 2 ? decodeStripes<T, TCode, 2>
                                             : decodeStripes<T, TCode, 3>;
  call.launch("lorenzo_quant decode", kernel,
              cuda::gridFor(std::max(limit.n_stripes, beyond_warps), kStripeWarps), kStripeThreads,
              0, run);
  if (entry_limit != 0) {
    launchExactEntries<T>(run, entry_limit, call);
  }
}

#define FZ_LORENZO_QUANT_DECODE(T, TCode)                                              \
  template void launchDecode<T, TCode>(const DecodeRun&, const Layout&, std::uint64_t, \
                                       const cuda::Call&)
FZ_LORENZO_QUANT_DECODE(float, std::uint16_t);
FZ_LORENZO_QUANT_DECODE(float, std::uint8_t);
FZ_LORENZO_QUANT_DECODE(double, std::uint16_t);
FZ_LORENZO_QUANT_DECODE(double, std::uint32_t);
#undef FZ_LORENZO_QUANT_DECODE

}  // namespace fz::lorenzo_quant::device
