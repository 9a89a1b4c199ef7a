#pragma once

// The quantiser with outlier lists as part of a fused group. Encoding leaves a bit for every value
// without a code and a mark for every tile that has any; the lists are gathered from them
// afterwards. Decoding leaves the places of outliers to the scattering that follows. Device code
// only.

#include "backends/cuda/group/lines.cuh"
#include "quantizers/quantizer/cuda/op/args.h"
#include "quantizers/quantizer/cuda/op/decode.cuh"
#include "quantizers/quantizer/cuda/op/rel.cuh"
#include "quantizers/quantizer/cuda/op/tile.cuh"

namespace fz::quantizer {

namespace device {

/// Bins: how they are made.
template <class T>
__device__ __forceinline__ const BinRule<T>& ruleOf(const ListArgs& args) {
  if (!args.is_known) {
    return stateOf<T>(args.encode).rules[0];
  }
  if constexpr (sizeof(T) == 4) {
    return args.rule_float;
  } else {
    return args.rule_double;
  }
}

template <class T, class C, ListForm kForm>
struct ListCoding;
template <class T, class C>
struct ListCoding<T, C, ListForm::kPlain> {
  static constexpr DecodeForm kDecode = DecodeForm::kTwosComplement;
  using Coder = AbsCoder<T, C, false>;
  static __device__ __forceinline__ Coder coder(const ListArgs& args) {
    const BinRule<T>& rule = ruleOf<T>(args);
    return {fastRule(rule), &rule};
  }
};
template <class T, class C>
struct ListCoding<T, C, ListForm::kZigzag> {
  static constexpr DecodeForm kDecode = DecodeForm::kZigzag;
  using Coder = AbsCoder<T, C, true>;
  static __device__ __forceinline__ Coder coder(const ListArgs& args) {
    const BinRule<T>& rule = ruleOf<T>(args);
    return {fastRule(rule), &rule};
  }
};
template <class T, class C>
struct ListCoding<T, C, ListForm::kRelFloat> {
  static constexpr DecodeForm kDecode = DecodeForm::kRel;
  using Coder = RelCoder<T, C, RelFloatRule>;
  static __device__ __forceinline__ Coder coder(const ListArgs& args) {
    return {args.rel, args.rel_float};
  }
};
template <class T, class C>
struct ListCoding<T, C, ListForm::kRelDouble> {
  static constexpr DecodeForm kDecode = DecodeForm::kRel;
  using Coder = RelCoder<T, C, RelDoubleRule>;
  static __device__ __forceinline__ Coder coder(const ListArgs& args) {
    return {args.rel, makeRelDoubleRule(args.rel)};
  }
};
template <class T, class C>
struct ListCoding<T, C, ListForm::kRelSlow> {
  static constexpr DecodeForm kDecode = DecodeForm::kRel;
  using Coder = RelCoder<T, C, NoShortcut>;
  static __device__ __forceinline__ Coder coder(const ListArgs& args) { return {args.rel, {}}; }
};

}  // namespace device

/// T: the values. C: the codes, unsigned.
template <class T, class C, ListForm kForm>
struct ListOp {
  using Args = ListArgs;

  template <class Inner>
  struct Front {
    using Value = C;
    using FieldValue = typename group::FieldValueOf<Inner>::Type;
    using Coding = device::ListCoding<T, C, kForm>;
    static constexpr bool kHasRows = false;
    static constexpr bool kBlockWide = Inner::kBlockWide;
    static constexpr bool kCanFetch = true;
    static constexpr bool kFillsRows = group::kFillsRows<Inner>;
    static constexpr bool kManyRegisters = group::kNeedsRegisters<Inner>;
    static constexpr bool kNeedsRoots =
        Coding::kDecode == device::DecodeForm::kRel && sizeof(T) == 4;
    static constexpr unsigned kMaxRawBytes = 64;  // coders with planes have few registers
    static constexpr unsigned kTileValues = static_cast<unsigned>(device::kTileBytes / sizeof(T));

