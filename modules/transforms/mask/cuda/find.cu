// The filled field, where values are missing and which patterns they have. One pass over the field
// does it, but for what lies before its first valid value, and holds that go over several rows.

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/lanes.cuh"
#include "transforms/mask/cuda/last_valid.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kWarps = kTileThreads / kWarp;
constexpr unsigned kRows = kTileValues / kTileThreads;  // of 32 values, that a warp has
constexpr unsigned kWarpValues = kRows * kWarp;

/// The values of a warp, and which are missing.
template <class T>
struct WarpValues {
  BitsOf<T> v[kRows];
  unsigned missing[kRows];
  unsigned own_word;  ///< of the row whose number is the lane's
  std::uint64_t first;
  std::uint64_t n_values;

  __device__ __forceinline__ std::uint64_t at(unsigned row) const {
    return first + row * kWarp + laneId();
  }
  /// Lanes of a row that have a valid value.
  __device__ __forceinline__ unsigned valid(unsigned row) const {
    const std::uint64_t begin = first + row * kWarp;
    const std::uint64_t left = begin < n_values ? n_values - begin : 0;
    return ~missing[row] & (left >= kWarp ? kAllLanes : (1u << left) - 1);
  }
  __device__ __forceinline__ bool isMissingHere(unsigned row) const {
    return (missing[row] >> laneId() & 1) != 0;
  }

  template <bool kHasFills>
  __device__ __forceinline__ bool load(const T* in, const Fills<T>& fills) {
    const auto* bits = reinterpret_cast<const BitsOf<T>*>(in);
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      v[r] = at(r) < n_values ? __ldcs(bits + at(r)) : BitsOf<T>{0};
    }
    unsigned any = 0;
    own_word = 0;
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const bool is_missing = kHasFills ? isMissing<T>(v[r], fills) : !isFiniteBits<T>(v[r]);
      const unsigned lanes = __ballot_sync(kAllLanes, at(r) < n_values && is_missing);
      missing[r] = lanes;
      any |= lanes;
      own_word = laneId() == r ? lanes : own_word;
    }
    return any != 0;
  }
  __device__ __forceinline__ void store(T* out) const {
    auto* bits = reinterpret_cast<BitsOf<T>*>(out);
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      if (at(r) < n_values) {
        bits[at(r)] = v[r];
      }
    }
  }
  __device__ __forceinline__ void storeWords(std::uint32_t* words) const {
    if (laneId() < kRows) {
      words[first / 32 + laneId()] = own_word;
    }
  }
  /// Index of the last valid value and 1; 0: none.
  __device__ __forceinline__ std::uint64_t lastValid() const {
    std::uint64_t last = 0;
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const unsigned lanes = valid(r);
      last = lanes != 0 ? first + r * kWarp + highestLane(lanes) + 1 : last;
    }
    return last;
  }
};

/// Adds the patterns of a warp but the one that is known.
template <class T>
__device__ __forceinline__ void addOthers(const WarpValues<T>& values,
                                          BitsOf<T> known,
                                          const EncodeArgs& args) {
  BitsOf<T> last = known;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const bool is_other = values.isMissingHere(r) && values.v[r] != known && values.v[r] != last;
    const unsigned others = values.missing[r] != 0 ? __ballot_sync(kAllLanes, is_other) : 0;
    if (others != 0) {
      if (is_other) {
        addKey(*args.found,
               static_cast<BitsOf<T>>(values.v[r] ^ static_cast<BitsOf<T>>(args.marker)));
      }
      __syncwarp();
      last = ofLane(values.v[r], highestLane(others));
    }
  }
}

/// What the warps of a block find together: all of them adding to the same words of memory would
/// take longer than looking at the values.
struct TileFindings {
  unsigned long long key;  ///< of one of the patterns
  unsigned n_missing;
  unsigned n_filled;
};

