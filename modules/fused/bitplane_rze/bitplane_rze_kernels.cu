// The stage alone: the kernels of a group with nothing before the coder.
#include "backends/cuda/group/kernel.cuh"
#include "backends/cuda/launch.h"
#include "fused/bitplane_rze/bitplane_rze_op.cuh"

namespace fz::bitplane_rze {

namespace {

/// Symbols of which the archive says how many there are; the decoder checks that they fit.
struct Symbols : group::Field<std::uint16_t> {
  using Field::Field;
  __device__ __forceinline__ bool begin(std::uint64_t /*n*/) const { return true; }
};
using Alone = group::Chain<Symbols, BitplaneRzeOp>;

Alone::Args argsOf(const CudaArgs& args) {
  return {{args.in.data, args.out.data, args.in.size}, {args}};
}

}  // namespace

void launchEncode(const CudaArgs& args, cudaStream_t stream) {
  group::encodeGroup<Alone><<<args.n_blocks, Alone::Encoding::kThreads, 0, stream>>>(argsOf(args));
  cuda::checkLaunch("bitplane_rze encode");
}

void launchDecode(const CudaArgs& args, cudaStream_t stream) {
  group::decodeGroup<Alone><<<args.n_blocks, Alone::Decoding::kThreads, 0, stream>>>(argsOf(args));
  cuda::checkLaunch("bitplane_rze decode");
}

}  // namespace fz::bitplane_rze
