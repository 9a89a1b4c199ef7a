// ABS and NOA with outlier lists.
#include "backends/cuda/launch.h"
#include "quantizers/quantizer/quantizer_lists.cuh"

namespace fz::quantizer::device {

namespace {

template <class T, class C, bool kZigzag>
__global__ void __launch_bounds__(kThreads) encodeListsKernel(const EncodeJob job) {
  const BinRule<T>& rule = stateOf<T>(job).rules[0];
  const AbsCoder<T, C, kZigzag> coder{quickRule(rule), &rule};
  encodeListsTile<T, C>(job, coder);
}

template <class T, class C>
void launchFor(const EncodeJob& job, bool zigzag, cudaStream_t stream) {
  const unsigned n_blocks = cuda::gridFor(job.input.size.n_bytes, kTileBytes * kWarps);
  if (zigzag) {
    encodeListsKernel<T, C, true><<<n_blocks, kThreads, 0, stream>>>(job);
  } else {
    encodeListsKernel<T, C, false><<<n_blocks, kThreads, 0, stream>>>(job);
  }
  cuda::checkLaunch("quantizer encodeListsKernel");
}

}  // namespace

void launchEncodeLists(const EncodeJob& job, bool zigzag, cudaStream_t stream) {
  if (job.value_bytes == 4) {
    job.code_bytes == 2 ? launchFor<float, std::uint16_t>(job, zigzag, stream)
                        : launchFor<float, std::uint32_t>(job, zigzag, stream);
  } else {
    job.code_bytes == 2 ? launchFor<double, std::uint16_t>(job, zigzag, stream)
                        : launchFor<double, std::uint32_t>(job, zigzag, stream);
  }
}

}  // namespace fz::quantizer::device
