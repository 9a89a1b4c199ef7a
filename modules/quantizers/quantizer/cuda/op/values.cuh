#pragma once

// The quantiser in a fused group: in place and linear, every value has its code's place. Device
// code only; must compile with NVRTC.

#include "backends/cuda/group/line_walk.cuh"
#include "quantizers/quantizer/cuda/op/args.h"

namespace fz::quantizer {

/// What a thread could not keep within the bound.
struct Violations {
  unsigned count = 0;
  unsigned first = ~0u;
  unsigned nonfinite = 0;

  __device__ __forceinline__ void record(std::uint64_t index, bool is_finite) {
    ++count;
    const auto i = static_cast<unsigned>(index);
    first = i < first ? i : first;
    nonfinite |= is_finite ? 0u : 1u;
  }
};

/// One thread's violations.
template <class T>
__device__ __forceinline__ void report(const Violations& v, EncodeState<T>& state, unsigned rung) {
  unsigned long long* n_violations = &state.n_violations[rung];
  atomicAdd(n_violations, static_cast<unsigned long long>(v.count));  // order-free: only a sum
  atomicMax(&state.first_violation[rung], ~static_cast<unsigned long long>(v.first));
  atomicOr(&state.has_nonfinite, v.nonfinite);
}
/// Those of all lanes.
template <class T>
__device__ __forceinline__ void reportWarp(const Violations& v,
                                           EncodeState<T>& state,
                                           unsigned rung) {
  if (__any_sync(cuda::kAllLanes, v.count != 0)) {
    const Violations all{__reduce_add_sync(cuda::kAllLanes, v.count),
                         __reduce_min_sync(cuda::kAllLanes, v.first),
                         __reduce_or_sync(cuda::kAllLanes, v.nonfinite)};
    if (cuda::laneId() == 0) {
      report(all, state, rung);
    }
  }
}

/// One thread, after all blocks: how the rung went. `value_of` gives a value of the input.
template <class T, class ValueOf>
__device__ __forceinline__ void recordRung(std::uint64_t* slots,
                                           const EncodeState<T>& state,
                                           unsigned rung,
                                           double in_use,
                                           const ValueOf& value_of) {
  recordBound(slots, in_use);
  slots[device::kSlotRung] = rung;
  slots[device::kSlotViolations] = state.n_violations[rung];
  slots[device::kSlotNonfinite] = state.has_nonfinite;
  if (state.n_violations[rung] > 0) {
    const std::uint64_t first = ~state.first_violation[rung];
    slots[device::kSlotFirstViolation] = first;
    slots[device::kSlotFirstValue] = fp::bits(static_cast<double>(value_of(first)));
  }
}

template <class T, class C, bool kInplace>
struct FlatOp {
  using Args = FlatArgs<T>;

  template <class Inner>
  struct Front : group::Around<Inner> {
    using Value = std::conditional_t<kInplace, C, std::make_signed_t<C>>;
    static constexpr bool kHasRows = false;
    static constexpr FastCheck kCheck = kInplace                           ? FastCheck::kAll
                                        : sizeof(T) == 4 && sizeof(C) == 4 ? FastCheck::kReach
                                                                           : FastCheck::kRange;
    /// fastBin's shift as a float: the bits of a shifted number are its bin plus this.
    static constexpr std::uint32_t kShiftedBy = kCheck == FastCheck::kReach ? 0x4B400000u : 0u;
    static_assert(std::is_same_v<typename Inner::Value, T>);

    const Args& args;
    BinRule<T> rule;  ///< encoding; what fastBin reads of it
    T step;           ///< decoding

    __device__ __forceinline__ Front(const Args& a, const Inner& front)
        : group::Around<Inner>(front), args(a) {
      if (args.state != nullptr) {
        rule = wholeRule();
      } else {
        step = fp::mul(T{2}, static_cast<T>(storedBound(args.record->value)));
      }
    }

    // Encoding.

    __device__ __forceinline__ bool isNeeded() const {
      return args.rung == 0 || !args.is_conditional || args.state->wanted_rung == args.rung;
    }

