// Codes of a field in one pass over it. Where a lane has list entries it leaves a flag, and the
// chunk its count; outliers.cu makes the lists from them.

#include <cstdint>

#include "fused/lorenzo_quant/cuda/kernels.h"
#include "fused/lorenzo_quant/cuda/op/lines.cuh"
#include "fused/lorenzo_quant/cuda/walk.cuh"
#include "fz/cuda_part.h"

namespace fz::lorenzo_quant::device {

namespace {

using cuda::kAllLanes;
using cuda::laneId;

/// Turns the bins of a row into deltas; keeps what the next rows need.
template <class T, int kDim>
struct Predictor {
  using S = Stripe<T, kDim>;
  using Int = IntOf<T>;
  static constexpr unsigned kV = S::kV;

  Int up[kV];                                  // 2-D, 3-D: bins of the row before
  Int planes[kDim == 3 ? kBatchRows : 1][kV];  // 3-D: differences in y of the plane before
  Int last;                                    // 1-D: bin left of the segment

  __device__ __forceinline__ void start() {
    last = 0;
    clear(up);
#pragma unroll
    for (auto& plane : planes) {
      clear(plane);
    }
  }
  __device__ __forceinline__ void startBatch() {
    if constexpr (kDim == 3) {
      clear(up);
    }
  }

  /// In place. All lanes.
  __device__ __forceinline__ void apply(unsigned row, Int (&bins)[kV]) {
    if constexpr (kDim > 1) {
#pragma unroll
      for (unsigned j = 0; j < kV; ++j) {
        const Int bin = bins[j];
        bins[j] = bin - up[j];
        up[j] = bin;
        if constexpr (kDim == 3) {
          const Int difference = bins[j];
          bins[j] = difference - planes[row][j];
          planes[row][j] = difference;
        }
      }
    }
    Int left = __shfl_up_sync(kAllLanes, bins[kV - 1], 1);
    if constexpr (kDim == 1) {
      left = laneId() == 0 ? last : left;
      last = __shfl_sync(kAllLanes, bins[kV - 1], cuda::kWarp - 1);
    } else {
      left = laneId() % S::kTileLanes == 0 ? Int{0} : left;
    }
#pragma unroll
    for (unsigned j = kV - 1; j > 0; --j) {
      bins[j] -= bins[j - 1];
    }
    bins[0] -= left;
  }

