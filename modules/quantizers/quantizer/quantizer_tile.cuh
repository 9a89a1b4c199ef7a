#pragma once

// A block's tile: kCount values (16 bytes) per piece, kPieces pieces per thread, piece j of thread
// t at position j * kThreads + t. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "quantizers/quantizer/quantizer_bound_codec.h"
#include "quantizers/quantizer/quantizer_codec.h"
#include "quantizers/quantizer/quantizer_cuda.h"

namespace fz::quantizer::device {

using cuda::Vec16;

/// What the kernels of one encode share.
template <class T>
struct EncodeState {
  BinRule<T> rules[kRungs];
  double in_use[kRungs];
  unsigned long long n_violations[kRungs];
  unsigned long long first_violation[kRungs];
  unsigned has_nonfinite;
};
static_assert(sizeof(EncodeState<double>) <= kStateBytes);

template <class T>
__device__ __forceinline__ EncodeState<T>& stateOf(const EncodeJob& job) {
  return *static_cast<EncodeState<T>*>(job.state);
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
  static constexpr unsigned kValues = kPieces * kThreads * kCount;
  static constexpr unsigned kAll = kPieces * kCount == 32 ? ~0u : (1u << (kPieces * kCount)) - 1u;

  /// Position in the tile of the first value of the thread's piece j.
  static __device__ __forceinline__ unsigned at(unsigned j) {
    return (j * kThreads + threadIdx.x) * kCount;
  }
};

/// The codes of one piece.
template <class C, unsigned kCount>
struct alignas(sizeof(C) * kCount) CodeVec {
  C v[kCount];
};

/// The thread's values; 0 beyond the end.
template <class T, unsigned kPieces>
__device__ __forceinline__ void loadTile(const T* tile, std::uint64_t n_left, Vec16<T>* x) {
  using Shape = TileShape<T, kPieces>;
  if (n_left >= Shape::kValues) {
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
      x[j].raw = cuda::loadStream(tile + Shape::at(j));
    }
    return;
  }
#pragma unroll
  for (unsigned j = 0; j < kPieces; ++j) {
#pragma unroll
    for (unsigned e = 0; e < Shape::kCount; ++e) {
      const unsigned i = Shape::at(j) + e;
      x[j].v[e] = i < n_left ? tile[i] : T{0};
    }
  }
}

template <class T, unsigned kPieces, class C>
__device__ __forceinline__ void storeTile(C* tile,
                                          std::uint64_t n_left,
                                          const CodeVec<C, Vec16<T>::kCount>* codes) {
  using Shape = TileShape<T, kPieces>;
  using Codes = CodeVec<C, Shape::kCount>;
  if (n_left >= Shape::kValues) {
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
      *reinterpret_cast<Codes*>(tile + Shape::at(j)) = codes[j];
    }
    return;
  }
#pragma unroll
  for (unsigned j = 0; j < kPieces; ++j) {
#pragma unroll
    for (unsigned e = 0; e < Shape::kCount; ++e) {
      const unsigned i = Shape::at(j) + e;
      if (i < n_left) {
        tile[i] = codes[j].v[e];
      }
    }
  }
}

/// Bit j * kCount + e: value e of the thread's piece j is there.
template <class T, unsigned kPieces>
__device__ __forceinline__ unsigned presentValues(std::uint64_t n_left) {
  using Shape = TileShape<T, kPieces>;
  if (n_left >= Shape::kValues) {
    return Shape::kAll;
  }
  unsigned present = 0;
#pragma unroll
  for (unsigned j = 0; j < kPieces; ++j) {
#pragma unroll
    for (unsigned e = 0; e < Shape::kCount; ++e) {
      present |= (Shape::at(j) + e < n_left ? 1u : 0u) << (j * Shape::kCount + e);
    }
  }
  return present;
}

/// ABS and NOA.
template <class T, class C, bool kZigzag>
struct AbsCoder {
  BinRule<T> rule;

  /// Codes of one piece; the bits of the values that were refused.
  __device__ __forceinline__ unsigned encode(const Vec16<T>& x, C* codes) const {
    unsigned refused = 0;
#pragma unroll
    for (unsigned e = 0; e < Vec16<T>::kCount; ++e) {
      std::int32_t bin = 0;
      const bool ok = tryBin(x.v[e], rule, bin);
      codes[e] = codeOf<C>(bin, kZigzag);
      refused |= (ok ? 0u : 1u) << e;
    }
    if constexpr (sizeof(T) == 4) {
      if (refused != 0) {
#pragma unroll
        for (unsigned e = 0; e < Vec16<T>::kCount; ++e) {
          std::int32_t bin = 0;
          if ((refused >> e & 1u) != 0 && tryBinWide(x.v[e], rule, bin)) {
            codes[e] = codeOf<C>(bin, kZigzag);
            refused ^= 1u << e;
          }
        }
      }
    }
    return refused;
  }
};

}  // namespace fz::quantizer::device
