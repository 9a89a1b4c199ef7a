// REL, encoding.
#include "backends/cuda/launch.h"
#include "quantizers/quantizer/quantizer_lists.cuh"

namespace fz::quantizer::device {

namespace {

template <class T, class C>
struct RelCoder {
  RelRule rule;

  __device__ __forceinline__ unsigned encode(const Vec16<T>& x, C* codes) const {
    unsigned refused = 0;
#pragma unroll
    for (unsigned e = 0; e < Vec16<T>::kCount; ++e) {
      codes[e] = relCode<T, C>(x.v[e], rule);
      refused |= (codes[e] == 0 ? 1u : 0u) << e;
    }
    return refused;
  }
};

template <class T, class C>
__global__ void __launch_bounds__(kThreads)
    encodeRelKernel(const EncodeJob job, const RelRule rule) {
  encodeListsTile<T, C, kRelVecs>(job, RelCoder<T, C>{rule});
}

template <class T, class C>
void launchFor(const EncodeJob& job, const RelSettings& settings, cudaStream_t stream) {
  const unsigned n_blocks = cuda::gridFor(job.input.size.n_bytes, kRelTileBytes);
  encodeRelKernel<T, C><<<n_blocks, kThreads, 0, stream>>>(job, makeRelRule<T>(settings));
  cuda::checkLaunch("quantizer encodeRelKernel");
}

}  // namespace

void launchEncodeRel(const EncodeJob& job, const RelSettings& settings, cudaStream_t stream) {
  if (job.value_bytes == 4) {
    job.code_bytes == 2 ? launchFor<float, std::uint16_t>(job, settings, stream)
                        : launchFor<float, std::uint32_t>(job, settings, stream);
  } else {
    job.code_bytes == 2 ? launchFor<double, std::uint16_t>(job, settings, stream)
                        : launchFor<double, std::uint32_t>(job, settings, stream);
  }
}

}  // namespace fz::quantizer::device
