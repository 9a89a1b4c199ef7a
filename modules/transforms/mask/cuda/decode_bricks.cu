// Before missing values are put back: what stands where in the mask, and the bricks of where they
// are.
#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/decode_lanes.cuh"
#include "transforms/mask/cuda/lanes.cuh"
#include "transforms/mask/cuda/plan.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kWarp;
using cuda::laneId;

constexpr unsigned kWarps = kBrickThreads / kWarp;
constexpr unsigned kOwn = kGroupBricks / kWarp;  ///< bricks of a lane in a group

/// What a block decodes. kPlanes: bricks of three dimensions.
template <bool kPlanes>
struct BlockShape {
  static constexpr unsigned kGroups = kPlanes ? 1 : 4;
  static constexpr unsigned kGroupsOfWarp = (kGroups + kWarps - 1) / kWarps;
  static constexpr unsigned kBricks = kGroups * kGroupBricks;
  static constexpr unsigned kBatch = kPlanes ? 32 : 64;  ///< bricks at a time
  /// Coded bricks are shorter than raw ones. An odd number of words: threads meet in no bank.
  static constexpr unsigned kRows = kPlanes ? kBrickRows : kFlatRows;
  static constexpr unsigned kUnits = kRows * kRowBits / 8 / kUnitBytes + 2;
  static constexpr unsigned kStride = kRows + 1;
  /// That fit a multiprocessor: another round of blocks would take as long again.
  static constexpr unsigned kBlocks = kPlanes ? 6 : 16;
  static_assert(kUnits / 2 % 2 == 1 && kUnits % 2 == 0 && LaneDecoder::kPadUnits <= 3);
};

template <bool kPlanes>
struct BlockState {
  using Shape = BlockShape<kPlanes>;
  LaneTable table;
  std::uint32_t units[Shape::kBatch * Shape::kUnits / 2];
  std::uint32_t rows[Shape::kBatch * Shape::kStride];
  std::uint32_t bytes_at[Shape::kBricks];  ///< of listed bricks, behind the layer's groups_at
  std::uint16_t n_bytes[Shape::kBricks];
  std::uint8_t kinds[Shape::kBricks];  ///< of all
  std::uint8_t listed[Shape::kBricks];
  std::uint32_t n_listed;
  std::uint32_t n_ones;
};

/// Sets the bits of a row that need not be a word: others set other bits of its words.
__device__ __forceinline__ void addRow(std::uint32_t* words,
                                       std::uint64_t start,
                                       std::uint32_t row) {
  const auto shift = static_cast<std::uint32_t>(start % 32);
  if (row << shift != 0) {
    atomicOr(words + start / 32, row << shift);  // order-free: each its own bits
  }
  if (shift != 0 && row >> (32 - shift) != 0) {
    atomicOr(words + start / 32 + 1, row >> (32 - shift));
  }
}

/// A block's view of its work.
template <bool kPlanes>
struct BlockReader {
  using Shape = BlockShape<kPlanes>;
  const DecodeArgs& args;
  const Grid grid;  // by value, as the layer: what has an address stays in memory
  const LayerPlan layer;
  BlockState<kPlanes>& shared;
  std::uint64_t first;  ///< brick
  bool has_word_rows;

  __device__ __forceinline__
  BlockReader(const DecodeArgs& a, const Grid& g, const LayerPlan& l, BlockState<kPlanes>& s)
      : args(a),
        grid(g),
        layer(l),
        shared(s),
        first(std::uint64_t{blockIdx.x} * Shape::kBricks),
        has_word_rows(hasWordRows(g)) {}

