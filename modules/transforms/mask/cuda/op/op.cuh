#pragma once

// Missing values in a fused group: between the field and whatever takes its values. Encoding finds
// them in the rows of a warp and fills them from there; decoding puts them back into what is
// stored. Device code only.

#include "backends/cuda/group/holes.cuh"
#include "backends/cuda/group/lines.cuh"
#include "transforms/mask/cuda/decode.cuh"
#include "transforms/mask/cuda/op/args.h"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

__device__ __forceinline__ unsigned lowest(unsigned lanes) {
  return static_cast<unsigned>(__ffs(static_cast<int>(lanes))) - 1;
}
__device__ __forceinline__ unsigned highest(unsigned lanes) {
  return 31 - static_cast<unsigned>(__clz(static_cast<int>(lanes)));
}

template <class T>
struct MaskOp {
  using Args = MaskArgs<T>;

  template <class Inner>
  struct Front : group::Around<Inner> {
    static_assert(std::is_same_v<Inner, group::Field<T>>);
    using Value = T;
    static constexpr bool kHasRows = false;
    static constexpr bool kFillsRows = true;  ///< see group::kFillsRows
    using U = BitsOf<T>;

    const Args& args;
    bool counts_filled;
    U pattern = 0;           ///< decoding: of all missing values
    bool has_words = false;  ///< decoding: there are some, of one pattern
    mutable U known = 0;     ///< encoding: a pattern that was noted, exclusive-or the marker
    mutable T before_row{};  ///< encoding: what fills the row's places before its first valid one
    mutable std::uint32_t n_filled = 0;

    __device__ __forceinline__ Front(const Args& a, const Inner& front)
        : group::Around<Inner>(front), args(a), counts_filled(a.n_fills != 0 && !a.is_looked_at) {
      if (args.plan != nullptr) {
        has_words = args.plan->n_patterns == 1;
        pattern = static_cast<U>(args.plan->patterns[0]);
      }
    }

    /// What others need who come back to single values.
    __device__ __forceinline__ group::Holes holes() const {
      return {args.found != nullptr ? this->inner.args.in : this->inner.args.out, args.words,
              args.hold_values};
    }

    // Encoding.

    template <unsigned N, class Map>
    __device__ __forceinline__ void take(const Map& map, const uint4* staging, T (&v)[N]) const {
      row<N>(map, staging, v);
      __syncwarp();
    }
    template <unsigned N, class Map>
    __device__ __forceinline__ void row(const Map& map, const uint4* staging, T (&v)[N]) const {
      this->inner.template row<N>(map, staging, v);
      const bool is_whole = map.first + cuda::kWarp * N <= map.n_values;
      unsigned missing = 0;
      if (args.n_fills == 0 && is_whole) {
        missing = fillHere<N>(map, staging, v);
      } else if (const bool may = mayHaveMissing(v); __any_sync(cuda::kAllLanes, may)) {
        U all = ~U{0};
        U any = 0;
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
          all &= bitsOf(v[i]);
          any |= bitsOf(v[i]);
        }
        // Single values are read again from there, and so is the row.
        auto* const rows = const_cast<uint4*>(staging);
        missing = args.hold_values == N ? settle<N, true>(map, rows, may, all, any)
                                        : settle<N, false>(map, rows, may, all, any);
        this->inner.template row<N>(map, staging, v);
      }
      if (!args.is_looked_at) {
        storeWords<N>(map.first, map.n_values, missing);
      }
    }
    /// Staging has the row as it came, or as settle() left it.
    template <unsigned N, class Map>
    __device__ __forceinline__ T oneOfRow(const Map& map, const uint4* staging, unsigned i) const {
      for (unsigned at = i + 1; at > 0; --at) {
        const T value = this->inner.template oneOfRow<N>(map, staging, at - 1);
        if (isFinite(value)) {
          return value;
        }
      }
      return before_row;
    }
    /// A single value once more, by any thread; others may not have stored its word yet.
    __device__ T one(std::uint64_t at) const {
      const auto* in = reinterpret_cast<const U*>(this->inner.args.in);
      if (!isMissing<T>(in[at], args.fills)) {
        return valueOf<T>(in[at]);
      }
      const std::uint64_t begin = at / args.hold_values * args.hold_values;
      const std::uint64_t n_values = this->inner.count();
      for (std::uint64_t i = at; i > begin; --i) {
        if (!isMissing<T>(in[i - 1], args.fills)) {
          return valueOf<T>(in[i - 1]);
        }
      }
      for (std::uint64_t i = at + 1; i < begin + args.hold_values && i < n_values; ++i) {
        if (!isMissing<T>(in[i], args.fills)) {
          return valueOf<T>(in[i]);
        }
      }
      return T{0};
    }
    __device__ __forceinline__ void prefetch(std::uint64_t at, unsigned n) const {
      group::prefetch(this->inner, at, n);
    }
    __device__ __forceinline__ void finish() const {
      if (args.found != nullptr) {
        const std::uint32_t all = cuda::warpSum(n_filled);
        if (cuda::laneId() == 0 && all != 0) {
          addTo(&args.found->n_filled, all);
        }
      }
      this->inner.finish();
    }

