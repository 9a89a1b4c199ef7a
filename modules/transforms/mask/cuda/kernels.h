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

/// Encoding, behind them: whether the mask has something behind its first layer.
constexpr unsigned kOthersSlot = 5;

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
  std::uint64_t n_listed;         ///< bricks of the first layer that are to be coded
  std::uint64_t n_counted;        ///< blocks that have counted what some of those ask
  std::uint64_t n_done;           ///< blocks that have coded others
  LayerCounts counts;             ///< of the first layer
  std::uint64_t keys[kKeySlots];  ///< patterns, each exclusive-or the marker; 0: none
  // From here on written before it is read.
  std::uint64_t layer_bytes[kMaxLayers];
  std::uint64_t patterns[kMaxKeys];  ///< ascending
  std::uint64_t has_own_chances;     ///< the first layer; others never have
  Chances chances;
};

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
  std::uint64_t* last_valid;  ///< for each tile, see LastValid; zero
  std::uint64_t* ranks;       ///< look-back states for each tile
  std::uint32_t* words;       ///< 32 values each, and four more; those are zero
  std::uint64_t max_bricks;   ///< of a layer
  std::uint64_t max_groups;
  std::uint64_t* block_states;  ///< look-back states of the blocks that place bricks; zero
  // Of the first layer's bricks.
  std::uint8_t* first_kinds;
  std::uint16_t* first_bytes;  ///< those of the coded and raw ones
  std::uint32_t* listed;       ///< which are to be coded, in any order
  std::uint8_t* slots;         ///< what they are coded to, as large as the first of them
  // Of the layers that tell patterns apart.
  std::uint8_t* kinds;         ///< max_bricks of each
  std::uint16_t* brick_bytes;  ///< those of the coded and raw ones
  std::uint64_t* arena_at;     ///< where they stand
  std::uint32_t* group_ends;   ///< max_groups of each
  std::uint8_t* arena;         ///< as large as the output
  std::uint64_t max_values;    ///< of the launch: the input has no more
  std::uint64_t slot_bytes;    ///< of all slots
  bool may_have_planes;        ///< the field may have three dimensions
  bool may_be_flat;            ///< it may have fewer
};

// What decoding counts, in StageRecord::value, which is 0 when a run begins.
constexpr unsigned kOnesSlot = 5;      ///< of the first layer
constexpr unsigned kFoundSlot = 6;     ///< fill values
constexpr unsigned kDamagedSlot = 7;   ///< bricks of the first layer
constexpr unsigned kDoneSlot = 8;      ///< blocks
constexpr unsigned kNextTileSlot = 9;  ///< of the values one by one

/// Where the parts of a layer stand in the mask.
struct LayerPlan {
  std::uint64_t form;
  std::uint64_t chances_at;  ///< where it brings some
  std::uint64_t ends_at;     ///< of its groups
  std::uint64_t groups_at;
};

/// What a decoder finds in the mask.
struct MaskPlan {
  std::uint64_t is_good;
  std::uint64_t n_patterns;
  std::uint64_t n_layers;
  std::uint64_t raw_at;  ///< values one by one
  LayerPlan layers[kMaxLayers];
  std::uint64_t patterns[kMaxKeys];
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
  std::uint64_t* ranks;  ///< look-back states for each tile
  std::uint64_t* words;  ///< 64 values each, and one more; zero where rows are no words
};

/// Enqueue only.
template <class T>
void launchEncode(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call);
template <class T>
void launchDecode(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);

/// Parts of launchEncode: the filled field, but for what launchHold() fills behind it, and where
/// values are missing; then the port "mask".
template <class T>
void launchFind(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call);
template <class T>
void launchHold(const EncodeArgs& args, const cuda::Call& call);
/// The mask: which bricks of the first layer are to be coded, and the chances for that; what they
/// are coded to; where that goes, and all of a mask that has nothing else; other layers, and
/// missing values one by one, for masks that have them.
template <class T>
void launchLook(const EncodeArgs& args, const cuda::Call& call);
template <class T>
void launchBricks(const EncodeArgs& args, const cuda::Call& call);
template <class T>
void launchPlace(const EncodeArgs& args, const cuda::Call& call);
template <class T>
void launchWriteOthers(const EncodeArgs& args, const cuda::Call& call);

/// Parts of launchDecode: what stands where in the mask, and which values are missing; those that
/// have not all one pattern, when the others are there.
template <class T>
void launchRead(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);
template <class T>
void launchOthers(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call);

}  // namespace fz::mask
