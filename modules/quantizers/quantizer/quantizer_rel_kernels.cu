// REL, encoding: a shortcut for most values, relCode for those that it cannot settle.
#include "backends/cuda/launch.h"
#include "quantizers/quantizer/quantizer_lists.cuh"
#include "quantizers/quantizer/quantizer_rel_coder.cuh"

namespace fz::quantizer::device {

namespace {

template <class T, class C, class Quick>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    encodeRelKernel(const EncodeJob job, const RelCoder<T, C, Quick> coder) {
  encodeListsTile<T, C>(job, coder);
}

template <class T, class C, class Quick>
void launchWith(const EncodeJob& job,
                const RelRule& rule,
                const Quick& quick,
                cudaStream_t stream) {
  const unsigned n_blocks = cuda::gridFor(job.input.size.n_bytes, kTileBytes * kWarps);
  const RelCoder<T, C, Quick> coder{rule, quick};
  encodeRelKernel<T, C, Quick><<<n_blocks, kThreads, 0, stream>>>(job, coder);
  cuda::checkLaunch("quantizer encodeRelKernel");
}

template <class T, class C>
void launchFor(const EncodeJob& job, const RelSettings& settings, cudaStream_t stream) {
  const RelRule rule = makeRelRule<T>(settings);
  const RelShortcut shortcut = relShortcut<T>(settings.bound);
  if constexpr (std::is_same_v<T, float>) {
    if (shortcut == RelShortcut::kFloat) {
      return launchWith<T, C>(job, rule, makeRelFloatRule(rule), stream);
    }
  }
  if (shortcut == RelShortcut::kDouble) {
    return launchWith<T, C>(job, rule, makeRelDoubleRule(rule), stream);
  }
  launchWith<T, C>(job, rule, NoShortcut{}, stream);
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
