// Decoding grids: running sums along x, rows and layers. The first pass (sums.cuh) only
// reads, and finds for every tile what all others before it sum up to; the second pass then works
// on every tile alone. No block waits for another.

#include <algorithm>

#include "predictors/lorenzo/cuda/policy.h"
#include "predictors/lorenzo/cuda/sums.cuh"

namespace fz::lorenzo {

/// Shared memory of the second pass, two of each so that one barrier per layer is enough.
template <class T>
struct ScanMemory {
  typename T::Word columns[2][kWarps][T::kColumns];
  typename T::Word rows[2][kWarps];
};

/// What the tiles before this one sum up to, in one layer or several.
template <class T, bool kHasLayers>
struct Before {
  using P = typename T::P;
  using Word = typename T::Word;
  Word above[P::kWords] = {};  ///< the columns, over the bands before
  Word left = 0;               ///< row lane % kRows, over some or all of the strips before
  Word corner = 0;             ///< the bands before, over the strips before; one part per lane

  __device__ __forceinline__ void addLayer(const GridArgs& args,
                                           const PartSums<Word>& sums,
                                           const WarpPlace& at,
                                           std::uint64_t layer) {
    const unsigned lane = cuda::laneId();
    if (kHasLayers && sums.has_own_rows) {
      const std::uint64_t row = at.row0 + lane % kRows;
      if (lane / kRows < at.strip && row < args.n_rows) {
        left = delta::plus(left,
                           sums.rows[(layer * args.n_rows + row) * sums.n_strips + lane / kRows]);
      }
    } else if (sums.n_strips > 1 && lane < kRows && at.row0 + lane < args.n_rows) {
      const std::uint64_t row = layer * args.n_rows + at.row0 + lane;
      left = delta::plus(left, sums.rows[row * sums.n_strips + at.strip]);
    }
    if (at.band > 0) {
      const Word* columns = sums.columnsOf(layer, at.band);
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        const std::uint64_t word = at.strip * T::kColumns + P::wordPlace(w);
        above[w] = P::add(above[w], word < sums.n_words ? columns[word] : Word{0});
      }
      if constexpr (kHasLayers) {
        // The first one apart: in a loop it would be waited for at once.
        if (lane < at.strip) {
          corner = delta::plus(corner, columns[sums.n_words + lane]);
        }
      }
      for (std::uint64_t strip = lane + (kHasLayers ? cuda::kWarp : 0); strip < at.strip;
           strip += cuda::kWarp) {
        corner = delta::plus(corner, columns[sums.n_words + strip]);
      }
    }
  }
  /// For lane r: row r, over all strips before; 0 for the lanes behind.
  __device__ __forceinline__ Word leftOfRow() const {
    Word sum = left;
    if constexpr (kHasLayers) {
#pragma unroll
      for (unsigned step = kRows; step < cuda::kWarp; step *= 2) {
        sum = delta::plus(sum, __shfl_xor_sync(cuda::kAllLanes, sum, step));
      }
      sum = cuda::laneId() < kRows ? sum : Word{0};
    }
    return sum;
  }
};

/// Running sums along the rows and along x over the whole layer: columns are summed first, so what
/// stands left of a row includes the rows above.
template <class T, bool kHasLayers>
__device__ __forceinline__ void sumTile(Before<T, kHasLayers> before,
                                        unsigned half,
                                        ScanMemory<T>& memory,
                                        typename T::Words& words) {
  using P = typename T::P;
  using Word = typename T::Word;
#pragma unroll
  for (unsigned w = 0; w < P::kWords; ++w) {
#pragma unroll
    for (unsigned r = 1; r < kRows; ++r) {
      words[r][w] = P::add(words[r][w], words[r - 1][w]);
    }
    memory.columns[half][cuda::warpId()][P::wordPlace(w)] = words[kRows - 1][w];
  }
  Word left = cuda::warpInclusiveSum(before.leftOfRow());
  if (cuda::laneId() == cuda::kWarp - 1) {
    memory.rows[half][cuda::warpId()] = left;
  }
  left = delta::plus(left, cuda::warpSum(before.corner));
  __syncthreads();
  for (unsigned warp = 0; warp < cuda::warpId(); ++warp) {
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      before.above[w] = P::add(before.above[w], memory.columns[half][warp][P::wordPlace(w)]);
    }
    left = delta::plus(left, memory.rows[half][warp]);
  }
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      words[r][w] = P::add(words[r][w], before.above[w]);
    }
    P::sumRow(words[r], __shfl_sync(cuda::kAllLanes, left, static_cast<int>(r)));
  }
}

