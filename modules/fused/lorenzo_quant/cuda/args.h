#pragma once

#include <cstdint>

#include "fused/lorenzo_quant/codec.h"
#include "fz/device_types.h"

/// LorenzoQuant on a device. A warp takes a stripe of tiles: 32 lanes side by side in x, each with
/// 16 bytes of values, over the rows of one tile in y and z (in one dimension: one tile of 1024
/// values, a lane's share at a time). None of this is part of the format.
namespace fz::lorenzo_quant::device {

template <class T>
inline constexpr unsigned kLaneValues = 16 / sizeof(T);
/// Values of a row that one warp holds: a segment.
template <class T>
inline constexpr unsigned kSegment = 32 * kLaneValues<T>;
/// Segments, in index order, whose list entries are counted and written together. Their values are
/// few enough to be counted in 16 bits.
inline constexpr unsigned kChunkSegments = 256;

/// Places in StageRecord::value.
inline constexpr unsigned kBoundSlot = 0;
inline constexpr unsigned kCountSlot = 1;
inline constexpr unsigned kRangeSlot = 2;
inline constexpr unsigned kBaseSlot = 3;
inline constexpr unsigned kVersionSlot = 4;
inline constexpr unsigned kAbsoluteSlot = 5;  ///< the bound again, as a double

/// How a field is cut. Segments are numbered along the rows, so they ascend with the index.
struct Layout {
  Grid grid;
  std::uint64_t n_values;
  std::uint64_t row_segments;
  std::uint64_t tiles_y;
  std::uint64_t n_segments;
  std::uint64_t n_stripes;  ///< one warp each
};

template <class T>
FZ_HD Layout makeLayout(const Grid& grid) {
  Layout layout{grid, grid.nx * grid.ny * grid.nz, 0, 0, 0, 0};
  if (layout.n_values == 0) {
    return layout;
  }
  const std::uint64_t edge = tileEdge(grid.ndim);
  layout.row_segments = bits::ceilDiv<std::uint64_t>(grid.nx, kSegment<T>);
  layout.n_segments = layout.row_segments * grid.ny * grid.nz;
  if (grid.ndim == 1) {
    layout.tiles_y = 1;
    layout.n_stripes = bits::ceilDiv<std::uint64_t>(grid.nx, edge);
  } else {
    layout.tiles_y = bits::ceilDiv<std::uint64_t>(grid.ny, edge);
    const std::uint64_t tiles_z = grid.ndim == 3 ? bits::ceilDiv<std::uint64_t>(grid.nz, edge) : 1;
    layout.n_stripes = layout.row_segments * layout.tiles_y * tiles_z;
  }
  return layout;
}

/// Where a value stands in a grid, without a division per value.
struct GridPlaces {
  std::uint64_t inverse_nx;  ///< 2^64 / nx rounded up; 0 for nx = 1
  std::uint64_t inverse_ny;
  std::uint32_t nx, ny;

  static FZ_HD std::uint64_t inverseOf(std::uint64_t n) {
    return n <= 1 ? 0 : ~std::uint64_t{0} / n + 1;
  }
  static FZ_HD GridPlaces of(const Grid& grid) {
    return {inverseOf(grid.nx), inverseOf(grid.ny), static_cast<std::uint32_t>(grid.nx),
            static_cast<std::uint32_t>(grid.ny)};
  }
};

/// Dims as configured, x of 0 still open.
struct Dims {
  std::uint64_t x, y, z;
  int ndim;
};

/// Entries of the two lists before a chunk.
struct EntryPlace {
  std::uint32_t range;
  std::uint32_t exact;
};

/// What only the device knows of an encode, in device memory.
template <class T>
struct EncodePlan {
  // Only where the range is scanned, and then 0 before the run.
  std::uint64_t high_key;         ///< of the largest finite value; 0: there is none
  std::uint64_t low_key_flipped;  ///< all bits of the smallest one's key turned over
  Layout layout;                  ///< no stripes when there is nothing to do
  GridPlaces places;              ///< of layout.grid
  Step<T> step;
  // Where the chunks are placed by a scan.
  std::uint64_t n_range;
  bool lists_fit;
};

struct EncodeRun {
  const void* in;
  DeviceSize size;
  Dims dims;
  bool scans_range;  ///< bound and base follow from the values; else from the next two
  bool is_noa;       ///< the base is max - min, else max|x|
  float bound;
  float base;
  double error_bound;
  std::uint32_t radius;
  bool zigzag;
  bool publishes_codes;
  void* codes;
  std::uint64_t codes_capacity;
  void* values;
  std::uint64_t values_capacity;
  std::uint32_t* indices;
  std::uint64_t indices_capacity;
  StageRecord* record;
  // Scratch
  void* plan;              ///< an EncodePlan
  std::uint32_t* flags;    ///< per segment: lanes that have list entries
  std::uint64_t n_clear;   ///< flags that must be 0 before the pass over the field
  std::uint64_t n_chunks;  ///< at most
  /// Per chunk: entries, range ones in the low 16 bits, exact ones in the high.
  std::uint32_t* counts;
  EntryPlace* firsts;  ///< per chunk
};

/// What only the device knows of a decode.
template <class T>
struct DecodePlan {
  Layout layout;            ///< no stripes when the parts contradict each other
  std::uint64_t n_values;   ///< with those beyond the layout, which old streams may have
  std::uint64_t n_range;    ///< entries to add
  std::uint64_t n_entries;  ///< those behind n_range are exact values
  T step;
  unsigned is_wide;  ///< some delta is beyond the integers of this type: sums in double
};

struct DecodeRun {
  const void* codes;
  DeviceSize codes_size;
  const void* values;
  DeviceSize values_size;
  const std::uint32_t* indices;
  DeviceSize indices_size;
  Dims dims;
  bool zigzag;
  void* out;
  std::uint64_t out_capacity;
  bool publishes_out;
  StageRecord* record;
  // Scratch
  void* plan;  ///< a DecodePlan
  /// A bit per value: has a range entry, whose value stands in `out` until the sums are done. Null
  /// when there can be no entries.
  std::uint32_t* marks;
  std::uint64_t n_mark_words;  ///< a multiple of 4
};

/// The word before the counts: blocks that are done with them, 0 before and after.
FZ_HD std::uint64_t* blocksDone(const EncodeRun& run) {
  return reinterpret_cast<std::uint64_t*>(run.counts) - 1;
}

}  // namespace fz::lorenzo_quant::device

namespace fz::lorenzo_quant {

/// Args of the ops; one of the two is in use.
struct LorenzoQuantArgs {
  device::EncodeRun encode;
  device::DecodeRun decode;
};

}  // namespace fz::lorenzo_quant
