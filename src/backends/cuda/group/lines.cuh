#pragma once

// Rows (see front.cuh) from lines (see line_walk.cuh) and back, through shared memory. Device code
// only; must compile with NVRTC.

#include "backends/cuda/group/line_walk.cuh"

namespace fz::group {

/// Where this lane's piece of line j of staged rows stands: stagedAt<kPieces>(i / kPieces,
/// i % kPieces) with i = 32 j + lane, where kParts lanes share a piece and a line has fewer of
/// them. What depends on the lane is the same for all lines.
template <unsigned kPieces, unsigned kParts = 1>
__device__ __forceinline__ unsigned lineAt(unsigned j) {
  constexpr unsigned kTurn = kPieces >= 8 ? 1 : 8 / kPieces;
  constexpr unsigned kLine = cuda::kWarp / kParts;
  static_assert(kPieces <= kLine && kLine / kPieces % kTurn == 0);
  const unsigned turn = j * (kLine / kPieces / kTurn) & (kPieces - 1);
  const unsigned i = cuda::laneId() / kParts;
  return j * kLine + (stagedAt<kPieces>(i / kPieces, i % kPieces) ^ turn);
}

/// The field's values behind those of a front that names them (FieldValue); else its own.
template <class Front>
struct FieldValueOf {
  using Type = typename Front::Value;
};
template <class Front>
requires requires {
  typename Front::FieldValue;
}
struct FieldValueOf<Front> {
  using Type = typename Front::FieldValue;
};

/// Values of a front that a lane takes per line: 16 bytes of them or, where those of the field are
/// wider, of the field's, so that neighbouring lanes read and write side by side. A front can ask
/// for fewer.
template <class Front>
FZ_HD constexpr unsigned lineValues() {
  constexpr unsigned kOwn = Vec16<typename Front::Value>::kCount;
  if constexpr (requires { Front::kLineValues; }) {
    return Front::kLineValues < kOwn ? Front::kLineValues : kOwn;
  }
  constexpr unsigned kOfField = Vec16<typename FieldValueOf<Front>::Type>::kCount;
  return kOfField < kOwn ? kOfField : kOwn;
}

/// P values that belong together in staged rows.
template <class V, unsigned P>
struct alignas(sizeof(V) * P) LinePart {
  V v[P];
};
template <unsigned P, unsigned kPieces, class V>
__device__ __forceinline__ LinePart<V, P>* linePart(uint4* staging, unsigned j) {
  constexpr unsigned kParts = Vec16<V>::kCount / P;
  return reinterpret_cast<LinePart<V, P>*>(staging + lineAt<kPieces, kParts>(j)) +
         cuda::laneId() % kParts;
}

/// What a lane has under way at a time, unless its front asks for less.
template <class Front>
FZ_HD constexpr unsigned maxRawBytes() {
  if constexpr (requires { Front::kMaxRawBytes; }) {
    return Front::kMaxRawBytes;
  } else {
    return 128;
  }
}

/// Steps of a loop over lines that are unrolled: all of them, unless the front has so much code
/// that it had better be there once.
template <class Front, unsigned kSteps>
FZ_HD constexpr unsigned unrollFactor() {
  if constexpr (requires { Front::kRollsLines; }) {
    return Front::kRollsLines ? 1 : kSteps;
  } else {
    return kSteps;
  }
}

/// Whether a front has its values in whole rows of a warp only, to fetch and take.
template <class Front>
inline constexpr bool kFillsRows = [] {
  if constexpr (requires { Front::kFillsRows; }) {
    return Front::kFillsRows;
  } else {
    return false;
  }
}();

/// Lines or pieces to shared memory, where lanes find their rows at stagedAt<kPieces>.
template <unsigned N, class Front>
__device__ __forceinline__ void stageLines(const Front& front,
                                           std::uint64_t first,
                                           uint4* staging) {
  using V = typename Front::Value;
  constexpr unsigned kPieces = N / Vec16<V>::kCount;
  constexpr unsigned kPart = lineValues<Front>();
  constexpr unsigned kLines = N / kPart;
  constexpr std::uint64_t kLine = cuda::kWarp * kPart;  // values from step to step
  using Part = LinePart<V, kPart>;
  const std::uint64_t own_first = first + cuda::laneId() * kPart;
  const std::uint64_t n = front.count();
  const bool is_whole = first + cuda::kWarp * N <= n;
  if constexpr (requires { front.template fillLines<N>(first, staging); }) {
    if (is_whole && front.template fillLines<N>(first, staging)) {
      return;
    }
  }
  LineWalk<Front> walk(front, first);
  if (is_whole && hasWholeLines<kPart>(front)) {
    if constexpr (kCanSplit<Front, kPart>) {
      using Raw = typename Front::template Raw<kPart>;
      constexpr unsigned kMax = maxRawBytes<Front>() / sizeof(Raw);
      constexpr unsigned kBatch = kMax < 1 ? 1 : kMax < kLines ? kMax : kLines;
      static_assert(kLines % kBatch == 0);
      constexpr unsigned kUnroll = unrollFactor<Front, kLines / kBatch>();
#pragma unroll kUnroll
      for (unsigned batch = 0; batch < kLines; batch += kBatch) {
        Raw raw[kBatch];
#pragma unroll
        for (unsigned j = 0; j < kBatch; ++j) {
          front.fetchWhole(own_first + (batch + j) * kLine, raw[j]);
        }
#pragma unroll
        for (unsigned j = 0; j < kBatch; ++j) {
          Part part;
          walk.make(own_first + (batch + j) * kLine, raw[j], part.v);
          *linePart<kPart, kPieces, V>(staging, batch + j) = part;
        }
      }
    } else {
#pragma unroll
      for (unsigned j = 0; j < kLines; ++j) {
        Part part;
        walk.next(own_first + j * kLine, kPart, part.v);
        *linePart<kPart, kPieces, V>(staging, j) = part;
      }
    }
  } else {
#pragma unroll 1
    for (unsigned j = 0; j < kLines; ++j) {
      const std::uint64_t at = own_first + j * kLine;
      Part part;
      walk.next(at, valuesFrom(at, n), part.v);
      *linePart<kPart, kPieces, V>(staging, j) = part;
    }
  }
}

/// Rows (see front.cuh) from lines or pieces, through shared memory.
template <unsigned N, class Front>
__device__ __forceinline__ void rowsOfLines(const Front& front,
                                            std::uint64_t first,
                                            uint4* staging,
                                            typename Front::Value (&v)[N]) {
  using V = typename Front::Value;
  constexpr unsigned kCount = Vec16<V>::kCount;
  constexpr unsigned kPieces = N / kCount;
  static_assert(kPieces * kCount == N);
  if constexpr (kFillsRows<Front>) {
    fetchAndTake<N>(front, first, staging, v);
    return;
  } else {
    stageLines<N>(front, first, staging);
  }
  __syncwarp();
#pragma unroll
  for (unsigned c = 0; c < kPieces; ++c) {
    Vec16<V> piece;
    piece.raw = staging[stagedAt<kPieces>(cuda::laneId(), c)];
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) {
      v[c * kCount + k] = piece.v[k];
    }
  }
  __syncwarp();
}

