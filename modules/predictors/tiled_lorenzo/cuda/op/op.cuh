#pragma once

// Tiles in a fused group. A warp has whole tiles, side by side in the field. Device code only; must
// compile with NVRTC.

#include "backends/cuda/group/front.cuh"
#include "predictors/tiled_lorenzo/cuda/kernels.h"
#include "shared/bits.h"

namespace fz::tiled_lorenzo {

FZ_HD constexpr unsigned log2Of(unsigned n) {
  return n <= 1 ? 0 : 1 + log2Of(n / 2);
}

/// Where the values of a warp stand in the field; see LinearMap. Extents of a tile are powers of
/// two.
template <unsigned kX, unsigned kY, unsigned kZ>
struct TileMap {
  static constexpr unsigned kValues = kX * kY * kZ;
  static constexpr unsigned kTiles = kGroupWarpValues / kValues;  // of a warp
  static constexpr unsigned kBeyond = 1u << 16;  // tiles behind the last that may be asked for

  /// A tile's first value.
  struct Corner {
    std::uint64_t x;
    std::uint64_t y;
    std::uint64_t z;
  };

  const TilesArgs& args;
  std::uint64_t first_tile;

  __device__ __forceinline__ TileMap(const TilesArgs& a, std::uint64_t first)
      : args(a), first_tile(first / kValues) {}

  __device__ __forceinline__ bool isWhole() const {
    return args.has_whole_tiles && first_tile + kTiles <= args.n_tiles;
  }

  /// Lanes side by side take what lies side by side in the field: a row of tile after tile, then
  /// the next row of the same tiles.
  template <unsigned N, unsigned kUnit, class F>
  __device__ __forceinline__ bool eachUnit(F f) const {
    static_assert(N * cuda::kWarp == kGroupWarpValues);
    if constexpr (kX % kUnit != 0) {
      return false;
    } else {
      if constexpr (kY * kZ == 1) {
        if (args.ny * args.nz == 1) {  // tiles of a line: padding comes at its end only
          return group::LinearMap{first_tile * kValues, args.nx}.template eachUnit<N, kUnit>(f);
        }
      }
      if (args.nx % kUnit != 0) {
        return false;
      }
      if (isWhole()) {
        eachUnitOf<kUnit, true>(f);
      } else {
        eachUnitOf<kUnit, false>(f);
      }
      return true;
    }
  }
  template <unsigned kCount>
  static __device__ __forceinline__ unsigned piece(unsigned at) {
    if constexpr (kX % kCount != 0) {
      return at / kCount;
    } else {
      return (at % kValues / kX * kTiles + at / kValues) * (kX / kCount) + at % kX / kCount;
    }
  }
  /// 0 for those of the lane's values that lie outside the field.
  template <unsigned N, class S>
  __device__ __forceinline__ void clearPadding(S (&v)[N]) const {
    constexpr unsigned kStep = kValues < N ? kValues : N;  // of the lane's values, in one tile
#pragma unroll
    for (unsigned i = 0; i < N; i += kStep) {
      const unsigned at = cuda::laneId() * N + i;
      const Corner corner = cornerOf(first_tile + at / kValues);
      const auto left = [](std::uint64_t n, std::uint64_t from) {
        return from >= n ? 0u : n - from > 1024 ? 1024u : static_cast<unsigned>(n - from);
      };
      const unsigned n_x = left(args.nx, corner.x);
      const unsigned n_y = left(args.ny, corner.y);
      const unsigned n_z = left(args.nz, corner.z);
#pragma unroll
      for (unsigned k = 0; k < kStep; ++k) {
        const unsigned place = (at + k) % kValues;
        const bool is_there = place % kX < n_x && place / kX % kY < n_y && place / (kX * kY) < n_z;
        v[i + k] = is_there ? v[i + k] : S{0};
      }
    }
  }
  __device__ __forceinline__ bool find(unsigned at, std::uint64_t& index) const {
    const std::uint64_t tile = first_tile + at / kValues;
    const Corner corner = cornerOf(tile);
    const std::uint64_t x = corner.x + at % kX;
    const std::uint64_t y = corner.y + at / kX % kY;
    const std::uint64_t z = corner.z + at / (kX * kY) % kZ;
    index = (z * args.ny + y) * args.nx + x;
    return x < args.nx && y < args.ny && z < args.nz && tile < args.n_tiles;
  }