  __device__ __forceinline__ void recordBrick(std::uint64_t index) const {
    recordDamage(args.record, Reason::kBrick, index);
    addTo(&args.record->value[kDamagedSlot], 1);
  }
  /// One thread: row_of(row, start) for the rows of a brick. In few instructions, since a block
  /// reads most of them once.
  template <class RowOf>
  __device__ __forceinline__ void putRows(const Brick& brick, RowOf row_of) const {
    auto* const words = reinterpret_cast<std::uint32_t*>(args.words);
    std::uint32_t row = 0;
#pragma unroll 1
    for (std::uint32_t z = 0; z < brick.n_z; ++z) {
      std::uint64_t start = brick.planeStart(grid, z);
#pragma unroll 1
      for (std::uint32_t y = 0; y < brick.n_y; ++y, ++row, start += grid.nx) {
        if (has_word_rows) {
          words[start / kRowBits] = row_of(row, start);
        } else {
          addRow(words, start, row_of(row, start));
        }
      }
    }
  }
  /// One thread: a brick that is all zeros or all ones. Returns its ones.
  __device__ __forceinline__ std::uint32_t putUniform(std::uint64_t index, bool is_one) const {
    if (!is_one && !has_word_rows) {
      return 0;  // they are zero already
    }
    const Brick brick = brickAt(grid, index);
    putRows(brick, [&](std::uint32_t, std::uint64_t start) {
      return is_one ? lowRow(bitsOfRow(grid, brick, start)) : 0;
    });
    return is_one ? static_cast<std::uint32_t>(brick.bits(grid)) : 0;
  }

  /// What a warp knows of a group, and each lane of its own bricks: lane, lane + 32.
  struct WarpGroup {
    std::uint64_t index;
    GroupBytes from;
    BrickKind kind[kOwn];
    unsigned coded[kOwn];  ///< lanes
  };