    template <unsigned N, class Map>
    __device__ __forceinline__ void take(const Map& map,
                                         const uint4* staging,
                                         Value (&v)[N]) const {
      takeShifted<N>(map, staging, v);
      if constexpr (kShiftedBy != 0) {
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
          v[i] = static_cast<Value>(static_cast<C>(v[i]) - kShiftedBy);
        }
      }
    }

    /// The same plus kShiftedBy, see group::takeShifted.
    template <unsigned N, class Map>
    __device__ __forceinline__ void takeShifted(const Map& map,
                                                const uint4* staging,
                                                Value (&v)[N]) const {
      T x[N];
      this->inner.template row<N>(map, staging, x);
      // Where only the reach is to be looked at, a sum that is within it shows that all are: sums
      // cost less here than comparisons.
      constexpr bool kSums = kCheck == FastCheck::kReach;
      constexpr FastCheck kEach = kSums ? FastCheck::kBound : kCheck;
      T sum = T{0};
      bool all_ok = true;
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        std::int32_t bin = 0;
        all_ok = all_ok & fastBin<kEach>(x[i], rule, bin);
        v[i] = static_cast<Value>(codeOf<C>(bin, kInplace) + kShiftedBy);
        if constexpr (kSums) {
          sum = fp::add(sum, fp::abs(fp::mul(x[i], rule.inv_step)));
        }
      }
      if (kSums && !__all_sync(cuda::kAllLanes, sum < rule.reach)) {
        all_ok = all_ok & isRowNear<N>(map, staging);
      }
      if (!__all_sync(cuda::kAllLanes, all_ok)) {
        settleRow(map, staging, v);
      }
      __syncwarp();
    }

    template <unsigned P>
    __device__ __forceinline__ void piece(std::uint64_t at, unsigned n, Value (&v)[P]) const {
      T x[P];
      this->inner.piece(at, n, x);
      Violations violations;
#pragma unroll
      for (unsigned i = 0; i < P; ++i) {
        std::int32_t bin = 0;
        C code;
        if (fastBin<kCheck>(x[i], rule, bin)) {
          code = codeOf<C>(bin, kInplace);
        } else {
          code = settle(x[i], wholeRule(), at + i, i < n, violations);
        }
        v[i] = i < n ? static_cast<Value>(code) : Value{};
      }
      if (violations.count != 0) {
        report(violations, *args.state, args.rung);
      }
    }

