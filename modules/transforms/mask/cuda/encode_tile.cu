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
  __device__ std::uint32_t length(unsigned axis, std::uint64_t origin) const {
    const std::uint64_t left = extents[axis] - origin;
    return left < edge[axis] ? static_cast<std::uint32_t>(left) : edge[axis];
  }
  __device__ std::uint64_t index(std::uint64_t x, std::uint64_t y, std::uint64_t z) const {
    return (z * extents[1] + y) * extents[0] + x;
  }
};

/// A tile, and the rows of the mask in it.
struct HoldTile {
  const HoldTiles& tiles;
  const std::uint64_t* words;
  std::uint64_t origin[3];
  std::uint32_t n[3];

  __device__ __forceinline__ HoldTile(
      const HoldTiles& t, const std::uint64_t* w, std::uint64_t x, std::uint64_t y, std::uint64_t z)
      : tiles(t), words(w), origin{x, y, z} {
    for (unsigned axis = 0; axis < 3; ++axis) {
      n[axis] = tiles.length(axis, origin[axis]);
    }
  }
  __device__ __forceinline__ std::uint32_t rows() const { return n[1] * n[2]; }
  __device__ __forceinline__ std::uint64_t start(std::uint32_t y, std::uint32_t z) const {
    return tiles.index(origin[0], origin[1] + y, origin[2] + z);
  }
  /// Missing values of the row that begins there, without a branch: several are under way.
  __device__ __forceinline__ std::uint64_t missing(std::uint64_t row_start) const {
    const std::uint64_t* const at = words + row_start / 64;  // there is one more than needed
    const auto shift = static_cast<std::uint32_t>(row_start % 64);
    return (at[0] >> shift | (at[1] << 1) << (63 - shift)) & lowBits(n[0]);
  }
  /// One thread: whether it has both kinds of values.
  __device__ __forceinline__ bool isMixed() const {
    std::uint64_t ones = 0;
    std::uint64_t zeros = 0;
    for (std::uint32_t z = 0; z < n[2]; ++z) {
      std::uint64_t at = start(0, z);
#pragma unroll 8
      for (std::uint32_t y = 0; y < n[1]; ++y, at += tiles.extents[0]) {
        const std::uint64_t row = missing(at);
        ones |= row;
        zeros |= ~row;
      }
    }
    return ones != 0 && (zeros & lowBits(n[0])) != 0;
  }
  /// One thread: where the value comes from that stands in front of a row, which the missing ones
  /// at its beginning take: of the rows above, then of those behind the first of these, the nearest
  /// one that begins with a valid value; where there is none, the first valid value of the tile.
  __device__ __forceinline__ std::uint64_t sourceBefore(std::uint32_t y, std::uint32_t z) const {
    while (y != 0 || z != 0) {
      y == 0 ? --z : --y;
      const std::uint64_t at = start(y, z);
      if ((missing(at) & 1) == 0) {
        return at;
      }
    }
    for (; z < n[2]; ++z) {
      for (y = 0; y < n[1]; ++y) {
        const std::uint64_t at = start(y, z);
        const std::uint64_t valid = ~missing(at) & lowBits(n[0]);
        if (valid != 0) {
          return at + bits::firstSet(valid);
        }
      }
    }
    return start(0, 0);  // there is one
  }
};

/// Some rows of a tile, for a warp that fills them.
struct HoldRows {
  static constexpr unsigned kRows = 32;
  std::uint64_t start[kRows];
  std::uint64_t missing[kRows];
  std::uint64_t source_before[kRows];  ///< where the first value is missing
};

/// The warp: the missing values of rows, a value for each lane, several under way.
template <class T>
__device__ __forceinline__ void fillRows(const EncodeArgs& args,
                                         const HoldRows& rows,
                                         std::uint32_t n_rows,
                                         std::uint32_t n_x) {
  constexpr unsigned kAhead = 4;
  const auto* in = reinterpret_cast<const BitsOf<T>*>(args.in);
  auto* out = reinterpret_cast<BitsOf<T>*>(args.out.data);
  const std::uint32_t width = n_x < kWarp ? n_x : kWarp;
  const std::uint32_t n_together = kWarp / width;
  const std::uint32_t own_row = laneId() / width;
  for (std::uint32_t x = laneId() % width; own_row < n_together && x < n_x; x += width) {
    for (std::uint32_t begin = own_row; begin < n_rows; begin += kAhead * n_together) {
      BitsOf<T> values[kAhead];
      bool is_missing[kAhead];
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) {
        const std::uint32_t row = begin + k * n_together;
        const std::uint64_t missing = row < n_rows ? rows.missing[row] : 0;
        is_missing[k] = (missing >> x & 1) != 0;
        const std::uint64_t valid = ~missing & lowBits(x);
        values[k] = 0;
        if (is_missing[k]) {
          values[k] = in[valid != 0 ? rows.start[row] + bits::bitWidth(valid) - 1
                                    : rows.source_before[row]];
        }
      }
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) {
        if (is_missing[k]) {
          out[rows.start[begin + k * n_together] + x] = values[k];
        }
      }
    }
  }
}

