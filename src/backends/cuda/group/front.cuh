#pragma once

// What a coder sees of the stages before it.
//
// A *front* stands for the field and the ops between it and the coder. It hands out values of type
// Value, by index in the order in which the coder stores them, and takes them back when decoding.
// There are two kinds:
//
//   pieces: maps over the field. piece(at, n, x) gives the P values from index `at` on, of which
//     only the first n exist (the others are Value{}); one thread at a time, in any order, any
//     number of times. putPiece is the inverse.
//   rows: load<N>(first, staging, v) gives a full warp N consecutive values per lane: lane l gets
//     those from index first + l * N on, Value{} behind the last one. All lanes call it together.
//     store<N> is the inverse; on a front with kBlockWide all threads of the block must call
//     store together, with `first` rising by 32 * N from warp to warp. `staging` is shared memory
//     of the warp's own, 32 * N * sizeof(Value) bytes, 16-byte aligned; it is free again when
//     load and store return.
//
// Fronts that can (kCanFetch) also give rows whose values come while the warp does something else;
// see rows.cuh. stagingBytes<N>() tells how much shared memory that takes.
//
// Both: count() is the number of values (encoding); begin(n) checks that the field has room for n
// decoded values, and is called before the first store; finish() is called by all threads of the
// block at the end of an encoding kernel, so that ops can report what they found. An encoder
// whose group may have several passes asks isNeeded() first.
//
// An op is a type with a nested Args (plain data, what the host sends) and a nested template
// Front<Inner>, made from (Args, Inner). A coder has encode<Front> and decode<Front> instead.
// Device code only; must compile with NVRTC (no headers of the standard library but <cstdint>).

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/group/field_args.h"
#include "backends/cuda/group/rows.cuh"
#include "shared/host_device.h"

namespace fz::group {

using cuda::Vec16;

/// Dynamic shared memory of the thread block, as much as the coder asked for.
__device__ __forceinline__ uint4* dynamicShared() {
  extern __shared__ uint4 fz_group_shared[];
  return fz_group_shared;
}

/// Values that exist from index `at` on.
__device__ __forceinline__ unsigned valuesFrom(std::uint64_t at, std::uint64_t n_values) {
  return at >= n_values            ? 0u
         : n_values - at > 0xffffu ? 0xffffu
                                   : static_cast<unsigned>(n_values - at);
}

/// The field itself.
template <class T>
struct Field {
  using Value = T;
  using Args = FieldArgs;
  static constexpr bool kHasRows = false;
  static constexpr bool kBlockWide = false;
  static constexpr bool kCanFetch = true;

  FieldArgs args;

  __device__ __forceinline__ explicit Field(const FieldArgs& a) : args(a) {}

  __device__ __forceinline__ std::uint64_t count() const {
    return cuda::load(args.size) / sizeof(T);
  }
  /// Whether the field has room for n values and may be written.
  __device__ __forceinline__ bool begin(std::uint64_t n) const {
    return n <= args.size.n_bytes / sizeof(T) &&
           (args.size.on_device == nullptr || *args.size.on_device != 0);
  }
  __device__ __forceinline__ bool isNeeded() const { return true; }
  __device__ __forceinline__ void finish() const {}

