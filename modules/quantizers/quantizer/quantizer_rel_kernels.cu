// REL, encoding: a shortcut for most values, relCode for those that it cannot settle.
#include "backends/cuda/launch.h"
#include "quantizers/quantizer/quantizer_lists.cuh"
#include "quantizers/quantizer/quantizer_rel_quick_codec.h"

namespace fz::quantizer::device {

namespace {

/// For bounds without a shortcut.
struct NoShortcut {};

/// Quick is the rule of a shortcut.
template <class T, class C, class Quick>
struct RelCoder {
  static constexpr unsigned kCount = Vec16<T>::kCount;
  RelRule rule;
  Quick quick;

  __device__ __forceinline__ unsigned encode(const Vec16<T>& x, C* codes) const {
    unsigned open = (1u << kCount) - 1u;
    if constexpr (!std::is_same_v<Quick, NoShortcut>) {
      open = 0;
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) {
        typename Quick::Flag unsure = 0;
        codes[e] = relQuickCode<C>(x.v[e], quick, unsure);
        open |= (unsure != 0 ? 1u : 0u) << e;
      }
    }
    // One copy of the long way; selects instead of an index keep the piece in registers.
#pragma unroll 1
    while (open != 0) {
      const auto at = static_cast<unsigned>(__ffs(static_cast<int>(open))) - 1;
      T value = x.v[0];
#pragma unroll
      for (unsigned e = 1; e < kCount; ++e) {
        value = e == at ? x.v[e] : value;
      }
      const C code = relCode<T, C>(value, rule);
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) {
        codes[e] = e == at ? code : codes[e];
      }
      open &= open - 1;
    }
    bool any_refused = false;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      any_refused |= codes[e] == 0;
    }
    if (!any_refused) {
      return 0;
    }
    unsigned refused = 0;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      refused |= (codes[e] == 0 ? 1u : 0u) << e;
    }
    return refused;
  }
};

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
