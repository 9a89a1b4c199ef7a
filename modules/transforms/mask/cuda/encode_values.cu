// The filled field, where values are missing and which patterns they have. One pass over the field
// does it, but for what lies before its first valid value, and holds that go over several rows.

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/lanes.cuh"
#include "transforms/mask/cuda/values.cuh"
#include "transforms/mask/cuda/walk.cuh"

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
  using U = BitsOf<T>;
  U v[kRows];
  unsigned own_word;    ///< missing values of the row whose number is the lane's
  std::uint64_t first;  ///< value of the field
  unsigned n_values;    ///< that exist
  U key;                ///< lane: of a pattern, exclusive-or the marker; 0: none is missing
  bool has_other_keys;  ///< lane
  std::uint32_t n_missing;
  std::uint32_t n_filled;  ///< lane

  __device__ __forceinline__ bool exists(unsigned row) const {
    return row * kWarp + laneId() < n_values;
  }
  __device__ __forceinline__ unsigned missing(unsigned row) const { return ofLane(own_word, row); }
  /// Lanes of a row that have a valid value.
  __device__ __forceinline__ unsigned valid(unsigned row, unsigned missing) const {
    const unsigned begin = row * kWarp;
    const unsigned left = begin < n_values ? n_values - begin : 0;
    return ~missing & (left >= kWarp ? kAllLanes : (1u << left) - 1);
  }

  template <bool kHasFills>
  __device__ __forceinline__ void load(const T* in, const Fills<T>& fills, U marker) {
    const auto* const bits = reinterpret_cast<const U*>(in) + first + laneId();
    if (n_values == kWarpValues) {  // all of them are under way at a time
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        v[r] = __ldcs(bits + r * kWarp);
      }
    } else {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        v[r] = exists(r) ? bits[r * kWarp] : U{0};
      }
    }
    __syncwarp();
    own_word = 0;
    key = 0;
    n_missing = 0;
    n_filled = 0;
    U unlike = 0;
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const bool is_missing =
          kHasFills ? exists(r) && isMissing<T>(v[r], fills) : !isFiniteBits<T>(v[r]);
      const unsigned lanes = __ballot_sync(kAllLanes, is_missing);
      n_missing += static_cast<std::uint32_t>(__popc(lanes));
      own_word = laneId() == r ? lanes : own_word;
      key = is_missing && key == 0 ? v[r] ^ marker : key;
      unlike |= is_missing ? v[r] ^ marker ^ key : U{0};
      if constexpr (kHasFills) {
        n_filled += is_missing && isFiniteBits<T>(v[r]) ? 1u : 0u;
      }
    }
    has_other_keys = unlike != 0;
  }
  __device__ __forceinline__ void store(T* out) const {
    auto* const bits = reinterpret_cast<U*>(out) + first + laneId();
    if (n_values == kWarpValues) {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        bits[r * kWarp] = v[r];
      }
    } else {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        if (exists(r)) {
          bits[r * kWarp] = v[r];
        }
      }
    }
  }
  __device__ __forceinline__ void storeWords(std::uint32_t* words) const {
    if (laneId() < kRows) {
      words[first / 32 + laneId()] = own_word;
    }
  }
  /// Index of the last valid value in the field and 1; 0: none.
  __device__ __forceinline__ std::uint64_t lastValid() const {
    const unsigned own = laneId() < kRows ? valid(laneId(), own_word) : 0;
    const unsigned rows = __ballot_sync(kAllLanes, own != 0);
    const unsigned row = rows != 0 ? highestLane(rows) : 0;
    return rows == 0 ? 0 : first + row * kWarp + highestLane(ofLane(own, row)) + 1;
  }
};

/// What the warps of a block tell each other: all of them adding to the same words of memory would
/// take longer than looking at the values.
struct TileFindings {
  std::uint64_t key[kWarps];   ///< of one of the patterns
  std::uint64_t last[kWarps];  ///< see lastValid()
  std::uint32_t n_missing[kWarps];
  std::uint32_t n_filled[kWarps];
  bool has_other_keys[kWarps];
  bool begins_with_missing;
  std::uint64_t before;  ///< index of the last valid value before the tile and 1

