#pragma once

// The decoder's first pass: sums over the rows, columns and layers of every tile, and the sums of
// those over all tiles before.

#include "predictors/lorenzo/cuda/tile.cuh"

namespace fz::lorenzo {

/// Shared memory of the first pass, two of each so that one barrier per layer is enough.
template <class T>
struct ReduceMemory {
  typename T::Word columns[2][kWarps][T::kColumns];
  typename T::Word tile[2][kWarps];
};

/// The sums of kRows rows over all lanes: lane 4 r and the three after it get that of row r. Halves
/// of the warp hand each other the rows that are not theirs, so 9 shuffles do.
template <class T>
__device__ __forceinline__ typename T::Word sumRows(const typename T::Words& words) {
  using Word = typename T::Word;
  static_assert(kRows == 8);
  Word sums[kRows];
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    sums[r] = T::P::sumOf(words[r]);
  }
#pragma unroll
  for (unsigned half = kRows / 2; half > 0; half /= 2) {
    const unsigned distance = half * 4;
    const bool has_upper = (cuda::laneId() & distance) != 0;
#pragma unroll
    for (unsigned i = 0; i < half; ++i) {
      const Word kept = has_upper ? sums[i + half] : sums[i];
      const Word given = has_upper ? sums[i] : sums[i + half];
      sums[i] = kept + __shfl_xor_sync(cuda::kAllLanes, given, distance);
    }
  }
  sums[0] += __shfl_xor_sync(cuda::kAllLanes, sums[0], 2);
  return sums[0] + __shfl_xor_sync(cuda::kAllLanes, sums[0], 1);
}

/// Writes the sums of one tile down.
template <class T>
__device__ __forceinline__ void reduceTile(const GridArgs& args,
                                           const PartSums<typename T::Word>& sums,
                                           const WarpPlace& at,
                                           std::uint64_t layer,
                                           const typename T::Words& words,
                                           ReduceMemory<T>& memory) {
  using P = typename T::P;
  using Word = typename T::Word;
  const unsigned half = layer % 2;
  if (sums.n_strips > 1) {
    const Word own = sumRows<T>(words);
    const bool is_first = cuda::laneId() % 4 == 0;
    const std::uint64_t row = at.row0 + cuda::laneId() / 4;
    if (is_first && row < args.n_rows) {
      sums.rows[(layer * args.n_rows + row) * sums.n_strips + at.strip] = own;
    }
    const Word all = cuda::warpSum(is_first ? own : Word{0});
    if (cuda::laneId() == 0) {
      memory.tile[half][cuda::warpId()] = all;
    }
  }
  if (sums.n_bands == 1) {
    return;
  }
#pragma unroll
  for (unsigned w = 0; w < P::kWords; ++w) {
    Word sum = words[0][w];
#pragma unroll
    for (unsigned r = 1; r < kRows; ++r) {
      sum = P::add(sum, words[r][w]);
    }
    memory.columns[half][cuda::warpId()][P::wordPlace(w)] = sum;
  }
  __syncthreads();
  Word* columns = sums.columnsOf(layer, at.band);
  const std::uint64_t word = at.strip * T::kColumns + threadIdx.x;
  if (threadIdx.x < T::kColumns && word < sums.n_words) {
    Word sum = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      sum = P::add(sum, memory.columns[half][w][threadIdx.x]);
    }
    columns[word] = sum;
  }
  if (sums.n_strips > 1 && threadIdx.x == kThreads - 1) {
    Word sum = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      sum = delta::plus(sum, memory.tile[half][w]);
    }
    columns[sums.n_words + at.strip] = sum;
  }
}

/// One block per strip, band and slab. Reads all there is; the layers from the last to the first,
/// since the second pass begins with the first.
template <class T, bool kHasLayers>
__global__ __launch_bounds__(kThreads, kHasLayers ? 2 : 3) void reduceKernel(
    GridArgs args, PartSums<typename T::Word> sums) {
  __shared__ ReduceMemory<T> memory;
  const Grid grid = resolveGrid<typename T::Value>(args);
  const std::uint64_t n_strips = bits::ceilDiv<std::uint64_t>(grid.nx, T::P::kRowValues);
  if (grid.nx == 0) {
    return;
  }
  const WarpPlace at(tilePlace(blockIdx.x, n_strips, sums.n_bands));
  const std::uint64_t layer0 = at.slab * sums.slab_layers;
  if (layer0 >= args.n_layers) {
    return;  // the whole block
  }
  typename T::Words words;
  if constexpr (!kHasLayers) {
    loadTile<T>(args, grid, at, 0, words);
    reduceTile<T>(args, sums, at, 0, words, memory);
  } else {
    const bool has_slab_sum = at.slab + 1 < sums.n_slabs;
    typename T::Words all = {};
    for (std::uint64_t layer = layerEnd(args, sums, layer0); layer-- > layer0;) {
      loadTile<T>(args, grid, at, layer, words);
      reduceTile<T>(args, sums, at, layer, words, memory);
      addTile<T>(words, all);
    }
    if (has_slab_sum) {
      storeSlabTile<T>(slabTile(sums, at, at.slab), all);
      __syncthreads();  // the last layer may have used the same half
      reduceTile<T>(args, sums, at, args.n_layers + at.slab, all, memory);
    }
  }
}