/// The warp: the missing values of a tile that has others as well. One takes the value to its left
/// in the tile.
template <class T>
__device__ __forceinline__ void fillTile(const EncodeArgs& args,
                                         const HoldTile& tile,
                                         HoldRows& rows) {
  for (std::uint32_t first = 0; first < tile.rows(); first += HoldRows::kRows) {
    const std::uint32_t row = first + laneId();
    __syncwarp();  // none reads those before
    if (row < tile.rows()) {
      const std::uint32_t y = row % tile.n[1];
      const std::uint32_t z = row / tile.n[1];
      const std::uint64_t at = tile.start(y, z);
      const std::uint64_t missing = tile.missing(at);
      rows.start[laneId()] = at;
      rows.missing[laneId()] = missing;
      rows.source_before[laneId()] = (missing & 1) != 0 ? tile.sourceBefore(y, z) : 0;
    }
    __syncwarp();
    const std::uint32_t left = tile.rows() - first;
    fillRows<T>(args, rows, left < HoldRows::kRows ? left : HoldRows::kRows, tile.n[0]);
  }
}

/// Tiles next to each other in x for a block: a thread looks whether its own has values of both
/// kinds, then a warp fills each of those. Where all are missing zeros stand already.
template <class T>
__global__ void __launch_bounds__(kTileThreads) tileKernel(EncodeArgs args) {
  __shared__ std::uint32_t mixed[kTileThreads];
  __shared__ std::uint32_t n_mixed;
  __shared__ HoldRows rows[kWarps];
  if (args.found->n_missing == 0) {
    return;
  }
  const HoldTiles tiles(args, fieldOf(args.shape, sizeof(T)));
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.words);
  const std::uint64_t n_parts = (tiles.n[0] + kTileThreads - 1) / kTileThreads;
  const std::uint64_t n_all = n_parts * tiles.n[1] * tiles.n[2];
  for (std::uint64_t part = blockIdx.x; part < n_all; part += gridDim.x) {
    const std::uint64_t x = part % n_parts * kTileThreads;
    const std::uint64_t y = part / n_parts % tiles.n[1] * tiles.edge[1];
    const std::uint64_t z = part / n_parts / tiles.n[1] * tiles.edge[2];
    const auto tileAt = [&](std::uint32_t i) {
      return HoldTile(tiles, words, (x + i) * tiles.edge[0], y, z);
    };
    if (threadIdx.x == 0) {
      n_mixed = 0;
    }
    __syncthreads();
    if (x + threadIdx.x < tiles.n[0] && tileAt(threadIdx.x).isMixed()) {
      mixed[atomicAdd(&n_mixed, 1u)] = threadIdx.x;  // order-free: each tile is filled on its own
    }
    __syncthreads();
    for (std::uint32_t i = warpId(); i < n_mixed; i += kWarps) {
      fillTile<T>(args, tileAt(mixed[i]), rows[warpId()]);
    }
    __syncthreads();
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
    const auto tilesOf = [&](unsigned axis, std::uint64_t extent) {
      return (extent + args.hold_extents[axis] - 1) / args.hold_extents[axis];
    };
    const auto& extents = args.shape.extents;
    const std::uint64_t n_rows = std::max<std::uint64_t>(extents[1] * extents[2], 1);
    const std::uint64_t n_x = extents[0] != 0 ? extents[0] : args.max_values / n_rows;
    const std::uint64_t n_parts = cuda::gridFor(tilesOf(0, n_x), kTileThreads);
    call.launch("mask: tiles", tileKernel<T>,
                cuda::gridFor(n_parts * tilesOf(1, extents[1]) * tilesOf(2, extents[2]), 1),
                kTileThreads, 0, args);
  }
}

template void launchHold<float>(const EncodeArgs&, const cuda::Call&);
template void launchHold<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