  /// A warp for some of the groups: kinds, and a list of the coded and raw bricks in any order.
  __device__ __forceinline__ void list() const {
    const std::uint64_t n_groups = grid.groups();
    WarpGroup groups[Shape::kGroupsOfWarp];
    // Each step for all groups: one by one they would wait for memory again and again.
#pragma unroll
    for (unsigned g = 0; g < Shape::kGroupsOfWarp; ++g) {
      WarpGroup& group = groups[g];
      group.index = std::uint64_t{blockIdx.x} * Shape::kGroups + g * kWarps + cuda::warpId();
      const bool is_there = g * kWarps + cuda::warpId() < Shape::kGroups;
      group.index = is_there ? group.index : n_groups;
      if (group.index < n_groups) {
        group.from = groupBytes(args, grid, layer, group.index);
      }
    }
#pragma unroll
    for (unsigned g = 0; g < Shape::kGroupsOfWarp; ++g) {
      WarpGroup& group = groups[g];
#pragma unroll
      for (unsigned k = 0; k < kOwn; ++k) {
        const unsigned i = k * kWarp + laneId();
        group.kind[k] = group.index < n_groups && i < group.from.n ? group.from.kindOf(i) : kNone;
        group.coded[k] = __ballot_sync(cuda::kAllLanes, group.kind[k] == kCoded);
      }
    }
#pragma unroll
    for (unsigned g = 0; g < Shape::kGroupsOfWarp; ++g) {
      if (groups[g].index < n_groups) {
        listGroup(groups[g]);
      }
    }
  }
  __device__ __forceinline__ void listGroup(const WarpGroup& group) const {
    const GroupBytes& from = group.from;
    const std::uint64_t first_brick = group.index * kGroupBricks;
    std::uint32_t n_coded = 0;
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      n_coded += static_cast<std::uint32_t>(__popc(group.coded[k]));
    }
    bool is_good = from.is_good && from.hasSizes(n_coded);
    std::uint32_t n_bytes[kOwn];
    std::uint32_t coded_before = 0;
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      const std::uint32_t at =
          coded_before + static_cast<std::uint32_t>(__popc(group.coded[k] & lanesBelow()));
      n_bytes[k] = 0;
      if (group.kind[k] == kCoded && is_good) {
        n_bytes[k] = from.sizes()[at] * kUnitBytes;
      } else if (group.kind[k] == kRaw) {
        n_bytes[k] = brickAt(grid, first_brick + k * kWarp + laneId()).rawBytes(grid);
      }
      coded_before += static_cast<std::uint32_t>(__popc(group.coded[k]));
    }
    std::uint32_t all_bytes = 0;
    std::uint32_t before[kOwn];
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      const std::uint32_t end = cuda::warpInclusiveSum(n_bytes[k]);
      before[k] = all_bytes + end - n_bytes[k];
      all_bytes += __shfl_sync(cuda::kAllLanes, end, kWarp - 1);
    }
    is_good = is_good && from.n_kind_bytes + n_coded + all_bytes == from.n_bytes;
    if (!is_good) {
      if (laneId() == 0) {
        recordBrick(first_brick);
      }
#pragma unroll
      for (unsigned k = 0; k < kOwn; ++k) {
        shared.kinds[static_cast<unsigned>(first_brick - first) + k * kWarp + laneId()] = kNone;
      }
      return;
    }
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      const unsigned at_brick = static_cast<unsigned>(first_brick - first) + k * kWarp + laneId();
      const bool has_bytes = group.kind[k] >= kCoded;
      const unsigned listed = __ballot_sync(cuda::kAllLanes, has_bytes ? 1 : 0);
      std::uint32_t to = 0;
      if (laneId() == 0) {
        to = atomicAdd(&shared.n_listed, __popc(listed));  // order-free: a list
      }
      to = __shfl_sync(cuda::kAllLanes, to, 0) +
           static_cast<std::uint32_t>(__popc(listed & lanesBelow()));
      if (has_bytes) {
        shared.listed[to] = static_cast<std::uint8_t>(at_brick);
        shared.n_bytes[to] = static_cast<std::uint16_t>(n_bytes[k]);
        shared.bytes_at[to] = static_cast<std::uint32_t>(from.bytes - args.mask - layer.groups_at) +
                              from.n_kind_bytes + n_coded + before[k];
      }
      shared.kinds[at_brick] = group.kind[k];
    }
  }
  /// All threads: the bricks that are all zeros or all ones. Returns the thread's ones.
  __device__ __forceinline__ std::uint32_t putUniforms() const {
    const std::uint64_t left = grid.bricks() - first;
    const unsigned n = left < Shape::kBricks ? static_cast<unsigned>(left) : Shape::kBricks;
    std::uint32_t n_ones = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < n; i += kBrickThreads) {
      const auto kind = static_cast<BrickKind>(shared.kinds[i]);
      if (kind < kCoded) {
        n_ones += putUniform(first + i, kind == kAll);
      }
    }
    return n_ones;
  }

  /// One thread: place `at` of the list, in the memory of a place in the batch. Returns its ones.
  __device__ __forceinline__ std::uint32_t read(unsigned at, unsigned place) const {
    const std::uint64_t index = first + shared.listed[at];
    const Brick brick = brickAt(grid, index);
    const std::uint8_t* const bytes = args.mask + layer.groups_at + shared.bytes_at[at];
    const std::uint32_t n_bytes = shared.n_bytes[at];
    auto* const units = reinterpret_cast<std::uint16_t*>(shared.units) + place * Shape::kUnits;
    const bool is_raw = shared.kinds[shared.listed[at]] == kRaw;
    if (!is_raw && !isWorthCoding(n_bytes, brick.rawBytes(grid))) {
      recordBrick(index);
      return 0;
    }
    copyBrick(bytes, n_bytes, reinterpret_cast<std::uint8_t*>(units));
    std::uint32_t* const rows = shared.rows + place * Shape::kStride;
    bool is_good = true;
    if (is_raw) {
      unpackRows(brick, reinterpret_cast<const std::uint8_t*>(units), rows);
    } else {
      const std::uint32_t n_units = n_bytes / kUnitBytes;
#pragma unroll
      for (unsigned i = 0; i < LaneDecoder::kPadUnits; ++i) {
        units[n_units + i] = 0;
      }
      LaneDecoder decoder(units, n_units);
      decodeLaneBrick<kPlanes>(decoder, shared.table, grid, brick, rows);
      is_good = decoder.isAtEnd();
    }
    std::uint32_t n_ones = 0;
    putRows(brick, [&](std::uint32_t row, std::uint64_t /*start*/) {
      n_ones += static_cast<std::uint32_t>(__popc(rows[row]));
      return rows[row];
    });
    if (!is_good || n_ones == 0 || n_ones == brick.bits(grid)) {
      recordBrick(index);
    }
    return n_ones;
  }
  /// One thread: the rows of a raw brick.
  __device__ __forceinline__ void unpackRows(const Brick& brick,
                                             const std::uint8_t* in,
                                             std::uint32_t* rows) const {
    std::uint64_t held = 0;
    std::uint32_t n_held = 0;
    for (std::uint32_t row = 0; row < brick.rows(); ++row) {
      const std::uint32_t n = brick.rowBits(grid, row);
      for (; n_held < n; n_held += 8) {
        held |= std::uint64_t{*in++} << n_held;
      }
      rows[row] = static_cast<std::uint32_t>(held) & lowRow(n);
      held >>= n;
      n_held -= n;
    }
  }
};