/// One layer of a tile, decoded but for the layers before.
template <class T, bool kHasLayers>
__device__ __forceinline__ void decodeLayer(const GridArgs& args,
                                            const Grid& grid,
                                            const PartSums<typename T::Word>& sums,
                                            const WarpPlace& at,
                                            std::uint64_t layer,
                                            ScanMemory<T>& memory,
                                            typename T::Words& words) {
  loadTile<T>(args, grid, at, layer, words);
  Before<T, kHasLayers> before;
  before.addLayer(args, sums, at, layer);
  sumTile<T, kHasLayers>(before, layer % 2, memory, words);
}

/// One block per strip, band and slab, the last first: what the first pass read last may still be
/// in the cache.
template <class T, bool kHasLayers>
__global__ __launch_bounds__(kThreads, kHasLayers ? 2 : 3) void decodeKernel(
    GridArgs args, PartSums<typename T::Word> sums) {
  __shared__ __align__(16) ScanMemory<T> memory;
  const Grid grid = resolveGrid<typename T::Value>(args);
  if (grid.nx == 0) {
    return;
  }
  const std::uint64_t n_strips = bits::ceilDiv<std::uint64_t>(grid.nx, T::P::kRowValues);
  const WarpPlace at(tilePlace(gridDim.x - 1 - blockIdx.x, n_strips, sums.n_bands));
  const std::uint64_t layer0 = at.slab * sums.slab_layers;
  if (layer0 >= args.n_layers) {
    return;  // the whole block
  }
  typename T::Words words;
  if constexpr (!kHasLayers) {
    decodeLayer<T, false>(args, grid, sums, at, 0, memory, words);
    storeTile<T>(args, grid, at, 0, words);
  } else {
    typename T::Words all = {};  // over the layers so far
    if (at.slab > 0) {
      Before<T, true> before;
      for (std::uint64_t slab = 0; slab < at.slab; ++slab) {
        loadSlabTile<T>(slabTile(sums, at, slab), words);
        before.addLayer(args, sums, at, args.n_layers + slab);
        addTile<T>(words, all);
      }
      sumTile<T, true>(before, 0, memory, all);
      __syncthreads();  // the next layer may use the same half of the memory
    }
    const std::uint64_t layer_end = layerEnd(args, sums, layer0);
    for (std::uint64_t layer = layer0; layer < layer_end; ++layer) {
      decodeLayer<T, true>(args, grid, sums, at, layer, memory, words);
      addTile<T>(words, all);
      storeTile<T>(args, grid, at, layer, all);
    }
  }
}

/// The working memory, laid out for a grid.
template <class T>
PartSums<typename T::Word> planParts(const GridArgs& args, void* scratch, std::size_t& n_bytes) {
  using Word = typename T::Word;
  PartSums<Word> sums = {};
  sums.n_strips = bits::ceilDiv<std::uint64_t>(args.nx, T::P::kRowValues);
  sums.n_bands = bits::ceilDiv<std::uint64_t>(args.n_rows, kBandRows);
  sums.n_words = bits::ceilDiv<std::uint64_t>(args.nx, T::P::kPack);
  sums.pitch = sums.n_words + sums.n_strips;
  sums.slab_layers = slabLayers(args.n_layers, sums.n_strips * sums.n_bands);
  sums.n_slabs = bits::ceilDiv(args.n_layers, sums.slab_layers);
  sums.has_own_rows = args.n_layers > 1 && sums.n_strips <= kFewStrips;
  const std::uint64_t n_layers = sums.layerCount(args.n_layers);
  n_bytes = 0;
  const auto take = [&](std::uint64_t bytes) {
    void* at = static_cast<std::uint8_t*>(scratch) + n_bytes;
    n_bytes += bits::roundUp<std::uint64_t>(bytes, 16);
    return at;
  };
  if (sums.n_bands > 1) {
    sums.columns = static_cast<Word*>(take(n_layers * sums.n_bands * sums.pitch * sizeof(Word)));
  }
  if (sums.n_strips > 1) {
    sums.rows = static_cast<Word*>(take(n_layers * args.n_rows * sums.n_strips * sizeof(Word)));
  }
  if (sums.n_slabs > 1) {
    sums.slabs = static_cast<uint4*>(
        take(sums.n_slabs * sums.n_bands * sums.n_strips * kThreads * kRows * sizeof(uint4)));
  }
  return sums;
}

