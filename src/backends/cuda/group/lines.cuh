#pragma once

// Lines: how a warp walks over the values of a front, P neighbouring values per lane at a time, in
// rising order and without gaps. A front that looks at the value on the left has a type Line, what
// the warp carries from one step to the next:
//
//   startLine(first) makes it; `first` is the index of the walk's first value, one for the warp.
//   line(state, at, n, x): the P values from index `at` on, of which n exist, for this lane; lane l
//     is at P * l behind lane 0. All lanes call it together.
//   one(at): a single value once more, by any thread.
//
// Fronts of pieces need no state. Device code only; must compile with NVRTC.

#include "backends/cuda/group/front.cuh"

namespace fz::group {

template <class Front>
inline constexpr bool kHasLines = requires {
  typename Front::Line;
};

/// Whether the pass that runs is wanted (see GroupRun::pass).
template <class Front>
__device__ __forceinline__ bool isNeeded(const Front& front) {
  if constexpr (requires { front.isNeeded(); }) {
    return front.isNeeded();
  } else {
    return true;
  }
}

/// A warp: n values from `at` on, which all exist, will be read soon and are brought nearer. Fronts
/// that cannot hand it on do without.
template <class T>
__device__ __forceinline__ void prefetch(const Field<T>& field, std::uint64_t at, unsigned n) {
  constexpr unsigned kStep = 64 / sizeof(T);  // what memory hands out at a time
  const T* in = reinterpret_cast<const T*>(field.args.in) + at;
  for (unsigned i = kStep * cuda::laneId(); i < n; i += kStep * cuda::kWarp) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(in + i)));
  }
}
template <class Front>
__device__ __forceinline__ void prefetch(const Front& front, std::uint64_t at, unsigned n) {
  if constexpr (requires { front.prefetch(at, n); }) {
    front.prefetch(at, n);
  }
}

/// A single value of any front, without what its ops would note about it.
template <class Front>
__device__ __forceinline__ typename Front::Value oneOf(const Front& front, std::uint64_t at) {
  if constexpr (requires { front.one(at); }) {
    return front.one(at);
  } else {
    typename Front::Value x[1];
    front.piece(at, 1, x);
    return x[0];
  }
}

/// Pieces that exist as a whole and begin at a multiple of P values.
template <unsigned P, class Front>
__device__ __forceinline__ void wholePiece(const Front& front,
                                           std::uint64_t at,
                                           typename Front::Value (&x)[P]) {
  if constexpr (requires { front.wholePiece(at, x); }) {
    front.wholePiece(at, x);
  } else {
    front.piece(at, P, x);
  }
}
template <unsigned P, class Front>
__device__ __forceinline__ void putWhole(const Front& front,
                                         std::uint64_t at,
                                         const typename Front::Value (&x)[P]) {
  if constexpr (requires { front.putWhole(at, x); }) {
    front.putWhole(at, x);
  } else {
    front.putPiece(at, P, x);
  }
}

/// Whether a front's values can be on their way (fetchWhole) before any is made (makeWhole, or
/// lineWhole with the state of a line).
template <class Front, unsigned P>
inline constexpr bool kCanSplit = requires {
  typename Front::template Raw<P>;
};

/// A walk over any front that has pieces or lines.
template <class Front, bool kState = kHasLines<Front>>
struct LineWalk {
  const Front& front;

  __device__ __forceinline__ LineWalk(const Front& f, std::uint64_t /*first*/) : front(f) {}
  template <unsigned P>
  __device__ __forceinline__ void next(std::uint64_t at,
                                       unsigned n,
                                       typename Front::Value (&x)[P]) {
    front.piece(at, n, x);
  }
  template <unsigned P, class Raw>
  __device__ __forceinline__ void make(std::uint64_t at,
                                       const Raw& raw,
                                       typename Front::Value (&x)[P]) {
    front.makeWhole(at, raw, x);
  }
};
template <class Front>
struct LineWalk<Front, true> {
  const Front& front;
  typename Front::Line state;

  __device__ __forceinline__ LineWalk(const Front& f, std::uint64_t first)
      : front(f), state(f.startLine(first)) {}
  template <unsigned P>
  __device__ __forceinline__ void next(std::uint64_t at,
                                       unsigned n,
                                       typename Front::Value (&x)[P]) {
    front.line(state, at, n, x);
  }
  template <unsigned P, class Raw>
  __device__ __forceinline__ void make(std::uint64_t at,
                                       const Raw& raw,
                                       typename Front::Value (&x)[P]) {
    front.lineWhole(state, at, raw, x);
  }
};

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
/// wider, of the field's, so that neighbouring lanes read and write side by side.
template <class Front>
FZ_HD constexpr unsigned lineValues() {
  constexpr unsigned kOwn = Vec16<typename Front::Value>::kCount;
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
FZ_HD constexpr unsigned mostRawBytes() {
  if constexpr (requires { Front::kMostRawBytes; }) {
    return Front::kMostRawBytes;
  } else {
    return 128;
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
  constexpr unsigned kPart = lineValues<Front>();
  constexpr unsigned kLines = N / kPart;
  constexpr std::uint64_t kLine = cuda::kWarp * kPart;  // values from step to step
  using Part = LinePart<V, kPart>;
  const unsigned lane = cuda::laneId();
  const std::uint64_t own_first = first + lane * kPart;
  const std::uint64_t n = front.count();
  LineWalk<Front> walk(front, first);
  if (first + cuda::kWarp * N <= n) {
    if constexpr (kCanSplit<Front, kPart>) {
      using Raw = typename Front::template Raw<kPart>;
      constexpr unsigned kMost = mostRawBytes<Front>() / sizeof(Raw);
      constexpr unsigned kBatch = kMost < 1 ? 1 : kMost < kLines ? kMost : kLines;
#pragma unroll
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
  __syncwarp();
#pragma unroll
  for (unsigned c = 0; c < kPieces; ++c) {
    Vec16<V> piece;
    piece.raw = staging[stagedAt<kPieces>(lane, c)];
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
