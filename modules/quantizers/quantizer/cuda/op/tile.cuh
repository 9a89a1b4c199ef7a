#pragma once

// A warp's tile: kCount values (16 bytes) per piece, kPieces pieces per lane, piece j of lane l at
// position j * 32 + l. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/group/holes.cuh"
#include "quantizers/quantizer/cuda/op/args.h"

namespace fz::quantizer::device {

using cuda::Vec16;

static_assert(sizeof(EncodeState<double>) <= kHolesAt &&
              sizeof(group::Holes) <= kStateBytes - kHolesAt);

template <class T>
__device__ __forceinline__ EncodeState<T>& stateOf(const EncodeJob& job) {
  return *static_cast<EncodeState<T>*>(job.state);
}

/// What the ops nearer the field have put into a group's values; behind its kernel.
__device__ __forceinline__ group::Holes& holesOf(const EncodeJob& job) {
  return *reinterpret_cast<group::Holes*>(static_cast<std::uint8_t*>(job.state) + kHolesAt);
}

/// Values to encode; 0 when they cannot be, which prepareKernel reports.
template <class T>
__device__ __forceinline__ std::uint64_t valuesOf(const EncodeJob& job) {
  constexpr std::uint64_t kMaxValues = 0xffffffffull;
  const std::uint64_t n = cuda::load(job.input.size) / sizeof(T);
  return n <= kMaxValues && n * job.code_bytes <= job.codes.capacity_bytes ? n : 0;
}

template <class T, unsigned kPieces>
struct TileShape {
  static constexpr unsigned kCount = Vec16<T>::kCount;
  static constexpr unsigned kValues = kPieces * cuda::kWarp * kCount;
  static constexpr unsigned kAll = kPieces * kCount == 32 ? ~0u : (1u << (kPieces * kCount)) - 1u;

  /// Position in the tile of the first value of the lane's piece j.
  static __device__ __forceinline__ unsigned at(unsigned j) {
    return (j * cuda::kWarp + cuda::laneId()) * kCount;
  }
};

/// Words of a tile's mask: a bit per value.
template <class T>
inline constexpr unsigned kMaskWords = TileShape<T, kVecs>::kValues / 32;

/// The first tile of the calling warp, which must be complete. The shuffle tells the compiler that
/// it is one number for all lanes.
__device__ __forceinline__ std::uint64_t firstTile() {
  return std::uint64_t{blockIdx.x} * kWarps + __shfl_sync(cuda::kAllLanes, cuda::warpId(), 0);
}

/// The codes of one piece.
template <class C, unsigned kCount>
struct alignas(sizeof(C) * kCount) CodeVec {
  C v[kCount];
};

/// How many of a tile's values are there, seen from one lane: value e of its piece j is if
/// has(j, e). One number, compared with constants.
template <class T, unsigned kPieces>
struct TileEnd {
  using Shape = TileShape<T, kPieces>;
  int left;

  explicit __device__ __forceinline__ TileEnd(std::uint64_t n_left)
      : left(static_cast<int>(n_left < Shape::kValues ? n_left : Shape::kValues) -
             static_cast<int>(Shape::at(0))) {}
  __device__ __forceinline__ bool has(unsigned j, unsigned e) const {
    return static_cast<int>(j * cuda::kWarp * Shape::kCount + e) < left;
  }
  /// Bit j * kCount + e: has(j, e).
  __device__ __forceinline__ unsigned bits() const {
    unsigned present = 0;
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
#pragma unroll
      for (unsigned e = 0; e < Shape::kCount; ++e) {
        present |= (has(j, e) ? 1u : 0u) << (j * Shape::kCount + e);
      }
    }
    return present;
  }
};

/// The lane's values; 0 beyond the end.
template <class T, unsigned kPieces>
__device__ __forceinline__ void loadTile(const T* tile, std::uint64_t n_left, Vec16<T>* x) {
  using Shape = TileShape<T, kPieces>;
  tile += Shape::at(0);
  if (n_left >= Shape::kValues) {
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
      x[j].raw = cuda::loadStream(tile + j * cuda::kWarp * Shape::kCount);
    }
    return;
  }
  const TileEnd<T, kPieces> end(n_left);
#pragma unroll
  for (unsigned j = 0; j < kPieces; ++j) {
#pragma unroll
    for (unsigned e = 0; e < Shape::kCount; ++e) {
      x[j].v[e] = end.has(j, e) ? tile[j * cuda::kWarp * Shape::kCount + e] : T{0};
    }
  }
}

template <class T, unsigned kPieces, class C>
__device__ __forceinline__ void storeTile(C* tile,
                                          std::uint64_t n_left,
                                          const CodeVec<C, Vec16<T>::kCount>* codes) {
  using Shape = TileShape<T, kPieces>;
  using Codes = CodeVec<C, Shape::kCount>;
  tile += Shape::at(0);
  if (n_left >= Shape::kValues) {
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
      *reinterpret_cast<Codes*>(tile + j * cuda::kWarp * Shape::kCount) = codes[j];
    }
    return;
  }
  const TileEnd<T, kPieces> end(n_left);
#pragma unroll
  for (unsigned j = 0; j < kPieces; ++j) {
#pragma unroll
    for (unsigned e = 0; e < Shape::kCount; ++e) {
      if (end.has(j, e)) {
        tile[j * cuda::kWarp * Shape::kCount + e] = codes[j].v[e];
      }
    }
  }
}

/// Bit j * kCount + e: value e of the lane's piece j is there.
template <class T, unsigned kPieces>
__device__ __forceinline__ unsigned presentValues(std::uint64_t n_left) {
  using Shape = TileShape<T, kPieces>;
  return n_left >= Shape::kValues ? Shape::kAll : TileEnd<T, kPieces>(n_left).bits();
}

/// The rule as AbsCoder wants it.
template <class T>
__device__ __forceinline__ BinRule<T> fastRule(BinRule<T> rule) {
  rule.reach = fastLimit(rule);
  return rule;
}

/// ABS and NOA; not for linear codes.
template <class T, class C, bool kZigzag>
struct AbsCoder {
  BinRule<T> rule;         ///< fastRule()
  const BinRule<T>* wide;  ///< the whole rule, for what few values need: not in registers

  /// Codes of neighbouring values; the bits of those that were refused.
  template <unsigned kCount>
  __device__ __forceinline__ unsigned encode(const T (&x)[kCount], C (&codes)[kCount]) const {
    bool all_fast = true;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      std::int32_t bin = 0;
      all_fast = all_fast & fastBin<FastCheck::kLimit>(x[e], rule, bin);
      codes[e] = codeOf<C>(bin, kZigzag);
    }
    return all_fast ? 0u : encodeSlowly(x, codes);
  }

 private:
  template <unsigned kCount>
  __device__ __forceinline__ unsigned encodeSlowly(const T (&x)[kCount], C (&codes)[kCount]) const {
    unsigned refused = 0;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      std::int32_t bin = 0;
      refused |= (findBin(x[e], *wide, bin) ? 0u : 1u) << e;
      codes[e] = codeOf<C>(bin, kZigzag);
    }
    return refused;
  }
};

}  // namespace fz::quantizer::device