 private:
  __device__ __forceinline__ Corner cornerOf(std::uint64_t tile) const {
    if (args.tiles_x.isSmall(args.n_tiles + kBeyond)) {
      const auto small = static_cast<std::uint32_t>(tile);
      const std::uint32_t row = args.tiles_x.quotient(small);
      const std::uint32_t z = args.tiles_y.quotient(row);
      return {std::uint64_t{small - row * args.tiles_x.divisor} * kX,
              std::uint64_t{row - z * args.tiles_y.divisor} * kY, std::uint64_t{z} * kZ};
    }
    const std::uint64_t row = tile / args.tiles_x.divisor;
    const std::uint64_t z = row / args.tiles_y.divisor;
    return {(tile - row * args.tiles_x.divisor) * kX, (row - z * args.tiles_y.divisor) * kY,
            z * kZ};
  }

  /// The same for whole tiles of one layer: the rows of the next layer follow on those of this one,
  /// so y may count through all of them.
  __device__ __forceinline__ Corner flatCornerOf(std::uint64_t tile) const {
    if (args.tiles_x.isSmall(args.n_tiles + kBeyond)) {
      const auto small = static_cast<std::uint32_t>(tile);
      const std::uint32_t row = args.tiles_x.quotient(small);
      return {std::uint64_t{small - row * args.tiles_x.divisor} * kX, std::uint64_t{row} * kY, 0};
    }
    const std::uint64_t row = tile / args.tiles_x.divisor;
    return {(tile - row * args.tiles_x.divisor) * kX, row * kY, 0};
  }

  template <unsigned kUnit, bool kWhole, class F>
  __device__ __forceinline__ void eachUnitOf(F f) const {
    constexpr unsigned kRowUnits = kX / kUnit;
    constexpr unsigned kLine = kRowUnits * kTiles;  // units of a row of all tiles
    constexpr unsigned kParts = kLine > cuda::kWarp ? kLine / cuda::kWarp : 1;
    constexpr unsigned kRowsAtOnce = kLine > cuda::kWarp ? 1 : cuda::kWarp / kLine;
    // Many parts come about where values are taken one by one, or tiles of a line stand in a grid:
    // seldom, and unrolled they would crowd out what runs.
#pragma unroll(kParts <= 2 ? kParts : 1)
    for (unsigned part = 0; part < kParts; ++part) {
      const unsigned i = part * cuda::kWarp + cuda::laneId();
      const unsigned x = i % kRowUnits * kUnit;
      const unsigned tile = i / kRowUnits % kTiles;
      const unsigned lane_row = kLine > cuda::kWarp ? 0 : cuda::laneId() / kLine;
      const Corner corner =
          kWhole && kZ == 1 ? flatCornerOf(first_tile + tile) : cornerOf(first_tile + tile);
      const std::uint64_t begin = (corner.z * args.ny + corner.y) * args.nx + corner.x + x;
      const bool has_x = kWhole || (first_tile + tile < args.n_tiles && corner.x + x < args.nx);
#pragma unroll
      for (unsigned r = 0; r < kY * kZ; r += kRowsAtOnce) {
        // Rows of the lanes are consecutive, and a power of two of them.
        const unsigned y = kRowsAtOnce <= kY ? r % kY + lane_row : (r + lane_row) % kY;
        const unsigned z = kRowsAtOnce <= kY ? r / kY : (r + lane_row) / kY;
        const std::uint64_t index = begin + z * args.plane + y * args.nx;
        const bool is_there = kWhole || (has_x && corner.y + y < args.ny && corner.z + z < args.nz);
        f(tile * kValues + lane_row * kX + x, r * kX, index, is_there);
      }
    }
  }
};

/// Inclusive sums over the lanes that differ in bits [kLow, kHigh) of their number.
template <unsigned kLow, unsigned kHigh, class S>
__device__ __forceinline__ S sumOverLanes(S value) {
  if constexpr (kHigh > kLow) {
    const unsigned place = cuda::laneId() >> kLow & ((1u << (kHigh - kLow)) - 1);
#pragma unroll
    for (unsigned step = 1; step < 1u << (kHigh - kLow); step *= 2) {
      const auto other =
          static_cast<S>(__shfl_up_sync(cuda::kAllLanes, static_cast<int>(value), step << kLow));
      value = place >= step ? bits::wrapAdd(value, other) : value;
    }
  }
  return value;
}

template <class S, unsigned kX, unsigned kY, unsigned kZ>
struct TilesOp {
  using Args = TilesArgs;
  static constexpr unsigned kValues = kX * kY * kZ;
  static constexpr unsigned kRow = 32;  // a lane's values
  static_assert(kGroupWarpValues % kValues == 0 && (kX & (kX - 1)) == 0 && (kY & (kY - 1)) == 0);
  // Bits of a value's number in its tile, x first; those from bit 5 on are bits of the lane.
  static constexpr unsigned kXEnd = log2Of(kX);
  static constexpr unsigned kYEnd = kXEnd + log2Of(kY);
  static constexpr unsigned kEnd = log2Of(kValues);
  static FZ_HD constexpr unsigned laneBit(unsigned bit) { return bit > 5 ? bit - 5 : 0; }

