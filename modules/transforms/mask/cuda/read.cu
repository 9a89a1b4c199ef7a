// Putting missing values back: bricks of where, then, if their number is right, the values.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "backends/cuda/unaligned_load.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/damage.cuh"
#include "transforms/mask/cuda/lane_coder.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kIndexThreads = kIndexWarps * kWarp;

/// Whether the values have the size that config and output say.
template <class T>
__device__ bool hasRoom(const DecodeArgs& args) {
  const std::uint64_t n_bytes = args.n_values * sizeof(T);
  return cuda::load(args.in_size) == n_bytes && n_bytes <= args.out.capacity_bytes;
}

__device__ __forceinline__ BrickKind kindAt(const DecodeArgs& args,
                                            std::uint32_t layer,
                                            std::uint64_t index) {
  const std::uint8_t four = args.mask[args.plan->kinds_at[layer] + index / 4];
  return static_cast<BrickKind>(four >> (2 * (index % 4)) & 3u);
}

/// The bytes of a brick.
struct BrickBytes {
  BrickKind kind;
  std::uint32_t n_bytes;
  const std::uint8_t* bytes;
};

/// The warp: the bytes of any brick of a layer in bricks.
__device__ BrickBytes bytesOf(const DecodeArgs& args,
                              const Grid& grid,
                              std::uint32_t layer,
                              std::uint64_t index) {
  const MaskPlan& plan = *args.plan;
  const std::uint64_t group = index / groupBricks(grid);
  const BrickGroup& own = args.groups[layer * args.n_groups + group];
  std::uint32_t n_coded = 0;
  std::uint32_t n_before = 0;
  for (std::uint64_t i = group * groupBricks(grid) + laneId(); i < index; i += kWarp) {
    const BrickKind kind = kindAt(args, layer, i);
    n_coded += kind == kCoded ? 1u : 0u;
    n_before += kind == kRaw ? brickAt(grid, i).rawBytes(grid) : 0;
  }
  n_coded = cuda::warpSum(n_coded);
  const std::uint8_t* const sizes = args.mask + plan.sizes_at[layer] + own.first_coded;
  for (std::uint32_t k = laneId(); k < n_coded; k += kWarp) {
    n_before += sizes[k] * kUnitBytes;
  }
  n_before = cuda::warpSum(n_before);
  const BrickKind kind = kindAt(args, layer, index);
  const std::uint32_t n_bytes = kind == kCoded ? sizes[n_coded] * kUnitBytes
                                : kind == kRaw ? brickAt(grid, index).rawBytes(grid)
                                               : 0;
  return {kind, n_bytes, args.mask + plan.payload_at[layer] + own.at + n_before};
}

/// The warp: rows of a brick of any layer. False for all lanes where they are damaged.
__device__ bool readLayerRows(const DecodeArgs& args,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint64_t index,
                              std::uint32_t layer,
                              std::uint32_t* rows) {
  const MaskPlan& plan = *args.plan;
  if (plan.form[layer] < LayerForm::kBricks) {
    const BrickKind kind = plan.form[layer] == LayerForm::kAllOnes ? kAll : kNone;
    return readRows(grid, brick, kind, nullptr, 0, plan.chances[layer], rows);
  }
  const BrickBytes from = bytesOf(args, grid, layer, index);
  return readRows(grid, brick, from.kind, from.bytes, from.n_bytes, plan.chances[layer], rows);
}

/// Sets the bits of a row. Others set other bits of its words where rows are no words.
__device__ __forceinline__ void putRow(std::uint32_t* words,
                                       std::uint64_t start,
                                       std::uint32_t row,
                                       bool is_word) {
  const auto shift = static_cast<std::uint32_t>(start % 32);
  if (is_word) {
    words[start / 32] = row;
    return;
  }
  if (row << shift != 0) {
    atomicOr(words + start / 32, row << shift);  // order-free: each its own bits
  }
  if (shift != 0 && row >> (32 - shift) != 0) {
    atomicOr(words + start / 32 + 1, row >> (32 - shift));
  }
}

/// One thread: the counterpart of packing rows back to back.
__device__ void unpackLane(const Grid& grid,
                           const Brick& brick,
                           const std::uint8_t* in,
                           std::uint32_t* rows) {
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

/// One thread: the rows of a coded or raw brick. False where they are none.
template <bool kHasBehind>
__device__ __forceinline__ bool readLane(const Grid& grid,
                                         const Brick& brick,
                                         const BrickBytes& from,
                                         const LaneTable& table,
                                         std::uint32_t* rows) {
  bool is_good = true;
  if (from.kind == kRaw) {
    unpackLane(grid, brick, from.bytes, rows);
  } else {
    LaneDecoder decoder(from.bytes, from.n_bytes);
    codeLaneBrick<kHasBehind>(decoder, table, grid, brick, rows);
    is_good = decoder.isAtEnd();
  }
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    ones |= rows[row];
    zeros |= rows[row] ^ lowRow(brick.rowBits(grid, row));
  }
  return is_good && ones != 0 && zeros != 0;
}

