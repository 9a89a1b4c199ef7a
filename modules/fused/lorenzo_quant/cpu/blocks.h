#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fused/lorenzo_quant/codec.h"
#include "fz/axes.h"
#include "fz/data_type.h"

/// LorenzoQuant on the CPU. The field is cut into rows of x, and rows into segments of at most
/// Cut::segment_values; a block is the tiles of one segment column. Blocks and segments are units
/// of work and not part of the format.
namespace fz::lorenzo_quant {

/// How a field is cut. In one dimension each tile counts as a row.
struct Cut {
  Grid grid;
  std::uint64_t n_values = 0;
  std::uint64_t n_rows = 0;
  std::uint64_t row_values = 0;  ///< the last row may be shorter in one dimension
  std::uint64_t segments_per_row = 0;
  std::uint64_t blocks_y = 0;
  std::uint64_t blocks_z = 0;
  std::uint32_t segment_values = 0;
  std::uint32_t tile_y = 1;
  std::uint32_t tile_z = 1;

  std::uint64_t segmentCount() const { return n_rows * segments_per_row; }
  std::uint64_t blockCount() const { return segments_per_row * blocks_y * blocks_z; }
  /// Number of the segment in which a row begins, by the row's first value.
  std::uint64_t segmentOf(std::uint64_t value) const {
    return row_values == 0 ? 0 : value / row_values * segments_per_row;
  }
};
Cut makeCut(const Grid& grid);

/// Entries of a segment in the two lists; after the scan, the place of the first.
struct SegmentEntries {
  std::uint32_t n_range = 0;
  std::uint32_t n_exact = 0;
};

/// Replaces counts by places; the last entry, which counts nothing, becomes the totals.
SegmentEntries scanEntries(std::span<SegmentEntries> entries);

/// Types are carried as values so that one exported function serves all instantiations.
struct EncodeJob {
  DataType input_type;
  DataType code_type;
  Cut cut;
  float bound;
  std::uint32_t radius;
  bool zigzag;
  Axes axes;
  const void* in;
  void* codes;
  SegmentEntries* entries;  ///< one per segment; null: not counted
  std::uint64_t n_wanted;   ///< values from the first on that get codes
  void* values = nullptr;   ///< of the input type: range deltas, then raw values
  std::uint32_t* indices = nullptr;
  std::uint64_t n_range_total = 0;
};

struct DecodeJob {
  DataType input_type;
  DataType code_type;
  Cut cut;
  float bound;
  bool zigzag;
  Axes axes;
  /// Sums in double: for streams of the original system whose deltas no integer holds.
  bool wide;
  const void* codes;
  const void* deltas;  ///< of the input type, sorted by index
  const std::uint32_t* indices;
  std::size_t n_deltas;
  void* out;
  std::uint64_t first = 0;  ///< number of the first value, as the indices count
};

/// Codes and entry counts of one block.
void encodeBlock(const EncodeJob& job, std::uint64_t block);
/// Writes the entries of one segment, `counts` of them, from the places `first` on.
void writeEntries(const EncodeJob& job,
                  std::uint64_t segment,
                  SegmentEntries first,
                  SegmentEntries counts);
void decodeBlock(const DecodeJob& job, std::uint64_t block);

/// Smallest and largest finite value; both 0 when there is none.
struct ValueRange {
  double min = 0.0;
  double max = 0.0;
  bool any = false;
};
ValueRange finiteRange(const void* in, std::size_t n_values, DataType type);

}  // namespace fz::lorenzo_quant