/// All threads: counts and patterns of a tile that has missing values.
template <class T>
__device__ __forceinline__ void noteFindings(const WarpValues<T>& values,
                                             bool has_missing,
                                             const EncodeArgs& args,
                                             TileFindings& tile) {
  Findings& found = *args.found;
  const auto marker = static_cast<BitsOf<T>>(args.marker);
  if (threadIdx.x == 0) {
    tile = {};
  }
  __syncthreads();
  std::uint32_t n_missing = 0;
  std::uint32_t n_filled = 0;
  BitsOf<T> pattern = marker;
  if (has_missing) {
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const unsigned missing = values.missing[r];
      if (missing != 0) {
        n_missing += static_cast<std::uint32_t>(__popc(missing));
        pattern = ofLane(values.v[r], lowestLane(missing));
        // Nearly all rows have one pattern.
        const bool is_other = values.isMissingHere(r) && values.v[r] != pattern;
        if (__any_sync(kAllLanes, is_other)) {
          n_filled += static_cast<std::uint32_t>(__popc(
              __ballot_sync(kAllLanes, values.isMissingHere(r) && isFiniteBits<T>(values.v[r]))));
        } else if (isFiniteBits<T>(pattern)) {
          n_filled += static_cast<std::uint32_t>(__popc(missing));
        }
      }
    }
    if (laneId() == 0) {
      atomicAdd(&tile.n_missing, n_missing);  // order-free: only sums
      atomicAdd(&tile.n_filled, n_filled);    // order-free: only sums
      atomicCAS(&tile.key, 0ull,              // order-free: any of them will do
                static_cast<unsigned long long>(static_cast<BitsOf<T>>(pattern ^ marker)));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    addKey(found, tile.key);
    addTo(&found.n_missing, tile.n_missing);
    if (tile.n_filled != 0) {
      addTo(&found.n_filled, tile.n_filled);
    }
  }
  if (has_missing) {
    addOthers(values, static_cast<BitsOf<T>>(tile.key) ^ marker, args);
  }
}

/// Fills rows from the value before; `held` is that of the first.
template <class T>
__device__ __forceinline__ void holdRows(WarpValues<T>& values, BitsOf<T> held) {
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const unsigned valid = values.valid(r);
    if (values.missing[r] != 0) {
      const unsigned before = valid & lanesBelow();
      const BitsOf<T> from = ofLane(values.v[r], before != 0 ? highestLane(before) : 0);
      if (values.isMissingHere(r)) {
        values.v[r] = before != 0 ? from : held;
      }
    }
    // A missing one at the end holds the same.
    held = valid != 0 || values.missing[r] != 0
               ? ofLane(values.v[r], lastLane(valid, values.missing[r]))
               : held;
  }
}

/// Fills units of 32 values or a part of that.
template <class T>
__device__ __forceinline__ void holdLanes(WarpValues<T>& values, std::uint32_t unit) {
  const unsigned own = static_cast<unsigned>(lowBits(unit)) << (laneId() / unit * unit);
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    if (values.missing[r] != 0) {
      const unsigned valid = values.valid(r) & own;
      const unsigned before = valid & lanesBelow();
      const unsigned lane = before != 0 ? highestLane(before) : valid != 0 ? lowestLane(valid) : 0;
      const BitsOf<T> from = ofLane(values.v[r], lane);
      if (values.isMissingHere(r)) {
        values.v[r] = valid != 0 ? from : BitsOf<T>{0};
      }
    }
  }
}

/// Whatever does not need the values before.
template <class T, Hold kHold>
__device__ __forceinline__ void replaceOrHold(WarpValues<T>& values, std::uint32_t unit) {
  if constexpr (kHold == Hold::kLanes) {
    holdLanes(values, unit);
  } else {
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      values.v[r] = !values.isMissingHere(r)   ? values.v[r]
                    : kHold == Hold::kQuietNan ? kQuietNanBits<T>
                                               : BitsOf<T>{0};
    }
  }
}

