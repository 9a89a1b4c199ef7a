// What finding leaves open: missing values before the first valid one, and those that take values
// of units or tiles that are no part of a warp's.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/lanes.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kWarps = kTileThreads / kWarp;
constexpr std::uint32_t kNoneInHoldTile = 0;

/// Index of the first valid value, for all threads; there is one. Nearly always it is near.
__device__ std::uint64_t firstValid(const EncodeArgs& args, std::uint64_t n_values) {
  __shared__ unsigned long long first;
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.words);
  const std::uint64_t n_words = (n_values + 63) / 64;
  if (threadIdx.x == 0) {
    first = ~0ull;
  }
  for (std::uint64_t at = 0; at < n_words; at += blockDim.x) {
    const std::uint64_t own = at + threadIdx.x;
    const std::uint64_t left = own < n_words ? n_values - own * 64 : 0;
    const std::uint64_t valid =
        left == 0 ? 0 : ~words[own] & lowBits(left < 64 ? static_cast<std::uint32_t>(left) : 64);
    if (__syncthreads_or(valid != 0 ? 1 : 0) != 0) {
      if (valid != 0) {
        atomicMin(&first, static_cast<unsigned long long>(own * 64 + bits::firstSet(valid)));
      }
      break;
    }
  }
  __syncthreads();
  return first;
}

/// What lies before the first valid value takes that one.
template <class T>
__global__ void __launch_bounds__(kTileThreads) leadKernel(EncodeArgs args) {
  const std::uint64_t n_missing = args.found->n_missing;
  const std::uint64_t n_values = fieldOf(args.shape, sizeof(T)).n_values;
  if (n_missing == 0 || n_missing == n_values || (args.words[0] & 1) == 0) {
    return;
  }
  const std::uint64_t first = firstValid(args, n_values);
  auto* out = reinterpret_cast<BitsOf<T>*>(args.out.data);
  const BitsOf<T> value = reinterpret_cast<const BitsOf<T>*>(args.in)[first];
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < first;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    out[i] = value;
  }
}

/// 32 bits from a place on; those behind n_bits are zero.
__device__ __forceinline__ unsigned bitsFrom(const std::uint32_t* words,
                                             std::uint64_t at,
                                             std::uint64_t end) {
  const unsigned shift = static_cast<unsigned>(at % 32);
  const unsigned low = words[at / 32] >> shift;
  const std::uint64_t left = end - at;
  const unsigned high = shift != 0 && left > 32 - shift ? words[at / 32 + 1] << (32 - shift) : 0;
  return (low | high) &
         static_cast<unsigned>(lowBits(left < 32 ? static_cast<unsigned>(left) : 32));
}

/// A warp for each unit of consecutive values.
template <class T>
__global__ void __launch_bounds__(kTileThreads) unitKernel(EncodeArgs args) {
  if (args.found->n_missing == 0) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const auto* in = reinterpret_cast<const BitsOf<T>*>(args.in);
  auto* out = reinterpret_cast<BitsOf<T>*>(args.out.data);
  const std::uint64_t unit = args.hold_extents[0];
  const std::uint64_t n_warps = std::uint64_t{gridDim.x} * kWarps;
  for (std::uint64_t begin = (std::uint64_t{blockIdx.x} * kWarps + warpId()) * unit;
       begin < field.n_values; begin += n_warps * unit) {
    const std::uint64_t end = begin + unit < field.n_values ? begin + unit : field.n_values;
    BitsOf<T> held = 0;
    for (std::uint64_t at = begin; at < end; at += kWarp) {
      const unsigned used = static_cast<unsigned>(lowBits(end - at < kWarp ? end - at : kWarp));
      const unsigned valid = used & ~bitsFrom(args.words, at, end);
      if (valid != 0) {
        held = in[at + lowestLane(valid)];
        break;
      }
    }
    for (std::uint64_t at = begin; at < end; at += kWarp) {
      const unsigned used = static_cast<unsigned>(lowBits(end - at < kWarp ? end - at : kWarp));
      const unsigned missing = bitsFrom(args.words, at, end);
      const unsigned valid = used & ~missing;
      const unsigned before = valid & lanesBelow();
      if ((missing >> laneId() & 1) != 0) {
        out[at + laneId()] = before != 0 ? in[at + highestLane(before)] : held;
      }
      held = valid != 0 ? in[at + highestLane(valid)] : held;
    }
  }
}

/// Tiles of several rows.
struct HoldTiles {
  std::uint64_t extents[3];
  std::uint64_t n[3];
  std::uint32_t edge[3];

  __device__ HoldTiles(const EncodeArgs& args, const Field& field) {
    for (unsigned axis = 0; axis < 3; ++axis) {
      extents[axis] = field.extents[axis];
      edge[axis] = args.hold_extents[axis];
      n[axis] = (extents[axis] + edge[axis] - 1) / edge[axis];
    }
  }
  __device__ std::uint64_t count() const { return n[0] * n[1] * n[2]; }
  __device__ std::uint32_t length(unsigned axis, std::uint64_t origin) const {
    const std::uint64_t left = extents[axis] - origin;
    return left < edge[axis] ? static_cast<std::uint32_t>(left) : edge[axis];
  }
  __device__ std::uint64_t index(std::uint64_t x, std::uint64_t y, std::uint64_t z) const {
    return (z * extents[1] + y) * extents[0] + x;
  }
};

