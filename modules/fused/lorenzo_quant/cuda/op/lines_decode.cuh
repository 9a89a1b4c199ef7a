#pragma once

// Decoding in one dimension, in a fused group: sums along the tiles of 1024 values that a warp has.
// Device code only; must compile with NVRTC.

#include "backends/cuda/group/lines.cuh"
#include "fused/lorenzo_quant/cuda/args.h"
#include "fused/lorenzo_quant/cuda/op/sums.cuh"

namespace fz::lorenzo_quant::device {

/// Values go to the front inside.
template <class T, class TCode, class Inner>
struct LineDecoder {
  using Int = IntOf<T>;
  using Word = typename Number<T>::Word;
  static constexpr std::uint32_t kEdge = 1024;

  const DecodeRun& run;
  const DecodePlan<T>& plan;
  const Inner& inner;

  /// As front.cuh says.
  template <unsigned N>
  __device__ __forceinline__ void store(std::uint64_t first,
                                        std::uint64_t n,
                                        uint4* staging,
                                        TCode (&v)[N]) const {
    static_assert(cuda::kWarp * N % kEdge == 0, "a warp has whole tiles");
    if constexpr (sizeof(TCode) == 2) {
      if (first + cuda::kWarp * N <= n && storeFitting(first, staging, v)) {
        return;
      }
    }
    constexpr unsigned kPieces = N / cuda::Vec16<TCode>::kCount;
    // Doubles side by side, as memory wants them; of floats more at a time, which takes less
    // sums.
    constexpr unsigned kPart = sizeof(T) == 4 ? cuda::Vec16<TCode>::kCount : 2;
    group::stageRows(staging, v);
    const bool is_wide = plan.is_wide != 0;
    const T size = plan.step;
    Word left = 0;
    double wide_left = 0.0;
    constexpr unsigned kWrittenOut = sizeof(TCode) == 2 ? 1 : N / kPart;
#pragma unroll kWrittenOut
    for (unsigned j = 0; j < N / kPart; ++j) {
      const std::uint64_t at = first + (j * cuda::kWarp + cuda::laneId()) * kPart;
      const unsigned n_here = group::valuesFrom(at, n);
      const auto part = *group::linePart<kPart, kPieces, TCode>(staging, j);
      T entries[kPart];
      const unsigned marks = fetchEntries(at, n_here, entries);
      if (j * cuda::kWarp * kPart % kEdge == 0) {
        left = 0;
        wide_left = 0.0;
      }
      T values[kPart];
      if (is_wide) {
        sumWide(part.v, marks, entries, size, wide_left, values);
      } else if (sizeof(T) == 8 && sizeof(TCode) == 2 && __all_sync(cuda::kAllLanes, marks == 0)) {
        // 1024 codes of 16 bits: their sum needs no more than 32 bits.
        sum<std::uint32_t>(part.v, 0, entries, size, left, values);
      } else {
        sum<Word>(part.v, marks, entries, size, left, values);
      }
      inner.putPiece(at, n_here, values);
    }
    __syncwarp();
  }

 private:
  /// Whether the warp's values, all of which exist, have range entries.
  template <unsigned N>
  __device__ __forceinline__ bool hasEntries(std::uint64_t first) const {
    if (plan.n_range == 0) {
      return false;
    }
    std::uint32_t marks = 0;
#pragma unroll
    for (unsigned i = 0; i < N / cuda::kWarp; ++i) {
      marks |= run.marks[first / 32 + i * cuda::kWarp + cuda::laneId()];
    }
    return __any_sync(cuda::kAllLanes, marks != 0);
  }

