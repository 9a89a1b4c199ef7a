#pragma once

// The decoder's first pass: sums over the rows, columns and layers of every tile, and the sums of
// those over all tiles before.

#include "predictors/lorenzo/lorenzo_tile.cuh"

namespace fz::lorenzo {

/// Shared memory of the first pass, two of each so that one barrier per layer is enough.
template <class T>
struct ReduceMemory {
  typename T::Word columns[2][kWarps][T::kColumns];
  typename T::Word tile[2][kWarps];
};

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
  const unsigned turn = layer % 2;
  if (sums.n_strips > 1) {
    Word own = 0;  // lane r has the sum of row r
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const Word sum = cuda::warpSum(P::sumOf(words[r]));
      own = cuda::laneId() == r ? sum : own;
    }
    const std::uint64_t row = at.row0 + cuda::laneId();
    if (cuda::laneId() < kRows && row < args.n_rows) {
      sums.rows[(layer * args.n_rows + row) * sums.n_strips + at.strip] = own;
    }
    own = cuda::warpSum(own);
    if (cuda::laneId() == 0) {
      memory.tile[turn][cuda::warpId()] = own;
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
    memory.columns[turn][cuda::warpId()][P::wordPlace(w)] = sum;
  }
  __syncthreads();
  Word* columns = sums.columnsOf(layer, at.band);
  const std::uint64_t word = at.strip * T::kColumns + threadIdx.x;
  if (threadIdx.x < T::kColumns && word < sums.n_words) {
    Word sum = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      sum = P::add(sum, memory.columns[turn][w][threadIdx.x]);
    }
    columns[word] = sum;
  }
  if (sums.n_strips > 1 && threadIdx.x == kThreads - 1) {
    Word sum = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      sum = delta::plus(sum, memory.tile[turn][w]);
    }
    columns[sums.n_words + at.strip] = sum;
  }
}

/// One block per strip, band and slab. Reads all there is.
template <class T, bool kHasSlabs>
__global__ __launch_bounds__(kThreads,
                             kHasSlabs ? 2 : 3) void reduceKernel(GridArgs args,
                                                                  PartSums<typename T::Word> sums) {
  __shared__ ReduceMemory<T> memory;
  const Grid grid = resolveGrid<typename T::Value>(args);
  const std::uint64_t n_strips = bits::ceilDiv<std::uint64_t>(grid.nx, T::P::kRowValues);
  if (grid.nx == 0) {
    return;
  }
  const WarpPlace at(n_strips, sums.n_bands, blockIdx.x);
  const std::uint64_t layer0 = at.slab * sums.slab_layers;
  if (layer0 >= args.n_layers) {
    return;  // the whole block
  }
  const std::uint64_t layer_end =
      layer0 + sums.slab_layers < args.n_layers ? layer0 + sums.slab_layers : args.n_layers;
  typename T::Words words;
  [[maybe_unused]] typename T::Words all = {};
  for (std::uint64_t layer = layer0; layer < layer_end; ++layer) {
    loadTile<T>(args, grid, at, layer, words);
    reduceTile<T>(args, sums, at, layer, words, memory);
    if constexpr (kHasSlabs) {
      addTile<T>(words, all);
    }
  }
  if constexpr (kHasSlabs) {
    if (at.slab + 1 < sums.n_slabs) {
      storeSlabTile<T>(slabTile(sums, at, at.slab), all);
    }
  }
}

/// One block per strip and band: from the sums of slabs to those of all layers before each slab,
/// which then count as layers of their own.
template <class T>
__global__ __launch_bounds__(kThreads) void reduceSlabs(GridArgs args,
                                                        PartSums<typename T::Word> sums) {
  __shared__ ReduceMemory<T> memory;
  const Grid grid = resolveGrid<typename T::Value>(args);
  const std::uint64_t n_strips = bits::ceilDiv<std::uint64_t>(grid.nx, T::P::kRowValues);
  if (grid.nx == 0 || blockIdx.x >= n_strips * sums.n_bands) {
    return;
  }
  const WarpPlace at(n_strips, sums.n_bands, blockIdx.x);
  typename T::Words before;
  loadSlabTile<T>(slabTile(sums, at, 0), before);
  for (std::uint64_t slab = 1; slab < sums.n_slabs; ++slab) {
    typename T::Words own = {};
    if (slab + 1 < sums.n_slabs) {
      loadSlabTile<T>(slabTile(sums, at, slab), own);
    }
    storeSlabTile<T>(slabTile(sums, at, slab), before);
    reduceTile<T>(args, sums, at, args.n_layers + slab, before, memory);
    addTile<T>(own, before);
  }
}

inline constexpr unsigned kMaxBandWarps = 32;

/// Sums of columns to those of all bands before. One block per 32 words and layer; its warps share
/// the bands.
template <class T>
__global__ __launch_bounds__(kMaxBandWarps* cuda::kWarp) void sumBands(
    PartSums<typename T::Word> sums, unsigned blocks_per_layer) {
  using P = typename T::P;
  using Word = typename T::Word;
  __shared__ Word warp_sums[kMaxBandWarps][cuda::kWarp];
  const unsigned n_warps = blockDim.x / cuda::kWarp;
  const std::uint64_t per_warp = bits::ceilDiv<std::uint64_t>(sums.n_bands, n_warps);
  const std::uint64_t word =
      std::uint64_t{blockIdx.x % blocks_per_layer} * cuda::kWarp + cuda::laneId();
  const std::uint64_t layer = blockIdx.x / blocks_per_layer;
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
  if (is_inside) {
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
}

/// Sums of rows, and of tiles, to those of all strips before. 2^log_lanes lanes per row.
template <class T>
__global__ __launch_bounds__(kThreads) void sumStrips(PartSums<typename T::Word> sums,
                                                      std::uint64_t n_rows,
                                                      std::uint64_t n_layers,
                                                      unsigned log_lanes) {
  using Word = typename T::Word;
  const std::uint64_t line = (std::uint64_t{blockIdx.x} * kThreads + threadIdx.x) >> log_lanes;
  const unsigned lanes = 1u << log_lanes;
  const unsigned lane = threadIdx.x & (lanes - 1);
  const std::uint64_t n_row_lines = n_layers * n_rows;
  const std::uint64_t n_tile_lines = sums.n_bands > 1 ? n_layers * sums.n_bands : 0;
  Word* at = nullptr;
  if (line < n_row_lines) {
    at = sums.rows + line * sums.n_strips;
  } else if (line - n_row_lines < n_tile_lines) {
    at = sums.columns + (line - n_row_lines) * sums.pitch + sums.n_words;
  }
  Word before = 0;
  for (std::uint64_t first = 0; first < sums.n_strips; first += lanes) {
    const bool is_inside = at != nullptr && first + lane < sums.n_strips;
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

}  // namespace fz::lorenzo