/// Rows to shared memory, where line j finds its pieces at lineAt<kPieces>(j).
template <class V, unsigned N>
__device__ __forceinline__ void stageRows(uint4* staging, const V (&v)[N]) {
  constexpr unsigned kCount = Vec16<V>::kCount;
  constexpr unsigned kPieces = N / kCount;
#pragma unroll
  for (unsigned c = 0; c < kPieces; ++c) {
    Vec16<V> piece;
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) {
      piece.v[k] = v[c * kCount + k];
    }
    staging[stagedAt<kPieces>(cuda::laneId(), c)] = piece.raw;
  }
  __syncwarp();
}

/// Whether the rows of a front get along with a staging of just their own values; one that fetches
/// wider values of the field needs more.
template <class Front, unsigned N>
inline constexpr bool kFitsOwnStaging =
    !Front::kHasRows || kHasLines<Front> ||
    stagingBytesOf<Front, N>() <= cuda::kWarp * N * sizeof(typename Front::Value);

/// The inverse of rowsOfLines; n is the number of decoded values.
template <unsigned N, class Front>
__device__ __forceinline__ void putRows(const Front& front,
                                        std::uint64_t first,
                                        std::uint64_t n,
                                        uint4* staging,
                                        typename Front::Value (&v)[N]) {
  using V = typename Front::Value;
  static_assert(kFitsOwnStaging<Front, N>, "the rows need more shared memory than there is");
  if constexpr (Front::kHasRows) {
    front.template store<N>(first, n, staging, v);
  } else {
    constexpr unsigned kCount = Vec16<V>::kCount;
    constexpr unsigned kPieces = N / kCount;
    stageRows(staging, v);
    constexpr unsigned kPart = lineValues<Front>();
    constexpr unsigned kLines = N / kPart;
    constexpr std::uint64_t kLine = cuda::kWarp * kPart;
    const std::uint64_t own_first = first + cuda::laneId() * kPart;
    if (first + cuda::kWarp * N <= n) {
#pragma unroll
      for (unsigned j = 0; j < kLines; ++j) {
        const LinePart<V, kPart> part = *linePart<kPart, kPieces, V>(staging, j);
        putWhole(front, own_first + j * kLine, part.v);
      }
    } else {
#pragma unroll 1
      for (unsigned j = 0; j < kLines; ++j) {
        const std::uint64_t at = own_first + j * kLine;
        const LinePart<V, kPart> part = *linePart<kPart, kPieces, V>(staging, j);
        front.putPiece(at, valuesFrom(at, n), part.v);
      }
    }
    __syncwarp();
  }
}

/// Rows of any front, by a warp.
template <unsigned N, class Front>
__device__ __forceinline__ void rowsOf(const Front& front,
                                       std::uint64_t first,
                                       uint4* staging,
                                       typename Front::Value (&v)[N]) {
  static_assert(kFitsOwnStaging<Front, N>, "the rows need more shared memory than there is");
  if constexpr (Front::kHasRows && !kHasLines<Front>) {
    front.template load<N>(first, staging, v);
  } else {
    rowsOfLines<N>(front, first, staging, v);
  }
}

/// Rows by all threads of a block together, `first` rising by 32 * N from warp to warp. Has one
/// barrier, behind the last use of `staging`.
template <unsigned N, class Front>
__device__ __forceinline__ void rowsOfBlock(const Front& front,
                                            std::uint64_t first,
                                            uint4* staging,
                                            typename Front::Value (&v)[N]) {
  if constexpr (requires { front.template loadBlock<N>(first, staging, v); }) {
    front.template loadBlock<N>(first, staging, v);
  } else {
    rowsOf<N>(front, first, staging, v);
    __syncthreads();
  }
}

}  // namespace fz::group