/// All threads: the bytes of the group's bricks that are coded or raw, in order; the rows of
/// others. Returns how many there are.
template <bool kHasBehind>
__device__ __forceinline__ std::uint32_t listBytes(const DecodeArgs& args,
                                                   const Grid& grid,
                                                   std::uint32_t n,
                                                   SharedGroup& shared,
                                                   BrickBytes* bytes) {
  using Group = GroupOf<kHasBehind>;
  const MaskPlan& plan = *args.plan;
  BrickKind kind = plan.form[0] == LayerForm::kAllOnes ? kAll : kNone;
  if (plan.form[0] >= LayerForm::kBricks && threadIdx.x < n) {
    kind = kindAt(args, 0, std::uint64_t{blockIdx.x} * Group::kBricks + threadIdx.x);
  }
  const bool is_coded = threadIdx.x < n && kind == kCoded;
  const bool has_bytes = is_coded || (threadIdx.x < n && kind == kRaw);
  std::uint32_t total = 0;
  const std::uint32_t rank =
      cuda::blockExclusiveSum<kGroupThreads>(is_coded ? 1u : 0u, shared.warp_sums[0], &total);
  const BrickGroup* const own = args.groups + blockIdx.x;
  std::uint32_t n_bytes = 0;
  if (is_coded) {
    n_bytes = args.mask[plan.sizes_at[0] + own->first_coded + rank] * kUnitBytes;
  } else if (has_bytes) {
    n_bytes = shared.bricks[threadIdx.x].rawBytes(grid);
  }
  const std::uint32_t before =
      cuda::blockExclusiveSum<kGroupThreads>(n_bytes, shared.warp_sums[1], &total);
  __syncthreads();
  const std::uint32_t place =
      cuda::blockExclusiveSum<kGroupThreads>(has_bytes ? 1u : 0u, shared.warp_sums[0], &total);
  if (has_bytes) {
    shared.coded[place] = threadIdx.x;
    bytes[place] = {kind, n_bytes, args.mask + plan.payload_at[0] + own->at + before};
  } else if (threadIdx.x < n) {
    const Brick& brick = shared.bricks[threadIdx.x];
    for (std::uint32_t row = 0; row < brick.rows(); ++row) {
      shared.rows[threadIdx.x * Group::kStride + row] =
          kind == kAll ? lowRow(brick.rowBits(grid, row)) : 0;
    }
  }
  __syncthreads();
  return total;
}

/// A block: the bricks of its group in the first layer.
template <bool kHasBehind>
__device__ __forceinline__ void readGroup(const DecodeArgs& args,
                                          const Grid& grid,
                                          SharedGroup& shared,
                                          LaneTable& table) {
  using Group = GroupOf<kHasBehind>;
  __shared__ BrickBytes bytes[kGroupThreads];
  __shared__ std::uint32_t n_ones;
  if (threadIdx.x == 0) {
    n_ones = 0;
  }
  table.fill(args.plan->chances[0]);
  const std::uint32_t n = openGroup<kHasBehind>(grid, args.n_bricks, blockIdx.x, shared);
  const std::uint32_t n_listed = listBytes<kHasBehind>(args, grid, n, shared, bytes);
  if (threadIdx.x < n_listed) {
    const std::uint32_t b = shared.coded[threadIdx.x];
    if (!readLane<kHasBehind>(grid, shared.bricks[b], bytes[threadIdx.x], table,
                              shared.rows + b * Group::kStride)) {
      recordDamage(args.record, Reason::kBrick, std::uint64_t{blockIdx.x} * Group::kBricks + b);
      addTo(&args.plan->n_damaged, 1);
    }
  }
  __syncthreads();
  std::uint32_t ones = 0;
  auto* const words = reinterpret_cast<std::uint32_t*>(args.words);
  forGroupRows<kHasBehind>(
      grid, n, shared, [&](std::uint32_t, std::uint64_t start, std::uint32_t, std::uint32_t& row) {
        ones += static_cast<std::uint32_t>(__popc(row));
        putRow(words, start, row, hasWordRows(grid));
      });
  ones = cuda::warpSum(ones);
  if (laneId() == 0) {
    atomicAdd(&n_ones, ones);  // order-free: only sums
  }
  __syncthreads();
  if (threadIdx.x == 0 && n_ones != 0) {
    addTo(&args.plan->n_ones, n_ones);
  }
}

