#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fused/lorenzo_quant/cpu/blocks.h"

/// What the encoder and the decoder on the CPU share. Nothing here is compiled per vector target:
/// the small functions are forced inline into code that is.
namespace fz::lorenzo_quant {

// In three dimensions two planes of 8 rows stay in the first cache, in two dimensions two rows:
// those may be longer, and memory likes that.
constexpr std::uint32_t kSegmentValues3d = 256;
constexpr std::uint32_t kMaxSegmentValues = 1024;
constexpr std::uint32_t kRowValues = 16 * kSegmentValues3d;
static_assert(kRowValues >= 4 * kMaxSegmentValues);

/// All ones where a value has its x neighbour in the same tile of the given edge.
template <class Int, std::uint32_t kEdge>
constexpr std::array<Int, kMaxSegmentValues> kKeepLeft = [] {
  std::array<Int, kMaxSegmentValues> keep{};
  for (std::uint32_t i = 0; i < kMaxSegmentValues; ++i) {
    keep[i] = i % kEdge == 0 ? Int{0} : static_cast<Int>(-1);
  }
  return keep;
}();

/// A run of values in one row.
struct Segment {
  std::uint64_t begin;  ///< linear index
  std::uint32_t n_values;
};

inline Segment segmentAt(const Cut& cut, std::uint64_t row, std::uint64_t column) {
  const std::uint64_t x = column * cut.segment_values;
  const std::uint64_t begin = row * cut.row_values + x;
  const std::uint64_t n =
      std::min<std::uint64_t>({cut.segment_values, cut.row_values - x, cut.n_values - begin});
  return {begin, static_cast<std::uint32_t>(n)};
}

/// Where a block lies: a column of segments over the rows of one tile in y and z.
struct Block {
  std::uint64_t column, y, z;
  std::uint32_t n_y, n_z;
};

inline Block blockAt(const Cut& cut, std::uint64_t index) {
  const std::uint64_t rows = index / cut.segments_per_row;
  const std::uint64_t y = rows % cut.blocks_y * cut.tile_y;
  const std::uint64_t z = rows / cut.blocks_y * cut.tile_z;
  const std::uint64_t ny = cut.n_rows / cut.grid.nz;
  return {index % cut.segments_per_row, y, z,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(cut.tile_y, ny - y)),
          static_cast<std::uint32_t>(std::min<std::uint64_t>(cut.tile_z, cut.grid.nz - z))};
}

/// Calls f with the input and code types of a job.
template <class Job, class F>
inline void withTypes(const Job& job, F f) {
  if (job.input_type == DataType::FLOAT32) {
    if (job.code_type == DataType::UINT16) {
      return f.template operator()<float, std::uint16_t>();
    }
    return f.template operator()<float, std::uint8_t>();
  }
  if (job.code_type == DataType::UINT16) {
    return f.template operator()<double, std::uint16_t>();
  }
  f.template operator()<double, std::uint32_t>();
}

/// The rows that the prediction of a block looks at: two planes in 3-D, two rows in 2-D. A row
/// outside the tile is all zeros.
template <class V>
struct Rows {
  alignas(64) V values[kRowValues];
  alignas(64) V zeros[kMaxSegmentValues];

  FZ_HD void clearZeros() {
    for (V& v : zeros) {
      v = V{};
    }
  }
  FZ_HD V* at(std::uint32_t y, std::uint32_t z, int ndim) {
    return ndim == 3 ? values + ((z % 2) * 8 + y) * kSegmentValues3d : corner(y % 2);
  }
  /// One of four rows of any length.
  FZ_HD V* corner(std::uint32_t i) { return values + i * kMaxSegmentValues; }
};

/// Neighbours of a row; there are zeros in their place in the first rows of a tile, and off the
/// axes.
template <class V>
struct Neighbours {
  const V* up;
  const V* back;
  const V* up_back;
};

template <class V>
FZ_HD Neighbours<V> neighboursOf(
    Rows<V>& rows, std::uint32_t y, std::uint32_t z, int ndim, const Axes& axes) {
  const bool has_up = axes.y && y > 0;
  const bool has_back = axes.z && z > 0;
  return {has_up ? rows.at(y - 1, z, ndim) : rows.zeros,
          has_back ? rows.at(y, z - 1, ndim) : rows.zeros,
          has_up && has_back ? rows.at(y - 1, z - 1, ndim) : rows.zeros};
}

}  // namespace fz::lorenzo_quant
