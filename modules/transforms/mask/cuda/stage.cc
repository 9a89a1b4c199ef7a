// Mask on a device.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cpu/missing.h"
#include "backends/cuda/side_stream.h"
#include "backends/cuda/zeroed_scratch.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "cuda_check.h"
#include "mem/scratch.h"
#include "shared/bits.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/kernels.h"
#include "transforms/mask/cuda/op/args.h"
#include "transforms/mask/mask_stage.h"
#include "transforms/mask/stream.h"

namespace fz::mask {

namespace {

// SPEC: config.
constexpr std::uint32_t kConfigMissing = 8;
constexpr std::uint32_t kConfigFilled = 16;
constexpr std::uint32_t kConfigExtent = 24;

static_assert(kMaxKeys == kMaxPatterns && kMaxFills == kMaxFillValues);

/// Parts of one piece of memory, each 64-byte aligned.
class Parts {
 public:
  template <class U>
  std::size_t add(std::uint64_t n) {
    const std::size_t at = n_bytes_;
    n_bytes_ = bits::roundUp<std::size_t>(at + static_cast<std::size_t>(n) * sizeof(U), 64);
    return at;
  }
  std::size_t size() const { return n_bytes_; }

 private:
  std::size_t n_bytes_ = 0;
};

/// Bits of a value that no encoder takes for a missing one.
template <class T>
std::uint64_t markerFor(const std::vector<double>& fill) {
  T marker{1};
  while (std::any_of(fill.begin(), fill.end(),
                     [&](double value) { return static_cast<T>(value) == marker; })) {
    marker += T{1};
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, &marker, sizeof(marker));
  return bits;
}

template <class T>
Fills<T> fillsOf(const std::vector<T>& values) {
  Fills<T> fills;
  std::fill_n(fills.value, kMaxFills, std::numeric_limits<T>::quiet_NaN());
  std::copy(values.begin(), values.end(), fills.value);
  return fills;
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(MaskStage<T>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void finishDecode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override {
    return {{kConfigMissing, 8, kMissingSlot},
            {kConfigFilled, 8, kFilledSlot},
            {kConfigExtent, 8, kExtentSlot},
            {kConfigExtent + 8, 8, kExtentSlot + 1},
            {kConfigExtent + 16, 8, kExtentSlot + 2}};
  }
  bool readsUnaligned(std::size_t input) const override { return stage_.isInverse() && input == 1; }
  TileOp tileOp() const override;
  std::string tileOpType() const override {
    return sizeof(T) == 4 ? "fz::mask::MaskOp<float>" : "fz::mask::MaskOp<double>";
  }
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;
  void readyGroup(const cuda::Call& call, const GroupRun& group) override;
  void endGroup(const cuda::Call& call, const GroupRun& group) override;

 private:
  struct Shape {
    std::array<std::size_t, 3> extents;  ///< x may be 0: only the device knows
    std::uint64_t max_values;
    std::uint64_t max_bricks;
    std::uint64_t max_groups;
    std::uint64_t slot_bytes;
  };

  Shape shapeFor(const DeviceSize& size) const;
  Hold hold() const;
  Fills<T> fills() const;
  EncodeArgs encodeArgs(const cuda::Call& call);
  DecodeArgs decodeArgs(const cuda::Call& call);
  void addZeroed(EncodeArgs& args, const cuda::Call& call);
  void addWorkspace(EncodeArgs& args, const cuda::Call& call);

  MaskStage<T>& stage_;
  std::array<std::size_t, 3> extents_ = {0, 1, 1};  ///< of the last encode
  EncodeArgs encode_ = {};                          ///< of the group that runs
  DecodeArgs decode_ = {};
  bool has_written_others_ = false;  ///< the run, what may stand behind a mask's first layer
  bool expects_others_ = false;      ///< a mask had that: most have not, and launches take time
  ZeroedScratch found_;
  Scratch last_valid_;
  Scratch work_;
  cuda::SideStream beside_{cuda::SideStream::Priority::kMost};  ///< what others wait for
};

template <class T>
Fills<T> CudaSide<T>::fills() const {
  std::vector<T> values;
  for (const double value : stage_.fill_) {
    if (stage_.isInverse()) {
      values.push_back(static_cast<T>(value));
    } else {
      addFill(value, values);
    }
  }
  return fillsOf(values);
}

template <class T>
auto CudaSide<T>::shapeFor(const DeviceSize& size) const -> Shape {
  if (size.isExact()) {
    const auto dims = stage_.dimsFor(static_cast<std::size_t>(size.n_bytes), ErrorCode::kBadSize);
    const Grid grid = makeGrid(dims[0], dims[1], dims[2]);
    const std::uint64_t n_bricks = std::max<std::uint64_t>(grid.bricks(), 1);
    const std::uint64_t slot_bytes =
        bits::roundUp<std::uint64_t>(grid.n_bits == 0 ? 0 : brickAt(grid, 0).rawBytes(grid), 4);
    return {dims, size.n_bytes / sizeof(T), n_bricks, std::max<std::uint64_t>(grid.groups(), 1),
            n_bricks * slot_bytes};
  }
  const auto& set = stage_.getDims();
  const std::uint64_t most = size.n_bytes / sizeof(T);
  std::size_t n_rows = 0;
  std::size_t n_held = 0;
  const bool overflows = __builtin_mul_overflow(set[1], set[2], &n_rows) ||
                         __builtin_mul_overflow(n_rows, set[0], &n_held);
  FZ_REQUIRE(!overflows && n_held <= most && n_rows <= std::max<std::uint64_t>(most, 1),
             ErrorCode::kBadSize,
             "Mask: dims {} x {} x {} hold more values than the input, which has {} at most",
             set[0], set[1], set[2], most);
  // More values have more bricks, unless there is an axis less.
  const std::uint64_t n_x = set[0] != 0 ? set[0] : most / n_rows;
  const std::uint64_t n_bricks =
      std::max<std::uint64_t>({makeGrid(n_x, set[1], set[2]).bricks(),
                               makeGrid(1, set[1], set[2]).bricks(), std::uint64_t{1}});
  return {set, most, n_bricks, bits::ceilDiv<std::uint64_t>(n_bricks, kGroupBricks),
          n_bricks * kMaxRawBytes};
}

template <class T>
Hold CudaSide<T>::hold() const {
  const auto& tile = stage_.hold_;
  if (stage_.keeps_nan_) {
    return Hold::kQuietNan;
  }
  if (tile[1] > 1 || tile[2] > 1) {
    return Hold::kTiles;
  }
  return tile[0] == 0 ? Hold::kField : 32 % tile[0] == 0 ? Hold::kLanes : Hold::kUnits;
}

template <class T>
void CudaSide<T>::addZeroed(EncodeArgs& args, const cuda::Call& call) {
  static_assert(sizeof(Findings) % sizeof(std::uint64_t) == 0);
  std::uint8_t* const zeroed =
      found_.get(call, sizeof(Findings) + (args.max_groups + 1) * sizeof(std::uint64_t));
  args.found = reinterpret_cast<Findings*>(zeroed);
  args.block_states = reinterpret_cast<std::uint64_t*>(zeroed + sizeof(Findings));
  if (args.hold == Hold::kField) {
    const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(args.max_values, kTileValues) + 1;
    const auto last_valid = last_valid_.get<std::uint64_t>(call.pool, n_tiles);
    FZ_CUDA_CHECK(cudaMemsetAsync(last_valid.data(), 0, last_valid.size_bytes(), call.stream));
    args.last_valid = last_valid.data();
  }
}

template <class T>
void CudaSide<T>::addWorkspace(EncodeArgs& args, const cuda::Call& call) {
  const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(args.max_values, kTileValues) + 1;
  const std::uint64_t n_slots = (kMaxLayers - 1) * args.max_bricks;
  Parts parts;
  const std::size_t words = parts.add<std::uint32_t>(n_tiles * (kTileValues / 32));
  const std::size_t ranks = parts.add<std::uint64_t>(n_tiles);
  const std::size_t kinds = parts.add<std::uint8_t>(n_slots);
  const std::size_t brick_bytes = parts.add<std::uint16_t>(n_slots);
  const std::size_t arena_at = parts.add<std::uint64_t>(n_slots);
  const std::size_t group_ends = parts.add<std::uint32_t>((kMaxLayers - 1) * args.max_groups);
  const std::size_t first_kinds = parts.add<std::uint8_t>(args.max_bricks);
  const std::size_t first_bytes = parts.add<std::uint16_t>(args.max_bricks);
  const std::size_t listed = parts.add<std::uint32_t>(args.max_bricks);
  const std::size_t slots = parts.add<std::uint8_t>(args.slot_bytes);
  const std::size_t arena = parts.add<std::uint8_t>(args.mask.capacity_bytes);
  std::uint8_t* const memory = work_.get<std::uint8_t>(call.pool, parts.size()).data();
  args.words = reinterpret_cast<std::uint32_t*>(memory + words);
  args.ranks = reinterpret_cast<std::uint64_t*>(memory + ranks);
  args.kinds = memory + kinds;
  args.brick_bytes = reinterpret_cast<std::uint16_t*>(memory + brick_bytes);
  args.arena_at = reinterpret_cast<std::uint64_t*>(memory + arena_at);
  args.group_ends = reinterpret_cast<std::uint32_t*>(memory + group_ends);
  args.first_kinds = memory + first_kinds;
  args.first_bytes = reinterpret_cast<std::uint16_t*>(memory + first_bytes);
  args.listed = reinterpret_cast<std::uint32_t*>(memory + listed);
  args.slots = memory + slots;
  args.arena = memory + arena;
}

template <class T>
EncodeArgs CudaSide<T>::encodeArgs(const cuda::Call& call) {
  const Shape shape = shapeFor(call.inputs[0].size);
  extents_ = shape.extents;
  EncodeArgs args{};
  args.in = call.inputs[0].data;
  args.shape = {call.inputs[0].size, {extents_[0], extents_[1], extents_[2]}};
  args.out = call.outputs[0];
  args.mask = call.outputs[1];
  args.record = call.record;
  args.hold = hold();
  args.has_fills = !stage_.fill_.empty();
  args.marker = markerFor<T>(stage_.fill_);
  args.max_values = shape.max_values;
  args.max_bricks = shape.max_bricks;
  args.max_groups = shape.max_groups;
  args.slot_bytes = shape.slot_bytes;
  const bool is_solid = extents_[1] > 1 && extents_[2] > 1;
  args.may_have_planes = is_solid && extents_[0] != 1;
  args.may_be_flat = !is_solid || extents_[0] <= 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    args.hold_extents[axis] = static_cast<std::uint32_t>(stage_.hold_[axis]);
  }
  addZeroed(args, call);
  addWorkspace(args, call);
  return args;
}

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  launchEncode<T>(encodeArgs(call), fills(), call);
  has_written_others_ = true;
  call.clearAtEnd(found_);
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  stage_.n_missing_ = record.value[kMissingSlot];
  stage_.n_filled_ = record.value[kFilledSlot];
  stage_.shape_ = {record.value[kExtentSlot], record.value[kExtentSlot + 1],
                   record.value[kExtentSlot + 2]};
  if (record.value[kOthersSlot] != 0 && !has_written_others_) {
    expects_others_ = true;
    stage_.requestOutputBytes(1, 1);  // of any length: it is missing
  }
}

template <class T>
DecodeArgs CudaSide<T>::decodeArgs(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  const auto& shape = stage_.shape_;
  const std::uint64_t n_values = shape[0] * shape[1] * shape[2];  // a config has no more
  const bool is_good = size.isExact()
                           ? size.n_bytes % sizeof(T) == 0 && size.n_bytes / sizeof(T) == n_values
                           : n_values <= size.n_bytes / sizeof(T);
  FZ_REQUIRE(is_good, ErrorCode::kCorrupt, "Mask: {} bytes of values for dims {} x {} x {}",
             size.n_bytes, shape[0], shape[1], shape[2]);
  const Grid grid = makeGrid(shape[0], shape[1], shape[2]);
  const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(n_values, kTileValues) + 1;
  Parts parts;
  const std::size_t plan = parts.add<MaskPlan>(1);
  const std::size_t ranks = parts.add<std::uint64_t>(n_tiles);
  const std::size_t words = parts.add<std::uint64_t>(n_values / 64 + 2);
  std::uint8_t* const memory = work_.get<std::uint8_t>(call.pool, parts.size()).data();
  if (!hasWordRows(grid)) {
    FZ_CUDA_CHECK(cudaMemsetAsync(memory + words, 0, parts.size() - words, call.stream));
  }
  return {.in = call.inputs[0].data,
          .in_size = size,
          .mask = call.inputs[1].data,
          .mask_size = call.inputs[1].size,
          .out = call.outputs[0],
          .record = call.record,
          .extents = {shape[0], shape[1], shape[2]},
          .n_values = n_values,
          .plan = reinterpret_cast<MaskPlan*>(memory + plan),
          .ranks = reinterpret_cast<std::uint64_t*>(memory + ranks),
          .words = reinterpret_cast<std::uint64_t*>(memory + words)};
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  launchDecode<T>(decodeArgs(call), fills(), call);
}

template <class T>
TileOp CudaSide<T>::tileOp() const {
  constexpr std::uint32_t kLeast = 32;
  constexpr std::uint32_t kMost = 1024;  // what warps of coders have, or a multiple of it
  if (stage_.isInverse()) {
    return RowsOp{.unit_values = kLeast, .is_first = true};
  }
  const std::size_t hold = stage_.hold_[0];
  if (stage_.keeps_nan_ || stage_.hold_[1] > 1 || stage_.hold_[2] > 1 || hold < kLeast ||
      hold > kMost || !std::has_single_bit(hold)) {
    return NoOp{"fills missing values from further away than a warp sees"};
  }
  const auto unit = static_cast<std::uint32_t>(hold);
  return RowsOp{.unit_values = unit, .warp_values = unit, .is_first = true};
}

template <class T>
void CudaSide<T>::beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  MaskArgs<T> mask = {};
  mask.fills = fills();
  mask.n_fills = static_cast<std::uint32_t>(stage_.fill_.size());
  mask.record = call.record;
  if (stage_.isInverse()) {
    decode_ = decodeArgs(call);
    // Beside it the coder finds where its tiles stand.
    launchRead<T>(decode_, mask.fills, beside_.fork(call));
    mask.plan = decode_.plan;
    mask.words = reinterpret_cast<std::uint32_t*>(decode_.words);
  } else {
    mask.is_looked_at = group.all_passes && group.pass != 0;
    if (!mask.is_looked_at) {
      encode_ = encodeArgs(call);
    }
    mask.found = encode_.found;
    mask.marker = encode_.marker;
    mask.words = encode_.words;
    mask.hold_values = static_cast<std::uint32_t>(stage_.hold_[0]);
  }
  args.add(mask);
}

