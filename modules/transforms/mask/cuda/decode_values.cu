// Putting missing values back, when it is known where they are.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "backends/cuda/unaligned_load.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/decode.cuh"
#include "transforms/mask/cuda/plan.cuh"
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

/// The warp: the bytes of any brick of a layer in bricks. False for all lanes: its group is
/// damaged.
__device__ bool bytesOf(const DecodeArgs& args,
                        const Grid& grid,
                        const LayerPlan& layer,
                        std::uint64_t index,
                        BrickBytes& brick) {
  const std::uint64_t group = index / kGroupBricks;
  const auto place = static_cast<std::uint32_t>(index % kGroupBricks);
  const GroupBytes from = groupBytes(args, grid, layer, group);
  std::uint32_t n_before = 0;  // of the brick
  std::uint32_t n_coded = 0;   // bricks, before it
  std::uint32_t n_all_coded = 0;
  std::uint32_t n_raw = 0;
  for (std::uint32_t i = laneId(); i < from.n; i += kWarp) {
    const BrickKind kind = from.kindOf(i);
    const std::uint32_t raw =
        kind == kRaw ? brickAt(grid, group * kGroupBricks + i).rawBytes(grid) : 0;
    n_all_coded += kind == kCoded ? 1u : 0u;
    n_coded += kind == kCoded && i < place ? 1u : 0u;
    n_before += i < place ? raw : 0;
    n_raw += raw;
  }
  n_all_coded = cuda::warpSum(n_all_coded);
  n_coded = cuda::warpSum(n_coded);
  if (!from.is_good || !from.hasSizes(n_all_coded)) {
    return false;
  }
  std::uint32_t n_bytes = n_raw;
  for (std::uint32_t i = laneId(); i < n_all_coded; i += kWarp) {
    const std::uint32_t own = from.sizes()[i] * kUnitBytes;
    n_bytes += own;
    n_before += i < n_coded ? own : 0;
  }
  n_before = cuda::warpSum(n_before);
  n_bytes = cuda::warpSum(n_bytes);
  brick.kind = from.kindOf(place);
  brick.n_bytes = brick.kind == kCoded ? from.sizes()[n_coded] * kUnitBytes
                  : brick.kind == kRaw ? brickAt(grid, index).rawBytes(grid)
                                       : 0;
  brick.bytes = from.sizes() + n_all_coded + n_before;
  return from.n_kind_bytes + n_all_coded + n_bytes == from.n_bytes;
}

/// The warp: rows of a brick of any layer. False for all lanes where they are damaged.
__device__ bool readLayerRows(const DecodeArgs& args,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint64_t index,
                              std::uint32_t layer,
                              std::uint32_t* rows) {
  const LayerPlan& plan = args.plan->layers[layer];
  Chances chances;
  chances.reset();
  if (plan.form < LayerForm::kBricks) {
    const BrickKind kind = plan.form == LayerForm::kAllOnes ? kAll : kNone;
    return readRows(grid, brick, kind, nullptr, 0, chances, rows);
  }
  for (std::uint32_t i = 0; plan.form == LayerForm::kBricksOfChances && i < contextsOf(grid); ++i) {
    chances.of_one[i] = args.mask[plan.chances_at + i];
  }
  BrickBytes from;
  return bytesOf(args, grid, plan, index, from) &&
         readRows(grid, brick, from.kind, from.bytes, from.n_bytes, chances, rows);
}

/// The field, and in the places of the first layer's ones their pattern where they have one.
template <class T>
__global__ void __launch_bounds__(kTileThreads) putKernel(DecodeArgs args) {
  constexpr unsigned kRows = kTileValues / kTileThreads;
  using U = BitsOf<T>;
  const MaskPlan& plan = *args.plan;
  const std::uint64_t* slots = args.record->value;
  if (plan.is_good == 0 || slots[kDamagedSlot] != 0 || !hasRoom<T>(args)) {
    return;
  }
  const std::uint64_t n_missing = slots[kMissingSlot];
  if (slots[kOnesSlot] != n_missing) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      recordDamage(args.record, Reason::kCount, slots[kOnesSlot]);
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
  for (std::uint64_t i = blockIdx.x; i < grid.bricks(); i += gridDim.x) {
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
  std::uint64_t* const slots = args.record->value;
  const std::uint64_t n_missing = slots[kMissingSlot];
  if (plan.is_good == 0 || slots[kDamagedSlot] != 0 || n_missing == 0 || plan.n_patterns == 1 ||
      slots[kOnesSlot] != n_missing || !hasRoom<T>(args)) {
    return;
  }
  std::uint32_t n_filled = 0;
  if (plan.n_patterns != 0) {
    n_filled = putBricks<T>(args, rows);
  } else {
    const std::uint64_t n_tiles = (args.n_values + kTileValues - 1) / kTileValues;
    while (true) {
      if (threadIdx.x == 0) {
        tile = cuda::TileTicket{&slots[kNextTileSlot]}.take();
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
    addTo(&slots[kFoundSlot], n_filled);
  }
  if (cuda::isLastBlock(&slots[kDoneSlot]) && threadIdx.x == 0) {
    const std::uint64_t all = *static_cast<volatile std::uint64_t*>(&slots[kFoundSlot]);
    if (all != slots[kFilledSlot]) {
      recordDamage(args.record, Reason::kFilled, all);
    }
  }
}

}  // namespace

template <class T>
void launchOthers(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  const Grid grid = makeGrid(args.extents[0], args.extents[1], args.extents[2]);
  call.launch("mask: patterns", othersKernel<T>,
              std::min(kRareBlocks * cuda::multiprocessorCount(), cuda::gridFor(grid.bricks(), 1)),
              kIndexThreads, 0, args, fills);
}

template <class T>
void launchDecode(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  launchRead(args, fills, call);
  call.launch("mask: put", putKernel<T>, cuda::gridFor(args.n_values, kTileValues), kTileThreads, 0,
              args);
  launchOthers(args, fills, call);
}

template void launchOthers(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchOthers(const DecodeArgs&, const Fills<double>&, const cuda::Call&);
template void launchDecode(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchDecode(const DecodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
