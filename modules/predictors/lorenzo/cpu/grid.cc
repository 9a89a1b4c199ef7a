#include "predictors/lorenzo/cpu/grid.h"

#include <algorithm>

#include "backends/cpu/parallel_for.h"
#include "predictors/lorenzo/codec.h"
#include "shared/bits.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predictors/lorenzo/cpu/grid.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/prefix_sum_inl.h"
// clang-format on

#ifndef FZ_LORENZO_CPU_ONCE
#define FZ_LORENZO_CPU_ONCE
namespace fz::lorenzo {

/// Kernels over a piece of a row.
template <class U>
struct RowKernels {
  /// `row` and its neighbours begin at the piece; `has_left` when values stand left of it.
  void (*encode)(
      const U* row, const Neighbours<U>& around, std::size_t n_values, bool has_left, U* out);
  /// `around` has decoded values; `before` is the sum of the differences left of the piece in its
  /// row. Returns that sum for the next piece.
  U (*decode)(const U* in, const Neighbours<U>& around, std::size_t n_values, U before, U* out);
  /// The same without differences along x.
  void (*encode_across)(const U* row, const Neighbours<U>& around, std::size_t n_values, U* out);
  void (*decode_across)(const U* in, const Neighbours<U>& around, std::size_t n_values, U* out);
};

}  // namespace fz::lorenzo
#endif

HWY_BEFORE_NAMESPACE();
namespace fz::lorenzo::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;
using fz::HWY_NAMESPACE::RunningSum;

/// How many neighbouring rows there are: none, one, or up, back and both.
enum class Around { kNone, kOne, kAll };

template <Around kAround, class U>
HWY_INLINE U across(const U* row, const Neighbours<U>& around, std::ptrdiff_t x) {
  if constexpr (kAround == Around::kNone) {
    return row[x];
  } else if constexpr (kAround == Around::kOne) {
    return delta::minus(row[x], around.up[x]);
  } else {
    const U in_plane = delta::minus(row[x], around.up[x]);
    return delta::minus(in_plane, delta::minus(around.back[x], around.up_back[x]));
  }
}

template <Around kAround, class U>
HWY_INLINE void encodeAs(const U* HWY_RESTRICT row,
                         const Neighbours<U> around,
                         std::size_t n_values,
                         bool has_left,
                         U* HWY_RESTRICT out) {
  const auto at = [&](std::ptrdiff_t x) HWY_ATTR { return across<kAround>(row, around, x); };
  out[0] = has_left ? delta::minus(at(0), at(-1)) : at(0);
  for (std::ptrdiff_t x = 1; x < static_cast<std::ptrdiff_t>(n_values); ++x) {
    out[x] = delta::minus(at(x), at(x - 1));
  }
}

template <class U>
void encodeRow(
    const U* row, const Neighbours<U>& around, std::size_t n_values, bool has_left, U* out) {
  if (around.up_back != nullptr) {
    encodeAs<Around::kAll>(row, around, n_values, has_left, out);
  } else if (around.up != nullptr || around.back != nullptr) {
    const U* other = around.up != nullptr ? around.up : around.back;
    encodeAs<Around::kOne>(row, Neighbours<U>{other, nullptr, nullptr}, n_values, has_left, out);
  } else {
    encodeAs<Around::kNone>(row, around, n_values, has_left, out);
  }
}

template <Around kAround, class U>
HWY_INLINE U
decodeAs(const U* in, const Neighbours<U> around, std::size_t n_values, U before, U* out) {
  const typename RunningSum<U>::D d;
  constexpr std::size_t kLanes = RunningSum<U>::kLanes;
  RunningSum<U> running(before);
  std::size_t x = 0;
  for (; x + kLanes <= n_values; x += kLanes) {
    auto v = running.add(hn::LoadU(d, in + x));
    if constexpr (kAround != Around::kNone) {
      v = hn::Add(v, hn::LoadU(d, around.up + x));
    }
    if constexpr (kAround == Around::kAll) {
      const auto back = hn::LoadU(d, around.back + x);
      v = hn::Add(v, hn::Sub(back, hn::LoadU(d, around.up_back + x)));
    }
    hn::StoreU(v, d, out + x);
  }
  U sum = running.carry();
  for (; x < n_values; ++x) {
    sum = delta::plus(sum, in[x]);
    U value = sum;
    if constexpr (kAround != Around::kNone) {
      value = delta::plus(value, around.up[x]);
    }
    if constexpr (kAround == Around::kAll) {
      value = delta::plus(value, delta::minus(around.back[x], around.up_back[x]));
    }
    out[x] = value;
  }
  return sum;
}

