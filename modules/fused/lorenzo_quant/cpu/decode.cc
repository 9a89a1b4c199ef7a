#include <algorithm>

#include "fused/lorenzo_quant/cpu/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/lorenzo_quant/cpu/decode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/prefix_sum_inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::lorenzo_quant::HWY_NAMESPACE {  // NOLINT

// Sums run in Sum: the unsigned integer of the input type's width, which wraps on hostile data, or
// double for streams with deltas that no integer holds.

template <class Int, bool kZigzag, class TCode, class Sum>
void readCodes(const TCode* codes, std::uint32_t n, Sum* sums) {
  for (std::uint32_t i = 0; i < n; ++i) {
    sums[i] = static_cast<Sum>(fromCode<Int>(codes[i], kZigzag));
  }
}

template <class T, class Sum>
void addDeltas(const DecodeJob& job, const Segment& segment, Sum* sums) {
  const std::uint32_t* end = job.indices + job.n_deltas;
  const T* deltas = static_cast<const T*>(job.deltas);
  const std::uint64_t begin = job.first + segment.begin;
  const std::uint64_t stop = begin + segment.n_values;
  for (const std::uint32_t* at = std::lower_bound(job.indices, end, begin); at != end && *at < stop;
       ++at) {
    const T delta = deltas[at - job.indices];
    if constexpr (std::is_floating_point_v<Sum>) {
      sums[*at - begin] += static_cast<Sum>(delta);
    } else {
      sums[*at - begin] += static_cast<Sum>(static_cast<IntOf<T>>(delta));
    }
  }
}

template <std::uint32_t kEdge, class Sum>
void runningSums(std::uint32_t n, Sum* sums) {
  std::uint32_t begin = 0;
  for (; begin + kEdge <= n; begin += kEdge) {  // whole tiles: a constant count unrolls
    Sum sum{};
    for (std::uint32_t i = 0; i < kEdge; ++i) {
      sum += sums[begin + i];
      sums[begin + i] = sum;
    }
  }
  Sum sum{};
  for (; begin < n; ++begin) {
    sum += sums[begin];
    sums[begin] = sum;
  }
}

/// Tiles of whole vectors, side by side; returns how many values it did.
template <std::uint32_t kEdge, class Sum>
std::uint32_t wideSums([[maybe_unused]] std::uint32_t n, [[maybe_unused]] Sum* sums) {
#ifdef FZ_HAVE_WIDE_SUMS
  if constexpr (std::is_same_v<Sum, std::uint32_t>) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<Sum> d;
    constexpr std::uint32_t kLanes = hn::MaxLanes(hn::ScalableTag<Sum>());
    constexpr std::uint32_t kUnit = kEdge < kLanes ? kLanes : kEdge;
    const std::uint32_t n_whole = n / kUnit * kUnit;
    if constexpr (kEdge == 8) {
      for (std::uint32_t i = 0; i < n_whole; i += kLanes) {
        hn::StoreU(fz::HWY_NAMESPACE::sumsInEights(d, hn::LoadU(d, sums + i)), d, sums + i);
      }
    } else {
      fz::HWY_NAMESPACE::sumsInBlocks(sums, n_whole, kEdge, sums,
                                      [](auto v) HWY_ATTR { return v; });
    }
    return n_whole;
  }
#endif
  return 0;
}

/// A segment that is one tile.
template <class Sum>
void runningSum(std::uint32_t n, Sum* sums) {
  if (wideSums<kMaxSegmentValues>(n, sums) == n) {
    return;
  }
  if constexpr (std::is_floating_point_v<Sum>) {
    runningSums<kMaxSegmentValues>(n, sums);
  } else {
    using Running = fz::HWY_NAMESPACE::RunningSum<Sum>;
    namespace hn = hwy::HWY_NAMESPACE;
    const typename Running::D d;
    Running running(0);
    std::uint32_t i = 0;
    for (; i + Running::kLanes <= n; i += Running::kLanes) {
      hn::StoreU(running.add(hn::LoadU(d, sums + i)), d, sums + i);
    }
    Sum sum = running.carry();
    for (; i < n; ++i) {
      sum += sums[i];
      sums[i] = sum;
    }
  }
}

/// Sums along x inside the tiles of a segment.
template <class Sum>
void runningSums(int ndim, std::uint32_t n, Sum* sums) {
  if (ndim == 1) {
    runningSum(n, sums);
  } else if (ndim == 2) {
    const std::uint32_t n_done = wideSums<32>(n, sums);
    runningSums<32>(n - n_done, sums + n_done);
  } else {
    const std::uint32_t n_done = wideSums<8>(n, sums);
    runningSums<8>(n - n_done, sums + n_done);
  }
}

template <class Sum>
void addRows(const Neighbours<Sum>& near, std::uint32_t n, int ndim, Sum* sums) {
  if (ndim == 2) {
    for (std::uint32_t i = 0; i < n; ++i) {
      sums[i] += near.up[i];
    }
  } else {
    for (std::uint32_t i = 0; i < n; ++i) {
      sums[i] += near.up[i] + near.back[i] - near.up_back[i];
    }
  }
}

template <class T, class Sum>
void writeValues(const Sum* sums, std::uint32_t n, T step, T* out) {
  for (std::uint32_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<Sum>) {
      out[i] = reconstructWide(sums[i], step);
    } else {
      out[i] = reconstruct(static_cast<IntOf<T>>(sums[i]), step);
    }
  }
}

template <class T, class TCode, class Sum>
void decodeBlockOf(const DecodeJob& job, std::uint64_t index) {
  using Int = IntOf<T>;
  const Cut& cut = job.cut;
  const int ndim = cut.grid.ndim;
  const Block block = blockAt(cut, index);
  const T step = makeStep<T>(job.bound, ndim).step;
  Rows<Sum> rows;
  rows.clearZeros();
  alignas(64) Sum line[kMaxSegmentValues];
  for (std::uint32_t z = 0; z < block.n_z; ++z) {
    for (std::uint32_t y = 0; y < block.n_y; ++y) {
      const std::uint64_t row = (block.z + z) * cut.grid.ny + block.y + y;
      const Segment segment = segmentAt(cut, row, block.column);
      const std::uint32_t n = segment.n_values;
      const TCode* codes = static_cast<const TCode*>(job.codes) + segment.begin;
      Sum* sums = ndim == 1 ? line : rows.at(y, z, ndim);
      job.zigzag ? readCodes<Int, true>(codes, n, sums) : readCodes<Int, false>(codes, n, sums);
      if (job.n_deltas != 0) {
        addDeltas<T>(job, segment, sums);
      }
      if (job.axes.x) {
        runningSums(ndim, n, sums);
      }
      if (ndim > 1) {
        addRows(neighboursOf(rows, y, z, ndim, job.axes), n, ndim, sums);
      }
      writeValues(sums, n, step, static_cast<T*>(job.out) + segment.begin);
    }
  }
}

void decode(const DecodeJob& job, std::uint64_t block) {
  withTypes(job, [&]<class T, class TCode>() {
    job.wide ? decodeBlockOf<T, TCode, double>(job, block)
             : decodeBlockOf<T, TCode, typename Number<T>::Word>(job, block);
  });
}

}  // namespace fz::lorenzo_quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::lorenzo_quant {

HWY_EXPORT(decode);

void decodeBlock(const DecodeJob& job, std::uint64_t block) {
  HWY_DYNAMIC_DISPATCH(decode)(job, block);
}

}  // namespace fz::lorenzo_quant
#endif