/// The value that stands before a warp's, 0 where there is none.
template <class T>
__device__ __forceinline__ BitsOf<T> heldBefore(const WarpValues<T>& values,
                                                const EncodeArgs& args,
                                                std::uint64_t (&warp_last)[kWarps],
                                                std::uint64_t& tile_before) {
  const std::uint64_t last = values.lastValid();
  if (laneId() == 0) {
    warp_last[warpId()] = last;
  }
  __syncthreads();
  const LastValid chain{args.last_valid};
  if (warpId() == 0) {
    std::uint64_t tile_last = 0;
    for (unsigned w = 0; w < kWarps; ++w) {
      tile_last = warp_last[w] != 0 ? warp_last[w] : tile_last;
    }
    if (laneId() == 0) {
      chain.publish(blockIdx.x, tile_last);
    }
    if ((values.missing[0] & 1) != 0) {
      const std::uint64_t before = chain.before(blockIdx.x);
      if (laneId() == 0) {
        tile_before = before;
        if (tile_last == 0) {
          chain.publishBefore(blockIdx.x, before);
        }
      }
    } else if (laneId() == 0) {
      tile_before = 0;
    }
  }
  __syncthreads();
  std::uint64_t before = tile_before;
  for (unsigned w = 0; w < warpId(); ++w) {
    before = warp_last[w] != 0 ? warp_last[w] : before;
  }
  return before == 0 ? BitsOf<T>{0} : reinterpret_cast<const BitsOf<T>*>(args.in)[before - 1];
}

/// One thread: what the record says, and whether there is anything to do.
__device__ bool beginEncode(const EncodeArgs& args, const Field& field, std::uint32_t value_bytes) {
  const std::uint64_t n_bytes = field.n_values * value_bytes;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (!field.is_good) {
      cuda::recordError(args.record, DeviceError::kDoesNotFit, cuda::load(args.shape.size));
    } else {
      for (unsigned axis = 0; axis < 3; ++axis) {
        args.record->value[kExtentSlot + axis] = field.extents[axis];
      }
      if (!args.out.size_known) {
        cuda::publishSize(args.record, 0, n_bytes, args.out.capacity_bytes);
      }
    }
  }
  return field.is_good && n_bytes <= args.out.capacity_bytes;
}

template <class T, Hold kHold, bool kHasFills>
__global__ void __launch_bounds__(kTileThreads) findKernel(EncodeArgs args, Fills<T> fills) {
  __shared__ std::uint64_t warp_last[kWarps];
  __shared__ std::uint64_t tile_before;
  __shared__ TileFindings tile;
  const Field field = fieldOf(args.shape, sizeof(T));
  if (!beginEncode(args, field, sizeof(T))) {
    return;
  }
  WarpValues<T> values;
  values.first = std::uint64_t{blockIdx.x} * kTileValues + warpId() * kWarpValues;
  values.n_values = field.n_values;
  const bool has_missing =
      values.template load<kHasFills>(reinterpret_cast<const T*>(args.in), fills);
  values.storeWords(args.words);
  if (__syncthreads_or(has_missing ? 1 : 0) != 0) {
    noteFindings(values, has_missing, args, tile);
    if constexpr (kHold == Hold::kField) {
      const BitsOf<T> held = heldBefore(values, args, warp_last, tile_before);
      if (has_missing) {
        holdRows(values, held);
      }
    } else if (has_missing) {
      replaceOrHold<T, kHold>(values, args.hold_extents[0]);
    }
  } else if (kHold == Hold::kField && threadIdx.x == 0) {
    const std::uint64_t end = (std::uint64_t{blockIdx.x} + 1) * kTileValues;
    LastValid{args.last_valid}.publish(blockIdx.x, end < field.n_values ? end : field.n_values);
  }
  values.store(reinterpret_cast<T*>(args.out.data));
}

}  // namespace

template <class T>
void launchFind(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  const unsigned n_tiles = cuda::gridFor(args.max_values, kTileValues);
  const auto launch = [&](auto* kernel) {
    call.launch("mask: find", kernel, n_tiles, kTileThreads, 0, args, fills);
  };
  switch (args.hold) {
    case Hold::kField:
      launch(args.has_fills ? findKernel<T, Hold::kField, true>
                            : findKernel<T, Hold::kField, false>);
      break;
    case Hold::kLanes:
      launch(args.has_fills ? findKernel<T, Hold::kLanes, true>
                            : findKernel<T, Hold::kLanes, false>);
      break;
    case Hold::kQuietNan:
      launch(args.has_fills ? findKernel<T, Hold::kQuietNan, true>
                            : findKernel<T, Hold::kQuietNan, false>);
      break;
    case Hold::kUnits:
    case Hold::kTiles:
      launch(args.has_fills ? findKernel<T, Hold::kUnits, true>
                            : findKernel<T, Hold::kUnits, false>);
      break;
  }
}

template void launchFind(const EncodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchFind(const EncodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
