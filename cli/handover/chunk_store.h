#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "archive/chunk_grid.h"
#include "fz/archive.h"

/// Arrays of other formats whose chunks are frames of fz.
namespace fz::cli {

/// What they say of an array.
struct StoredArray {
  DataType type = DataType::UNKNOWN;
  ChunkGrid grid;                  ///< with chunks of the array's extents at most
  AxisValues stored_chunk;         ///< what every chunk is stored as, those at the edge too
  std::optional<BoundInfo> bound;  ///< what values that are written later keep to
  std::vector<double> fill;        ///< values that mean "missing"
  /// For which chunks may have NaN with a marker in their place (python/fz/_chunks.py).
  std::vector<double> marked;
  /// Frames of integers may stand for any type of their width, as the HDF5 filter has it.
  bool integers_are_bits = false;

  std::uint64_t bytesOf(const Box& box) const {
    return valueCount(box.extents) * grid.valueBytes();
  }
};

class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual const StoredArray& about() const = 0;
  /// The first bytes of what stands for a chunk, at most so many; nothing where it is absent.
  /// Throws Error.
  virtual std::optional<std::vector<std::uint8_t>> read(std::uint64_t chunk,
                                                        std::uint64_t max_bytes) const = 0;
  virtual std::uint64_t sizeOf(std::uint64_t chunk) const = 0;
};

class ChunkTarget {
 public:
  virtual ~ChunkTarget() = default;
  /// Each chunk once, in order.
  virtual void put(std::uint64_t chunk, ByteView frame) = 0;
  /// The result gets its name; without it nothing is left.
  virtual void commit() = 0;
};

}  // namespace fz::cli