    const ListArgs& args;
    Inner inner;
    typename Coding::Coder coder;  ///< encoding
    std::uint64_t n_values;        ///< encoding; looked up once
    T step;                        ///< decoding

    __device__ __forceinline__ Front(const ListArgs& a, const Inner& i)
        : args(a), inner(i), n_values(0) {
      if (args.encode.record != nullptr) {
        coder = Coding::coder(args);
        n_values = device::valuesOf<T>(args.encode);
      }
      const StageRecord* record = args.decode.record;
      step = record != nullptr ? fp::mul(T{2}, static_cast<T>(storedBound(record->value))) : T{0};
    }

    __device__ __forceinline__ std::uint64_t count() const { return n_values; }
    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      const device::Head head = device::readHead(args.decode);
      if (blockIdx.x == 0 && threadIdx.x == 0) {
        const group::Holes holes = group::holesOf(inner);
        std::uint64_t* slots = args.decode.record->value;
        slots[device::kSlotField] = reinterpret_cast<std::uint64_t>(holes.field);
        slots[device::kSlotHoles] = reinterpret_cast<std::uint64_t>(holes.words);
        if (!head.ok) {
          cuda::recordError(args.decode.record, DeviceError::kCorrupt, 0);
          args.decode.record->error_value = static_cast<std::uint64_t>(head.failure);
        }
      }
      if constexpr (kNeedsRoots) {
        // Every warp for itself: all write the same.
        roots()[cuda::laneId()] = relRoot(cuda::laneId());
        __syncwarp();
      }
      return head.ok && n == head.n_values && inner.begin(n);
    }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const {
      // The gathering that follows begins with none.
      const device::EncodeJob& job = args.encode;
      for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
           i < job.n_batches; i += std::uint64_t{gridDim.x} * blockDim.x) {
        job.batch_states[i] = 0;
      }
      if (blockIdx.x == 0 && threadIdx.x == 0) {
        device::holesOf(job) = group::holesOf(inner);
        if (args.is_known) {
          recordSettings();
        }
      }
      inner.finish();
    }

    __device__ __forceinline__ void prefetch(std::uint64_t at, unsigned n) const {
      group::prefetch(inner, at, n);
    }

    /// Values on their way, to be coded when others are under way too.
    template <unsigned P>
    struct Raw {
      T v[P];
    };
    template <unsigned P>
    __device__ __forceinline__ void fetchWhole(std::uint64_t at, Raw<P>& raw) const {
      group::wholePiece(inner, at, raw.v);
    }
    template <unsigned P>
    __device__ __forceinline__ void makeWhole(std::uint64_t at,
                                              const Raw<P>& raw,
                                              C (&x)[P]) const {
      const unsigned refused = coder.encode(raw.v, x);
      if (refused != 0) {
        record(at, refused);
      }
    }

    template <unsigned P>
    __device__ __forceinline__ void piece(std::uint64_t at, unsigned n, C (&x)[P]) const {
      T values[P];
      inner.piece(at, n, values);
      unsigned refused = coder.encode(values, x);
      if (refused != 0) {
        refused &= n >= P ? ~0u : (1u << n) - 1u;
        if (refused != 0) {
          record(at, refused);
        }
      }
    }
    // Rows, for ops that look at neighbours; see rows.cuh.
    template <unsigned N>
    static FZ_HD constexpr unsigned stagingBytes() {
      return Inner::template stagingBytes<N>();
    }
    template <unsigned N, class Map>
    __device__ __forceinline__ void fetch(const Map& map, uint4* staging) const {
      inner.template fetch<N>(map, staging);
    }
    template <unsigned N, class Map>
    __device__ __forceinline__ void take(const Map& map, const uint4* staging, C (&x)[N]) const {
      T values[N];
      inner.template take<N>(map, staging, values);
      unsigned refused[N / kPart];
      unsigned any = 0;
#pragma unroll
      for (unsigned part = 0; part < N / kPart; ++part) {
        refused[part] = coder.encode(partOf(values, part), partOf(x, part));
        any |= refused[part];
      }
#pragma unroll 1
      for (unsigned i = 0; any != 0 && i < N; ++i) {
        unsigned own = refused[0];
#pragma unroll
        for (unsigned part = 1; part < N / kPart; ++part) {
          own = i / kPart == part ? refused[part] : own;
        }
        std::uint64_t index = 0;
        if ((own >> i % kPart & 1u) != 0 && map.find(cuda::laneId() * N + i, index)) {
          record(index, 1u);
        }
      }
    }
    template <unsigned N, class Map>
    __device__ __forceinline__ void put(const Map& map, uint4* staging, C (&x)[N]) const {
      T values[N];
#pragma unroll
      for (unsigned part = 0; part < N / kPart; ++part) {
        decodePiece(partOf(x, part), partOf(values, part));
      }
      inner.template put<N>(map, staging, values);
    }

