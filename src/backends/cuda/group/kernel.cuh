#pragma once

// From a list of ops to a kernel: Field<T>, the ops from the field on, the coder at the end.
// Device code only; must compile with NVRTC.
//
// A coder's Encoding<Front> and Decoding<Front> say how its kernels are launched: kThreads of a
// thread block, kBlocks that must fit a multiprocessor (limits the registers), kTileValues that a
// thread block works on at a time, kIsPersistent (thread blocks take tile after tile; else there is
// one per tile) and kSharedBytes of dynamic shared memory.

#include <type_traits>

#include "backends/cuda/each_field.cuh"
#include "backends/cuda/group/front.cuh"
#include "fz/device_types.h"

namespace fz::group {

/// The arguments of the ops in order, as GroupArgs lays them out.
template <class Op, class... Rest>
struct alignas(16) ArgPack {
  alignas(16) typename Op::Args own;
  ArgPack<Rest...> rest;
};
template <class Op>
struct alignas(16) ArgPack<Op> {
  alignas(16) typename Op::Args own;
};

/// Walks the ops: each one's front around the one before, the coder at the end.
template <class Front, class Op, class... Rest>
struct Walk {
  using Outer = typename Op::template Front<Front>;
  using Next = Walk<Outer, Rest...>;
  using Coder = typename Next::Coder;
  using CoderFront = typename Next::CoderFront;

  static __device__ __forceinline__ void encode(const Front& front,
                                                const ArgPack<Op, Rest...>& args) {
    Next::encode(Outer(args.own, front), args.rest);
  }
  static __device__ __forceinline__ void decode(const Front& front,
                                                const ArgPack<Op, Rest...>& args) {
    Next::decode(Outer(args.own, front), args.rest);
  }
};
template <class Front, class Op>
struct Walk<Front, Op> {
  using Coder = Op;
  using CoderFront = Front;

  static __device__ __forceinline__ void encode(const Front& front, const ArgPack<Op>& args) {
    Op::encode(args.own, front);
  }
  static __device__ __forceinline__ void decode(const Front& front, const ArgPack<Op>& args) {
    Op::decode(args.own, front);
  }
};

template <class FieldT, class... Ops>
struct Chain {
  using Field = FieldT;
  using Args = ArgPack<FieldT, Ops...>;
  using Steps = Walk<FieldT, Ops...>;
  using Encoding = typename Steps::Coder::template Encoding<typename Steps::CoderFront>;
  using Decoding = typename Steps::Coder::template Decoding<typename Steps::CoderFront>;
};

/// Whether a coder has shared memory for the rows of its front.
template <class Coder, class Front>
FZ_HD constexpr bool fitsRows() {
  if constexpr (requires { Coder::template kFitsRows<Front>; }) {
    return Coder::template kFitsRows<Front>;
  } else {
    return true;
  }
}
/// Any legal chain over values of type T.
template <class T, class... Ops>
using AnyChain = std::conditional_t<fitsRows<typename Chain<Field<T>, Ops...>::Steps::Coder,
                                             typename Chain<Field<T>, Ops...>::Steps::CoderFront>(),
                                    Chain<Field<T>, Ops...>,
                                    Chain<DirectField<T>, Ops...>>;

template <class C>
__global__ void __launch_bounds__(C::Encoding::kThreads, C::Encoding::kBlocks)
    encodeGroup(const __grid_constant__ typename C::Args args) {
  C::Steps::encode(typename C::Field(args.own), args.rest);
}

template <class C>
__global__ void __launch_bounds__(C::Decoding::kThreads, C::Decoding::kBlocks)
    decodeGroup(const __grid_constant__ typename C::Args args) {
  C::Steps::decode(typename C::Field(args.own), args.rest);
}

/// The same for many fields.
template <class C>
__global__ void __launch_bounds__(C::Encoding::kThreads, C::Encoding::kBlocks)
    encodeEachGroup(const EachField fields) {
  const auto& args = cuda::argumentsOf<typename C::Args>(fields);
  C::Steps::encode(typename C::Field(args.own), args.rest);
}

template <class C>
__global__ void __launch_bounds__(C::Decoding::kThreads, C::Decoding::kBlocks)
    decodeEachGroup(const EachField fields) {
  const auto& args = cuda::argumentsOf<typename C::Args>(fields);
  C::Steps::decode(typename C::Field(args.own), args.rest);
}

/// How a kernel of this kind is launched.
template <class C, class Way>
constexpr GroupShape shapeOf() {
  return {Way::kThreads, Way::kTileValues, Way::kSharedBytes,
          Way::kIsPersistent ? Way::kBlocks : 0u,
          static_cast<std::uint32_t>(sizeof(typename C::Args))};
}

}  // namespace fz::group