  /// As store, for codes that are nothing special, all of whose values exist: lanes sum up their
  /// rows, and only the ends of these across the lanes. False, and nothing done, for others.
  template <unsigned N>
  __device__ __forceinline__ bool storeFitting(std::uint64_t first,
                                               uint4* staging,
                                               const TCode (&v)[N]) const {
    constexpr unsigned kPieces = N / cuda::Vec16<TCode>::kCount;
    constexpr unsigned kPart = cuda::Vec16<T>::kCount;
    if (plan.is_wide != 0 || hasEntries<N>(first)) {
      return false;
    }
    std::uint32_t words[N / 2];
#pragma unroll
    for (unsigned i = 0; i < N / 2; ++i) {
      words[i] = std::uint32_t{v[2 * i]} | std::uint32_t{v[2 * i + 1]} << 16;
    }
    // The first delta of a tile is a bin, larger than others; it is kept out of the sums.
    constexpr unsigned kTileLanes = kEdge / N;
    const bool begins = cuda::laneId() % kTileLanes == 0;
    const std::int32_t bin = begins ? fromCode<std::int32_t>(v[0], run.zigzag) : 0;
    words[0] = begins ? words[0] & 0xFFFF0000u : words[0];
    if (!__all_sync(cuda::kAllLanes, codesFit<N>(run.zigzag, words))) {
      return false;
    }
    sumRun<N>(run.zigzag, words);
    const std::int32_t own = static_cast<std::int32_t>(words[N / 2 - 1]) >> 16;
    const std::int32_t before =
        sumOfLanes<kTileLanes>(own) - own + __shfl_sync(cuda::kAllLanes, bin, 0, kTileLanes);
#pragma unroll
    for (unsigned c = 0; c < kPieces; ++c) {
      staging[group::stagedAt<kPieces>(cuda::laneId(), c)] =
          make_uint4(words[4 * c], words[4 * c + 1], words[4 * c + 2], words[4 * c + 3]);
    }
    __syncwarp();
    const T size = plan.step;
#pragma unroll
    for (unsigned j = 0; j < N / kPart; ++j) {
      const unsigned at = (j * cuda::kWarp + cuda::laneId()) * kPart;
      const std::int32_t row = __shfl_sync(cuda::kAllLanes, before, static_cast<int>(at / N));
      const auto part = *group::linePart<kPart, kPieces, TCode>(staging, j);
      T values[kPart];
#pragma unroll
      for (unsigned k = 0; k < kPart; ++k) {
        values[k] = fp::mul(static_cast<T>(row + static_cast<std::int16_t>(part.v[k])), size);
      }
      group::putWhole(inner, first + at, values);
    }
    __syncwarp();
    return true;
  }

  /// The range entries of neighbouring values wait where the values will be.
  template <unsigned P>
  __device__ __forceinline__ unsigned fetchEntries(std::uint64_t at,
                                                   unsigned n,
                                                   T (&entries)[P]) const {
    if (plan.n_range == 0 || n == 0) {
      return 0;
    }
    unsigned marks = run.marks[at / 32] >> (at % 32) & ((1u << P) - 1u);
    marks &= n < P ? (1u << n) - 1u : ~0u;
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      entries[k] = (marks >> k & 1u) != 0 ? static_cast<const T*>(run.out)[at + k] : T{0};
    }
    return marks;
  }

  /// Own: what the sum of the codes of a tile fits, and their entries if there are any.
  template <class Own, unsigned P>
  __device__ __forceinline__ void sum(const TCode (&codes)[P],
                                      unsigned marks,
                                      const T (&entries)[P],
                                      T size,
                                      Word& left,
                                      T (&values)[P]) const {
    Own sums[P];
    Own own = 0;
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      own += static_cast<Own>(fromCode<Int>(codes[k], run.zigzag));
      if (marks != 0 && (marks >> k & 1u) != 0) {
        own += static_cast<Own>(static_cast<Int>(entries[k]));
      }
      sums[k] = own;
    }
    using Signed = std::make_signed_t<Own>;
    const Own through = cuda::warpInclusiveSum(own);
    const Own before = through - own;
    const auto widened = [](Own n) { return static_cast<Word>(Int{static_cast<Signed>(n)}); };
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      values[k] = reconstruct(static_cast<Int>(left + widened(sums[k] + before)), size);
    }
    left += widened(__shfl_sync(cuda::kAllLanes, through, cuda::kWarp - 1));
  }

  /// Deltas that no integer holds: from left to right, as the CPU adds.
  template <unsigned P>
  __device__ __forceinline__ void sumWide(const TCode (&codes)[P],
                                          unsigned marks,
                                          const T (&entries)[P],
                                          T size,
                                          double& left,
                                          T (&values)[P]) const {
#pragma unroll 1
    for (unsigned lane = 0; lane < cuda::kWarp; ++lane) {
      if (lane == cuda::laneId()) {
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          double delta = static_cast<double>(fromCode<Int>(codes[k], run.zigzag));
          if ((marks >> k & 1u) != 0) {
            delta = fp::add(delta, static_cast<double>(entries[k]));
          }
          left = fp::add(left, delta);
          values[k] = reconstructWide(left, size);
        }
      }
      left = __shfl_sync(cuda::kAllLanes, left, static_cast<int>(lane));
    }
  }
};

}  // namespace fz::lorenzo_quant::device