  template <class Inner>
  struct Front : group::Around<Inner> {
    using Value = S;
    static constexpr bool kHasRows = true;
    static_assert(sizeof(typename Inner::Value) == sizeof(S));

    const Args& args;

    __device__ __forceinline__ Front(const Args& a, const Inner& front)
        : group::Around<Inner>(front), args(a) {}

    __device__ __forceinline__ std::uint64_t count() const { return args.n_tiles * kValues; }

    __device__ __forceinline__ void finish() const {
      if (blockIdx.x == 0 && threadIdx.x == 0) {
        args.record->value[kExtentSlot] = args.nx;
      }
      this->inner.finish();
    }
    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      const std::uint64_t field_values = args.nx * args.ny * args.nz;
      const bool ok = n == count();
      if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (!ok) {
          cuda::recordError(args.record, DeviceError::kCorrupt, n * sizeof(S));
        }
        if (args.publishes) {
          cuda::publishSize(args.record, 0, ok ? field_values * sizeof(S) : 0, args.capacity_bytes);
        }
      }
      return ok && this->inner.begin(field_values);
    }

    template <unsigned N>
    __device__ __forceinline__ void fetch(const group::LinearMap& map, uint4* staging) const {
      this->inner.template fetch<N>(TileMap<kX, kY, kZ>(args, map.first), staging);
    }

    template <unsigned N>
    __device__ __forceinline__ void take(const group::LinearMap& map,
                                         const uint4* staging,
                                         S (&v)[N]) const {
      static_assert(N == kRow);
      const TileMap<kX, kY, kZ> own(args, map.first);
      typename Inner::Value x[N];
      group::takeShifted<N>(this->inner, own, staging, x);
      constexpr S kNothing = static_cast<S>(group::shiftOf<Inner>());
      v[0] = bits::wrapSub(static_cast<S>(x[0]), predictFirst(x, kNothing));
#pragma unroll
      for (unsigned i = 1; i < N; ++i) {
        constexpr unsigned kNone = ~0u;
        const unsigned distance = (i & (kX - 1)) != 0        ? 1
                                  : (i & (kX * kY - 1)) != 0 ? kX
                                  : (i & (kValues - 1)) != 0 ? kX * kY
                                                             : kNone;
        const S predicted = distance == kNone ? kNothing : static_cast<S>(x[i - (distance & 31u)]);
        v[i] = bits::wrapSub(static_cast<S>(x[i]), predicted);
      }
      if (!own.isWhole()) {
        own.clearPadding(v);
      }
    }