  template <bool kHasFills, bool kNeedsLast, class T>
  __device__ __forceinline__ void add(const WarpValues<T>& values) {
    const unsigned with_key = __ballot_sync(kAllLanes, values.key != 0);
    const auto common = ofLane(values.key, with_key != 0 ? lowestLane(with_key) : 0);
    const bool is_other = values.key != 0 && (values.has_other_keys || values.key != common);
    const bool has_others = __any_sync(kAllLanes, is_other ? 1 : 0) != 0;
    const std::uint32_t n_all_filled = kHasFills ? cuda::warpSum(values.n_filled) : 0;
    const std::uint64_t last_valid = kNeedsLast ? values.lastValid() : 0;
    if (laneId() == 0) {
      const unsigned w = warpId();
      key[w] = common;
      last[w] = last_valid;
      n_missing[w] = values.n_missing;
      n_filled[w] = n_all_filled;
      has_other_keys[w] = has_others;
      if (w == 0) {
        begins_with_missing = (values.own_word & 1u) != 0;
      }
    }
  }
  __device__ __forceinline__ std::uint32_t missing() const {
    std::uint32_t n = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      n += n_missing[w];
    }
    return n;
  }
  /// The last valid value before a warp of the tile, in the tile; 0: none.
  __device__ __forceinline__ std::uint64_t lastBefore(unsigned warp) const {
    std::uint64_t found = 0;
    for (unsigned w = 0; w < warp; ++w) {
      found = last[w] != 0 ? last[w] : found;
    }
    return found;
  }
};

/// The warp: its patterns but the one that is known, from the field once more.
template <class T>
__device__ void addOtherKeys(const EncodeArgs& args,
                             const WarpValues<T>& values,
                             std::uint64_t known) {
  const auto* const in = reinterpret_cast<const BitsOf<T>*>(args.in) + values.first + laneId();
  std::uint64_t last = known;
#pragma unroll 1
  for (unsigned r = 0; r < kRows; ++r) {
    const bool is_missing = (values.missing(r) >> laneId() & 1u) != 0;
    const std::uint64_t key =
        is_missing ? static_cast<BitsOf<T>>(in[r * kWarp] ^ static_cast<BitsOf<T>>(args.marker))
                   : known;
    const bool is_other = key != known && key != last;
    const unsigned others = __ballot_sync(kAllLanes, is_other);
    if (is_other) {
      addKey(*args.found, key);
    }
    __syncwarp();
    last = others != 0 ? ofLane(key, highestLane(others)) : last;
  }
}

/// All threads: counts and patterns of a tile that has missing values.
template <class T>
__device__ __forceinline__ void noteFindings(const EncodeArgs& args,
                                             const WarpValues<T>& values,
                                             const TileFindings& tile) {
  std::uint64_t known = 0;
  std::uint32_t n_filled = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    known = known == 0 ? tile.key[w] : known;
    n_filled += tile.n_filled[w];
  }
  if (threadIdx.x == 0) {
    addKey(*args.found, known);
    addTo(&args.found->n_missing, tile.missing());
    if (n_filled != 0) {
      addTo(&args.found->n_filled, n_filled);
    }
  }
  const std::uint64_t own = tile.key[warpId()];
  if (tile.has_other_keys[warpId()] || (own != 0 && own != known)) {
    addOtherKeys(args, values, known);
  }
}

/// Fills rows from the value before; `held` is that of the first.
template <class T>
__device__ __forceinline__ void holdRows(WarpValues<T>& values, BitsOf<T> held) {
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const unsigned missing = values.missing(r);
    const unsigned valid = values.valid(r, missing);
    if (missing != 0) {
      const unsigned before = valid & lanesBelow();
      const BitsOf<T> from = ofLane(values.v[r], before != 0 ? highestLane(before) : 0);
      if ((missing >> laneId() & 1u) != 0) {
        values.v[r] = before != 0 ? from : held;
      }
    }
    // A missing one at the end holds the same.
    held = (valid | missing) != 0 ? ofLane(values.v[r], lastLane(valid, missing)) : held;
  }
}