    /// A value once more, for a neighbour; outliers are not recorded.
    __device__ __forceinline__ C one(std::uint64_t at) const {
      T value[1] = {group::oneOf(inner, at)};
      C code[1];
      static_cast<void>(coder.encode(value, code));
      return code[0];
    }

    template <unsigned P>
    __device__ __forceinline__ void putPiece(std::uint64_t at, unsigned n, const C (&x)[P]) const {
      T values[P];
      decodePiece(x, values);
      inner.putPiece(at, n, values);
    }
    template <unsigned P>
    __device__ __forceinline__ void putWhole(std::uint64_t at, const C (&x)[P]) const {
      T values[P];
      decodePiece(x, values);
      group::putWhole(inner, at, values);
    }

   private:
    static constexpr unsigned kPart = 16;  ///< values of a row that are coded at a time

    template <class V, unsigned N>
    static __device__ __forceinline__ V (&partOf(V (&v)[N], unsigned part))[kPart] {
      static_assert(N % kPart == 0);
      return *reinterpret_cast<V(*)[kPart]>(v + part * kPart);
    }
    template <unsigned P>
    __device__ __forceinline__ void decodePiece(const C (&x)[P], T (&values)[P]) const {
      using U = BitsOf<T>;
      const device::DecodeJob& job = args.decode;
      const device::Decoder<T, C, Coding::kDecode> decode{step, job.log_step, job.log_step_v1,
                                                          job.radius};
      U bits[P];
      if constexpr (kNeedsRoots) {
        decode.piece(
            x, [](std::uint32_t i) { return roots()[i]; }, bits);
      } else {
        decode.piece(
            x, [](std::uint32_t) { return 0.0; }, bits);
      }
#pragma unroll
      for (unsigned i = 0; i < P; ++i) {
        values[i] = fp::bitCast<T>(bits[i]);
      }
    }
    /// What prepareKernel records where the host does not know it.
    __device__ __forceinline__ void recordSettings() const {
      std::uint64_t* slots = args.encode.record->value;
      slots[device::kSlotValues] = n_values;
      if constexpr (Coding::kDecode != device::DecodeForm::kRel) {
        recordBound(slots, args.in_use);
        recordRange(slots, args.range, args.absolute);
      }
    }
    /// Any number of times for the same values.
    __device__ __forceinline__ void record(std::uint64_t at, unsigned refused) const {
      const std::uint64_t bits = std::uint64_t{refused} << (at % 32);
      std::uint32_t* words = args.encode.tile_masks + at / 32;
      atomicOr(words, static_cast<std::uint32_t>(bits));
      if (bits >> 32 != 0) {
        atomicOr(words + 1, static_cast<std::uint32_t>(bits >> 32));
        args.encode.tile_counts[(at + 31) / kTileValues] = 1;
      }
      args.encode.tile_counts[at / kTileValues] = 1;
    }
    static __device__ __forceinline__ double* roots() {
      __shared__ double table[kRelRoots];
      return table;
    }
  };
};

}  // namespace fz::quantizer