    // Decoding.

    /// One thread records what is wrong.
    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      const std::uint64_t* slots = args.record->value;
      const std::uint64_t n_ones = slots[kOnesSlot];
      const bool is_good = args.plan->is_good != 0 && slots[kDamagedSlot] == 0;
      const bool is_right = is_good && n_ones == slots[kMissingSlot];
      if (is_good && !is_right && blockIdx.x == 0 && threadIdx.x == 0) {
        recordDamage(args.record, Reason::kCount, n_ones);
      }
      return is_right && this->inner.begin(n);
    }
    template <unsigned N, class Map>
    __device__ __forceinline__ void put(const Map& map, uint4* staging, T (&v)[N]) const {
      if (has_words) {
        const std::uint64_t at = map.first + cuda::laneId() * N;
        const unsigned missing = at < map.n_values ? bitsAt(at) : 0;
        if (__any_sync(cuda::kAllLanes, missing != 0)) {
          restore(v, missing);
        }
      }
      this->inner.template put<N>(map, staging, v);
    }
    template <unsigned P>
    __device__ __forceinline__ void putPiece(std::uint64_t at, unsigned n, const T (&x)[P]) const {
      T values[P];
      restored(at, n, x, values);
      this->inner.putPiece(at, n, values);
    }
    template <unsigned P>
    __device__ __forceinline__ void putWhole(std::uint64_t at, const T (&x)[P]) const {
      T values[P];
      restored(at, P, x, values);
      this->inner.putWhole(at, values);
    }

   private:
    /// The bits of the values from `at` on; a row does not reach into the next word.
    __device__ __forceinline__ unsigned bitsAt(std::uint64_t at) const {
      return __ldg(args.words + at / 32) >> (at % 32);
    }
    template <unsigned N>
    __device__ __forceinline__ void restore(T (&v)[N], unsigned missing) const {
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        v[i] = (missing >> i & 1u) != 0 ? valueOf<T>(pattern) : v[i];
      }
    }
    template <unsigned P>
    __device__ __forceinline__ void restored(std::uint64_t at,
                                             unsigned n,
                                             const T (&x)[P],
                                             T (&values)[P]) const {
#pragma unroll
      for (unsigned i = 0; i < P; ++i) {
        values[i] = x[i];
      }
      if (has_words && n != 0) {
        restore(values, bitsAt(at));
      }
    }
    /// All lanes: 32 values to a word.
    template <unsigned N>
    __device__ __forceinline__ void storeWords(std::uint64_t first,
                                               std::uint64_t n_values,
                                               unsigned missing) const {
      constexpr unsigned kLanes = 32 / N;
      unsigned word = missing << (cuda::laneId() % kLanes * N);
#pragma unroll
      for (unsigned step = 1; step < kLanes; step *= 2) {
        word |= __shfl_xor_sync(cuda::kAllLanes, word, step);
      }
      const std::uint64_t at = first + cuda::laneId() * N;
      if (cuda::laneId() % kLanes == 0 && at < n_values) {
        args.words[at / 32] = word;
      }
    }
    static __device__ __forceinline__ U bitsOf(T value) {
      if constexpr (sizeof(T) == 4) {
        return __float_as_uint(value);
      } else {
        return static_cast<U>(__double_as_longlong(value));
      }
    }
    static __device__ __forceinline__ bool isFinite(T value) {
      if constexpr (sizeof(T) == 4) {
        return fabsf(value) < __uint_as_float(kExponentBits<T>);
      } else {
        return isFiniteBits<T>(bitsOf(value));
      }
    }
    /// All lanes, where only values that are not finite are missing and all of the row exist: finds
    /// and fills them in the lane's registers, whatever they are. Fields with coasts have some in
    /// nearly every row of a warp. Returns those of the lane's row.
    template <unsigned N, class Map>
    __device__ __forceinline__ unsigned fillHere(const Map& map,
                                                 const uint4* staging,
                                                 T (&v)[N]) const {
      constexpr unsigned kRow = N == 32 ? ~0u : (1u << N) - 1;
      const U usual = known ^ static_cast<U>(args.marker);
      unsigned missing = 0;
      U unlike = 0;  // the usual pattern
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        if (!isFinite(v[i])) {
          missing |= 1u << i;
          unlike |= bitsOf(v[i]) ^ usual;
        }
      }
      if (!__any_sync(cuda::kAllLanes, missing != 0)) {
        return 0;
      }
      if (__any_sync(cuda::kAllLanes, unlike != 0)) {
#pragma unroll 1
        for (unsigned i = 0; i < N; ++i) {
          const U bits = bitsOf(this->inner.template oneOfRow<N>(map, staging, i));
          noteKeys((missing >> i & 1u) != 0, bits ^ static_cast<U>(args.marker));
        }
      }
      before_row = valueBeforeRow<N>(map, staging, kRow & ~missing);
      T held = before_row;
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        v[i] = (missing >> i & 1u) != 0 ? held : v[i];
        held = v[i];
      }
      return missing;
    }
    /// All lanes: the valid value before the row in its unit; else the unit's first one, else 0.
    template <unsigned N, class Map>
    __device__ __forceinline__ T valueBeforeRow(const Map& map,
                                                const uint4* staging,
                                                unsigned valid) const {
      const auto own = [&](unsigned i) {
        return this->inner.template oneOfRow<N>(map, staging, i);
      };
      const T first = own(valid != 0 ? lowest(valid) : 0);
      if (args.hold_values == N) {
        return valid != 0 ? first : T{0};
      }
      const unsigned lane = cuda::laneId();
      const T last = own(valid != 0 ? highest(valid) : 0);
      const unsigned with_valid = __ballot_sync(cuda::kAllLanes, valid != 0);
      const unsigned n_lanes = args.hold_values / N;
      const unsigned unit = (n_lanes >= cuda::kWarp ? cuda::kAllLanes : (1u << n_lanes) - 1)
                            << (lane & ~(n_lanes - 1));
      const unsigned below = with_valid & unit & ((1u << lane) - 1);
      const unsigned above = with_valid & unit & ~((1u << lane) - 1);  // the lane itself too
      const T held = fromLane(last, below != 0 ? highest(below) : 0);
      const T next = fromLane(first, above != 0 ? lowest(above) : 0);
      return below != 0 ? held : above != 0 ? next : T{0};
    }
    /// Whether the row has missing values, or so many ones in its sum. A sum of products with 0 is
    /// NaN where one of them is not finite, and costs least.
    template <unsigned N>
    __device__ __forceinline__ bool mayHaveMissing(const T (&v)[N]) const {
      T sum{0};
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        if constexpr (sizeof(T) == 4) {
          sum = __fmaf_rn(v[i], 0.0f, sum);
        } else {
          sum = __fma_rn(v[i], 0.0, sum);
        }
      }
      bool may = sum != sum;
      for (std::uint32_t k = 0; k < args.n_fills; ++k) {
        const T fill = args.fills.value[k];
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
          may = may || v[i] == fill;
        }
      }
      return may;
    }
    /// Value i of lane r's row.
    template <unsigned N, class Map>
    static __device__ __forceinline__ T& staged(uint4* staging, unsigned r, unsigned i) {
      constexpr unsigned kCount = cuda::Vec16<T>::kCount;
      const unsigned at = r * N + i;
      const unsigned piece = group::stagedPiece(Map::template piece<kCount>(at / kCount * kCount));
      return reinterpret_cast<T*>(staging + piece)[at % kCount];
    }

    __device__ __forceinline__ bool isMissingHere(U bits) const {
      return !isFiniteBits<T>(bits) || (args.n_fills != 0 && isMissing<T>(bits, args.fills));
    }
    /// The warp's rows in shared memory, while their missing values are filled; what a lane has is
    /// of its own row.
    struct Rows {
      uint4* staging;
      unsigned here;        ///< values that exist
      unsigned missing;     ///< of those
      unsigned with_valid;  ///< rows with others, for all lanes
      unsigned unit;        ///< rows that are filled from each other
      T first;              ///< of the others
      T last;
    };

    /// All lanes: finds and fills the missing values of the warp's rows in shared memory; returns
    /// those of the lane's row. Missing values take the one before in units of hold_values; where
    /// there is none, the first valid one; where all are missing, 0. `may`, `all` and `any` are of
    /// the lane's row. Most rows are of one kind; the warp looks at each of the others together.
    /// kIsAlone: units are rows.
    template <unsigned N, bool kIsAlone, class Map>
    __device__ __forceinline__ unsigned settle(
        const Map& map, uint4* staging, bool may, U all, U any) const {
      constexpr unsigned kRow = N == 32 ? ~0u : (1u << N) - 1;
      const unsigned lane = cuda::laneId();
      const unsigned n_here = group::valuesFrom(map.first + lane * N, map.n_values);
      const bool is_gone = may && all == any && isMissingHere(all);
      Rows rows;
      rows.staging = staging;
      rows.here = n_here >= N ? kRow : (1u << n_here) - 1;
      rows.missing = is_gone ? rows.here : 0;
      noteKeys(rows.missing != 0, all ^ static_cast<U>(args.marker));
      if (counts_filled && is_gone && isFiniteBits<T>(all)) {
        n_filled += static_cast<std::uint32_t>(__popc(rows.here));
      }
      rows.with_valid = __ballot_sync(cuda::kAllLanes, !is_gone);
      if constexpr (!kIsAlone) {
        const unsigned n_lanes = args.hold_values / N;
        rows.unit = (n_lanes >= cuda::kWarp ? cuda::kAllLanes : (1u << n_lanes) - 1)
                    << (lane & ~(n_lanes - 1));
        rows.first = staged<N, Map>(staging, lane, 0);
        rows.last = staged<N, Map>(staging, lane, N - 1);
      }
      __syncwarp();  // every lane has read its row
      for (unsigned open = __ballot_sync(cuda::kAllLanes, may && !is_gone); open != 0;
           open &= open - 1) {
        fillRow<N, kIsAlone, Map>(rows, lowest(open));
      }
      T value{0};
      if constexpr (!kIsAlone) {
        const unsigned below = rows.with_valid & rows.unit & ((1u << lane) - 1);
        const unsigned above = rows.with_valid & rows.unit & ~((1u << lane) - 1);
        const T held = fromLane(rows.last, below != 0 ? highest(below) : 0);
        const T next = fromLane(rows.first, above != 0 ? lowest(above) : 0);
        value = below != 0 ? held : above != 0 ? next : T{0};
      }
      __syncwarp();
      if ((rows.with_valid >> lane & 1u) == 0) {
        T row[N];
#pragma unroll
        for (unsigned k = 0; k < N; ++k) {
          row[k] = value;
        }
        group::writeRow<Map>(row, staging);
      }
      __syncwarp();
      return rows.missing;
    }
    /// All lanes: row r, a value for each lane.
    template <unsigned N, bool kIsAlone, class Map>
    __device__ __forceinline__ void fillRow(Rows& rows, unsigned r) const {
      const unsigned lane = cuda::laneId();
      const unsigned here = fromLane(rows.here, r);
      T& place = staged<N, Map>(rows.staging, r, lane % N);
      const T value = place;
      const U bits = bitsOf(value);
      const bool is_gone = (here >> lane & 1u) != 0 && isMissingHere(bits);
      const unsigned gone = __ballot_sync(cuda::kAllLanes, is_gone);
      noteKeys(is_gone, bits ^ static_cast<U>(args.marker));
      if (counts_filled && is_gone && isFiniteBits<T>(bits)) {
        ++n_filled;
      }
      const unsigned valid = here & ~gone;
      const unsigned lower = valid & ((1u << lane) - 1);
      T near = fromLane(value, lower != 0 ? highest(lower) : valid != 0 ? lowest(valid) : 0);
      if constexpr (!kIsAlone) {
        const unsigned below = rows.with_valid & fromLane(rows.unit, r) & ((1u << r) - 1);
        const T before = fromLane(rows.last, below != 0 ? highest(below) : 0);
        near = lower == 0 && below != 0 ? before : near;
        const T first = fromLane(value, valid != 0 ? lowest(valid) : 0);
        const T last = fromLane(value, valid != 0 ? highest(valid) : 0);
        rows.first = lane == r ? first : rows.first;
        rows.last = lane == r ? last : rows.last;
      }
      __syncwarp();
      if (is_gone && valid != 0) {
        place = near;
      }
      rows.missing = lane == r ? gone : rows.missing;
      rows.with_valid &= valid != 0 ? ~0u : ~(1u << r);
    }
    template <class V>
    static __device__ __forceinline__ V fromLane(V value, unsigned lane) {
      return __shfl_sync(cuda::kAllLanes, value, static_cast<int>(lane));
    }
    /// All lanes: notes the keys of some. Nearly always it is the one that is known.
    __device__ __forceinline__ void noteKeys(bool has_key, U key) const {
      unsigned open = __ballot_sync(cuda::kAllLanes, has_key && key != known);
      while (open != 0) {
        const unsigned leader = lowest(open);
        known = __shfl_sync(cuda::kAllLanes, key, static_cast<int>(leader));
        if (cuda::laneId() == leader && !args.is_looked_at) {
          addKey(*args.found, known);
        }
        open &= ~__ballot_sync(cuda::kAllLanes, has_key && key == known);
      }
    }
  };
};

}  // namespace fz::mask
