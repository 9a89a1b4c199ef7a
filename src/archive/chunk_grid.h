#pragma once

#include <array>
#include <cstdint>

#include "fz/archive.h"

namespace fz {

/// How an array is cut into chunks; all numbers were checked when it was made.
class ChunkGrid {
 public:
  ChunkGrid() = default;
  /// Throws Error(kBadSize) for arrays and grids beyond 64 bits, InvalidArgument for the rest.
  ChunkGrid(DataType type, AxisValues extents, AxisValues chunk);

  const AxisValues& extents() const { return extents_; }
  const AxisValues& chunk() const { return chunk_; }
  std::size_t axisCount() const { return extents_.size(); }
  std::size_t valueBytes() const { return value_bytes_; }
  std::uint64_t count() const { return n_chunks_; }
  std::uint64_t arrayBytes() const { return n_array_bytes_; }
  std::uint64_t chunkBytes() const { return n_chunk_bytes_; }  ///< of the largest
  /// Chunks along an axis.
  std::uint64_t countAlong(std::size_t axis) const { return counts_[axis]; }
  Box boxOf(std::uint64_t chunk) const;
  /// The number of the chunk with this place in the grid.
  std::uint64_t numberOf(const AxisValues& place) const;

 private:
  AxisValues extents_;
  AxisValues chunk_;
  std::array<std::uint64_t, kMaxAxes> counts_ = {};
  std::size_t value_bytes_ = 1;
  std::uint64_t n_chunks_ = 1;
  std::uint64_t n_array_bytes_ = 0;
  std::uint64_t n_chunk_bytes_ = 0;
};

/// As predictors see an array: axes beyond the third are part of it.
std::array<std::size_t, 3> foldedDims(const AxisValues& extents);

/// "12 x 34 x 5", x first; "a single value" without axes.
std::string extentsText(const AxisValues& extents);
/// "[0:12, 30:40]", the slowest axis first, as numpy writes it.
std::string boxText(const Box& box);

}  // namespace fz
