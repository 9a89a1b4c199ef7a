// The stage alone: the kernels of a group with nothing before the coder.
#include <algorithm>

#include "backends/cuda/group/kernel.cuh"
#include "backends/cuda/launch.h"
#include "coders/rze/cuda/op/op.cuh"
#include "fz/cuda_part.h"

namespace fz::rze {

namespace {

/// Bytes of which the stream says how many there are; the decoder checks that they fit.
struct Bytes : group::Field<std::uint8_t> {
  using Field::Field;
  __device__ __forceinline__ bool begin(std::uint64_t /*n*/) const { return true; }
};

template <std::uint32_t kChunkBytes>
using Alone = group::Chain<Bytes, RzeOp<kChunkBytes>>;

template <std::uint32_t kChunkBytes>
typename Alone<kChunkBytes>::Args argsOf(const RzeArgs& args) {
  return {{args.in.data, args.out.data, args.in.size}, {args}};
}

template <std::uint32_t kChunkBytes>
void launchEncodeFor(const RzeArgs& args, const cuda::Call& call) {
  using C = Alone<kChunkBytes>;
  const unsigned n_most = cuda::multiprocessorCount() * C::Encoding::kBlocks;
  const unsigned n_blocks = std::min<unsigned>(args.n_chunks, n_most);
  group::encodeGroup<C>
      <<<n_blocks, C::Encoding::kThreads, 0, call.stream>>>(argsOf<kChunkBytes>(args));
  cuda::checkLaunch("rze encode");
}

template <std::uint32_t kChunkBytes>
void launchDecodeFor(const RzeArgs& args, const cuda::Call& call) {
  using C = Alone<kChunkBytes>;
  group::decodeGroup<C>
      <<<args.n_chunks, C::Decoding::kThreads, 0, call.stream>>>(argsOf<kChunkBytes>(args));
  cuda::checkLaunch("rze decode");
}

__global__ void __launch_bounds__(kPlaceThreads)
    placeKernel(const RzeArgs args, std::uint32_t chunk_bytes) {
  device::placeChunks(args, chunk_bytes);
}

struct PlaceJob {
  alignas(16) RzeArgs args;
  alignas(16) std::uint32_t chunk_bytes;
};
__global__ void __launch_bounds__(kPlaceThreads) placeEachKernel(const EachField fields) {
  const auto& job = cuda::argumentsOf<PlaceJob>(fields);
  device::placeChunks(job.args, job.chunk_bytes);
}

}  // namespace

void launchPlaces(const RzeArgs& args, std::uint32_t chunk_bytes, const cuda::Call& call) {
  if (args.states == nullptr) {
    return;
  }
  call.launch("rze places", cuda::withEach(placeKernel, placeEachKernel),
              placeBlocks(args.n_chunks), kPlaceThreads, 0, args, chunk_bytes);
}

void launchEncode(const RzeArgs& args, std::uint32_t chunk_bytes, const cuda::Call& call) {
  if (chunk_bytes == 4096) {
    launchEncodeFor<4096>(args, call);
  } else if (chunk_bytes == 8192) {
    launchEncodeFor<8192>(args, call);
  } else {
    launchEncodeFor<16384>(args, call);
  }
}

void launchDecode(const RzeArgs& args, std::uint32_t chunk_bytes, const cuda::Call& call) {
  launchPlaces(args, chunk_bytes, call);
  if (chunk_bytes == 4096) {
    launchDecodeFor<4096>(args, call);
  } else if (chunk_bytes == 8192) {
    launchDecodeFor<8192>(args, call);
  } else {
    launchDecodeFor<16384>(args, call);
  }
}

}  // namespace fz::rze