 private:
  static __device__ __forceinline__ void clear(Int (&values)[kV]) {
#pragma unroll
    for (Int& v : values) {
      v = 0;
    }
  }
};

/// Loads the lane's share of up to eight rows.
template <class T, int kDim>
__device__ __forceinline__ void loadRows(const Stripe<T, kDim>& stripe,
                                         const T* in,
                                         std::uint64_t at,
                                         unsigned n_rows,
                                         cuda::Vec16<T> (&rows)[kBatchRows]) {
  if (stripe.whole_lanes) {
#pragma unroll
    for (unsigned r = 0; r < kBatchRows; ++r) {
      rows[r].raw = make_uint4(0, 0, 0, 0);
      if (r < n_rows && stripe.own_mask != 0) {
        rows[r].raw = cuda::loadStream(in + at + r * stripe.row_step);
      }
    }
    return;
  }
#pragma unroll
  for (unsigned r = 0; r < kBatchRows; ++r) {
    const std::uint64_t first = at + r * stripe.row_step;
    const unsigned mask = r < n_rows ? stripe.maskAt(first) : 0;
#pragma unroll
    for (unsigned j = 0; j < stripe.kV; ++j) {
      rows[r].v[j] = (mask >> j & 1u) != 0 ? in[first + j] : T{0};
    }
  }
}

/// Notes the entries of a row; returns the lanes that have any. Rare, so nothing here is in the way
/// of the common case but its registers.
__device__ __forceinline__ unsigned countEntries(unsigned range_bits,
                                                 unsigned exact_bits,
                                                 std::uint32_t* chunk_count) {
  const unsigned lanes = __ballot_sync(kAllLanes, (range_bits | exact_bits) != 0);
  const unsigned counts =
      static_cast<unsigned>(__popc(range_bits)) | static_cast<unsigned>(__popc(exact_bits)) << 16;
  const unsigned sum = __reduce_add_sync(kAllLanes, counts);
  if (lanes != 0 && laneId() == 0) {
    atomicAdd(chunk_count, sum);  // order-free: a sum of integers
  }
  return lanes;
}

/// Bins of a lane's share of a row; those that are not usable are 0 and have a bit set.
template <int kDim, class T>
__device__ __forceinline__ void findBins(const cuda::Vec16<T>& values,
                                         const Step<T>& step,
                                         IntOf<T> (&bins)[kLaneValues<T>],
                                         unsigned& exact_bits) {
  typename Number<T>::Word biased[kLaneValues<T>];
  exact_bits |= biasedBins<kDim>(values.v, step, biased).exact;
#pragma unroll
  for (unsigned j = 0; j < kLaneValues<T>; ++j) {
    bins[j] = static_cast<IntOf<T>>(biased[j] - FastBins<T>::kBias);
  }
}

template <class T, class TCode, int kDim>
__device__ __forceinline__ void storeCodes(const Stripe<T, kDim>& stripe,
                                           unsigned mask,
                                           const CodePack<TCode, kLaneValues<T>>& pack,
                                           TCode* codes) {
  if (stripe.whole_lanes) {
    if (mask != 0) {
      pack.store(codes);
    }
    return;
  }
#pragma unroll
  for (unsigned j = 0; j < stripe.kV; ++j) {
    if ((mask >> j & 1u) != 0) {
      codes[j] = pack.get(j);
    }
  }
}

template <class T, class TCode, int kDim>
__global__ void __launch_bounds__(kStripeThreads, kStripeBlocks<kDim>)
    encodeStripes(const EncodeRun run) {
  using S = Stripe<T, kDim>;
  using Int = IntOf<T>;
  constexpr unsigned kV = S::kV;
  const auto& plan = *static_cast<const EncodePlan<T>*>(run.plan);
  const std::uint64_t index = std::uint64_t{blockIdx.x} * kStripeWarps + cuda::warpId();
  if (index >= plan.layout.n_stripes) {
    return;
  }
  const Step<T> step = plan.step;
  const Int radius = static_cast<Int>(run.radius);
  const S stripe(plan.layout, index);
  Predictor<T, kDim> predictor;
  predictor.start();
  std::uint64_t at = stripe.at;
  std::uint64_t segment = stripe.segment;
  for (unsigned batch = 0; batch < stripe.n_batches; ++batch) {
    const unsigned n_rows = stripe.rowsIn(batch);
    cuda::Vec16<T> rows[kBatchRows];
    loadRows(stripe, static_cast<const T*>(run.in), at, n_rows, rows);
    predictor.startBatch();
    if (batch + 1 < stripe.n_batches) {
      prefetchRows(stripe, static_cast<const T*>(run.in), at + stripe.batch_step,
                   stripe.rowsIn(batch + 1));
    }
    unsigned own_flags = 0;  // of row laneId()
#pragma unroll
    for (unsigned r = 0; r < kBatchRows; ++r) {
      if (r < n_rows) {
        const std::uint64_t first = at + r * stripe.row_step;
        const unsigned mask = stripe.maskAt(first);
        Int deltas[kV];
        unsigned exact_bits = 0;
        findBins<kDim>(rows[r], step, deltas, exact_bits);
        predictor.apply(r, deltas);
        bool all_coded = true;
#pragma unroll
        for (unsigned j = 0; j < kV; ++j) {
          all_coded = all_coded & hasCode(deltas[j], radius);
        }
        // Beyond the field the deltas mean nothing; the mask takes them out where it matters.
        if (__any_sync(kAllLanes, !all_coded || exact_bits != 0)) {
          unsigned range_bits = 0;
#pragma unroll
          for (unsigned j = 0; j < kV; ++j) {
            const bool coded = hasCode(deltas[j], radius);
            range_bits |= coded ? 0u : 1u << j;
            deltas[j] = coded ? deltas[j] : Int{0};
          }
          const std::uint64_t chunk = (segment + r * stripe.segment_row_step) / kChunkSegments;
          const unsigned lanes =
              countEntries(range_bits & mask, exact_bits & mask, run.counts + chunk);
          own_flags = laneId() == r ? lanes : own_flags;
        }
        CodePack<TCode, kV> pack;
        if (run.zigzag) {
          pack.set([&](unsigned j) { return toCode<TCode>(deltas[j], true); });
        } else {
          pack.set([&](unsigned j) { return toCode<TCode>(deltas[j], false); });
        }
        storeCodes(stripe, mask, pack, static_cast<TCode*>(run.codes) + first);
      }
    }
    if (laneId() < n_rows) {
      run.flags[segment + laneId() * stripe.segment_row_step] = own_flags;
    }
    at += stripe.batch_step;
    segment += stripe.segment_batch_step;
  }
}

}  // namespace

template <class T, class TCode>
void launchEncode(const EncodeRun& run, const Layout& limit, const cuda::Call& call) {
  launchEncodeSetup<T>(run, sizeof(TCode), call);
  const auto kernel = limit.grid.ndim == 1   ? encodeStripes<T, TCode, 1>
                      : limit.grid.ndim == 2 ? encodeStripes<T, TCode, 2>
                                             : encodeStripes<T, TCode, 3>;
  call.launch("lorenzo_quant encode", kernel, cuda::gridFor(limit.n_stripes, kStripeWarps),
              kStripeThreads, 0, run);
  launchEntries<T>(run, limit, call);
}

#define FZ_LORENZO_QUANT_ENCODE(T, TCode) \
  template void launchEncode<T, TCode>(const EncodeRun&, const Layout&, const cuda::Call&)
FZ_LORENZO_QUANT_ENCODE(float, std::uint16_t);
FZ_LORENZO_QUANT_ENCODE(float, std::uint8_t);
FZ_LORENZO_QUANT_ENCODE(double, std::uint16_t);
FZ_LORENZO_QUANT_ENCODE(double, std::uint32_t);
#undef FZ_LORENZO_QUANT_ENCODE

}  // namespace fz::lorenzo_quant::device
