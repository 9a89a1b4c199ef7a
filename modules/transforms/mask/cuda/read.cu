// Putting missing values back: bricks of where, then, if their number is right, the values.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
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

constexpr unsigned kTileWarps = kTileThreads / kWarp;
constexpr unsigned kIndexThreads = kIndexWarps * kWarp;

/// Whether the values have the size that config and output say.
template <class T>
__device__ bool hasRoom(const DecodeArgs& args) {
  const std::uint64_t n_bytes = args.n_values * sizeof(T);
  return cuda::load(args.in_size) == n_bytes && n_bytes <= args.out.capacity_bytes;
}

/// The warp: rows of a brick of any layer. False for all lanes where they are damaged.
__device__ bool readLayerRows(const DecodeArgs& args,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint64_t index,
                              std::uint32_t layer,
                              std::uint64_t* rows) {
  const MaskPlan& plan = *args.plan;
  if (plan.form[layer] != LayerForm::kBricks) {
    const BrickKind kind = plan.form[layer] == LayerForm::kAllOnes ? kAll : kNone;
    return readRows(grid, brick, kind, nullptr, 0, rows);
  }
  const std::uint8_t packed = args.mask[plan.kinds_at[layer] + index / 4];
  const auto kind = static_cast<BrickKind>(packed >> (2 * (index % 4)) & 3u);
  const std::uint64_t* const offsets = args.offsets + layer * (args.n_bricks + 1) + index;
  return readRows(grid, brick, kind, args.mask + plan.payload_at[layer] + offsets[0],
                  static_cast<std::uint32_t>(offsets[1] - offsets[0]), rows);
}

/// Sets bits of words that other warps set other bits of.
__device__ __forceinline__ void orBits(std::uint64_t* words,
                                       std::uint64_t start,
                                       std::uint64_t row,
                                       std::uint32_t n_bits) {
  if (start % 64 == 0 && n_bits == 64) {
    words[start / 64] = row;  // nobody else's
    return;
  }
  const auto set = [](std::uint64_t* word, std::uint64_t bits) {
    if (bits != 0) {
      atomicOr(reinterpret_cast<unsigned long long*>(word),
               static_cast<unsigned long long>(bits));  // order-free: each its own bits
    }
  };
  const auto shift = static_cast<std::uint32_t>(start % 64);
  set(words + start / 64, row << shift);
  if (shift != 0) {
    set(words + start / 64 + 1, row >> (64 - shift));
  }
}

/// Rows of several bricks; a word more for each, so that their threads meet in no bank.
using LaneRows = std::uint64_t[kLaneBricks][kBrickRows + 1];

/// The bytes of a brick in the first layer.
struct BrickBytes {
  BrickKind kind;
  std::uint32_t n_bytes;
  const std::uint8_t* bytes;
};

__device__ BrickBytes bytesOf(const DecodeArgs& args, std::uint64_t index) {
  const MaskPlan& plan = *args.plan;
  if (plan.form[0] != LayerForm::kBricks) {
    return {plan.form[0] == LayerForm::kAllOnes ? kAll : kNone, 0, nullptr};
  }
  const std::uint8_t packed = args.mask[plan.kinds_at[0] + index / 4];
  const std::uint64_t* const offsets = args.offsets + index;
  return {static_cast<BrickKind>(packed >> (2 * (index % 4)) & 3u),
          static_cast<std::uint32_t>(offsets[1] - offsets[0]),
          args.mask + plan.payload_at[0] + offsets[0]};
}

/// The warp: rows to where they belong; whether they are a brick of that kind.
__device__ bool keepRows(const DecodeArgs& args,
                         const Grid& grid,
                         const Brick& brick,
                         const BrickBytes& from,
                         std::uint64_t* rows) {
  if (from.kind == kNone) {
    return true;
  }
  if (from.kind == kRaw) {
    unpackRaw(grid, brick, from.bytes, rows);
  }
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  std::uint32_t n_ones = 0;
  forLaneRows(brick, [&](std::uint32_t row) {
    const std::uint32_t n = brick.rowBits(grid, row);
    const std::uint64_t bits = from.kind == kAll ? lowBits(n) : rows[row];
    ones |= bits;
    zeros |= bits ^ lowBits(n);
    n_ones += static_cast<std::uint32_t>(__popcll(bits));
    if (bits != 0) {
      orBits(args.words, brick.rowStart(grid, row), bits, n);
    }
  });
  n_ones = cuda::warpSum(n_ones);
  if (laneId() == 0 && n_ones != 0) {
    addTo(&args.plan->n_ones, n_ones);
  }
  return from.kind == kAll || kindOf(ones, zeros) == kCoded;
}

