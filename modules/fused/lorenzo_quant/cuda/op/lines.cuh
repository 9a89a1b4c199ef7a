#pragma once

// What the encoders in fused groups share, whatever the number of dimensions: from values to bins,
// and from deltas to codes and records of list entries. Device code only; must compile with NVRTC.

#include "backends/cuda/device.cuh"
#include "fused/lorenzo_quant/codec_fast.h"
#include "fused/lorenzo_quant/cuda/args.h"

namespace fz::lorenzo_quant::device {

/// What is known of the bins of a few values.
template <class T>
struct BinsKnown {
  unsigned exact;  ///< bits of those that are not usable
  T reach;         ///< no smaller than any of them
};

/// Bins of P values plus FastBins::kBias.
template <int kDim, class T, unsigned P>
__device__ __forceinline__ BinsKnown<T> biasedBins(const T (&values)[P],
                                                   const Step<T>& step,
                                                   typename Number<T>::Word (&bins)[P]) {
  NearBins<T> near;
#pragma unroll
  for (unsigned k = 0; k < P; ++k) {
    bins[k] = near.add(values[k], step);
  }
  if (near.all(step)) {
    return {0, near.reach()};
  }
  FastBins<T> fast;
#pragma unroll
  for (unsigned k = 0; k < P; ++k) {
    bins[k] = fast.add(values[k], step);
  }
  unsigned exact = 0;
  if (!fast.template all<kDim>()) {
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      const Bin<T> bin = quantize(values[k], step);
      bins[k] = static_cast<typename Number<T>::Word>(bin.value) + FastBins<T>::kBias;
      exact |= bin.usable != 0 ? 0u : 1u << k;
    }
  }
  return {exact, Number<T>::kUnitShift};
}

/// Two codes of 16 bits at a time.
__device__ __forceinline__ std::uint32_t zigzagPair(std::uint32_t pair) {
  std::uint32_t signs;
  asm("prmt.b32 %0, %1, 0, 0xBB99;" : "=r"(signs) : "r"(pair));
  return ((pair << 1) & 0xFFFEFFFEu) ^ signs;
}

template <class TCode, class Int, unsigned P>
__device__ __forceinline__ void codesOf(const Int (&deltas)[P], bool zigzag, TCode (&codes)[P]) {
  if constexpr (sizeof(TCode) == 2 && P % 2 == 0) {
#pragma unroll
    for (unsigned k = 0; k < P; k += 2) {
      std::uint32_t pair = __byte_perm(static_cast<std::uint32_t>(deltas[k]),
                                       static_cast<std::uint32_t>(deltas[k + 1]), 0x5410);
      pair = zigzag ? zigzagPair(pair) : pair;
      memcpy(codes + k, &pair, sizeof(pair));  // halves would be taken apart and joined
    }
  } else {
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      codes[k] = toCode<TCode>(deltas[k], zigzag);
    }
  }
}

/// The deltas that have a code, by one comparison each.
template <class Int>
struct CodedDeltas {
  using Word = std::make_unsigned_t<Int>;
  Word below;  ///< values below 0
  Word span;   ///< all of them

  explicit __device__ __forceinline__ CodedDeltas(std::uint32_t radius)
      : below(radius == 0 ? Word{0} : Word{radius} - 1),
        span(radius == 0 ? Word{0} : 2 * Word{radius} - 1) {}
  __device__ __forceinline__ bool has(Int delta) const {
    return static_cast<Word>(delta) + below < span;
  }
};

template <class TCode, class Int>
__device__ __forceinline__ TCode codeOf(const EncodeRun& run, Int delta) {
  return toCode<TCode>(CodedDeltas<Int>(run.radius).has(delta) ? delta : Int{0}, run.zigzag);
}

/// Whether |left| and the differences of two numbers below `reach` each, or of one and `left`, have
/// codes.
template <class T>
__device__ __forceinline__ bool surelyCoded(const EncodeRun& run, T reach, IntOf<T> left) {
  using Word = typename Number<T>::Word;
  const Word half = run.radius / 2;
  return (reach < static_cast<T>(run.radius) * T(0.5)) &
         (static_cast<Word>(left) + half <= 2 * half);
}

/// Codes of P neighbouring deltas, of which n exist. Where there are list entries among them,
/// record(range, exact) gets their bits. all_coded: the caller knows that all deltas have codes.
template <class TCode, class Int, unsigned P, class Record>
__device__ __forceinline__ void codeDeltas(const EncodeRun& run,
                                           Int (&deltas)[P],
                                           unsigned n,
                                           unsigned exact,
                                           bool all_coded,
                                           TCode (&codes)[P],
                                           Record record) {
  if (n < P) {
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      deltas[k] = k < n ? deltas[k] : Int{0};
    }
    exact &= (1u << n) - 1u;
  }
  if (!all_coded || exact != 0) {
    const CodedDeltas<Int> coded(run.radius);
    all_coded = true;
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      all_coded = all_coded & coded.has(deltas[k]);
    }
    if (!all_coded || exact != 0) {
      unsigned range = 0;
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        const bool has_code = coded.has(deltas[k]);
        range |= has_code ? 0u : 1u << k;
        deltas[k] = has_code ? deltas[k] : Int{0};
      }
      record(range, exact);
    }
  }
  codesOf(deltas, run.zigzag, codes);
}

/// Records the entries at bit k of a lane's values, where at(k) is the segment and the place in it.
struct EntryAt {
  std::uint32_t segment;
  std::uint32_t x;  ///< place in its row, or in the field in one dimension
};
template <class T, class At>
__device__ __forceinline__ void recordEntries(const EncodeRun& run,
                                              unsigned range,
                                              unsigned exact,
                                              At at) {
  for (unsigned all = range | exact; all != 0; all &= all - 1) {
    const unsigned k = static_cast<unsigned>(__ffs(static_cast<int>(all))) - 1;
    const EntryAt entry = at(k);
    atomicOr(run.flags + entry.segment, 1u << (entry.x % kSegment<T> / kLaneValues<T>));
    const std::uint32_t one_each = (range >> k & 1u) | (exact >> k & 1u) << 16;
    atomicAdd(run.counts + entry.segment / kChunkSegments, one_each);  // order-free: a sum
  }
}

}  // namespace fz::lorenzo_quant::device
