#pragma once

#include <cstddef>
#include <cstdint>

#include "fused/interp/bound.h"
#include "fused/interp/codec.h"
#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

/// What the kernels get. Launchers only enqueue; they throw Error(kCuda) when a launch is refused.
namespace fz::interp::device {

/// record->value[...]; floating-point numbers as their bits.
enum Slot : std::uint32_t {
  kSlotSubBits,
  kSlotBound,
  kSlotUnits,
  kSlotOrigin,
  kSlotFrameBound,  ///< kSlotBound once more
  kSlotCodesOff,    ///< decoding: 1 when the size of the codes was wrong
};

/// Bins differ by how many axes were halved before; from here on they do not.
inline constexpr std::uint32_t kMaxHalvings = 20;

/// Found out on the device before anything is coded, and read by all kernels after it. Zero when a
/// run begins.
struct Setup {
  std::uint32_t is_ok;      ///< 0: a decoder must not do anything
  std::uint32_t has_gaps;   ///< some values have no fixed point
  std::uint32_t is_tested;  ///< the bound is not proved
  std::uint32_t is_counted;
  Scale scale;
  double bound;
  ValueRange range;
  Bin bins[kMaxHalvings + 1];
  std::uint64_t n_outliers;
  unsigned long long end_costs[8];  ///< of a field without levels, by set of axes

  // Gathered by the scans. Values as ordered integers, 0: none.
  unsigned long long low;  ///< complement of the smallest
  unsigned long long high;
  unsigned long long has_others;
  unsigned long long counts[kMaxSubBits + 1];
  std::uint64_t n_range_blocks;
  std::uint64_t n_count_blocks;
  std::uint64_t n_list_blocks;
};

/// Settings from which an encode begins.
struct RangeJob {
  Setup* setup;
  const void* values;
  std::uint64_t n_values;
  DataType type;
  double error_bound;
  ErrorBoundMode mode;
  double value_base;
  bool skips_missing;
  std::uint32_t n_axes;  ///< for bins
  bool has_alpha;
  std::uint32_t* outliers;  ///< a bit per value
  StageRecord* record;
};
/// Range, bound, scale and bins; marks the values that have no fixed point.
void launchSetup(const RangeJob& job, const cuda::Call& call);
/// Bins once more, for a plan that is known later.
void launchBins(Setup* setup, std::uint32_t n_axes, bool has_alpha, const cuda::Call& call);

struct DecodeSetupJob {
  Setup* setup;
  DeviceSize codes_size;
  std::uint64_t codes_bytes;  ///< that there must be
  DeviceSize outliers_size;
  std::uint64_t n_values;
  std::uint32_t value_bytes;
  std::uint32_t n_axes;
  bool has_alpha;
  StageRecord* record;
};
void launchDecodeSetup(const DecodeSetupJob& job, const cuda::Call& call);

// ---- lattices

/// Three numbers, by axis.
template <class T>
struct Three {
  T v[3];
  FZ_HD T& operator[](unsigned i) { return v[i]; }
  FZ_HD const T& operator[](unsigned i) const { return v[i]; }
};
using Points = Three<std::uint32_t>;

/// Integers (INT32) or values of a field, x fastest.
struct Grid {
  void* data;  ///< of the point (0, 0, 0)
  DataType type;
  Three<std::int64_t> step;  ///< in values; 1 for x
  bool exists;
  /// Of a result: wanted only where values are tested.
  bool is_for_tests;
};

/// The parts of a field by which the axes of a Lorenzo end are chosen.
struct ProbeJob {
  Setup* setup;
  Grid field;
  Points n;  ///< of a part
  Points n_blocks;
  Points log2;  ///< extents of a block
  std::uint64_t first[3];
  std::uint32_t n_parts;
  std::uint16_t logs[257];  ///< see LogTable
};
/// Adds to the setup's costs of ends; nothing where the field has gaps.
void launchProbe(const ProbeJob& job, const cuda::Call& call);

struct PlaceMap {
  std::uint64_t first;
  Three<std::uint64_t> step;
};

/// Where outliers are marked, and the field for tests.
struct Marks {
  std::uint32_t* words;
  const void* field;
  DataType type;
  bool may_test;
  PlaceMap places;
};

/// Where the codes of an array stand.
struct CodePlaces {
  Points n;         ///< points
  Points n_padded;  ///< with what fills up blocks
  Points log2;
  Points block_step;
  Points shift;
  std::uint64_t start;  ///< first code
};

struct PickJob {
  const Setup* setup;
  Grid source;
  Points n;       ///< of the lattice of even points
  Points stride;  ///< 1 or 2
  Grid out;
};
void launchPick(const PickJob& job, const cuda::Call& call);

struct GhostJob {
  const Setup* setup;
  Grid base;
  Points n;
  Points is_fine_odd;
  Points has_axis;
};
void launchGhosts(const GhostJob& job, const cuda::Call& call);

struct LevelJob {
  const Setup* setup;
  std::uint32_t halvings;
  std::uint32_t axes;
  Points n;  ///< of the fine lattice
  Points cells;
  Three<Kernel> kernels;
  /// By class: in eighths, twice that for pairs.
  std::int32_t pair_weights[7][2];
  std::int32_t cube_weights[6];
  CodePlaces classes[8];
  Grid base;
  Grid source;  ///< of an encode
  Grid result;
  void* codes;
  std::uint32_t code_bytes;
  Marks marks;

