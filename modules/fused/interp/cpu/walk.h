// One tile of a level, for files compiled once per vector target.
#if defined(FZ_INTERP_WALK) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_INTERP_WALK
#undef FZ_INTERP_WALK
#else
#define FZ_INTERP_WALK
#endif

#include <algorithm>

#include "fused/interp/cpu/args.h"
#include "fused/interp/cpu/simd_rows.h"

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

/// Where a row lies: in the fine lattice, and among the cells, as in all classes.
struct RowAt {
  std::uint32_t y, z;
  std::uint32_t cell_y, cell_z;
};

/// Walks through the planes of a tile. What is done with a row of the fine lattice, which has the
/// points of class `odd` and of that with x, is up to the coder: beginRow, code for each class,
/// which fills in the codes from the prediction, endRow. Codes of the next cell along an axis
/// belong to another tile, which codes them as well: here they are needed but not stored
/// (`is_halo`), and a decoder reads them only (skip).
template <class Coder>
class TileWalk {
 public:
  using C = typename Coder::Code;

  TileWalk(const LevelArgs& args, std::size_t tile, std::int32_t* memory, Coder& coder)
      : a_(args), coder_(coder) {
    const std::size_t place[3] = {tile % args.n_tiles[0], tile / args.n_tiles[0] % args.n_tiles[1],
                                  tile / args.n_tiles[0] / args.n_tiles[1]};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      begin_[axis] = static_cast<std::uint32_t>(place[axis] * args.tile[axis]);
      end_[axis] = std::min(begin_[axis] + args.tile[axis], args.cells[axis]);
    }
    n_cells_ = end_[0] - begin_[0];
    const bool has_x = has(a_.axes, 0);
    n_even_ = n_cells_ + (has_x && end_[0] < a_.cells[0] ? 1 : 0);
    n_odd_ = has_x ? std::min(end_[0], a_.n[0] / 2) - begin_[0] : 0;
    width_ = rowWidth(args);
    takeMemory(memory);
  }

  void run() {
    if (!has(a_.axes, 2)) {
      for (std::uint32_t k = begin_[2]; k < end_[2]; ++k) {
        predictPlane(k);
        evenPlane(k, false);
      }
      return;
    }
    const auto first = static_cast<std::int64_t>(begin_[2]);
    for (std::int64_t k = first - 1; k < first + 2; ++k) {
      predictPlane(k);
    }
    evenPlane(first, false);
    for (std::int64_t k = first; k < end_[2]; ++k) {
      predictPlane(k + 2);
      if (k + 1 < a_.cells[2]) {
        evenPlane(k + 1, k + 1 == end_[2]);
      }
      if (2 * k + 1 < a_.n[2]) {
        oddPlane(k);
      }
    }
  }

  std::uint32_t firstCell() const { return begin_[0]; }
  std::uint32_t cells() const { return n_cells_; }
  /// Points of a class in a row, with those of the halo.
  std::size_t points(Axes odd) const { return has(odd, 0) ? n_odd_ : n_even_; }
  /// The same without the halo.
  std::size_t ownPoints(Axes odd) const { return has(odd, 0) ? n_odd_ : n_cells_; }

  static std::size_t rowWidth(const LevelArgs& args) {
    return bits::roundUp<std::size_t>(args.tile[0] + 2, 16);
  }
  /// In values of 32 bits; codes are counted as such, whatever they are.
  static std::size_t memoryValues(const LevelArgs& args) {
    const std::size_t rows = args.tile[1];
    return rowWidth(args) * (kSlots * (3 * rows + 3) + 9 * (rows + 1) + 4 + kCoderRows);
  }

  /// Memory of the coder.
  std::int32_t* coderRow(std::size_t i) const { return coder_memory_ + i * width_; }

 private:
  static constexpr std::size_t kSlots = 4;  // planes that a cubic looks at
  static constexpr std::size_t kCoderRows = 4;

  void takeMemory(std::int32_t* memory) {
    const std::size_t rows = a_.tile[1];
    const auto take = [&](std::size_t n_rows) {
      std::int32_t* const taken = memory;
      memory += n_rows * width_;
      return taken;
    };
    t_x_ = take(kSlots * (rows + 3));
    t_y_ = take(kSlots * rows);
    t_xy_ = take(kSlots * rows);
    for (Axes odd = 1; odd < 8; ++odd) {
      const std::size_t n_planes = odd == kXyz ? 0 : has(odd, 2) ? 1 : 2;
      codes_[odd] = reinterpret_cast<C*>(take(n_planes * (rows + 1)));
    }
    codes_[kXyz] = reinterpret_cast<C*>(take(1));
    zeros_ = reinterpret_cast<C*>(take(1));
    std::fill_n(zeros_, width_, C{0});
    t_ = take(1);
    p_ = take(1);
    coder_memory_ = take(kCoderRows);
  }

  const std::int32_t* base(std::int64_t j, std::int64_t k) const {
    return a_.base.data + k * static_cast<std::ptrdiff_t>(a_.base.plane) +
           j * static_cast<std::ptrdiff_t>(a_.base.row) + begin_[0];
  }
  std::size_t slot(std::int64_t k) const {
    return has(a_.axes, 2) ? static_cast<std::size_t>(k + 4) % kSlots : 0;
  }
  // Interpolated along x there are one row before and two behind, for the y direction.
  std::int32_t* tX(std::int64_t j, std::int64_t k) const {
    const auto row = static_cast<std::size_t>(j + 1 - begin_[1]);
    return t_x_ + (slot(k) * (a_.tile[1] + 3) + row) * width_;
  }
  std::int32_t* tY(std::int64_t j, std::int64_t k) const { return inPlane(t_y_, j, k); }
  std::int32_t* tXy(std::int64_t j, std::int64_t k) const { return inPlane(t_xy_, j, k); }
  std::int32_t* inPlane(std::int32_t* t, std::int64_t j, std::int64_t k) const {
    const auto row = static_cast<std::size_t>(j - begin_[1]);
    return t + (slot(k) * a_.tile[1] + row) * width_;
  }

  /// Codes of a class in a row; zeros where the row lies outside the lattice.
  C* codes(Axes odd, std::int64_t j, std::int64_t k) const {
    if (j >= a_.cells[1] || k >= a_.cells[2]) {
      return zeros_;
    }
    if (odd == kXyz) {
      return codes_[kXyz];
    }
    const auto plane = has(odd, 2) ? std::size_t{0} : static_cast<std::size_t>(k) % 2;
    const auto row = static_cast<std::size_t>(j - begin_[1]);
    return codes_[odd] + (plane * (a_.tile[1] + 1) + row) * width_;
  }

  /// What can be said of a plane of even z: interpolated along x, y, and both.
  void predictPlane(std::int64_t k) {
    const bool has_x = has(a_.axes, 0);
    const bool has_y = has(a_.axes, 1);
    const std::int64_t first = begin_[1];
    const std::int64_t end = end_[1];
    if (has_x) {
      for (std::int64_t j = first - (has_y ? 1 : 0); j < end + (has_y ? 2 : 0); ++j) {
        betweenX(a_.kernels[0], base(j, k), n_cells_, tX(j, k));
      }
    }
    if (!has_y) {
      return;
    }
    for (std::int64_t j = first; j < end; ++j) {
      const std::int32_t* const rows[4] = {base(j - 1, k), base(j, k), base(j + 1, k),
                                           base(j + 2, k)};
      betweenRows(a_.kernels[1], rows, n_even_, tY(j, k));
      if (has_x) {
        const std::int32_t* const x_rows[4] = {tX(j - 1, k), tX(j, k), tX(j + 1, k), tX(j + 2, k)};
        betweenRows(a_.kernels[1], x_rows, n_odd_, tXy(j, k));
      }
    }
  }

  void evenPlane(std::int64_t k, bool is_halo) {
    forRows(0, k, is_halo);
    if (has(a_.axes, 1)) {
      forRows(kY, k, is_halo);
    }
  }
  void oddPlane(std::int64_t k) {
    forRows(kZ, k, false);
    if (has(a_.axes, 1)) {
      forRows(kY | kZ, k, false);
    }
  }

  /// All rows of cells in which classes `odd` and `odd` with x lie.
  void forRows(Axes odd, std::int64_t k, bool is_halo) {
    const bool has_y = has(a_.axes, 1);
    const bool is_odd_y = has(odd, 1);
    const std::int64_t end = end_[1] + (has_y && !is_odd_y && end_[1] < a_.cells[1] ? 1 : 0);
    for (std::int64_t j = begin_[1]; j < end; ++j) {
      const auto y = static_cast<std::uint32_t>(has_y ? 2 * j + (is_odd_y ? 1 : 0) : j);
      if (y < a_.n[1]) {
        const auto z =
            static_cast<std::uint32_t>(has(a_.axes, 2) ? 2 * k + (has(odd, 2) ? 1 : 0) : k);
        codeRow(odd, {y, z, static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(k)},
                is_halo || j == end_[1]);
      }
    }
  }

  void codeRow(Axes odd, const RowAt& at, bool is_halo) {
    const Axes odd_x = static_cast<Axes>(odd | kX);
    const bool has_x = has(a_.axes, 0);
    if (is_halo && !Coder::kPredictsHalo) {
      if (odd != 0) {
        coder_.skip(*this, odd, at, closed(odd, at));
      }
      if (has_x) {
        coder_.skip(*this, odd_x, at, closed(odd_x, at));
      }
      return;
    }
    coder_.beginRow(*this, odd, at);
    if (odd != 0) {
      coder_.code(*this, odd, at, predict(odd, at), closed(odd, at), is_halo);
    }
    if (has_x) {
      coder_.code(*this, odd_x, at, predict(odd_x, at), closed(odd_x, at), is_halo);
    }
    if (!is_halo) {
      coder_.endRow(*this, odd, at, base(at.cell_y, at.cell_z));
    }
  }

  /// Room for the codes of a row, with a zero behind its last point.
  C* closed(Axes odd, const RowAt& at) const {
    C* const row = codes(odd, at.cell_y, at.cell_z);
    row[points(odd)] = 0;
    return row;
  }

  const std::int32_t* predict(Axes odd, const RowAt& at) {
    const std::int64_t j = at.cell_y;
    const std::int64_t k = at.cell_z;
    const std::size_t n = points(odd);
    const std::int32_t* const t = interpolated(odd, j, k, n);
    switch (odd) {
      case kX | kY:
        correctPairs(t, alongX(kY, j, k, odd, 0), pair(kX, j, k, 1, odd, 1), n, p_);
        return p_;
      case kX | kZ:
        correctPairs(t, alongX(kZ, j, k, odd, 0), pair(kX, j, k, 2, odd, 1), n, p_);
        return p_;
      case kY | kZ:
        correctPairs(t, pair(kZ, j, k, 1, odd, 0), pair(kY, j, k, 2, odd, 1), n, p_);
        return p_;
      case kXyz: {
        const Around<C> around = {{alongX(kY | kZ, j, k, odd, 0), pair(kX | kZ, j, k, 1, odd, 1),
                                   pair(kX | kY, j, k, 2, odd, 2)},
                                  {{pair(kX, j, k, 1, odd, 3), pair(kX, j, k + 1, 1, odd, 3)},
                                   {alongX(kY, j, k, odd, 4), alongX(kY, j, k + 1, odd, 4)},
                                   {alongX(kZ, j, k, odd, 5), alongX(kZ, j + 1, k, odd, 5)}}};
        correctCube(t, around, n, p_);
        return p_;
      }
      default:
        return t;
    }
  }

  const std::int32_t* interpolated(Axes odd, std::int64_t j, std::int64_t k, std::size_t n) {
    if (!has(odd, 2)) {
      return odd == kX ? tX(j, k) : odd == kY ? tY(j, k) : tXy(j, k);
    }
    const auto at = [&](std::int64_t plane) {
      return odd == kZ          ? base(j, plane)
             : odd == (kX | kZ) ? tX(j, plane)
             : odd == (kY | kZ) ? tY(j, plane)
                                : tXy(j, plane);
    };
    const std::int32_t* const rows[4] = {at(k - 1), at(k), at(k + 1), at(k + 2)};
    betweenRows(a_.kernels[2], rows, n, t_);
    return t_;
  }

  Pair<C> alongX(Axes of, std::int64_t j, std::int64_t k, Axes odd, std::size_t weight) const {
    const C* const row = codes(of, j, k);
    return {row, row + 1, static_cast<std::uint32_t>(a_.weights[odd][weight])};
  }
  /// A code and the next one along y (axis 1) or z.
  Pair<C> pair(Axes of, std::int64_t j, std::int64_t k, int axis, Axes odd, std::size_t w) const {
    return {codes(of, j, k), axis == 1 ? codes(of, j + 1, k) : codes(of, j, k + 1),
            static_cast<std::uint32_t>(a_.weights[odd][w])};
  }

  const LevelArgs& a_;
  Coder& coder_;
  std::array<std::uint32_t, 3> begin_ = {};
  std::array<std::uint32_t, 3> end_ = {};
  std::uint32_t n_cells_ = 0;
  std::size_t n_even_ = 0;
  std::size_t n_odd_ = 0;
  std::size_t width_ = 0;
  std::int32_t* t_x_ = nullptr;
  std::int32_t* t_y_ = nullptr;
  std::int32_t* t_xy_ = nullptr;
  std::int32_t* t_ = nullptr;
  std::int32_t* p_ = nullptr;
  std::int32_t* coder_memory_ = nullptr;
  C* zeros_ = nullptr;
  std::array<C*, 8> codes_ = {};
};

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
