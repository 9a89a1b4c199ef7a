// The dictionary of patterns, and the bricks of all layers, coded to wherever there is room.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/lane_coder.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kBrickThreads = kBrickWarps * kWarp;
constexpr unsigned kBrickRoom = 4;  // more blocks, where a rare kernel does long work

/// One block: patterns in order.
template <class T>
__global__ void __launch_bounds__(kKeySlots) dictionaryKernel(EncodeArgs args) {
  __shared__ std::uint64_t keys[kMaxKeys];
  __shared__ std::uint32_t n_taken;
  Findings& found = *args.found;
  if (threadIdx.x == 0) {
    n_taken = 0;
    args.record->value[kMissingSlot] = found.n_missing;
    args.record->value[kFilledSlot] = found.n_filled;
  }
  __syncthreads();
  const std::uint32_t n = found.has_too_many != 0 ? 0 : static_cast<std::uint32_t>(found.n_keys);
  const std::uint64_t key = found.keys[threadIdx.x];
  if (n != 0 && key != 0) {
    keys[atomicAdd(&n_taken, 1u)] = key ^ args.marker;  // order-free: they are sorted
  }
  __syncthreads();
  if (threadIdx.x < n) {
    const std::uint64_t pattern = keys[threadIdx.x];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      rank += keys[i] < pattern ? 1u : 0u;
    }
    found.patterns[rank] = pattern;
  }
  if (threadIdx.x == 0) {
    found.n_patterns = n;
    found.n_layers = found.n_missing == 0 ? 0 : 1 + (n < 2 ? 0 : bits::bitWidth(n - 1));
  }
}

/// One of the bits of a missing value's place in the dictionary.
template <class T>
__device__ bool indexBit(const Findings& found, BitsOf<T> value, std::uint32_t bit) {
  std::uint32_t low = 0;
  std::uint32_t n = static_cast<std::uint32_t>(found.n_patterns);
  while (n > 1) {
    const std::uint32_t half = n / 2;
    low = found.patterns[low + half] <= value ? low + half : low;
    n -= half;
  }
  return (low >> bit & 1) != 0;
}

/// The warp: rows of a brick as they are in a layer.
template <class T>
__device__ BrickKind loadRows(const EncodeArgs& args,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint32_t layer,
                              std::uint64_t* rows) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.words);
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  forLaneRows(brick, [&](std::uint32_t row) {
    const std::uint32_t n = brick.rowBits(grid, row);
    rows[row] = loadBits(words, brick.rowStart(grid, row), n);
    ones |= rows[row];
    zeros |= rows[row] ^ lowBits(n);
  });
  BrickKind kind = kindOf(ones, zeros);
  if (layer == 0 || kind == kNone) {
    return kind;
  }
  const auto* values = reinterpret_cast<const BitsOf<T>*>(args.in);
  ones = 0;
  zeros = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    const std::uint64_t missing = rows[row];
    const std::uint64_t start = brick.rowStart(grid, row);
    std::uint64_t bits = 0;
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t place = half * kWarp + laneId();
      const bool is_one =
          (missing >> place & 1) != 0 && indexBit<T>(*args.found, values[start + place], layer - 1);
      bits |= std::uint64_t{__ballot_sync(kAllLanes, is_one)} << (half * kWarp);
    }
    ones |= bits;
    zeros |= bits ^ lowBits(brick.rowBits(grid, row));
    __syncwarp();
    if (laneId() == 0) {
      rows[row] = bits;
    }
  }
  __syncwarp();
  return kindOf(ones, zeros);
}

__device__ __forceinline__ std::uint32_t countOnes(const Brick& brick, const std::uint64_t* rows) {
  std::uint32_t n = 0;
  forLaneRows(brick,
              [&](std::uint32_t row) { n += static_cast<std::uint32_t>(__popcll(rows[row])); });
  return cuda::warpSum(n);
}

/// The warp: bytes to where the arena has room. What does not fit will not fit the output either.
__device__ std::uint64_t keepBytes(const EncodeArgs& args,
                                   const std::uint8_t* bytes,
                                   std::uint32_t n_bytes) {
  std::uint64_t at = 0;
  if (laneId() == 0) {
    auto* const n_taken = reinterpret_cast<unsigned long long*>(&args.found->arena_bytes);
    const unsigned long long n_more = n_bytes;
    at = atomicAdd(n_taken, n_more);  // order-free: a place to copy from
  }
  at = __shfl_sync(kAllLanes, at, 0);
  if (at + n_bytes <= args.mask.capacity_bytes) {
    for (std::uint32_t i = laneId(); i < n_bytes; i += kWarp) {
      args.arena[at + i] = bytes[i];
    }
  }
  return at;
}

__device__ void noteBrick(const EncodeArgs& args,
                          std::uint32_t layer,
                          std::uint64_t brick,
                          BrickKind kind,
                          std::uint32_t n_bytes,
                          std::uint64_t at) {
  const std::uint64_t slot = layer * args.max_bricks + brick;
  args.kinds[slot] = kind;
  args.brick_bytes[slot] = static_cast<std::uint16_t>(n_bytes);
  args.arena_at[slot] = at;
}