/// A warp for each tile: the place of its first valid value, row after row, and 1.
__global__ void __launch_bounds__(kTileThreads)
    tileFirstKernel(EncodeArgs args, std::uint32_t value_bytes) {
  if (args.found->n_missing == 0) {
    return;
  }
  const HoldTiles tiles(args, fieldOf(args.shape, value_bytes));
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.words);
  for (std::uint64_t tile = std::uint64_t{blockIdx.x} * kWarps + warpId(); tile < tiles.count();
       tile += std::uint64_t{gridDim.x} * kWarps) {
    const std::uint64_t x = tile % tiles.n[0] * tiles.edge[0];
    const std::uint64_t y = tile / tiles.n[0] % tiles.n[1] * tiles.edge[1];
    const std::uint64_t z = tile / tiles.n[0] / tiles.n[1] * tiles.edge[2];
    const std::uint32_t n_x = tiles.length(0, x);
    const std::uint32_t n_y = tiles.length(1, y);
    const std::uint32_t n_rows = n_y * tiles.length(2, z);
    std::uint32_t first = kNoneInHoldTile;
    for (std::uint32_t row = laneId(); row < n_rows + laneId(); row += kWarp) {
      std::uint64_t valid = 0;
      if (row < n_rows) {
        const std::uint64_t start = tiles.index(x, y + row % n_y, z + row / n_y);
        valid = ~loadBits(words, start, n_x) & lowBits(n_x);
      }
      const unsigned lanes = __ballot_sync(kAllLanes, valid != 0);
      if (lanes != 0) {
        first = ofLane(row * n_x + bits::firstSet(valid) + 1, lowestLane(lanes));
        break;
      }
    }
    if (laneId() == 0) {
      args.tile_firsts[tile] = first;
    }
  }
}

/// A missing value takes the one to the left in its tile, else the one above, else the one behind,
/// and at the origin the first valid one: so it comes from the first of the rows that follow each
/// other in this way whose first value, or one before its own place, is valid.
template <class T>
__global__ void __launch_bounds__(kTileThreads) tileKernel(EncodeArgs args) {
  if (args.found->n_missing == 0) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const HoldTiles tiles(args, field);
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.words);
  const auto* in = reinterpret_cast<const BitsOf<T>*>(args.in);
  auto* out = reinterpret_cast<BitsOf<T>*>(args.out.data);
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kTileThreads + threadIdx.x; i < field.n_values;
       i += std::uint64_t{gridDim.x} * kTileThreads) {
    if ((args.words[i / 32] >> (i % 32) & 1) == 0) {
      continue;
    }
    const std::uint64_t at[3] = {i % tiles.extents[0], i / tiles.extents[0] % tiles.extents[1],
                                 i / tiles.extents[0] / tiles.extents[1]};
    std::uint64_t origin[3];
    std::uint64_t tile = 0;
    for (unsigned axis = 3; axis-- > 0;) {
      const std::uint64_t k = at[axis] / tiles.edge[axis];
      origin[axis] = k * tiles.edge[axis];
      tile = tile * tiles.n[axis] + k;
    }
    const std::uint32_t first = args.tile_firsts[tile];
    if (first == kNoneInHoldTile) {
      continue;  // zeros stand there already
    }
    const std::uint32_t n_x = tiles.length(0, origin[0]);
    const std::uint32_t n_y = tiles.length(1, origin[1]);
    std::uint64_t y = at[1];
    std::uint64_t z = at[2];
    std::uint32_t n_left = static_cast<std::uint32_t>(at[0] - origin[0]);
    std::uint64_t from = ~std::uint64_t{0};
    while (from == ~std::uint64_t{0}) {
      const std::uint64_t start = tiles.index(origin[0], y, z);
      const std::uint64_t valid =
          n_left == 0 ? 0 : ~loadBits(words, start, n_left) & lowBits(n_left);
      if (valid != 0) {
        from = start + bits::bitWidth(valid) - 1;
      } else if (y == origin[1] && z == origin[2]) {
        const std::uint32_t place = first - 1;
        const std::uint32_t row = place / n_x;
        from = tiles.index(origin[0] + place % n_x, origin[1] + row % n_y, origin[2] + row / n_y);
      } else {
        y == origin[1] ? --z : --y;
        n_left = 1;
      }
    }
    out[i] = in[from];
  }
}

}  // namespace

template <class T>
void launchHold(const EncodeArgs& args, const cuda::Call& call) {
  const unsigned n_rare = kRareBlocks * cuda::multiprocessorCount();
  if (args.hold == Hold::kField) {
    call.launch("mask: lead", leadKernel<T>,
                std::min(n_rare, cuda::gridFor(args.max_values, kTileThreads)), kTileThreads, 0,
                args);
  } else if (args.hold == Hold::kUnits) {
    const std::uint64_t n_units = args.max_values / args.hold_extents[0] + 1;
    call.launch("mask: units", unitKernel<T>, cuda::gridFor(n_units, kWarps), kTileThreads, 0,
                args);
  } else if (args.hold == Hold::kTiles) {
    call.launch("mask: first of tiles", tileFirstKernel, cuda::gridFor(args.max_hold_tiles, kWarps),
                kTileThreads, 0, args, static_cast<std::uint32_t>(sizeof(T)));
    call.launch("mask: tiles", tileKernel<T>, cuda::gridFor(args.max_values, kTileThreads),
                kTileThreads, 0, args);
  }
}

template void launchHold<float>(const EncodeArgs&, const cuda::Call&);
template void launchHold<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
