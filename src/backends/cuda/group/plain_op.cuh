#pragma once

// The end of a group without a coder: values are stored one after the other. Device code only.

#include "backends/cuda/group/lines.cuh"
#include "backends/cuda/group/plain_op.h"

namespace fz::group {

struct PlainOp {
  using Args = PlainArgs;

  template <class Front>
  struct Encoding {
    static constexpr unsigned kThreads = 128;
    static constexpr unsigned kBlocks = 6;
    static constexpr unsigned kRow = 32;
    static constexpr unsigned kTileValues = kThreads * kRow;
    static constexpr bool kIsPersistent = false;
    static constexpr unsigned kSharedBytes = 0;
  };
  template <class Front>
  using Decoding = Encoding<Front>;

  template <class Front>
  static __device__ __forceinline__ void encode(const PlainArgs& args, const Front& front) {
    using V = typename Front::Value;
    using Way = Encoding<Front>;
    constexpr unsigned kStaging = stagingBytesOf<Front, Way::kRow>() / 16;  // of a warp
    __shared__ uint4 staging[Way::kThreads / cuda::kWarp * kStaging];
    if constexpr (requires { front.isNeeded(); }) {
      if (!front.isNeeded()) {
        return;
      }
    }
    V v[Way::kRow];
    const std::uint64_t first =
        std::uint64_t{blockIdx.x} * Way::kTileValues + cuda::warpId() * cuda::kWarp * Way::kRow;
    uint4* own = staging + cuda::warpId() * kStaging;
    if constexpr (Front::kHasRows && !kHasLines<Front>) {
      front.template load<Way::kRow>(first, own, v);
    } else {
      rowsOfLines<Way::kRow>(front, first, own, v);
    }
    const FieldArgs target{nullptr, args.out, {args.n_values * sizeof(V), nullptr}};
    putRows<Way::kRow>(Field<V>(target), first, args.n_values, own, v);
    front.finish();
  }

  template <class Front>
  static __device__ __forceinline__ void decode(const PlainArgs& args, const Front& front) {
    using V = typename Front::Value;
    using Way = Decoding<Front>;
    constexpr unsigned kStaging = stagingBytesOf<Front, Way::kRow>() / 16;  // of a warp
    __shared__ uint4 staging[Way::kThreads / cuda::kWarp * kStaging];
    if (!front.begin(args.n_values)) {
      return;  // the host has checked the sizes
    }
    V v[Way::kRow];
    const std::uint64_t first =
        std::uint64_t{blockIdx.x} * Way::kTileValues + cuda::warpId() * cuda::kWarp * Way::kRow;
    uint4* own = staging + cuda::warpId() * kStaging;
    const FieldArgs source{args.in, nullptr, {args.n_values * sizeof(V), nullptr}};
    rowsOfLines<Way::kRow>(Field<V>(source), first, own, v);
    if constexpr (Front::kHasRows) {  // may need more staging than putRows allows for
      front.template store<Way::kRow>(first, args.n_values, own, v);
    } else {
      putRows<Way::kRow>(front, first, args.n_values, own, v);
    }
  }
};

}  // namespace fz::group