/// A warp for several bricks of the first layer: where values are missing, and how many.
__global__ void __launch_bounds__(kWarp) brickKernel(DecodeArgs args) {
  __shared__ LaneRows rows;
  __shared__ LaneChances<kLaneBricks>::Table chances;
  if (args.plan->is_good == 0 || args.plan->n_layers == 0) {
    return;
  }
  const Grid grid = gridOf(args);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kLaneBricks;
  bool is_good = true;
  if (laneId() < kLaneBricks && first + laneId() < args.n_bricks) {
    const BrickBytes from = bytesOf(args, first + laneId());
    if (from.kind == kCoded) {
      LaneDecoder<kLaneBricks> decoder({chances, laneId()}, from.bytes, from.n_bytes);
      codeLaneBrick(decoder, grid, brickAt(grid, first + laneId()), rows[laneId()]);
      is_good = decoder.isAtEnd();
    }
  }
  __syncwarp();
  for (std::uint32_t k = 0; k < kLaneBricks && first + k < args.n_bricks; ++k) {
    const bool is_kept =
        keepRows(args, grid, brickAt(grid, first + k), bytesOf(args, first + k), rows[k]);
    is_good = is_good && (is_kept || laneId() != k);
  }
  if (!is_good) {
    recordDamage(args.record, Reason::kBrick, first + laneId());
    addTo(&args.plan->n_damaged, 1);
  }
}

/// The values in the places of the first layer's ones, but for those of several patterns.
template <class T>
__global__ void __launch_bounds__(kTileThreads) putKernel(DecodeArgs args, Fills<T> fills) {
  __shared__ std::uint32_t warp_sums[kTileWarps];
  __shared__ std::uint64_t tile_before;
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
  unsigned missing = 0;
  if (n_missing != 0 && laneId() < kRows && first + laneId() * kWarp < args.n_values) {
    missing = words[first / kWarp + laneId()];
  }
  std::uint64_t rank = 0;
  if (n_missing != 0 && plan.n_patterns == 0) {
    std::uint32_t n_tile = 0;
    rank = cuda::blockExclusiveSum<kTileThreads>(static_cast<std::uint32_t>(__popc(missing)),
                                                 warp_sums, &n_tile);
    const cuda::LookBack look_back{args.ranks};
    if (warpId() == 0) {
      if (laneId() == 0) {
        look_back.publish(blockIdx.x, n_tile);
      }
      __syncwarp();
      const std::uint64_t before = look_back.prefix(blockIdx.x, n_tile);
      if (laneId() == 0) {
        tile_before = before;
      }
    }
    __syncthreads();
    rank += tile_before;
  }
  const U pattern = n_missing != 0 && plan.n_patterns == 1 ? static_cast<U>(plan.patterns[0]) : 0;
  std::uint32_t n_filled = 0;
  U values[kRows];
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const std::uint64_t at = first + r * kWarp + laneId();
    const unsigned row = __shfl_sync(kAllLanes, missing, static_cast<int>(r));
    const bool is_put = (row >> laneId() & 1) != 0 && plan.n_patterns == 1;
    values[r] = is_put ? pattern : at < args.n_values ? __ldcs(in + at) : U{0};
  }
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const std::uint64_t at = first + r * kWarp + laneId();
    if (n_missing != 0 && plan.n_patterns == 0) {
      const unsigned row = __shfl_sync(kAllLanes, missing, static_cast<int>(r));
      const std::uint64_t row_rank = __shfl_sync(kAllLanes, rank, static_cast<int>(r));
      if ((row >> laneId() & 1) != 0) {
        const unsigned before = row & ((1u << laneId()) - 1);
        values[r] = cuda::loadUnaligned<U>(args.mask + plan.raw_at,
                                           row_rank + static_cast<unsigned>(__popc(before)));
        n_filled += isFiniteBits<T>(values[r]) ? 1u : 0u;
        if (!isMissing<T>(values[r], fills)) {
          recordDamage(args.record, Reason::kPatterns, at);
        }
      }
    }
    if (at < args.n_values) {
      out[at] = values[r];
    }
  }
  n_filled = cuda::warpSum(n_filled);
  if (laneId() == 0 && n_filled != 0) {
    addTo(&args.plan->n_filled, n_filled);
  }
}