/// The first pass: one kernel reads everything, one works on what it found.
template <class T>
void launchSums(const GridArgs& args, const PartSums<typename T::Word>& sums, cudaStream_t stream) {
  const unsigned n_blocks = cuda::gridFor(sums.n_strips * sums.n_bands * sums.n_slabs, 1);
  if (args.n_layers > 1) {
    reduceKernel<T, true><<<n_blocks, kThreads, 0, stream>>>(args, sums);
  } else {
    reduceKernel<T, false><<<n_blocks, kThreads, 0, stream>>>(args, sums);
  }
  const std::uint64_t n_layers = sums.layerCount(args.n_layers);
  PartBlocks parts = {0, 1, 0, 1};
  if (sums.n_bands > 1) {
    const unsigned n_words = sums.n_bands <= kFewBands ? kThreads : cuda::kWarp;
    parts.n_per_layer = static_cast<unsigned>(bits::ceilDiv<std::uint64_t>(sums.pitch, n_words));
    parts.n_for_columns = static_cast<unsigned>(parts.n_per_layer * n_layers);
  }
  if (sums.n_strips > 1 && !sums.has_own_rows) {
    parts.n_lines = n_layers * args.n_rows;
    while (parts.log_lanes < 5 && 1u << parts.log_lanes < sums.n_strips) {
      ++parts.log_lanes;
    }
  }
  const std::uint64_t n_for_rows =
      bits::ceilDiv<std::uint64_t>(parts.n_lines << parts.log_lanes, kThreads);
  if (parts.n_for_columns + n_for_rows > 0) {
    sumParts<T>
        <<<cuda::gridFor(parts.n_for_columns + n_for_rows, 1), kThreads, 0, stream>>>(sums, parts);
  }
}

template <class T>
void launchDecode(const GridArgs& args, void* scratch, cudaStream_t stream) {
  std::size_t n_bytes = 0;
  const PartSums<typename T::Word> sums = planParts<T>(args, scratch, n_bytes);
  if (sums.n_strips * sums.n_bands * sums.n_slabs > 1) {
    launchSums<T>(args, sums, stream);
  }
  const unsigned n_blocks = cuda::gridFor(sums.n_strips * sums.n_bands * sums.n_slabs, 1);
  if (args.n_layers > 1) {
    decodeKernel<T, true><<<n_blocks, kThreads, 0, stream>>>(args, sums);
  } else {
    decodeKernel<T, false><<<n_blocks, kThreads, 0, stream>>>(args, sums);
  }
  cuda::checkLaunch("Lorenzo decode");
}

template <class U>
std::size_t decodeScratchBytes(const CudaGrid& grid) {
  std::size_t n_bytes = 0;
  if (areRowsAligned<U>(grid)) {
    planParts<Tile<U, true>>(gridArgs(grid), nullptr, n_bytes);
  } else {
    planParts<Tile<U, false>>(gridArgs(grid), nullptr, n_bytes);
  }
  return n_bytes;
}

template <class U>
void decodeGrid(const CudaGrid& grid, void* scratch) {
  if (areRowsAligned<U>(grid)) {
    launchDecode<Tile<U, true>>(gridArgs(grid), scratch, grid.stream);
  } else {
    launchDecode<Tile<U, false>>(gridArgs(grid), scratch, grid.stream);
  }
}

template std::size_t decodeScratchBytes<std::uint8_t>(const CudaGrid&);
template std::size_t decodeScratchBytes<std::uint16_t>(const CudaGrid&);
template std::size_t decodeScratchBytes<std::uint32_t>(const CudaGrid&);
template std::size_t decodeScratchBytes<std::uint64_t>(const CudaGrid&);
template void decodeGrid<std::uint8_t>(const CudaGrid&, void*);
template void decodeGrid<std::uint16_t>(const CudaGrid&, void*);
template void decodeGrid<std::uint32_t>(const CudaGrid&, void*);
template void decodeGrid<std::uint64_t>(const CudaGrid&, void*);

}  // namespace fz::lorenzo