    template <unsigned N>
    __device__ __forceinline__ void put(const group::LinearMap& map,
                                        uint4* staging,
                                        S (&v)[N]) const {
      static_assert(N == kRow);
      const S head = v[0];
      if constexpr (kValues > kRow) {
        v[0] = 0;  // sums of the lane alone at first
      }
#pragma unroll
      for (unsigned i = 1; i < N; ++i) {
        const unsigned distance = (i & (kX - 1)) != 0        ? 1
                                  : (i & (kX * kY - 1)) != 0 ? kX
                                  : (i & (kValues - 1)) != 0 ? kX * kY
                                                             : 0;
        v[i] = distance == 0 ? v[i] : bits::wrapAdd(v[i], v[i - (distance & 31u)]);
      }
      typename Inner::Value x[N];
      const S first = kValues > kRow ? sumHeads(head, v) : S{0};
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        x[i] = static_cast<typename Inner::Value>(bits::wrapAdd(v[i], first));
      }
      this->inner.template put<N>(TileMap<kX, kY, kZ>(args, map.first), staging, x);
    }

    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, S (&v)[N]) const {
      group::fetchAndTake<N>(*this, first, staging, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          S (&v)[N]) const {
      put<N>(group::LinearMap{first, n}, staging, v);
    }

   private:
    /// Bits [low, high) of the number of the lane's first value in its tile; only those of the lane
    /// can be set.
    static __device__ __forceinline__ bool laneBits(unsigned low, unsigned high) {
      const unsigned mask = ((1u << laneBit(high)) - 1) & ~((1u << laneBit(low)) - 1);
      return (cuda::laneId() & mask) != 0;
    }
    /// A value of an earlier lane: the one `distance` before the lane's first.
    template <unsigned kDistance, class V>
    static __device__ __forceinline__ S earlier(const V (&x)[kRow]) {
      constexpr unsigned kLanes = (kDistance + kRow - 1) / kRow;
      return static_cast<S>(
          __shfl_up_sync(cuda::kAllLanes, static_cast<int>(x[kLanes * kRow - kDistance]), kLanes));
    }

    /// What predicts the lane's first value, all of it in earlier lanes; `predicted` where nothing
    /// does.
    template <class V>
    static __device__ __forceinline__ S predictFirst(const V (&x)[kRow], S predicted) {
      if constexpr (laneBit(kEnd) > laneBit(kYEnd)) {
        const S other = earlier<kX * kY>(x);
        predicted = laneBits(kYEnd, kEnd) ? other : predicted;
      }
      if constexpr (laneBit(kYEnd) > laneBit(kXEnd)) {
        const S other = earlier<kX>(x);
        predicted = laneBits(kXEnd, kYEnd) ? other : predicted;
      }
      if constexpr (laneBit(kXEnd) > 0) {
        const S other = earlier<1>(x);
        predicted = laneBits(0, kXEnd) ? other : predicted;
      }
      return predicted;
    }

    /// The lane's first value from its difference `head` and the sums inside the lanes: along z,
    /// then along y, then along x.
    static __device__ __forceinline__ S sumHeads(S head, const S (&sums)[kRow]) {
      S first = bits::wrapAdd(head, predictFirst(sums, S{0}));
      const S along_z = sumOverLanes<laneBit(kYEnd), laneBit(kEnd)>(first);
      first = laneBits(0, kYEnd) ? first : along_z;
      const S along_y = sumOverLanes<laneBit(kXEnd), laneBit(kYEnd)>(first);
      first = laneBits(0, kXEnd) ? first : along_y;
      return sumOverLanes<0, laneBit(kXEnd)>(first);
    }
  };
};

}  // namespace fz::tiled_lorenzo
