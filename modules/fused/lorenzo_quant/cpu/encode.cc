#include <algorithm>
#include <cstring>
#include <limits>

#include "fused/lorenzo_quant/codec_fast.h"
#include "fused/lorenzo_quant/cpu/rows.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/lorenzo_quant/cpu/encode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::lorenzo_quant::HWY_NAMESPACE {  // NOLINT

/// Bins of a segment whose values all lie well inside their cells, as nearly all do: see FastBins,
/// whose conditions are looked at value by value here. False: the bins are of no use.
template <class T>
HWY_INLINE bool fastSegment(
    const T* in, std::uint32_t n, const Step<T>& step, T limit, IntOf<T>* bins) {
  constexpr T kShift = FastBins<T>::kShift;
  typename Number<T>::Word n_bad = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const T scaled = fp::mul(in[i], step.inv_step);
    const T shifted = fp::add(scaled, kShift);
    const T even = fp::sub(shifted, kShift);
    const T diff = fp::sub(in[i], fp::mul(even, step.step));
    using Word = typename Number<T>::Word;
    const Word is_good = Word{fp::abs(fp::sub(scaled, even)) < T(0.5)} &
                         Word{fp::abs(diff) < step.bound} & Word{fp::abs(scaled) < limit};
    bins[i] = static_cast<IntOf<T>>(fp::bits(shifted) - FastBins<T>::kBias);
    n_bad += Word{1} - is_good;
  }
  return n_bad == 0;
}

/// Bins of a segment; returns how many values are not usable.
template <class T>
std::uint32_t binSegment(
    const T* in, std::uint32_t n, const Step<T>& step, int ndim, IntOf<T>* bins) {
  if (fastSegment(in, n, step, FastBins<T>::limitFor(ndim), bins)) {
    return 0;
  }
  typename Number<T>::Word n_usable = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const Bin<T> bin = quantize(in[i], step);
    bins[i] = bin.value;
    n_usable += bin.usable;
  }
  return n - static_cast<std::uint32_t>(n_usable);
}

/// Differences across rows. columns[-1] must be 0.
template <class Int>
void rowDifferences(
    const Int* bins, const Neighbours<Int>& near, std::uint32_t n, int ndim, Int* columns) {
  if (ndim == 2) {
    for (std::uint32_t i = 0; i < n; ++i) {
      columns[i] = bins[i] - near.up[i];
    }
  } else {
    for (std::uint32_t i = 0; i < n; ++i) {
      columns[i] = bins[i] - near.up[i] - near.back[i] + near.up_back[i];
    }
  }
}

/// Differences along x. In one dimension the whole segment is one tile and keep is null.
template <class Int>
void deltaSegment(const Int* columns, const Int* keep, std::uint32_t n, Int* deltas) {
  if (keep == nullptr) {
    for (std::uint32_t i = 0; i < n; ++i) {
      deltas[i] = columns[i] - columns[static_cast<std::ptrdiff_t>(i) - 1];
    }
  } else {
    for (std::uint32_t i = 0; i < n; ++i) {
      deltas[i] = columns[i] - (columns[static_cast<std::ptrdiff_t>(i) - 1] & keep[i]);
    }
  }
}

/// Codes of a segment; returns how many deltas have none. `keep` as for deltaSegment.
template <class TCode, bool kZigzag, bool kHasTiles, class Int>
HWY_INLINE std::uint32_t codeDeltas(const Int* HWY_RESTRICT columns,
                                    const Int* HWY_RESTRICT keep,
                                    Int radius,
                                    std::uint32_t n,
                                    TCode* HWY_RESTRICT codes) {
  std::make_unsigned_t<Int> n_range = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const Int left = columns[static_cast<std::ptrdiff_t>(i) - 1];
    const Int delta = columns[i] - (kHasTiles ? left & keep[i] : left);
    const bool has_code = hasCode(delta, radius);
    codes[i] = toCode<TCode>(has_code ? delta : Int{0}, kZigzag);
    n_range += has_code ? 0u : 1u;
  }
  return static_cast<std::uint32_t>(n_range);
}
template <class TCode, bool kZigzag, class Int>
std::uint32_t codeSegment(
    const Int* columns, const Int* keep, Int radius, std::uint32_t n, TCode* codes) {
  return keep == nullptr ? codeDeltas<TCode, kZigzag, false>(columns, keep, radius, n, codes)
                         : codeDeltas<TCode, kZigzag, true>(columns, keep, radius, n, codes);
}

template <class Int>
const Int* keepFor(int ndim, const Axes& axes) {
  if (!axes.x) {
    return kKeepLeft<Int, 1>.data();  // nothing
  }
  return ndim == 1 ? nullptr : (ndim == 2 ? kKeepLeft<Int, 32>.data() : kKeepLeft<Int, 8>.data());
}

/// A segment's values with a zero in front, and its deltas.
template <class Int>
struct Line {
  static constexpr std::uint32_t kFront = 64 / sizeof(Int);
  alignas(64) Int padded[kFront + kMaxSegmentValues];
  alignas(64) Int deltas[kMaxSegmentValues];