/// All threads of a block: whether the dictionary is one.
template <class T>
__device__ bool arePatternsGood(const DecodeArgs& args,
                                const Fills<T>& fills,
                                const std::uint8_t* patterns,
                                std::uint32_t n) {
  bool is_good = true;
  for (std::uint32_t i = threadIdx.x; i < n; i += kBrickThreads) {
    const auto pattern = cuda::loadUnaligned<BitsOf<T>>(patterns, i);
    is_good = is_good && isMissing<T>(pattern, fills) &&
              (i == 0 || cuda::loadUnaligned<BitsOf<T>>(patterns, i - 1) < pattern);
    args.plan->patterns[i] = pattern;
  }
  return __syncthreads_and(is_good ? 1 : 0) != 0;
}

/// All threads of one block: everything in the mask but its bricks, and whether it goes with the
/// size.
template <class T>
__device__ void makePlan(const DecodeArgs& args, const Fills<T>& fills, Grid grid) {
  MaskPlan& plan = *args.plan;
  const std::uint64_t n_missing = args.record->value[kMissingSlot];
  const std::uint64_t n_filled = args.record->value[kFilledSlot];
  Cursor cursor{args.mask, cuda::load(args.mask_size), 0};
  std::uint32_t n_patterns = 0;
  std::uint32_t n_layers = 0;
  Reason reason = Reason::kNone;
  if (cuda::load(args.in_size) != args.n_values * sizeof(T) || n_missing > args.n_values ||
      (n_missing == 0) != (cursor.n_bytes == 0)) {
    reason = Reason::kSize;
  } else if (n_missing == 0) {
    reason = n_filled == 0 ? Reason::kNone : Reason::kFilled;
  } else {
    n_patterns = cursor.has(4) ? cuda::loadUnaligned<std::uint32_t>(cursor.bytes, 0) : kMaxKeys + 1;
    cursor.at = 4;
    if (n_patterns > kMaxKeys || !cursor.has(std::uint64_t{n_patterns} * sizeof(T)) ||
        !arePatternsGood<T>(args, fills, cursor.bytes + 4, n_patterns)) {
      reason = Reason::kPatterns;
    }
    cursor.at += std::uint64_t{n_patterns} * sizeof(T);
    n_layers = 1 + (n_patterns < 2 ? 0 : bits::bitWidth(n_patterns - 1));
    for (std::uint32_t i = 0; reason == Reason::kNone && i < n_layers; ++i) {
      LayerPlan layer;
      if (!findLayer(grid, cursor, layer)) {
        reason = Reason::kLayer;
      }
      if (threadIdx.x == 0) {
        plan.layers[i] = layer;
      }
    }
    const std::uint64_t n_raw = n_patterns == 0 ? n_missing : 0;
    if (reason == Reason::kNone &&
        (!cursor.has(0) || n_raw > (cursor.n_bytes - cursor.at) / sizeof(T) ||
         n_raw * sizeof(T) != cursor.n_bytes - cursor.at)) {
      reason = Reason::kLayer;
    }
    if (reason == Reason::kNone && n_patterns == 1 &&
        n_filled != (isFiniteBits<T>(cuda::loadUnaligned<BitsOf<T>>(cursor.bytes + 4, 0))
                         ? n_missing
                         : 0)) {
      reason = Reason::kFilled;
    }
  }
  if (threadIdx.x == 0) {
    plan.n_patterns = n_patterns;
    plan.n_layers = n_layers;
    plan.raw_at = cursor.at;
    plan.is_good = reason == Reason::kNone ? 1 : 0;
    if (n_patterns == 0) {
      plan.patterns[0] = 0;
    }
    if (reason != Reason::kNone) {
      recordDamage(args.record, reason, cursor.at);
    }
    if (!args.out.size_known) {
      cuda::publishSize(args.record, 0, args.n_values * sizeof(T), args.out.capacity_bytes);
    }
  }
}

