// The stage alone: the kernels of a group with nothing before the coder.
#include "backends/cuda/group/kernel.cuh"
#include "backends/cuda/launch.h"
#include "fused/bitplane_rze/cuda/op/op.cuh"
#include "fz/cuda_part.h"

namespace fz::bitplane_rze {

namespace {

/// Symbols of which the archive says how many there are; the decoder checks that they fit.
struct Symbols : group::Field<std::uint16_t> {
  using Field::Field;
  __device__ __forceinline__ bool begin(std::uint64_t /*n*/) const { return true; }
};
using Alone = group::Chain<Symbols, BitplaneRzeOp>;

Alone::Args argsOf(const BitplaneArgs& args) {
  return {{args.in.data, args.out.data, args.in.size}, {args}};
}

}  // namespace

void launchEncode(const BitplaneArgs& args, const cuda::Call& call) {
  call.launch("bitplane_rze encode", group::encodeGroup<Alone>, args.n_blocks,
              Alone::Encoding::kThreads, 0, argsOf(args));
}

void launchDecode(const BitplaneArgs& args, const cuda::Call& call) {
  call.launch("bitplane_rze decode", group::decodeGroup<Alone>, args.n_blocks,
              Alone::Decoding::kThreads, 0, argsOf(args));
}

}  // namespace fz::bitplane_rze