  // Set by the launchers.
  bool is_tiled;                 ///< launchEncodeTiles() does what it can
  bool is_regular;               ///< blocks of codes have the same extents in all classes
  std::uint64_t start_bytes[8];  ///< of classes whose blocks are regular
  std::uint32_t plane_bytes[8];  ///< of blocks
  std::uint32_t row_bytes[8];    ///< of blocks
  bool source_has_pairs;         ///< even and odd values can be read together
  bool result_has_pairs;
  std::uint32_t tile_x;
  std::uint32_t tile_y;
  std::uint32_t chunk;
  Points n_tiles;
};
void launchEncodeLevel(const LevelJob& job, const cuda::Call& call);
/// Where it can, by tiles that stream through memory; false: elsewhere. Does nothing on a lattice
/// with gaps, or where values are tested.
bool launchEncodeTiles(const LevelJob& job, const cuda::Call& call);
void launchDecodeLevel(const LevelJob& job, const cuda::Call& call);
bool launchDecodeTiles(const LevelJob& job, const cuda::Call& call);

struct NestedJob {
  const Setup* setup;
  std::uint32_t axis;
  Kernel kernel;
  Points n;  ///< of the fine lattice
  Points n_odd;
  Grid base;  ///< with ghosts along the axis
  Grid difference;
  Grid source;  ///< of an encode
  Grid result;
  Marks marks;  ///< places are those of the odd points
};
/// Differences of the odd points from their predictions.
void launchDiffer(const NestedJob& job, const cuda::Call& call);
/// And back: all points of the fine lattice.
void launchMerge(const NestedJob& job, const cuda::Call& call);

// ---- Lorenzo ends

/// Zero when an end begins.
struct EndState {
  std::uint32_t first_value;  ///< complement of the first place that has one; 0: none
  std::uint32_t has_misfits;
  std::uint32_t n_gap_rows;  ///< tickets
  std::uint32_t n_repair_rows;
};

struct EndJob {
  const Setup* setup;
  EndState* state;
  std::uint32_t* progress;  ///< of rows: parts that are done, zero in the beginning
  std::uint32_t halvings;
  std::uint32_t axes;
  Points n;
  bool is_nested;
  CodePlaces array;
  Grid source;  ///< of an encode
  Grid bins;    ///< INT32
  Grid result;
  void* codes;
  std::uint32_t code_bytes;
  Marks marks;
  bool is_result_wanted;
  bool may_be_direct;     ///< set by the launcher
  bool source_has_fours;  ///< the same: rows can be read in fours
  std::int32_t* sums;     ///< of decoding: endSums() values
};
void launchEncodeEnd(const EndJob& job, const cuda::Call& call);
/// Where codes stand in blocks of 4 x 4 x 4 and rows can be read in fours, and on lines; false:
/// elsewhere. As the direct differences, it does nothing on a field with gaps, or where values are
/// tested.
bool launchEncodeBlocks(const EndJob& job, const cuda::Call& call);
/// Memory for sums of an end, in values.
std::uint64_t endSums(const Points& n, std::uint32_t axes);
void launchDecodeEnd(const EndJob& job, const cuda::Call& call);
/// Whether an end of a field can be decoded block by block, straight from codes to values: then in
/// place of launchDecodeEnd(), with memory for blockSums() in `sums` and none for `bins`.
bool decodesByBlocks(const EndJob& job);
std::uint64_t blockSums(const EndJob& job);
void launchDecodeBlocks(const EndJob& job, const cuda::Call& call);

// ---- outliers

struct ListJob {
  Setup* setup;
  const std::uint32_t* words;
  std::uint64_t n_values;
  const void* values;
  std::uint32_t value_bytes;
  std::uint64_t* counts;  ///< listChunks(n_values)
  CudaOutput out;
  StageRecord* record;
};
std::uint64_t listChunks(std::uint64_t n_values);
void launchList(const ListJob& job, const cuda::Call& call);

struct ScatterJob {
  const Setup* setup;
  const std::uint8_t* list;
  std::uint64_t n_limit;  ///< entries at most
  std::uint64_t n_values;
  std::uint32_t value_bytes;
  std::uint8_t* out;
  StageRecord* record;
};
void launchScatter(const ScatterJob& job, const cuda::Call& call);

/// Says how long an output is that is not of known size.
void launchPublish(StageRecord* record,
                   unsigned port,
                   std::uint64_t needed,
                   std::uint64_t capacity,
                   const cuda::Call& call);

}  // namespace fz::interp::device
