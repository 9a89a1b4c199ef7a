#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"
#include "transforms/mask/book.h"
#include "transforms/mask/cuda/policy.h"

namespace fz::cuda {
struct Call;
}

namespace fz::mask {

// Slots of the config in StageRecord::value.
constexpr unsigned kMissingSlot = 0;
constexpr unsigned kFilledSlot = 1;
constexpr unsigned kExtentSlot = 2;  ///< of x; y and z follow

/// What record->error_value says of damage; error_index is a place that goes with it.
enum class Reason : std::uint64_t {
  kNone = 0,
  kSize = 1,      ///< bytes of the values do not go with the dims
  kPatterns = 2,  ///< the dictionary
  kLayer = 3,     ///< sizes of a layer, or where the mask ends
  kBrick = 4,
  kCount = 5,   ///< missing values announced
  kIndex = 6,   ///< a pattern that does not exist, or where nothing is missing
  kFilled = 7,  ///< fill values announced
};

constexpr std::uint32_t kMaxLayers = 9;  ///< of a mask: where, and eight bits of an index
constexpr std::uint32_t kMaxKeys = 256;  ///< patterns, as kMaxPatterns in stream.h
constexpr std::uint32_t kKeySlots = 1024;
constexpr std::uint32_t kMaxFills = 8;

/// Declared values, and NaN, which nothing equals, where there are fewer.
template <class T>
struct Fills {
  T value[kMaxFills];
};

/// The field as it comes. An extent x of 0 is as many as there are.
struct FieldShape {
  DeviceSize size;
  std::uint64_t extents[3];
};

enum class Hold : std::uint32_t {
  kField,     ///< the value before, in the whole field
  kLanes,     ///< in units that divide 32 values
  kUnits,     ///< in other units
  kTiles,     ///< in tiles of several rows
  kQuietNan,  ///< no value: all missing ones become NaN of one kind
};

/// What encoding finds; zero before.
struct Findings {
  std::uint64_t n_missing;
  std::uint64_t n_filled;
  std::uint64_t n_keys;  ///< patterns, while they are not too many
  std::uint64_t has_too_many;
  std::uint64_t next_tile;    ///< of the values one by one
  std::uint64_t arena_bytes;  ///< of the bricks taken
  std::uint64_t n_ones[kMaxLayers];
  std::uint64_t n_sampled;        ///< blocks that are done with it
  std::uint64_t n_done;           ///< blocks that have coded bricks
  LayerCounts counts;             ///< of the first layer
  std::uint64_t keys[kKeySlots];  ///< patterns, each exclusive-or the marker; 0: none
  // From here on written before it is read.
  std::uint64_t n_patterns;
  std::uint64_t n_layers;  ///< all of them
  std::uint64_t layer_bytes[kMaxLayers];
  std::uint64_t patterns[kMaxKeys];  ///< ascending
  std::uint64_t has_own_chances;     ///< the first layer; others never have
  Chances chances;
};

/// Bricks that a block works on together, of a layer.
struct BrickGroup {
  std::uint64_t at;           ///< its bytes, in the payload
  std::uint32_t first_coded;  ///< coded bricks before it
  std::uint32_t n_coded;      ///< encoding only; and its bytes
  std::uint32_t n_bytes;
};

FZ_HD std::uint32_t groupBricks(const Grid& grid) {
  return kGroupRows / (grid.rows_y * grid.rows_z);
}
FZ_HD std::uint64_t groupsOf(const Grid& grid) {
  return (grid.bricks() + groupBricks(grid) - 1) / groupBricks(grid);
}

/// Whether every row is a word of the mask.
FZ_HD bool hasWordRows(const Grid& grid) {
  return grid.is_line || grid.nx % kRowBits == 0;
}

struct EncodeArgs {
  const std::uint8_t* in;
  FieldShape shape;
  CudaOutput out;
  CudaOutput mask;
  StageRecord* record;
  Hold hold;
  bool has_fills;  ///< declared
  std::uint32_t hold_extents[3];
  std::uint64_t marker;  ///< bits of a value that is never missing
  Findings* found;
  std::uint64_t* last_valid;   ///< for each tile, see LastValid; zero
  std::uint64_t* ranks;        ///< look-back states for each tile
  std::uint32_t* words;        ///< 32 values each, and four more; those are zero
  std::uint32_t* tile_firsts;  ///< kTiles: the place of the first valid value of a tile, and 1
  std::uint64_t max_bricks;    ///< of a layer
  std::uint64_t max_groups;
  std::uint8_t* kinds;  ///< of the bricks of all layers
  std::uint16_t* brick_bytes;
  std::uint64_t* arena_at;   ///< of the layers that tell patterns apart: where its bytes stand
  BrickGroup* groups;        ///< max_groups of each layer
  std::uint8_t* slots;       ///< of the first layer's bricks, as large as the first of them
  std::uint8_t* arena;       ///< as large as the output
  std::uint64_t max_values;  ///< of the launch: the input has no more
  std::uint64_t max_hold_tiles;
  std::uint64_t slot_bytes;  ///< of all slots
};

/// What a decoder finds in the mask.
struct MaskPlan {
  std::uint64_t is_good;
  std::uint64_t n_patterns;
  std::uint64_t n_layers;
  std::uint64_t raw_at;  ///< values one by one
  std::uint64_t n_ones;  ///< of the first layer
  std::uint64_t n_filled;
  std::uint64_t n_damaged;  ///< bricks of the first layer
  std::uint64_t n_done;     ///< blocks
  std::uint64_t next_tile;  ///< of the values one by one
  std::uint64_t form[kMaxLayers];
  std::uint64_t kinds_at[kMaxLayers];
  std::uint64_t sizes_at[kMaxLayers];
  std::uint64_t payload_at[kMaxLayers];
  std::uint64_t patterns[kMaxKeys];
  Chances chances[kMaxLayers];
};

struct DecodeArgs {
  const std::uint8_t* in;
  DeviceSize in_size;
  const std::uint8_t* mask;  ///< at any address
  DeviceSize mask_size;
  CudaOutput out;
  StageRecord* record;
  std::uint64_t extents[3];
  std::uint64_t n_values;
  MaskPlan* plan;
  std::uint64_t* ranks;    ///< look-back states for each tile
  std::uint64_t* words;    ///< 64 values each, and one more; zero where rows are no words
  BrickGroup* groups;      ///< n_groups of each layer
  std::uint64_t n_bricks;  ///< of a layer
  std::uint64_t n_groups;
};

/// Enqueue only.
template <class T>
void launchEncode(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call);
template <class T>
void launchDecode(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);

/// Parts of launchEncode: the filled field, but for what launchHold() fills behind it, and where
/// values are missing; patterns and bricks; the port "mask" of them.
template <class T>
void launchFind(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call);
template <class T>
void launchHold(const EncodeArgs& args, const cuda::Call& call);
template <class T>
void launchBricks(const EncodeArgs& args, const cuda::Call& call);
template <class T>
void launchWrite(const EncodeArgs& args, const cuda::Call& call);

/// Parts of launchDecode: which values are missing; those that have not all one pattern, when the
/// others are there.
template <class T>
void launchRead(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);
template <class T>
void launchOthers(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);

/// The first part of launchRead: what stands where in the mask.
template <class T>
void launchPlan(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);

}  // namespace fz::mask