/// A block for some groups of the first layer: where values are missing, and how many. The first
/// one finds everything else.
template <class T, bool kPlanes>
__global__ void __launch_bounds__(kBrickThreads, BlockShape<kPlanes>::kBlocks)
    readKernel(DecodeArgs args, Fills<T> fills) {
  __shared__ BlockState<kPlanes> shared;
  const Grid grid = gridOf(args);
  if (blockIdx.x == 0) {
    makePlan<T>(args, fills, grid);
  }
  Cursor cursor{args.mask, cuda::load(args.mask_size), 0};
  const std::uint32_t n_patterns =
      cursor.has(4) ? cuda::loadUnaligned<std::uint32_t>(cursor.bytes, 0) : kMaxKeys + 1;
  cursor.at = 4 + std::uint64_t{n_patterns} * sizeof(T);
  LayerPlan layer;
  if (n_patterns > kMaxKeys || !findLayer(grid, cursor, layer)) {
    return;  // or nothing is missing
  }
  if (n_patterns == 0) {
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * kBrickThreads + threadIdx.x;
         i * kTileValues < args.n_values; i += std::uint64_t{gridDim.x} * kBrickThreads) {
      args.ranks[i] = 0;
    }
  }
  if (threadIdx.x == 0) {
    shared.n_ones = 0;
    shared.n_listed = 0;
  }
  shared.table.fill(args.mask + layer.chances_at,
                    layer.form == LayerForm::kBricksOfChances ? contextsOf(grid) : 0);
  __syncthreads();
  const BlockReader<kPlanes> reader(args, grid, layer, shared);
  if (layer.form >= LayerForm::kBricks) {
    reader.list();
  } else {
    for (unsigned i = threadIdx.x; i < BlockShape<kPlanes>::kBricks; i += kBrickThreads) {
      shared.kinds[i] = layer.form == LayerForm::kAllOnes ? kAll : kNone;
    }
  }
  __syncthreads();
  std::uint32_t n_ones = reader.putUniforms();
  const std::uint32_t n_listed = shared.n_listed;
  using Shape = BlockShape<kPlanes>;
  const unsigned place = threadOfBatch();
  for (std::uint32_t at = place; place < Shape::kBatch && at < n_listed; at += Shape::kBatch) {
    n_ones += reader.read(at, place);
  }
  n_ones = cuda::warpSum(n_ones);
  if (laneId() == 0) {
    atomicAdd(&shared.n_ones, n_ones);  // order-free: only sums
  }
  __syncthreads();
  if (threadIdx.x == 0 && shared.n_ones != 0) {
    addTo(&args.record->value[kOnesSlot], shared.n_ones);
  }
}

template <class T, bool kPlanes>
void launchReader(const DecodeArgs& args,
                  const Fills<T>& fills,
                  const Grid& grid,
                  const cuda::Call& call) {
  call.launch("mask: bricks", readKernel<T, kPlanes>,
              cuda::gridFor(grid.groups(), BlockShape<kPlanes>::kGroups), kBrickThreads, 0, args,
              fills);
}

}  // namespace

template <class T>
void launchRead(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  const Grid grid = makeGrid(args.extents[0], args.extents[1], args.extents[2]);
  grid.has_planes ? launchReader<T, true>(args, fills, grid, call)
                  : launchReader<T, false>(args, fills, grid, call);
}

template void launchRead(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchRead(const DecodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