  template <unsigned N>
  static FZ_HD constexpr unsigned stagingBytes() {
    return cuda::kWarp * N * sizeof(T);
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void fetch(const Map& map, uint4* staging) const {
    fetchRows<N>(reinterpret_cast<const T*>(args.in), map, staging);
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void take(const Map& map, const uint4* staging, T (&v)[N]) const {
    row<N>(map, staging, v);
    __syncwarp();
  }
  /// The same, and staging is kept until a barrier of the warp.
  template <unsigned N, class Map>
  __device__ __forceinline__ void row(const Map& /*map*/, const uint4* staging, T (&v)[N]) const {
    readRow<Map>(staging, v);
  }
  /// Value i of the row once more, i known at run time only.
  template <unsigned N, class Map>
  __device__ __forceinline__ T oneOfRow(const Map& /*map*/,
                                        const uint4* staging,
                                        unsigned i) const {
    return readValue<Map, N, T>(staging, i);
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void put(const Map& map, uint4* staging, T (&v)[N]) const {
    storeRowsTo(v, map, staging, reinterpret_cast<T*>(args.out));
  }

  template <unsigned P>
  __device__ __forceinline__ void piece(std::uint64_t at, unsigned n, T (&x)[P]) const {
    const T* in = reinterpret_cast<const T*>(args.in) + at;
    constexpr unsigned kCount = Vec16<T>::kCount;
    if (P % kCount == 0 && n >= P && (reinterpret_cast<std::uintptr_t>(in) & 15u) == 0) {
#pragma unroll
      for (unsigned i = 0; i < P; i += kCount) {
        Vec16<T> four;
        four.raw = cuda::loadStream(in + i);
#pragma unroll
        for (unsigned k = 0; k < kCount && i + k < P; ++k) {
          x[i + k] = four.v[k];
        }
      }
      return;
    }
#pragma unroll
    for (unsigned i = 0; i < P; ++i) {
      x[i] = i < n ? in[i] : T{};
    }
  }

  /// The same where all values exist and `at` is a multiple of 16 bytes.
  template <unsigned P>
  __device__ __forceinline__ void wholePiece(std::uint64_t at, T (&x)[P]) const {
    const T* in = reinterpret_cast<const T*>(args.in) + at;
    constexpr unsigned kCount = Vec16<T>::kCount;
    static_assert(P % kCount == 0);
#pragma unroll
    for (unsigned i = 0; i < P; i += kCount) {
      Vec16<T> some;
      some.raw = cuda::loadStream(in + i);
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) {
        x[i + k] = some.v[k];
      }
    }
  }
  template <unsigned P>
  __device__ __forceinline__ void putWhole(std::uint64_t at, const T (&x)[P]) const {
    T* out = reinterpret_cast<T*>(args.out) + at;
    constexpr unsigned kCount = Vec16<T>::kCount;
    static_assert(P % kCount == 0);
#pragma unroll
    for (unsigned i = 0; i < P; i += kCount) {
      Vec16<T> some;
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) {
        some.v[k] = x[i + k];
      }
      cuda::storeStream(out + i, some.raw);
    }
  }

  template <unsigned P>
  __device__ __forceinline__ void putPiece(std::uint64_t at, unsigned n, const T (&x)[P]) const {
    T* out = reinterpret_cast<T*>(args.out) + at;
    constexpr unsigned kCount = Vec16<T>::kCount;
    if (P % kCount == 0 && n >= P && (reinterpret_cast<std::uintptr_t>(out) & 15u) == 0) {
#pragma unroll
      for (unsigned i = 0; i < P; i += kCount) {
        Vec16<T> four;
#pragma unroll
        for (unsigned k = 0; k < kCount && i + k < P; ++k) {
          four.v[k] = x[i + k];
        }
        cuda::storeStream(out + i, four.raw);
      }
      return;
    }
#pragma unroll
    for (unsigned i = 0; i < P; ++i) {
      if (i < n) {
        out[i] = x[i];
      }
    }
  }
};

/// The field where a coder has no room for its values in shared memory, since they are wider than
/// what it codes: every lane reads and writes its own row.
template <class T>
struct DirectField : Field<T> {
  using Field<T>::Field;