    /// All threads of the block; the last block writes down how the encode went.
    __device__ __forceinline__ void finish() const {
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) {
        // The last one knows all.
        if (atomicAdd(&args.state->n_blocks_done, 1u) == gridDim.x - 1) {  // order-free: a count
          __threadfence();
          conclude();
        }
      }
      this->inner.finish();
    }

    // Decoding.

    /// One thread records what is wrong.
    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      const std::uint64_t n_values = args.record->value[device::kSlotValues] & 0xffffffffull;
      const double bound = storedBound(args.record->value);
      const bool sizes_match = n == n_values;
      const bool ok = sizes_match && fp::isFinite(bound) && bound >= 0.0;
      if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (args.publishes) {
          cuda::publishSize(args.record, 0, ok ? n * sizeof(T) : 0, args.capacity_bytes);
        }
        if (!ok) {
          cuda::recordError(args.record, DeviceError::kCorrupt, 0);
          args.record->error_value = static_cast<std::uint64_t>(
              sizes_match ? device::Failure::kBound : device::Failure::kStreamSizes);
        }
      }
      return ok && this->inner.begin(n);
    }

    template <unsigned N, class Map>
    __device__ __forceinline__ void put(const Map& map, uint4* staging, Value (&v)[N]) const {
      T x[N];
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        x[i] = decode(static_cast<C>(v[i]));
      }
      this->inner.template put<N>(map, staging, x);
    }

    template <unsigned P>
    __device__ __forceinline__ void putPiece(std::uint64_t at,
                                             unsigned n,
                                             const Value (&v)[P]) const {
      T x[P];
#pragma unroll
      for (unsigned i = 0; i < P; ++i) {
        x[i] = decode(static_cast<C>(v[i]));
      }
      this->inner.putPiece(at, n, x);
    }

   private:
    __device__ __forceinline__ T decode(C code) const {
      const T value = decodeBin<T>(binOf(code, kInplace), step);
      if constexpr (kInplace) {
        return isRawBits(code, args.radius) ? fp::bitCast<T>(code) : value;
      } else {
        return value;
      }
    }

    /// Read anew where the whole of it is needed: registers are short in between.
    __device__ __forceinline__ BinRule<T> wholeRule() const {
      return args.has_rule ? args.rule : args.state->rules[args.rung];
    }

    /// The code of a value that fastBin was not sure of.
    __device__ __forceinline__ C settle(T x,
                                        const BinRule<T>& whole,
                                        std::uint64_t index,
                                        bool is_there,
                                        Violations& violations) const {
      std::int32_t bin = 0;
      if (findBin(x, whole, bin)) {
        return codeOf<C>(bin, kInplace);
      }
      if constexpr (kInplace) {
        const C code = fp::bits(x);
        if (is_there && !isRawBits(code, args.radius)) {
          violations.record(index, true);
        }
        return code;
      } else {
        if (args.wrap) {
          return wrappedCode<T, C>(x, whole);
        }
        if (is_there) {
          violations.record(index, fp::isFinite(x));
        }
        return 0;
      }
    }

    /// Whether all values of the lane's row are within reach.
    template <unsigned N, class Map>
    __device__ __forceinline__ bool isRowNear(const Map& map, const uint4* staging) const {
      bool is_near = true;
#pragma unroll 4
      for (unsigned i = 0; i < N; ++i) {
        const T x = this->inner.template oneOfRow<N>(map, staging, i);
        is_near = is_near & (fp::abs(fp::mul(x, rule.inv_step)) < rule.reach);
      }
      return is_near;
    }

    /// The warp's rows once more, for those values; codes plus kShiftedBy. Seldom run, so one copy
    /// of it must do: selects instead of an index keep the row in registers.
    template <unsigned N, class Map>
    __device__ __forceinline__ void settleRow(const Map& map,
                                              const uint4* staging,
                                              Value (&v)[N]) const {
      Violations violations;
      const BinRule<T> whole = wholeRule();
#pragma unroll 1
      for (unsigned at = 0; at < N; ++at) {
        const T x = this->inner.template oneOfRow<N>(map, staging, at);
        std::int32_t bin = 0;
        const bool ok = fastBin<kCheck>(x, rule, bin);
        if (__all_sync(cuda::kAllLanes, ok)) {
          continue;
        }
        if (ok) {
          continue;
        }
        std::uint64_t index = 0;
        const bool is_there = map.find(cuda::laneId() * N + at, index);
        const auto code =
            static_cast<Value>(settle(x, whole, index, is_there, violations) + kShiftedBy);
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
          v[i] = i == at ? code : v[i];
        }
      }
      __syncwarp();
      reportWarp(violations, *args.state, args.rung);
    }

    /// One thread, after all blocks: what the stage's record must say, and a clean state again.
    __device__ void conclude() const {
      EncodeState<T>& state = *args.state;
      std::uint64_t* slots = args.record->value;
      const unsigned rung = args.rung;
      const std::uint64_t n_violations = state.n_violations[rung];
      const bool is_final =
          !args.is_ladder || n_violations == 0 || state.has_nonfinite != 0 || rung == kLastRung;
      const double in_use = args.has_rule ? args.in_use : state.in_use[rung];
      if (args.has_rule) {  // else prepareKernel wrote them
        slots[device::kSlotValues] = this->inner.count();
        recordRange(slots, args.range, args.absolute);
      }
      recordRung(slots, state, rung, in_use,
                 [this](std::uint64_t at) { return group::oneOf(this->inner, at); });
      state.n_violations[rung] = 0;
      state.first_violation[rung] = 0;
      state.has_nonfinite = 0;
      state.n_blocks_done = 0;
      state.wanted_rung = is_final ? 0 : rung + 1;
    }
  };
};

}  // namespace fz::quantizer
