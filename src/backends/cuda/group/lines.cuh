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
/// i % kPieces) with i = 32 j + lane. What depends on the lane is the same for all lines.
template <unsigned kPieces>
__device__ __forceinline__ unsigned lineAt(unsigned j) {
  constexpr unsigned kTurn = kPieces >= 8 ? 1 : 8 / kPieces;
  static_assert(kPieces <= cuda::kWarp && cuda::kWarp / kPieces % kTurn == 0);
  const unsigned turn = j * (cuda::kWarp / kPieces / kTurn) & (kPieces - 1);
  return j * cuda::kWarp +
         (stagedAt<kPieces>(cuda::laneId() / kPieces, cuda::laneId() % kPieces) ^ turn);
}

/// What a lane has under way at a time.
inline constexpr unsigned kMostRawBytes = 128;

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
  constexpr std::uint64_t kLine = cuda::kWarp * kCount;  // values from step to step
  const unsigned lane = cuda::laneId();
  const std::uint64_t own_first = first + lane * kCount;
  const std::uint64_t n = front.count();
  LineWalk<Front> walk(front, first);
  if (first + cuda::kWarp * N <= n) {
    if constexpr (kCanSplit<Front, kCount>) {
      using Raw = typename Front::template Raw<kCount>;
      constexpr unsigned kMost = kMostRawBytes / sizeof(Raw);
      constexpr unsigned kBatch = kMost < 1 ? 1 : kMost < kPieces ? kMost : kPieces;
#pragma unroll
      for (unsigned batch = 0; batch < kPieces; batch += kBatch) {
        Raw raw[kBatch];
#pragma unroll
        for (unsigned j = 0; j < kBatch; ++j) {
          front.fetchWhole(own_first + (batch + j) * kLine, raw[j]);
        }
#pragma unroll
        for (unsigned j = 0; j < kBatch; ++j) {
          Vec16<V> piece;
          walk.make(own_first + (batch + j) * kLine, raw[j], piece.v);
          staging[lineAt<kPieces>(batch + j)] = piece.raw;
        }
      }
    } else {
#pragma unroll
      for (unsigned j = 0; j < kPieces; ++j) {
        Vec16<V> piece;
        walk.next(own_first + j * kLine, kCount, piece.v);
        staging[lineAt<kPieces>(j)] = piece.raw;
      }
    }
  } else {
#pragma unroll 1
    for (unsigned j = 0; j < kPieces; ++j) {
      const std::uint64_t at = own_first + j * kLine;
      Vec16<V> piece;
      walk.next(at, valuesFrom(at, n), piece.v);
      staging[lineAt<kPieces>(j)] = piece.raw;
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

/// storeRows with less work where all values exist.
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
    constexpr std::uint64_t kLine = cuda::kWarp * kCount;
    const std::uint64_t own_first = first + cuda::laneId() * kCount;
    if (first + cuda::kWarp * N <= n) {
#pragma unroll
      for (unsigned j = 0; j < kPieces; ++j) {
        Vec16<V> piece;
        piece.raw = staging[lineAt<kPieces>(j)];
        putWhole(front, own_first + j * kLine, piece.v);
      }
    } else {
#pragma unroll 1
      for (unsigned j = 0; j < kPieces; ++j) {
        const std::uint64_t at = own_first + j * kLine;
        Vec16<V> piece;
        piece.raw = staging[lineAt<kPieces>(j)];
        front.putPiece(at, valuesFrom(at, n), piece.v);
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