  template <unsigned N>
  static FZ_HD constexpr unsigned stagingBytes() {
    return 0;
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void fetch(const Map& /*map*/, uint4* /*staging*/) const {}
  template <unsigned N, class Map>
  __device__ __forceinline__ void take(const Map& map, const uint4* staging, T (&v)[N]) const {
    row<N>(map, staging, v);
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void row(const Map& map, const uint4* /*staging*/, T (&v)[N]) const {
    if constexpr (requires { map.n_values; }) {  // neighbours
      const std::uint64_t at = map.first + cuda::laneId() * N;
      this->piece(at, valuesFrom(at, map.n_values), v);
    } else {
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        v[i] = oneOfRow<N>(map, nullptr, i);
      }
    }
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ T oneOfRow(const Map& map,
                                        const uint4* /*staging*/,
                                        unsigned i) const {
    std::uint64_t index = 0;
    return map.find(cuda::laneId() * N + i, index)
               ? reinterpret_cast<const T*>(this->args.in)[index]
               : T{};
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void put(const Map& map, uint4* /*staging*/, T (&v)[N]) const {
    if constexpr (requires { map.n_values; }) {
      const std::uint64_t at = map.first + cuda::laneId() * N;
      this->putPiece(at, valuesFrom(at, map.n_values), v);
    } else {
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        std::uint64_t index = 0;
        if (map.find(cuda::laneId() * N + i, index)) {
          reinterpret_cast<T*>(this->args.out)[index] = v[i];
        }
      }
    }
  }
};

/// What the values of a front's takeShifted are off by. A front that makes values by adding a
/// number can leave it to whoever takes differences of them, where it falls out.
template <class Front>
FZ_HD constexpr std::uint32_t shiftOf() {
  if constexpr (requires { Front::kShiftedBy; }) {
    return Front::kShiftedBy;
  } else {
    return 0;
  }
}
template <unsigned N, class Front, class Map>
__device__ __forceinline__ void takeShifted(const Front& front,
                                            const Map& map,
                                            const uint4* staging,
                                            typename Front::Value (&v)[N]) {
  if constexpr (shiftOf<Front>() != 0) {
    front.template takeShifted<N>(map, staging, v);
  } else {
    front.template take<N>(map, staging, v);
  }
}

/// Rows of a front that can fetch, at once; Value{} behind the last value.
template <unsigned N, class Front>
__device__ __forceinline__ void fetchAndTake(const Front& front,
                                             std::uint64_t first,
                                             uint4* staging,
                                             typename Front::Value (&v)[N]) {
  const LinearMap map{first, front.count()};
  front.template fetch<N>(map, staging);
  cuda::waitForCopies();
  __syncwarp();
  front.template take<N>(map, staging, v);
  if (first + cuda::kWarp * N > map.n_values) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
      if (first + cuda::laneId() * N + i >= map.n_values) {
        v[i] = typename Front::Value{};
      }
    }
  }
}

/// What the ops have in common that do nothing but look at values: everything goes to the front
/// inside.
template <class InnerFront>
struct Around {
  using Inner = InnerFront;
  static constexpr bool kCanFetch = true;
  static constexpr bool kBlockWide = false;

  Inner inner;

  __device__ __forceinline__ explicit Around(const Inner& front) : inner(front) {}
  __device__ __forceinline__ std::uint64_t count() const { return inner.count(); }
  __device__ __forceinline__ bool begin(std::uint64_t n) const { return inner.begin(n); }
  __device__ __forceinline__ bool isNeeded() const { return inner.isNeeded(); }
  __device__ __forceinline__ void finish() const { inner.finish(); }
  template <unsigned N>
  static FZ_HD constexpr unsigned stagingBytes() {
    return Inner::template stagingBytes<N>();
  }
  template <unsigned N, class Map>
  __device__ __forceinline__ void fetch(const Map& map, uint4* staging) const {
    inner.template fetch<N>(map, staging);
  }
};

/// Shared memory of a warp for the rows of a front.
template <class Front, unsigned N>
FZ_HD constexpr unsigned stagingBytesOf() {
  constexpr unsigned kOwn = cuda::kWarp * N * sizeof(typename Front::Value);
  if constexpr (requires { Front::template stagingBytes<N>(); }) {
    return Front::template stagingBytes<N>() > kOwn ? Front::template stagingBytes<N>() : kOwn;
  } else {
    return kOwn;
  }
}

/// Where piece c of a lane's row stands in staging, so that neither the pieces of neighbouring
/// lanes nor those of one lane meet in a bank. kPieces is the number of pieces of a row.
template <unsigned kPieces>
__device__ __forceinline__ unsigned stagedAt(unsigned lane, unsigned c) {
  static_assert((kPieces & (kPieces - 1)) == 0, "rows of a power of two of pieces");
  constexpr unsigned kTurn = kPieces >= 8 ? 1 : 8 / kPieces;  // lanes that share a turn
  return kPieces * lane + (c ^ (lane / kTurn & (kPieces - 1)));
}

}  // namespace fz::group