  void clearFront() { std::fill_n(padded, kFront, Int{}); }
  Int* columns() { return padded + kFront; }
};

template <class T, class TCode>
void encodeBlockOf(const EncodeJob& job, std::uint64_t index) {
  using Int = IntOf<T>;
  const Cut& cut = job.cut;
  const int ndim = cut.grid.ndim;
  const Block block = blockAt(cut, index);
  const Step<T> step = makeStep<T>(job.bound, ndim);
  const Int* keep = keepFor<Int>(ndim, job.axes);
  Rows<Int> rows;
  rows.clearZeros();
  Line<Int> line;
  line.clearFront();
  for (std::uint32_t z = 0; z < block.n_z; ++z) {
    for (std::uint32_t y = 0; y < block.n_y; ++y) {
      const std::uint64_t row = (block.z + z) * cut.grid.ny + block.y + y;
      Segment segment = segmentAt(cut, row, block.column);
      if (segment.begin >= job.n_wanted) {
        return;
      }
      segment.n_values = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(segment.n_values, job.n_wanted - segment.begin));
      const T* in = static_cast<const T*>(job.in) + segment.begin;
      TCode* codes = static_cast<TCode*>(job.codes) + segment.begin;
      Int* bins = ndim == 1 ? line.columns() : rows.at(y, z, ndim);
      const std::uint32_t n_exact = binSegment(in, segment.n_values, step, ndim, bins);
      if (ndim > 1) {
        rowDifferences(bins, neighboursOf(rows, y, z, ndim, job.axes), segment.n_values, ndim,
                       line.columns());
      }
      const Int radius = static_cast<Int>(job.radius);
      const Int* columns = line.columns();
      const std::uint32_t n_range =
          job.zigzag ? codeSegment<TCode, true>(columns, keep, radius, segment.n_values, codes)
                     : codeSegment<TCode, false>(columns, keep, radius, segment.n_values, codes);
      if (job.entries != nullptr) {
        job.entries[row * cut.segments_per_row + block.column] = {n_range, n_exact};
      }
    }
  }
}

/// Deltas of one segment, from the input alone.
template <class T>
void segmentDeltas(const EncodeJob& job,
                   std::uint64_t row,
                   std::uint64_t column,
                   const Step<T>& step,
                   Line<IntOf<T>>& line) {
  using Int = IntOf<T>;
  const Cut& cut = job.cut;
  const T* in = static_cast<const T*>(job.in);
  const Segment segment = segmentAt(cut, row, column);
  if (cut.grid.ndim == 1) {
    binSegment(in + segment.begin, segment.n_values, step, 1, line.columns());
  } else {
    const bool has_up = job.axes.y && row % cut.grid.ny % cut.tile_y != 0;
    const bool has_back = job.axes.z && row / cut.grid.ny % cut.tile_z != 0;
    Rows<Int> rows;
    // Local rows: this one at (1, 1) of a two by two corner.
    for (std::uint32_t corner = 0; corner < 4; ++corner) {
      const std::uint32_t dy = corner % 2;
      const std::uint32_t dz = corner / 2;
      if ((dy == 0 || has_up) && (dz == 0 || has_back)) {
        const Segment from = segmentAt(cut, row - dy - dz * cut.grid.ny, column);
        binSegment(in + from.begin, segment.n_values, step, cut.grid.ndim, rows.corner(corner));
      } else {
        std::fill_n(rows.corner(corner), segment.n_values, Int{});
      }
    }
    rowDifferences(rows.corner(0), {rows.corner(1), rows.corner(2), rows.corner(3)},
                   segment.n_values, cut.grid.ndim, line.columns());
  }
  deltaSegment(line.columns(), keepFor<Int>(cut.grid.ndim, job.axes), segment.n_values,
               line.deltas);
}

template <class T>
void writeEntriesOf(const EncodeJob& job,
                    std::uint64_t index,
                    SegmentEntries first,
                    SegmentEntries counts) {
  using Int = IntOf<T>;
  const Cut& cut = job.cut;
  const std::uint64_t row = index / cut.segments_per_row;
  const std::uint64_t column = index % cut.segments_per_row;
  const Segment segment = segmentAt(cut, row, column);
  const Step<T> step = makeStep<T>(job.bound, cut.grid.ndim);
  T* values = static_cast<T*>(job.values);
  if (counts.n_range != 0) {
    Line<Int> line;
    line.clearFront();
    segmentDeltas(job, row, column, step, line);
    std::uint64_t at = first.n_range;
    for (std::uint32_t i = 0; i < segment.n_values; ++i) {
      if (!hasCode(line.deltas[i], static_cast<Int>(job.radius))) {
        values[at] = static_cast<T>(line.deltas[i]);
        job.indices[at] = static_cast<std::uint32_t>(segment.begin + i);
        ++at;
      }
    }
  }
  if (counts.n_exact == 0) {
    return;
  }
  const T* in = static_cast<const T*>(job.in) + segment.begin;
  // Found by a vector loop first: such values are few and the scalar form is slow.
  alignas(64) typename Number<T>::Word usable[kMaxSegmentValues];
  for (std::uint32_t i = 0; i < segment.n_values; ++i) {
    usable[i] = quantize(in[i], step).usable;
  }
  std::uint64_t at = job.n_range_total + first.n_exact;
  for (std::uint32_t i = 0; i < segment.n_values; ++i) {
    if (usable[i] == 0) {
      std::memcpy(values + at, in + i, sizeof(T));
      job.indices[at] = static_cast<std::uint32_t>(segment.begin + i);
      ++at;
    }
  }
}