/// A thread for each coded brick of the first layer: where values are missing, and how many.
__global__ void __launch_bounds__(kGroupThreads, kGroupBlocks) brickKernel(DecodeArgs args) {
  __shared__ SharedGroup shared;
  __shared__ LaneTable table;
  if (args.plan->is_good == 0 || args.plan->n_layers == 0) {
    return;
  }
  const Grid grid = gridOf(args);
  if (grid.rows_z > 1) {
    readGroup<true>(args, grid, shared, table);
  } else {
    readGroup<false>(args, grid, shared, table);
  }
}

/// The field, and in the places of the first layer's ones their pattern where they have one.
template <class T>
__global__ void __launch_bounds__(kTileThreads) putKernel(DecodeArgs args) {
  constexpr unsigned kRows = kTileValues / kTileThreads;
  using U = BitsOf<T>;
  const MaskPlan& plan = *args.plan;
  if (plan.is_good == 0 || plan.n_damaged != 0 || !hasRoom<T>(args)) {
    return;
  }
  const std::uint64_t n_missing = args.record->value[kMissingSlot];
  if (plan.n_ones != n_missing) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      recordDamage(args.record, Reason::kCount, plan.n_ones);
    }
    return;
  }
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kTileValues + warpId() * kRows * kWarp;
  const auto* in = reinterpret_cast<const U*>(args.in);
  auto* out = reinterpret_cast<U*>(args.out.data);
  const auto* words = reinterpret_cast<const std::uint32_t*>(args.words);
  const bool puts = n_missing != 0 && plan.n_patterns == 1;
  unsigned missing = 0;
  if (puts && laneId() < kRows && first + laneId() * kWarp < args.n_values) {
    missing = words[first / kWarp + laneId()];
  }
  const U pattern = puts ? static_cast<U>(plan.patterns[0]) : 0;
  U values[kRows];
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const std::uint64_t at = first + r * kWarp + laneId();
    const unsigned row = __shfl_sync(kAllLanes, missing, static_cast<int>(r));
    values[r] = (row >> laneId() & 1) != 0 ? pattern : at < args.n_values ? __ldcs(in + at) : U{0};
  }
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const std::uint64_t at = first + r * kWarp + laneId();
    if (at < args.n_values) {
      out[at] = values[r];
    }
  }
}

/// The block: values of a brick that have one of several patterns. rows[0]: where they are.
template <class T>
__device__ std::uint32_t putBrick(const DecodeArgs& args,
                                  const Grid& grid,
                                  const Brick& brick,
                                  const std::uint32_t (*rows)[kBrickRows]) {
  const MaskPlan& plan = *args.plan;
  const auto n_index = static_cast<std::uint32_t>(plan.n_layers) - 1;
  auto* out = reinterpret_cast<BitsOf<T>*>(args.out.data);
  std::uint32_t n_filled = 0;
  for (std::uint32_t row = warpId(); row < brick.rows(); row += kIndexWarps) {
    const std::uint32_t missing = rows[0][row];
    const std::uint64_t start = brick.rowStart(grid, row);
    std::uint32_t outside = 0;
    for (std::uint32_t layer = 1; layer <= n_index; ++layer) {
      outside |= rows[layer][row] & ~missing;
    }
    if (outside != 0 && laneId() == 0) {
      recordDamage(args.record, Reason::kIndex, start);
    }
    if ((missing >> laneId() & 1) == 0) {
      continue;
    }
    std::uint32_t index = 0;
    for (std::uint32_t layer = 1; layer <= n_index; ++layer) {
      index |= (rows[layer][row] >> laneId() & 1) << (layer - 1);
    }
    if (index >= plan.n_patterns) {
      recordDamage(args.record, Reason::kIndex, start + laneId());
      continue;
    }
    const auto pattern = static_cast<BitsOf<T>>(plan.patterns[index]);
    n_filled += isFiniteBits<T>(pattern) ? 1u : 0u;
    out[start + laneId()] = pattern;
  }
  return cuda::warpSum(n_filled);
}