/// Columns: 32 words of one layer, over all bands; the warps share the bands.
template <class T>
__device__ __forceinline__ void sumBands(const PartSums<typename T::Word>& sums,
                                         std::uint64_t layer,
                                         std::uint64_t word,
                                         typename T::Word (*warp_sums)[cuda::kWarp]) {
  using P = typename T::P;
  using Word = typename T::Word;
  const std::uint64_t per_warp = bits::ceilDiv<std::uint64_t>(sums.n_bands, kWarps);
  const std::uint64_t first = cuda::warpId() * per_warp;
  const std::uint64_t end = first + per_warp < sums.n_bands ? first + per_warp : sums.n_bands;
  const bool is_inside = word < sums.pitch;
  Word* column = sums.columnsOf(layer, 0) + word;
  Word own = 0;
  if (is_inside) {
#pragma unroll 8
    for (std::uint64_t band = first; band < end; ++band) {
      own = P::add(own, column[band * sums.pitch]);
    }
  }
  warp_sums[cuda::warpId()][cuda::laneId()] = own;
  __syncthreads();
  if (!is_inside) {
    return;
  }
  Word before = 0;
  for (unsigned w = 0; w < cuda::warpId(); ++w) {
    before = P::add(before, warp_sums[w][cuda::laneId()]);
  }
#pragma unroll 8
  for (std::uint64_t band = first; band < end; ++band) {
    const Word sum = column[band * sums.pitch];
    column[band * sums.pitch] = before;
    before = P::add(before, sum);
  }
}

/// The same where bands are few: a thread has a word.
template <class T>
__device__ __forceinline__ void sumFewBands(const PartSums<typename T::Word>& sums,
                                            std::uint64_t layer,
                                            std::uint64_t word) {
  using Word = typename T::Word;
  constexpr unsigned kAtOnce = 8;
  if (word >= sums.pitch) {
    return;
  }
  Word* column = sums.columnsOf(layer, 0) + word;
  Word before = 0;
  for (std::uint64_t first = 0; first < sums.n_bands; first += kAtOnce) {
    Word own[kAtOnce];
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) {
      own[i] = first + i < sums.n_bands ? column[(first + i) * sums.pitch] : Word{0};
    }
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) {
      if (first + i < sums.n_bands) {
        column[(first + i) * sums.pitch] = before;
      }
      before = T::P::add(before, own[i]);
    }
  }
}

/// Rows: 2^log_lanes lanes each.
template <class T>
__device__ __forceinline__ void sumStrips(const PartSums<typename T::Word>& sums,
                                          std::uint64_t n_lines,
                                          std::uint64_t thread,
                                          unsigned log_lanes) {
  using Word = typename T::Word;
  const std::uint64_t line = thread >> log_lanes;
  const unsigned lanes = 1u << log_lanes;
  const unsigned lane = threadIdx.x & (lanes - 1);
  Word* at = sums.rows + line * sums.n_strips;
  Word before = 0;
  for (std::uint64_t first = 0; first < sums.n_strips; first += lanes) {
    const bool is_inside = line < n_lines && first + lane < sums.n_strips;
    const Word own = is_inside ? at[first + lane] : Word{0};
    Word inclusive = own;
    for (unsigned step = 1; step < lanes; step *= 2) {
      const Word other = __shfl_up_sync(cuda::kAllLanes, inclusive, step, static_cast<int>(lanes));
      inclusive += lane >= step ? other : Word{0};
    }
    if (is_inside) {
      at[first + lane] = before + inclusive - own;
    }
    before += __shfl_sync(cuda::kAllLanes, inclusive, static_cast<int>(lanes - 1),
                          static_cast<int>(lanes));
  }
}

inline constexpr unsigned kFewBands = 32;

/// How the blocks of sumParts share the work.
struct PartBlocks {
  unsigned n_for_columns;  ///< the first ones; all others have rows
  unsigned n_per_layer;
  std::uint64_t n_lines;  ///< rows of all layers
  unsigned log_lanes;     ///< per row
};

/// Turns the sums of columns and rows into those of all bands and strips before.
template <class T>
__global__ __launch_bounds__(kThreads) void sumParts(PartSums<typename T::Word> sums,
                                                     PartBlocks blocks) {
  __shared__ typename T::Word warp_sums[kWarps][cuda::kWarp];
  if (blockIdx.x < blocks.n_for_columns) {
    const std::uint64_t layer = blockIdx.x / blocks.n_per_layer;
    const std::uint64_t in_layer = blockIdx.x % blocks.n_per_layer;
    if (sums.n_bands <= kFewBands) {
      sumFewBands<T>(sums, layer, in_layer * kThreads + threadIdx.x);
    } else {
      sumBands<T>(sums, layer, in_layer * cuda::kWarp + cuda::laneId(), warp_sums);
    }
  } else {
    const std::uint64_t block = blockIdx.x - blocks.n_for_columns;
    sumStrips<T>(sums, blocks.n_lines, block * kThreads + threadIdx.x, blocks.log_lanes);
  }
}

}  // namespace fz::lorenzo