/// Floats as integers of the same order.
template <class T>
IntOf<T> orderedKey(T x) {
  using Int = IntOf<T>;
  const Int b = static_cast<Int>(fp::bits(x));
  return b ^ ((b >> (8 * sizeof(T) - 1)) & std::numeric_limits<Int>::max());
}

template <class T>
ValueRange finiteRangeOf(const T* in, std::size_t n) {
  using Int = IntOf<T>;
  using Limits = std::numeric_limits<Int>;
  Int low = Limits::max();
  Int high = Limits::min();
  for (std::size_t i = 0; i < n; ++i) {
    const Int key = orderedKey(in[i]);
    const bool finite = fp::isFinite(in[i]);
    low = std::min(low, finite ? key : Limits::max());
    high = std::max(high, finite ? key : Limits::min());
  }
  if (low > high) {
    return {};
  }
  const auto value = [](Int key) {
    return static_cast<double>(
        fp::bitCast<T>(key ^ ((key >> (8 * sizeof(T) - 1)) & Limits::max())));
  };
  return {value(low), value(high), true};
}

void encode(const EncodeJob& job, std::uint64_t block) {
  withTypes(job, [&]<class T, class TCode>() { encodeBlockOf<T, TCode>(job, block); });
}
void write(const EncodeJob& job,
           std::uint64_t segment,
           SegmentEntries first,
           SegmentEntries counts) {
  job.input_type == DataType::FLOAT32 ? writeEntriesOf<float>(job, segment, first, counts)
                                      : writeEntriesOf<double>(job, segment, first, counts);
}
ValueRange range(const void* in, std::size_t n_values, DataType type) {
  return type == DataType::FLOAT32 ? finiteRangeOf(static_cast<const float*>(in), n_values)
                                   : finiteRangeOf(static_cast<const double*>(in), n_values);
}

}  // namespace fz::lorenzo_quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::lorenzo_quant {

HWY_EXPORT(encode);
HWY_EXPORT(write);
HWY_EXPORT(range);

void encodeBlock(const EncodeJob& job, std::uint64_t block) {
  HWY_DYNAMIC_DISPATCH(encode)(job, block);
}
void writeEntries(const EncodeJob& job,
                  std::uint64_t segment,
                  SegmentEntries first,
                  SegmentEntries counts) {
  if (counts.n_range == 0 && counts.n_exact == 0) {
    return;
  }
  HWY_DYNAMIC_DISPATCH(write)(job, segment, first, counts);
}
ValueRange finiteRange(const void* in, std::size_t n_values, DataType type) {
  return HWY_DYNAMIC_DISPATCH(range)(in, n_values, type);
}

SegmentEntries scanEntries(std::span<SegmentEntries> entries) {
  SegmentEntries sum;
  entries.back() = {};
  for (SegmentEntries& e : entries) {
    const SegmentEntries counts = e;
    e = sum;
    sum = {sum.n_range + counts.n_range, sum.n_exact + counts.n_exact};
  }
  return sum;
}

Cut makeCut(const Grid& grid) {
  Cut cut;
  cut.grid = grid;
  cut.n_values = grid.nx * grid.ny * grid.nz;
  if (cut.n_values == 0) {
    return cut;
  }
  const std::uint32_t edge = tileEdge(grid.ndim);
  if (grid.ndim == 1) {
    cut.n_rows = bits::ceilDiv<std::uint64_t>(grid.nx, edge);
    cut.row_values = edge;
    cut.segment_values = edge;
    cut.blocks_y = cut.n_rows;
  } else {
    cut.n_rows = grid.ny * grid.nz;
    cut.row_values = grid.nx;
    cut.segment_values = grid.ndim == 3 ? kSegmentValues3d : kMaxSegmentValues;
    cut.tile_y = edge;
    cut.tile_z = grid.ndim == 3 ? edge : 1;
    cut.blocks_y = bits::ceilDiv<std::uint64_t>(grid.ny, edge);
  }
  cut.segments_per_row = bits::ceilDiv<std::uint64_t>(cut.row_values, cut.segment_values);
  cut.blocks_z = bits::ceilDiv<std::uint64_t>(grid.nz, cut.tile_z);
  return cut;
}

}  // namespace fz::lorenzo_quant
#endif