/// The block: values of a tile that stand in the mask one by one.
template <class T>
__device__ std::uint32_t putRawTile(const DecodeArgs& args,
                                    const Fills<T>& fills,
                                    std::uint64_t tile) {
  __shared__ std::uint32_t warp_sums[kIndexWarps];
  __shared__ std::uint64_t before;
  using U = BitsOf<T>;
  constexpr unsigned kPerThread = kTileValues / kIndexThreads;
  const MaskPlan& plan = *args.plan;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(args.words);
  const std::uint64_t first = tile * kTileValues + std::uint64_t{threadIdx.x} * kPerThread;
  const unsigned missing =
      first < args.n_values ? words[first / 32] >> (first % 32) & lowRow(kPerThread) : 0;
  std::uint32_t n_tile = 0;
  std::uint64_t rank = cuda::blockExclusiveSum<kIndexThreads>(
      static_cast<std::uint32_t>(__popc(missing)), warp_sums, &n_tile);
  const cuda::LookBack look_back{args.ranks};
  if (warpId() == 0) {
    if (laneId() == 0) {
      look_back.publish(tile, n_tile);
    }
    __syncwarp();
    const std::uint64_t sum = look_back.prefix(tile, n_tile);
    if (laneId() == 0) {
      before = sum;
    }
  }
  __syncthreads();
  rank += before;
  std::uint32_t n_filled = 0;
  for (unsigned left = missing; left != 0; left &= left - 1, ++rank) {
    const auto value = cuda::loadUnaligned<U>(args.mask + plan.raw_at, rank);
    const std::uint64_t at = first + bits::firstSet(left);
    n_filled += isFiniteBits<T>(value) ? 1u : 0u;
    if (!isMissing<T>(value, fills)) {
      recordDamage(args.record, Reason::kPatterns, at);
    }
    reinterpret_cast<U*>(args.out.data)[at] = value;
  }
  __syncthreads();
  return cuda::warpSum(n_filled);
}

/// The block: values of several patterns, in bricks.
template <class T>
__device__ std::uint32_t putBricks(const DecodeArgs& args, std::uint32_t (*rows)[kBrickRows]) {
  const MaskPlan& plan = *args.plan;
  const Grid grid = gridOf(args);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(args.words);
  std::uint32_t n_filled = 0;
  for (std::uint64_t i = blockIdx.x; i < args.n_bricks; i += gridDim.x) {
    const Brick brick = brickAt(grid, i);
    const std::uint32_t layer = warpId() + 1;
    if (layer < plan.n_layers && !readLayerRows(args, grid, brick, i, layer, rows[layer]) &&
        laneId() == 0) {
      recordDamage(args.record, Reason::kBrick, i);
    }
    for (std::uint32_t row = threadIdx.x; row < brick.rows(); row += kIndexThreads) {
      rows[0][row] = loadRow(words, brick.rowStart(grid, row), brick.rowBits(grid, row));
    }
    __syncthreads();
    n_filled += putBrick<T>(args, grid, brick, rows);
    __syncthreads();
  }
  return n_filled;
}

/// Missing values where they have not all one pattern; the last block looks at what was counted.
template <class T>
__global__ void __launch_bounds__(kIndexThreads) othersKernel(DecodeArgs args, Fills<T> fills) {
  __shared__ std::uint32_t rows[kMaxLayers][kBrickRows];
  __shared__ std::uint32_t tile;
  const MaskPlan& plan = *args.plan;
  const std::uint64_t n_missing = args.record->value[kMissingSlot];
  if (plan.is_good == 0 || plan.n_damaged != 0 || n_missing == 0 || plan.n_patterns == 1 ||
      plan.n_ones != n_missing || !hasRoom<T>(args)) {
    return;
  }
  std::uint32_t n_filled = 0;
  if (plan.n_patterns != 0) {
    n_filled = putBricks<T>(args, rows);
  } else {
    const std::uint64_t n_tiles = (args.n_values + kTileValues - 1) / kTileValues;
    while (true) {
      if (threadIdx.x == 0) {
        tile = cuda::TileTicket{&args.plan->next_tile}.take();
      }
      __syncthreads();
      const std::uint32_t own = tile;
      __syncthreads();
      if (own >= n_tiles) {
        break;
      }
      n_filled += putRawTile<T>(args, fills, own);
    }
  }
  if (laneId() == 0 && n_filled != 0) {
    addTo(&args.plan->n_filled, n_filled);
  }
  if (cuda::isLastBlock(&args.plan->n_done) && threadIdx.x == 0) {
    const std::uint64_t all = *static_cast<volatile std::uint64_t*>(&args.plan->n_filled);
    if (all != args.record->value[kFilledSlot]) {
      recordDamage(args.record, Reason::kFilled, all);
    }
  }
}

}  // namespace

template <class T>
void launchRead(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  launchPlan(args, fills, call);
  call.launch("mask: bricks", brickKernel, cuda::gridFor(args.n_groups, 1), kGroupThreads, 0, args);
}

template <class T>
void launchOthers(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  call.launch("mask: patterns", othersKernel<T>,
              std::min(kRareBlocks * cuda::multiprocessorCount(), cuda::gridFor(args.n_bricks, 1)),
              kIndexThreads, 0, args, fills);
}

template <class T>
void launchDecode(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  launchRead(args, fills, call);
  call.launch("mask: put", putKernel<T>, cuda::gridFor(args.n_values, kTileValues), kTileThreads, 0,
              args);
  launchOthers(args, fills, call);
}

template void launchRead(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchRead(const DecodeArgs&, const Fills<double>&, const cuda::Call&);
template void launchOthers(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchOthers(const DecodeArgs&, const Fills<double>&, const cuda::Call&);
template void launchDecode(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchDecode(const DecodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