template <class U>
U decodeRow(const U* in, const Neighbours<U>& around, std::size_t n_values, U before, U* out) {
  if (around.up_back != nullptr) {
    return decodeAs<Around::kAll>(in, around, n_values, before, out);
  }
  if (around.up != nullptr || around.back != nullptr) {
    const U* other = around.up != nullptr ? around.up : around.back;
    return decodeAs<Around::kOne>(in, Neighbours<U>{other, nullptr, nullptr}, n_values, before,
                                  out);
  }
  return decodeAs<Around::kNone>(in, around, n_values, before, out);
}

template <class U>
void encodeAcross(const U* row, const Neighbours<U>& around, std::size_t n_values, U* out) {
  for (std::size_t x = 0; x < n_values; ++x) {
    out[x] = acrossRows(row, around, x);
  }
}

template <class U>
void decodeAcross(const U* in, const Neighbours<U>& around, std::size_t n_values, U* out) {
  for (std::size_t x = 0; x < n_values; ++x) {
    U value = in[x];
    value = around.up == nullptr ? value : delta::plus(value, around.up[x]);
    value = around.back == nullptr ? value : delta::plus(value, around.back[x]);
    out[x] = around.up_back == nullptr ? value : delta::minus(value, around.up_back[x]);
  }
}

template <class U>
const RowKernels<U>* table() {
  static constexpr RowKernels<U> kTable = {&encodeRow<U>, &decodeRow<U>, &encodeAcross<U>,
                                           &decodeAcross<U>};
  return &kTable;
}

const RowKernels<std::uint8_t>* table8() {
  return table<std::uint8_t>();
}
const RowKernels<std::uint16_t>* table16() {
  return table<std::uint16_t>();
}
const RowKernels<std::uint32_t>* table32() {
  return table<std::uint32_t>();
}
const RowKernels<std::uint64_t>* table64() {
  return table<std::uint64_t>();
}

}  // namespace fz::lorenzo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::lorenzo {

HWY_EXPORT(table8);
HWY_EXPORT(table16);
HWY_EXPORT(table32);
HWY_EXPORT(table64);

namespace {

template <class U>
const RowKernels<U>& rowKernels() {
  if constexpr (sizeof(U) == 1) {
    return *HWY_DYNAMIC_DISPATCH(table8)();
  } else if constexpr (sizeof(U) == 2) {
    return *HWY_DYNAMIC_DISPATCH(table16)();
  } else if constexpr (sizeof(U) == 4) {
    return *HWY_DYNAMIC_DISPATCH(table32)();
  } else {
    return *HWY_DYNAMIC_DISPATCH(table64)();
  }
}

/// A box of the grid: [begin, end) per axis.
struct Box {
  Dims begin;
  Dims end;
};

/// The grid in boxes of one size; what box is done when does not change the result.
class Boxes {
 public:
  Boxes(const Dims& dims, const Dims& size) : dims_(dims), size_(size) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      size_[axis] = std::min(size[axis], dims[axis]);
      count_[axis] = bits::ceilDiv(dims[axis], size_[axis]);
    }
  }
  const Dims& count() const { return count_; }
  Box at(const Dims& index) const {
    Box box;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      box.begin[axis] = index[axis] * size_[axis];
      box.end[axis] = std::min(box.begin[axis] + size_[axis], dims_[axis]);
    }
    return box;
  }

 private:
  Dims dims_;
  Dims size_;
  Dims count_;
};

/// Rows around place (x, y, z) of values that lie in a grid.
template <class U>
Neighbours<U> neighboursAt(
    const U* values, const Grid& grid, std::size_t x, std::size_t y, std::size_t z) {
  const std::size_t row_step = grid.dims[0];
  const std::size_t plane_step = grid.dims[0] * grid.dims[1];
  const U* row = values + z * plane_step + y * row_step + x;
  const bool has_up = grid.axes.y && y > 0;
  const bool has_back = grid.axes.z && z > 0;
  return {has_up ? row - row_step : nullptr, has_back ? row - plane_step : nullptr,
          has_up && has_back ? row - plane_step - row_step : nullptr};
}

/// Calls f(x, y, z) at the start of every row of the box, planes outermost.
template <class F>
void forRows(const Box& box, F f) {
  for (std::size_t z = box.begin[2]; z < box.end[2]; ++z) {
    for (std::size_t y = box.begin[1]; y < box.end[1]; ++y) {
      f(box.begin[0], y, z);
    }
  }
}