/// A warp for several bricks of the first layer, each to its own slot.
template <class T>
__global__ void __launch_bounds__(kWarp) firstLayerKernel(EncodeArgs args) {
  __shared__ std::uint64_t rows[kLaneBricks][kBrickRows + 1];  // threads meet in no bank
  __shared__ LaneChances<kLaneBricks>::Table chances;
  if (args.found->n_missing == 0) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kLaneBricks;
  const std::uint64_t slot_bytes = slotBytes(grid);
  BrickKind kind = kNone;
  std::uint32_t n_ones = 0;
  for (std::uint32_t k = 0; k < kLaneBricks && first + k < n_bricks; ++k) {
    const Brick brick = brickAt(grid, first + k);
    const BrickKind found = loadRows<T>(args, grid, brick, 0, rows[k]);
    kind = laneId() == k ? found : kind;
    n_ones += found == kNone ? 0 : countOnes(brick, rows[k]);
  }
  const std::uint64_t own = first + laneId();
  std::uint32_t n_bytes = 0;
  if (laneId() < kLaneBricks && own < n_bricks && kind == kCoded) {
    const Brick brick = brickAt(grid, own);
    const std::uint32_t raw_bytes = brick.rawBytes(grid);
    LaneEncoder<kLaneBricks> encoder({chances, laneId()}, args.slots + own * slot_bytes, raw_bytes);
    codeLaneBrick(encoder, grid, brick, rows[laneId()]);
    n_bytes = encoder.isDone() ? raw_bytes : encoder.finish();
    if (n_bytes >= raw_bytes) {
      kind = kRaw;
      n_bytes = raw_bytes;
    }
  }
  __syncwarp();
  const unsigned raw = __ballot_sync(kAllLanes, kind == kRaw);
  for (std::uint32_t k = 0; k < kLaneBricks; ++k) {
    if ((raw >> k & 1) != 0) {
      packRaw(grid, brickAt(grid, first + k), rows[k], args.slots + (first + k) * slot_bytes);
    }
  }
  if (laneId() < kLaneBricks && own < n_bricks) {
    noteBrick(args, 0, own, kind, n_bytes, own * slot_bytes);
  }
  if (laneId() == 0 && n_ones != 0) {
    addTo(&args.found->n_ones[0], n_ones);
  }
}

/// A warp for each brick of the layers that tell patterns apart.
template <class T>
__global__ void __launch_bounds__(kBrickThreads) brickKernel(EncodeArgs args) {
  __shared__ std::uint64_t all_rows[kBrickWarps][kBrickRows];
  __shared__ std::uint8_t all_bytes[kBrickWarps][kMaxRawBytes];
  std::uint64_t* const rows = all_rows[warpId()];
  std::uint8_t* const bytes = all_bytes[warpId()];
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t n_all = n_bricks * args.found->n_layers;
  for (std::uint64_t i = n_bricks + std::uint64_t{blockIdx.x} * kBrickWarps + warpId(); i < n_all;
       i += std::uint64_t{gridDim.x} * kBrickWarps) {
    const auto layer = static_cast<std::uint32_t>(i / n_bricks);
    const Brick brick = brickAt(grid, i % n_bricks);
    BrickKind kind = loadRows<T>(args, grid, brick, layer, rows);
    std::uint32_t n_bytes = 0;
    std::uint64_t at = 0;
    if (kind == kCoded) {
      const std::uint32_t raw_bytes = brick.rawBytes(grid);
      if (laneId() == 0) {
        BitEncoder encoder(bytes, raw_bytes);
        codeBrick(encoder, grid, brick, rows);
        n_bytes = encoder.finish();
      }
      n_bytes = __shfl_sync(kAllLanes, n_bytes, 0);
      __syncwarp();
      if (n_bytes >= raw_bytes) {
        kind = kRaw;
        n_bytes = raw_bytes;
        packRaw(grid, brick, rows, bytes);
      }
      at = keepBytes(args, bytes, n_bytes);
    }
    const std::uint32_t n_ones = kind == kNone ? 0 : countOnes(brick, rows);
    if (laneId() == 0) {
      noteBrick(args, layer, i % n_bricks, kind, n_bytes, at);
      if (n_ones != 0) {
        addTo(&args.found->n_ones[layer], n_ones);
      }
    }
    __syncwarp();
  }
}

}  // namespace

template <class T>
void launchBricks(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: dictionary", dictionaryKernel<T>, 1, kKeySlots, 0, args);
  call.launch("mask: bricks", firstLayerKernel<T>, cuda::gridFor(args.max_bricks, kLaneBricks),
              kWarp, 0, args);
  call.launch("mask: bricks of patterns", brickKernel<T>,
              std::min(kRareBlocks * kBrickRoom * cuda::multiprocessorCount(),
                       cuda::gridFor(args.max_bricks, kBrickWarps)),
              kBrickThreads, 0, args);
}

template void launchBricks<float>(const EncodeArgs&, const cuda::Call&);
template void launchBricks<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