/// Fills units of 32 values or a part of that.
template <class T>
__device__ __forceinline__ void holdLanes(WarpValues<T>& values, std::uint32_t unit) {
  const unsigned own = static_cast<unsigned>(lowBits(unit)) << (laneId() / unit * unit);
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const unsigned missing = values.missing(r);
    if (missing != 0) {
      const unsigned valid = values.valid(r, missing) & own;
      const unsigned before = valid & lanesBelow();
      const unsigned lane = before != 0 ? highestLane(before) : valid != 0 ? lowestLane(valid) : 0;
      const BitsOf<T> from = ofLane(values.v[r], lane);
      if ((missing >> laneId() & 1u) != 0) {
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
      const bool is_missing = (values.missing(r) >> laneId() & 1u) != 0;
      values.v[r] = !is_missing                ? values.v[r]
                    : kHold == Hold::kQuietNan ? kQuietNanBits<T>
                                               : BitsOf<T>{0};
    }
  }
}

/// All threads: the value that stands before a warp's, where its first one is missing; 0 where
/// there is none.
template <class T>
__device__ __forceinline__ BitsOf<T> heldBefore(const EncodeArgs& args,
                                                const WarpValues<T>& values,
                                                TileFindings& tile) {
  const LastValid chain{args.last_valid};
  if (warpId() == 0) {
    const std::uint64_t tile_last = tile.lastBefore(kWarps);
    if (laneId() == 0) {
      chain.publish(blockIdx.x, tile_last);
    }
    if (tile.begins_with_missing) {
      const std::uint64_t before = chain.before(blockIdx.x);
      if (laneId() == 0) {
        tile.before = before;
        if (tile_last == 0) {
          chain.publishBefore(blockIdx.x, before);
        }
      }
    }
  }
  if (tile.begins_with_missing) {  // else a warp finds one in the tile
    __syncthreads();
  }
  if ((values.missing(0) & 1u) == 0) {
    return 0;
  }
  const std::uint64_t in_tile = tile.lastBefore(warpId());
  const std::uint64_t before = in_tile != 0 ? in_tile : tile.before;
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

/// Four blocks to a multiprocessor have enough on their way.
template <class T, Hold kHold, bool kHasFills>
__global__ void __launch_bounds__(kTileThreads, 4) findKernel(EncodeArgs args, Fills<T> fills) {
  __shared__ TileFindings tile;
  const Field field = fieldOf(args.shape, sizeof(T));
  if (!beginEncode(args, field, sizeof(T))) {
    return;
  }
  WarpValues<T> values;
  values.first = std::uint64_t{blockIdx.x} * kTileValues + warpId() * kWarpValues;
  const std::uint64_t left =
      values.first < field.n_values ? field.n_values - values.first : std::uint64_t{0};
  values.n_values = left < kWarpValues ? static_cast<unsigned>(left) : kWarpValues;
  values.template load<kHasFills>(reinterpret_cast<const T*>(args.in), fills,
                                  static_cast<BitsOf<T>>(args.marker));
  values.storeWords(args.words);
  tile.template add<kHasFills, kHold == Hold::kField>(values);
  __syncthreads();
  const bool has_missing = tile.missing() != 0;
  if constexpr (kHold == Hold::kField) {
    if (has_missing) {
      const BitsOf<T> held = heldBefore(args, values, tile);
      if (values.n_missing != 0) {
        holdRows(values, held);
      }
    } else if (threadIdx.x == 0) {
      const std::uint64_t end = (std::uint64_t{blockIdx.x} + 1) * kTileValues;
      LastValid{args.last_valid}.publish(blockIdx.x, end < field.n_values ? end : field.n_values);
    }
  } else if (values.n_missing != 0) {
    replaceOrHold<T, kHold>(values, args.hold_extents[0]);
  }
  values.store(reinterpret_cast<T*>(args.out.data));
  if (has_missing) {
    noteFindings(args, values, tile);
  }
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
