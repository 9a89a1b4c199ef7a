// Codes with outlier lists: for each tile its codes and, for the gathering that follows, which
// values have none.
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "quantizers/quantizer/cuda/op/rel.cuh"
#include "quantizers/quantizer/cuda/op/tile.cuh"

namespace fz::quantizer::device {

namespace {

/// Bits of a tile's values in index order, kMaskWords words.
template <class T>
struct TileMask {
  using Shape = TileShape<T, kVecs>;
  static constexpr unsigned kLanesPerWord = 32 / Shape::kCount;

  /// A full warp; bit j * kCount + e of `refused` belongs to value e of the lane's piece j.
  static __device__ __forceinline__ void store(std::uint32_t* words, unsigned refused) {
    constexpr unsigned kPieceBits = (1u << Shape::kCount) - 1u;
    const unsigned in_word = cuda::laneId() % kLanesPerWord;
#pragma unroll
    for (unsigned j = 0; j < kVecs; ++j) {
      unsigned word = (refused >> (j * Shape::kCount) & kPieceBits) << (in_word * Shape::kCount);
#pragma unroll
      for (unsigned step = 1; step < kLanesPerWord; step *= 2) {
        word |= __shfl_xor_sync(cuda::kAllLanes, word, step);
      }
      if (in_word == 0) {
        words[(j * cuda::kWarp + cuda::laneId()) / kLanesPerWord] = word;
      }
    }
  }
};

/// The work of one warp: its tile.
template <class T, class C, class Coder>
__device__ __forceinline__ void encodeListsTile(const EncodeJob& job, const Coder& coder) {
  using Shape = TileShape<T, kVecs>;
  const std::uint64_t n = valuesOf<T>(job);
  const std::uint64_t tile = firstTile();
  const std::uint64_t begin = tile * Shape::kValues;
  if (begin >= n) {
    return;
  }
  const std::uint64_t n_left = n - begin;
  Vec16<T> x[kVecs];
  loadTile<T, kVecs>(reinterpret_cast<const T*>(job.input.data) + begin, n_left, x);
  CodeVec<C, Shape::kCount> codes[kVecs];
  unsigned refused = 0;
#pragma unroll
  for (unsigned j = 0; j < kVecs; ++j) {
    refused |= coder.encode(x[j].v, codes[j].v) << (j * Shape::kCount);
  }
  storeTile<T, kVecs>(reinterpret_cast<C*>(job.codes.data) + begin, n_left, codes);

  refused &= presentValues<T, kVecs>(n_left);
  unsigned n_refused = 0;
  if (__any_sync(cuda::kAllLanes, refused != 0)) {
    n_refused = __reduce_add_sync(cuda::kAllLanes, static_cast<unsigned>(__popc(refused)));
    TileMask<T>::store(job.tile_masks + tile * kMaskWords<T>, refused);
  }
  if (cuda::laneId() == 0) {
    job.tile_counts[tile] = static_cast<std::uint16_t>(n_refused);
  }
}

template <class T, class C, bool kZigzag>
__global__ void __launch_bounds__(kThreads) encodeListsKernel(const EncodeJob job) {
  const BinRule<T>& rule = stateOf<T>(job).rules[0];
  const AbsCoder<T, C, kZigzag> coder{fastRule(rule), &rule};
  encodeListsTile<T, C>(job, coder);
}

template <class T, class C>
void launchFor(const EncodeJob& job, bool zigzag, const cuda::Call& call) {
  const unsigned n_blocks = cuda::gridFor(job.input.size.n_bytes, kTileBytes * kWarps);
  if (zigzag) {
    encodeListsKernel<T, C, true><<<n_blocks, kThreads, 0, call.stream>>>(job);
  } else {
    encodeListsKernel<T, C, false><<<n_blocks, kThreads, 0, call.stream>>>(job);
  }
  cuda::checkLaunch("quantizer encodeListsKernel");
}

template <class T, class C, class Fast>
__global__ void __launch_bounds__(kThreads, kRelBlocks)
    encodeRelKernel(const EncodeJob job, const RelCoder<T, C, Fast> coder) {
  encodeListsTile<T, C>(job, coder);
}

template <class T, class C, class Fast>
void launchWith(const EncodeJob& job,
                const RelRule& rule,
                const Fast& fast,
                const cuda::Call& call) {
  const unsigned n_blocks = cuda::gridFor(job.input.size.n_bytes, kTileBytes * kWarps);
  const RelCoder<T, C, Fast> coder{rule, fast};
  encodeRelKernel<T, C, Fast><<<n_blocks, kThreads, 0, call.stream>>>(job, coder);
  cuda::checkLaunch("quantizer encodeRelKernel");
}

template <class T, class C>
void launchRelFor(const EncodeJob& job, const RelSettings& settings, const cuda::Call& call) {
  const RelRule rule = makeRelRule<T>(settings);
  const RelShortcut shortcut = relShortcut<T>(settings.bound);
  if constexpr (std::is_same_v<T, float>) {
    if (shortcut == RelShortcut::kFloat) {
      return launchWith<T, C>(job, rule, makeRelFloatRule(rule), call);
    }
  }
  if (shortcut == RelShortcut::kDouble) {
    return launchWith<T, C>(job, rule, makeRelDoubleRule(rule), call);
  }
  launchWith<T, C>(job, rule, NoShortcut{}, call);
}

}  // namespace

void launchEncodeLists(const EncodeJob& job, bool zigzag, const cuda::Call& call) {
  if (job.value_bytes == 4) {
    job.code_bytes == 2 ? launchFor<float, std::uint16_t>(job, zigzag, call)
                        : launchFor<float, std::uint32_t>(job, zigzag, call);
  } else {
    job.code_bytes == 2 ? launchFor<double, std::uint16_t>(job, zigzag, call)
                        : launchFor<double, std::uint32_t>(job, zigzag, call);
  }
}

void launchEncodeRel(const EncodeJob& job, const RelSettings& settings, const cuda::Call& call) {
  if (job.value_bytes == 4) {
    job.code_bytes == 2 ? launchRelFor<float, std::uint16_t>(job, settings, call)
                        : launchRelFor<float, std::uint32_t>(job, settings, call);
  } else {
    job.code_bytes == 2 ? launchRelFor<double, std::uint16_t>(job, settings, call)
                        : launchRelFor<double, std::uint32_t>(job, settings, call);
  }
}

}  // namespace fz::quantizer::device
