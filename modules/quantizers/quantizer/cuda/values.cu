// In place and linear: every value has its code's place, and nothing else is written.
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "quantizers/quantizer/cuda/op/tile.cuh"
#include "quantizers/quantizer/cuda/op/values.cuh"

namespace fz::quantizer::device {

namespace {

/// Codes of the values that have no bin.
template <class T, class C, bool kInplace>
__device__ __forceinline__ void settlePiece(const Vec16<T>& x,
                                            unsigned refused,
                                            std::uint64_t begin,
                                            const FlatJob& flat,
                                            const BinRule<T>& rule,
                                            C* codes,
                                            Violations& violations) {
#pragma unroll
  for (unsigned e = 0; e < Vec16<T>::kCount; ++e) {
    if ((refused >> e & 1u) == 0) {
      continue;
    }
    if constexpr (kInplace) {
      codes[e] = fp::bits(x.v[e]);
      if (!isRawBits(codes[e], flat.radius)) {
        violations.record(begin + e, true);
      }
    } else if (flat.wrap) {
      codes[e] = wrappedCode<T, C>(x.v[e], rule);
    } else {
      violations.record(begin + e, fp::isFinite(x.v[e]));
    }
  }
}

template <class T, class C, bool kInplace>
__global__ void __launch_bounds__(kThreads)
    encodeFlatKernel(const EncodeJob job, const FlatJob flat) {
  using Shape = TileShape<T, kVecs>;
  EncodeState<T>& state = stateOf<T>(job);
  if (flat.rung > 0 && (state.n_violations[flat.rung - 1] == 0 || state.has_nonfinite != 0)) {
    return;  // the rung before held, or no step helps
  }
  const BinRule<T>& rule = state.rules[flat.rung];
  // Of linear codes one more bin is in use than the fast path knows.
  const AbsCoder<T, C, kInplace> coder{fastRule(rule), &rule};
  const std::uint64_t n = valuesOf<T>(job);
  const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(n, Shape::kValues);
  Violations violations;
  for (std::uint64_t tile = firstTile(); tile < n_tiles;
       tile += std::uint64_t{gridDim.x} * kWarps) {
    const std::uint64_t begin = tile * Shape::kValues;
    const std::uint64_t n_left = n - begin;
    Vec16<T> x[kVecs];
    loadTile<T, kVecs>(reinterpret_cast<const T*>(job.input.data) + begin, n_left, x);
    const unsigned present = presentValues<T, kVecs>(n_left);
    CodeVec<C, Shape::kCount> codes[kVecs];
#pragma unroll
    for (unsigned j = 0; j < kVecs; ++j) {
      const unsigned refused = coder.encode(x[j].v, codes[j].v) & present >> (j * Shape::kCount);
      if (refused != 0) {
        settlePiece<T, C, kInplace>(x[j], refused, begin + Shape::at(j), flat, rule, codes[j].v,
                                    violations);
      }
    }
    storeTile<T, kVecs>(reinterpret_cast<C*>(job.codes.data) + begin, n_left, codes);
  }
  reportWarp(violations, state, flat.rung);
}

template <class T>
__global__ void settleKernel(const EncodeJob job, const bool is_ladder) {
  const EncodeState<T>& state = stateOf<T>(job);
  unsigned rung = 0;
  while (is_ladder && rung < kLastRung && state.n_violations[rung] > 0 &&
         state.has_nonfinite == 0) {
    ++rung;
  }
  const auto* values = reinterpret_cast<const T*>(job.input.data);
  recordRung(job.record->value, state, rung, state.in_use[rung],
             [values](std::uint64_t at) { return values[at]; });
}

template <class T, class C, bool kInplace>
void launchFor(const EncodeJob& job, const FlatJob& flat, const cuda::Call& call) {
  unsigned n_blocks = cuda::gridFor(job.input.size.n_bytes, kTileBytes * kWarps);
  if (flat.rung > 0) {
    // Seldom needed; blocks that only find that out should be few.
    n_blocks = std::min(n_blocks, residentBlocks(cuda::multiprocessorCount()));
  }
  encodeFlatKernel<T, C, kInplace><<<n_blocks, kThreads, 0, call.stream>>>(job, flat);
  cuda::checkLaunch("quantizer encodeFlatKernel");
}

}  // namespace

void launchEncodeFlat(const EncodeJob& job, const FlatJob& flat, const cuda::Call& call) {
  if (flat.inplace) {
    launchFor<float, std::uint32_t, true>(job, flat, call);
  } else if (job.value_bytes == 4) {
    job.code_bytes == 2 ? launchFor<float, std::uint16_t, false>(job, flat, call)
                        : launchFor<float, std::uint32_t, false>(job, flat, call);
  } else {
    job.code_bytes == 2 ? launchFor<double, std::uint16_t, false>(job, flat, call)
                        : launchFor<double, std::uint32_t, false>(job, flat, call);
  }
}

void launchSettle(const EncodeJob& job, bool is_ladder, const cuda::Call& call) {
  call.launch("quantizer settleKernel",
              job.value_bytes == 4 ? settleKernel<float> : settleKernel<double>, 1, 1, 0, job,
              is_ladder);
}

}  // namespace fz::quantizer::device