/// The block: values of a brick that have one of several patterns. rows[0]: where they are.
template <class T>
__device__ std::uint32_t putBrick(const DecodeArgs& args,
                                  const Grid& grid,
                                  const Brick& brick,
                                  const std::uint64_t (*rows)[kBrickRows]) {
  const MaskPlan& plan = *args.plan;
  const auto n_index = static_cast<std::uint32_t>(plan.n_layers) - 1;
  auto* out = reinterpret_cast<BitsOf<T>*>(args.out.data);
  std::uint32_t n_filled = 0;
  for (std::uint32_t row = warpId(); row < brick.rows(); row += kIndexWarps) {
    const std::uint64_t missing = rows[0][row];
    const std::uint64_t start = brick.rowStart(grid, row);
    std::uint64_t outside = 0;
    for (std::uint32_t layer = 1; layer <= n_index; ++layer) {
      outside |= rows[layer][row] & ~missing;
    }
    if (outside != 0 && laneId() == 0) {
      recordDamage(args.record, Reason::kIndex, start);
    }
    for (std::uint32_t place = laneId(); place < kRowBits; place += kWarp) {
      if ((missing >> place & 1) == 0) {
        continue;
      }
      std::uint32_t index = 0;
      for (std::uint32_t layer = 1; layer <= n_index; ++layer) {
        index |= static_cast<std::uint32_t>(rows[layer][row] >> place & 1) << (layer - 1);
      }
      if (index >= plan.n_patterns) {
        recordDamage(args.record, Reason::kIndex, start + place);
        continue;
      }
      const auto pattern = static_cast<BitsOf<T>>(plan.patterns[index]);
      n_filled += isFiniteBits<T>(pattern) ? 1u : 0u;
      out[start + place] = pattern;
    }
  }
  return cuda::warpSum(n_filled);
}

/// A block for each brick, a warp for each layer that tells patterns apart; the last block looks
/// at what was counted.
template <class T>
__global__ void __launch_bounds__(kIndexThreads) indexKernel(DecodeArgs args) {
  __shared__ std::uint64_t rows[kMaxLayers][kBrickRows];
  const MaskPlan& plan = *args.plan;
  const std::uint64_t n_missing = args.record->value[kMissingSlot];
  if (plan.is_good == 0 || plan.n_damaged != 0 || n_missing == 0 || plan.n_patterns == 1 ||
      plan.n_ones != n_missing || !hasRoom<T>(args)) {
    return;
  }
  const Grid grid = gridOf(args);
  const std::uint64_t n_bricks = plan.n_patterns == 0 ? 0 : args.n_bricks;
  for (std::uint64_t i = blockIdx.x; i < n_bricks; i += gridDim.x) {
    const Brick brick = brickAt(grid, i);
    const std::uint32_t layer = warpId() + 1;
    if (layer < plan.n_layers && !readLayerRows(args, grid, brick, i, layer, rows[layer]) &&
        laneId() == 0) {
      recordDamage(args.record, Reason::kBrick, i);
    }
    for (std::uint32_t row = threadIdx.x; row < brick.rows(); row += kIndexThreads) {
      rows[0][row] = loadBits(args.words, brick.rowStart(grid, row), brick.rowBits(grid, row));
    }
    __syncthreads();
    const std::uint32_t n_filled = putBrick<T>(args, grid, brick, rows);
    if (laneId() == 0 && n_filled != 0) {
      addTo(&args.plan->n_filled, n_filled);
    }
    __syncthreads();
  }
  if (cuda::isLastBlock(&args.plan->n_done) && threadIdx.x == 0) {
    const std::uint64_t n_filled = *static_cast<volatile std::uint64_t*>(&args.plan->n_filled);
    if (n_filled != args.record->value[kFilledSlot]) {
      recordDamage(args.record, Reason::kFilled, n_filled);
    }
  }
}

}  // namespace

template <class T>
void launchDecode(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  launchPlan(args, fills, call);
  call.launch("mask: bricks", brickKernel, cuda::gridFor(args.n_bricks, kLaneBricks), kWarp, 0,
              args);
  call.launch("mask: put", putKernel<T>, cuda::gridFor(args.n_values, kTileValues), kTileThreads, 0,
              args, fills);
  call.launch("mask: patterns", indexKernel<T>,
              std::min(kRareBlocks * cuda::multiprocessorCount(), cuda::gridFor(args.n_bricks, 1)),
              kIndexThreads, 0, args);
}

template void launchDecode(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchDecode(const DecodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