template <class U>
void decodeBox(const U* in, const Grid& grid, const Box& box, std::span<U> carries, U* out) {
  const RowKernels<U>& run = rowKernels<U>();
  const Dims& dims = grid.dims;
  const std::size_t n_values = box.end[0] - box.begin[0];
  forRows(box, [&](std::size_t x, std::size_t y, std::size_t z) {
    const std::size_t row = z * dims[1] + y;
    const std::size_t at = row * dims[0] + x;
    const Neighbours<U> around = neighboursAt<U>(out, grid, x, y, z);
    if (!grid.axes.x) {
      run.decode_across(in + at, around, n_values, out + at);
      return;
    }
    const U before = x == 0 ? U{0} : carries[row];
    const U sum = run.decode(in + at, around, n_values, before, out + at);
    if (!carries.empty()) {
      carries[row] = sum;
    }
  });
}

constexpr std::size_t kAll = static_cast<std::size_t>(-1);
/// Rows of a box when one thread walks the whole grid: such strips of two planes stay in cache.
constexpr std::size_t kStripValues = 32768;
/// Boxes of one thread among several: small, so that enough of them are ready at a time.
constexpr std::size_t kBoxX = 256;

Dims stripSize(const Dims& dims) {
  return {kAll, std::max<std::size_t>(1, kStripValues / dims[0]), 1};
}

Dims boxSize(const Dims& dims) {
  return dims[2] > 1 ? Dims{kBoxX, 16, 4} : Dims{kBoxX, 64, 1};
}

}  // namespace

template <class U>
void encodeGrid(const CpuExecutor& executor, const U* in, const Grid& grid, U* out) {
  const Dims& dims = grid.dims;
  if (dims[0] == 0 || dims[1] == 0 || dims[2] == 0) {
    return;
  }
  const RowKernels<U>& run = rowKernels<U>();
  // Long rows are cut too, so that a grid of few rows keeps every thread busy.
  const Boxes boxes(dims, {kStripValues, stripSize(dims)[1], 1});
  const Dims count = boxes.count();
  parallelFor(executor, count[0] * count[1] * count[2], [&](std::size_t i) {
    // Planes before strips: the strip of the plane before is still in cache.
    const Box box = boxes.at({i % count[0], i / count[0] / count[2], i / count[0] % count[2]});
    forRows(box, [&](std::size_t x, std::size_t y, std::size_t z) {
      const std::size_t at = (z * dims[1] + y) * dims[0] + x;
      const Neighbours<U> around = neighboursAt(in, grid, x, y, z);
      const std::size_t n_values = box.end[0] - x;
      grid.axes.x ? run.encode(in + at, around, n_values, x > 0, out + at)
                  : run.encode_across(in + at, around, n_values, out + at);
    });
  });
}

std::size_t carryCount(const CpuExecutor& executor, const Dims& dims) {
  return executor.threadCount() == 1 || dims[0] <= kBoxX ? 0 : dims[1] * dims[2];
}

template <class U>
void decodeGrid(
    const CpuExecutor& executor, const U* in, const Grid& grid, std::span<U> carries, U* out) {
  const Dims& dims = grid.dims;
  if (dims[0] == 0 || dims[1] == 0 || dims[2] == 0) {
    return;
  }
  if (executor.threadCount() == 1) {
    const Boxes strips(dims, stripSize(dims));
    for (std::size_t y = 0; y < strips.count()[1]; ++y) {
      for (std::size_t z = 0; z < strips.count()[2]; ++z) {
        decodeBox(in, grid, strips.at({0, y, z}), carries, out);
      }
    }
    return;
  }
  // A box needs those before it on each axis: boxes with the same index sum are independent.
  const Boxes boxes(dims, boxSize(dims));
  const Dims count = boxes.count();
  for (std::size_t wave = 0; wave + 2 < count[0] + count[1] + count[2]; ++wave) {
    parallelFor(executor, count[1] * count[2], [&](std::size_t i) {
      const std::size_t y = i % count[1];
      const std::size_t z = i / count[1];
      if (wave >= y + z && wave - y - z < count[0]) {
        decodeBox(in, grid, boxes.at({wave - y - z, y, z}), carries, out);
      }
    });
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): U is a type
#define FZ_LORENZO_INSTANTIATE(U)                                             \
  template void encodeGrid<U>(const CpuExecutor&, const U*, const Grid&, U*); \
  template void decodeGrid<U>(const CpuExecutor&, const U*, const Grid&, std::span<U>, U*)
// NOLINTEND(bugprone-macro-parentheses)
FZ_LORENZO_INSTANTIATE(std::uint8_t);
FZ_LORENZO_INSTANTIATE(std::uint16_t);
FZ_LORENZO_INSTANTIATE(std::uint32_t);
FZ_LORENZO_INSTANTIATE(std::uint64_t);
#undef FZ_LORENZO_INSTANTIATE

}  // namespace fz::lorenzo
#endif
