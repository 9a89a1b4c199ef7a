#include "predictors/lorenzo/cuda/grid.cuh"
#include "shared/bits.h"

namespace fz::lorenzo {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kSlabLayers = 16;  // a block goes through so many layers, one after the other

/// Rows per warp.
template <bool kHasLayers>
constexpr unsigned kRows = kHasLayers ? 4 : 8;

/// Values minus their left neighbours. `left` stands before the row; only the first lane uses it.
template <class P, class Word>
__device__ __forceinline__ void differencesInRow(Word (&row)[P::kWords], Word left, bool vector) {
  if (vector) {
    const Word lane_before = __shfl_up_sync(kAllLanes, row[P::kWords - 1], 1);
    Word before = laneId() == 0 ? P::asLast(left) : lane_before;
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      const Word word = row[w];
      row[w] = P::sub(word, P::leftOf(word, before));
      before = word;
    }
  } else {
    Word before = left;
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      const Word word = row[w];
      const Word lane_before = __shfl_up_sync(kAllLanes, word, 1);
      row[w] = P::sub(word, laneId() == 0 ? before : lane_before);
      before = __shfl_sync(kAllLanes, word, kWarp - 1);
    }
  }
}

/// Differences along x and along the rows for kRowCount rows from row0 on, of one layer.
template <class U, bool kVector, unsigned kRowCount>
__device__ __forceinline__ void differencesInLayer(
    const U* layer,
    const GridArgs& args,
    const Grid& grid,
    std::uint64_t x0,
    std::uint64_t row0,
    typename cuda::Packed<U, kVector>::Word (&out)[kRowCount][cuda::Packed<U, kVector>::kWords]) {
  using P = cuda::Packed<U, kVector>;
  using Word = typename P::Word;
  Word above[P::kWords] = {};
  if (row0 > 0) {
    P::template load<true>(layer + (row0 - 1) * grid.row_step, x0, grid.nx, above);
  }
#pragma unroll
  for (unsigned r = 0; r < kRowCount; ++r) {
    const std::uint64_t end = row0 + r < args.n_rows ? grid.nx : 0;
    P::template load<true>(layer + (row0 + r) * grid.row_step, x0, end, out[r]);
  }
  // Lane i looks after what stands left of row i, counted from the one above.
  Word left = 0;
  if (x0 > 0 && laneId() <= kRowCount && row0 + laneId() >= 1 && row0 + laneId() <= args.n_rows) {
    left = static_cast<Word>(__ldg(layer + (row0 + laneId() - 1) * grid.row_step + x0 - 1));
  }
  differencesInRow<P>(above, __shfl_sync(kAllLanes, left, 0), kVector);
#pragma unroll
  for (unsigned r = 0; r < kRowCount; ++r) {
    differencesInRow<P>(out[r], __shfl_sync(kAllLanes, left, static_cast<int>(r + 1)), kVector);
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      const Word row = out[r][w];
      out[r][w] = P::sub(row, above[w]);
      above[w] = row;
    }
  }
}

/// A warp takes 32 times 16 bytes of some rows. With layers it walks through those of its slab and
/// keeps what it had in the layer before.
template <class U, bool kVector, bool kHasLayers>
__global__ __launch_bounds__(kThreads, 3) void encodeKernel(GridArgs args) {
  using P = cuda::Packed<U, kVector>;
  using Word = typename P::Word;
  constexpr unsigned kRowCount = kRows<kHasLayers>;
  const Grid grid = resolveGrid<U>(args);
  if (grid.nx == 0) {
    return;
  }
  const TilePlace place =
      tilePlace(blockIdx.x, bits::ceilDiv<std::uint64_t>(grid.nx, P::kRowValues),
                bits::ceilDiv<std::uint64_t>(args.n_rows, kWarps * kRowCount));
  const std::uint64_t x0 = place.strip * P::kRowValues;
  const std::uint64_t row0 = (place.band * kWarps + warpId()) * kRowCount;
  const std::uint64_t layer0 = place.slab * kSlabLayers;
  if (row0 >= args.n_rows || layer0 >= args.n_layers) {
    return;
  }
  const auto* in = static_cast<const U*>(args.in);
  auto* out = static_cast<U*>(args.out);
  const auto storeLayer = [&](std::uint64_t z, const Word(&codes)[kRowCount][P::kWords]) {
#pragma unroll
    for (unsigned r = 0; r < kRowCount; ++r) {
      if (row0 + r < args.n_rows) {
        U* row = out + z * grid.layer_step + (row0 + r) * grid.row_step;
        P::template store<true>(row, x0, grid.nx, codes[r]);
      }
    }
  };
  if constexpr (!kHasLayers) {
    Word codes[kRowCount][P::kWords];
    differencesInLayer<U, kVector, kRowCount>(in, args, grid, x0, row0, codes);
    storeLayer(0, codes);
  } else {
    Word before[kRowCount][P::kWords] = {};
    if (layer0 > 0) {
      differencesInLayer<U, kVector, kRowCount>(in + (layer0 - 1) * grid.layer_step, args, grid, x0,
                                                row0, before);
    }
    const std::uint64_t layer_end =
        layer0 + kSlabLayers < args.n_layers ? layer0 + kSlabLayers : args.n_layers;
#pragma unroll 1
    for (std::uint64_t z = layer0; z < layer_end; ++z) {
      Word codes[kRowCount][P::kWords];
      differencesInLayer<U, kVector, kRowCount>(in + z * grid.layer_step, args, grid, x0, row0,
                                                codes);
#pragma unroll
      for (unsigned r = 0; r < kRowCount; ++r) {
#pragma unroll
        for (unsigned w = 0; w < P::kWords; ++w) {
          const Word own = codes[r][w];
          codes[r][w] = P::sub(own, before[r][w]);
          before[r][w] = own;
        }
      }
      storeLayer(z, codes);
    }
  }
}

template <class U, bool kVector, bool kHasLayers>
void launch(const GridArgs& args, cudaStream_t stream) {
  const std::uint64_t n_strips =
      bits::ceilDiv<std::uint64_t>(args.nx, cuda::Packed<U, kVector>::kRowValues);
  const std::uint64_t n_bands =
      bits::ceilDiv<std::uint64_t>(args.n_rows, kWarps * kRows<kHasLayers>);
  const std::uint64_t n_slabs = bits::ceilDiv<std::uint64_t>(args.n_layers, kSlabLayers);
  const unsigned n_blocks = cuda::gridFor(n_strips * n_bands * n_slabs, 1);
  encodeKernel<U, kVector, kHasLayers><<<n_blocks, kThreads, 0, stream>>>(args);
  cuda::checkLaunch("Lorenzo encode");
}

template <class U, bool kVector>
void launchFor(const GridArgs& args, cudaStream_t stream) {
  if (args.n_layers > 1) {
    launch<U, kVector, true>(args, stream);
  } else {
    launch<U, kVector, false>(args, stream);
  }
}

}  // namespace

template <class U>
void encodeGrid(const CudaGrid& grid) {
  if (areRowsAligned<U>(grid)) {
    launchFor<U, true>(gridArgs(grid), grid.stream);
  } else {
    launchFor<U, false>(gridArgs(grid), grid.stream);
  }
}

template void encodeGrid<std::uint8_t>(const CudaGrid&);
template void encodeGrid<std::uint16_t>(const CudaGrid&);
template void encodeGrid<std::uint32_t>(const CudaGrid&);
template void encodeGrid<std::uint64_t>(const CudaGrid&);

}  // namespace fz::lorenzo