template <class T>
void CudaSide<T>::readyGroup(const cuda::Call& /*call*/, const GroupRun& /*group*/) {
  if (stage_.isInverse()) {
    beside_.join();
  }
}

template <class T>
void CudaSide<T>::endGroup(const cuda::Call& call, const GroupRun& group) {
  if (stage_.isInverse()) {
    launchOthers<T>(decode_, fills(), call);
  } else if (!group.all_passes || group.pass == 0) {
    launchLook<T>(encode_, call);
    // With all passes the coder may write once more, and nobody may ask for another run.
    const cuda::Call writing = group.all_passes ? call : beside_.fork(call);
    launchBricks<T>(encode_, writing);
    launchPlace<T>(encode_, writing);
    has_written_others_ = group.all_passes || expects_others_;
    if (has_written_others_) {
      launchWriteOthers<T>(encode_, writing);
    }
    call.clearAtEnd(found_);
  }
}

template <class T>
void CudaSide<T>::finishDecode(const StageRecord& record) {
  stage_.n_missing_ = record.value[kMissingSlot];
  stage_.n_filled_ = record.value[kFilledSlot];
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  if (!stage_.isInverse()) {
    detail::throwError(ErrorCode::kBadSize,
                       fmt::format("Mask: dims {} x {} x {} do not go with {} bytes", extents_[0],
                                   extents_[1], extents_[2], record.error_index));
  }
  const auto text = [&] {
    switch (static_cast<Reason>(record.error_value)) {
      case Reason::kSize:
        return fmt::format("{} missing values, or the bytes of the values, do not go with it",
                           record.value[kMissingSlot]);
      case Reason::kPatterns:
        return std::string("a pattern is out of order, or was not declared");
      case Reason::kLayer:
        return fmt::format("a layer before byte {} does not fit", record.error_index);
      case Reason::kBrick:
        return fmt::format("brick {} is damaged", record.error_index);
      case Reason::kCount:
        return fmt::format("{} missing values announced, the mask has {}",
                           record.value[kMissingSlot], record.error_index);
      case Reason::kIndex:
        return fmt::format("a missing value near {} has a pattern that does not exist",
                           record.error_index);
      default:
        return fmt::format("{} fill values announced, the mask has others",
                           record.value[kFilledSlot]);
    }
  };
  detail::throwError(ErrorCode::kCorrupt, "Mask: the mask is damaged: " + text());
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, MaskStage<float>, MaskStage<double>>;
}

}  // namespace fz::mask
