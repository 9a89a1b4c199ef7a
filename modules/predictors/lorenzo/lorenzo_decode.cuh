#pragma once

// The decoder of grids: running sums along x, rows and layers in one pass over memory.
//
// A block holds a tile in registers: 32 times 16 bytes in x, kRows rows per warp, kLayers layers.
// Sums go along x first: the strips to the left hand their row sums on through chains. Then along
// the rows: the bands above hand the sums of each column on, through chains too. Then along the
// layers: the tile before has the values of the layer before, so they are simply read where it
// wrote them. Tiles wait only for such with a lower number.

#include "backends/cuda/sum_chain.cuh"
#include "predictors/lorenzo/lorenzo_grid.cuh"
#include "shared/bits.h"

namespace fz::lorenzo {

/// Working memory of the decoder, all zero before it starts.
template <class Word>
struct DecodeStates {
  cuda::ChainState<Word>* rows;     ///< [layer][row][strip]
  cuda::ChainState<Word>* columns;  ///< [layer][band][word in x]
  std::uint32_t* layers;            ///< [tile][warp]: not 0 when its last layer is written
};

template <class U, bool kVectorRows, unsigned kRowCount, unsigned kLayerCount>
struct DecodeTile {
  using P = cuda::Packed<U, kVectorRows>;
  using Word = typename P::Word;
  using State = cuda::ChainState<Word>;
  static constexpr bool kVector = kVectorRows;
  static constexpr unsigned kRows = kRowCount;
  static constexpr unsigned kLayers = kLayerCount;
  static constexpr unsigned kBandRows = kWarps * kRows;
  static constexpr unsigned kColumns = cuda::kWarp * P::kWords;  // in words
  static_assert(kRows * kLayers <= cuda::kWarp);
  /// Blocks per multiprocessor that the registers must allow: a thread holds 4 per row and layer.
  static constexpr unsigned kMinBlocks = kRows * kLayers > 8 ? 2 : 3;

  static FZ_HD std::uint64_t strips(std::uint64_t nx) {
    return bits::ceilDiv<std::uint64_t>(nx, P::kRowValues);
  }
  static FZ_HD std::uint64_t words(std::uint64_t nx) {
    return bits::ceilDiv<std::uint64_t>(nx, P::kPack);
  }
  static FZ_HD std::uint64_t bands(std::uint64_t n_rows) {
    return bits::ceilDiv<std::uint64_t>(n_rows, kBandRows);
  }
  static FZ_HD std::uint64_t slabs(std::uint64_t n_layers) {
    return bits::ceilDiv<std::uint64_t>(n_layers, kLayers);
  }
};

/// Where a tile and a warp of it are.
struct WarpPlace {
  TilePlace tile;
  std::uint64_t n_strips;
  std::uint64_t n_bands;
  std::uint64_t x0;
  std::uint64_t row0;
  std::uint64_t layer0;
};

template <class Tile>
using TileWords = typename Tile::Word[Tile::kLayers][Tile::kRows][Tile::P::kWords];

/// Running sums along x, with what the strips to the left have.
template <class Tile>
__device__ __forceinline__ void sumAlongX(const GridArgs& args,
                                          const DecodeStates<typename Tile::Word>& states,
                                          const WarpPlace& at,
                                          TileWords<Tile>& words) {
  using P = typename Tile::P;
  using Word = typename Tile::Word;
  constexpr auto kPlus = [](Word a, Word b) { return delta::plus(a, b); };
  const unsigned lane = cuda::laneId();
  Word own = 0;  // of the row that this lane looks after
#pragma unroll
  for (unsigned l = 0; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned r = 0; r < Tile::kRows; ++r) {
      const Word sum = P::sumRow(words[l][r]);
      own = lane == l * Tile::kRows + r ? sum : own;
    }
  }
  if (at.n_strips == 1) {
    return;
  }
  const std::uint64_t row = at.row0 + lane % Tile::kRows;
  const std::uint64_t layer = at.layer0 + lane / Tile::kRows;
  const std::uint64_t strip = at.tile.strip;
  Word left = 0;
  if (lane < Tile::kRows * Tile::kLayers && row < args.n_rows && layer < args.n_layers) {
    auto* state = states.rows + (layer * args.n_rows + row) * at.n_strips + strip;
    const bool has_next = strip + 1 < at.n_strips;
    if (has_next) {
      cuda::publishChain(state, strip == 0 ? cuda::ChainFlag::kPrefix : cuda::ChainFlag::kSum, own);
    }
    if (strip > 0) {
      left = cuda::threadChainSum(state, 1, strip, kPlus);
      if (has_next) {
        cuda::publishChain(state, cuda::ChainFlag::kPrefix, kPlus(left, own));
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (unsigned l = 0; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned r = 0; r < Tile::kRows; ++r) {
      const int from = static_cast<int>(l * Tile::kRows + r);
      const Word before = P::splat(__shfl_sync(cuda::kAllLanes, left, from));
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        words[l][r][w] = P::add(words[l][r][w], before);
      }
    }
  }
}

/// Running sums along the rows, with what the bands above have. `columns` is shared memory.
template <class Tile>
__device__ __forceinline__ void sumAlongRows(const GridArgs& args,
                                             const DecodeStates<typename Tile::Word>& states,
                                             const WarpPlace& at,
                                             std::uint64_t n_words,
                                             typename Tile::Word (*columns)[kWarps][Tile::kColumns],
                                             TileWords<Tile>& words) {
  using P = typename Tile::P;
  using Word = typename Tile::Word;
  constexpr auto kAdd = [](Word a, Word b) { return P::add(a, b); };
#pragma unroll
  for (unsigned l = 0; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
#pragma unroll
      for (unsigned r = 1; r < Tile::kRows; ++r) {
        words[l][r][w] = P::add(words[l][r][w], words[l][r - 1][w]);
      }
      columns[l][cuda::warpId()][P::wordPlace(w)] = words[l][Tile::kRows - 1][w];
    }
  }
  __syncthreads();
  constexpr unsigned kItems = Tile::kLayers * Tile::kColumns;
  constexpr unsigned kItemsPerThread = (kItems + kThreads - 1) / kThreads;
  const std::uint64_t band = at.tile.band;
  const bool has_next = band + 1 < at.n_bands;
  typename Tile::State* state[kItemsPerThread];
  Word own[kItemsPerThread];
#pragma unroll
  for (unsigned k = 0; k < kItemsPerThread; ++k) {
    const unsigned item = k * kThreads + threadIdx.x;
    const unsigned l = item / Tile::kColumns;
    const unsigned c = item % Tile::kColumns;
    const std::uint64_t word = at.tile.strip * Tile::kColumns + c;
    state[k] = nullptr;
    if (item < kItems && at.layer0 + l < args.n_layers && word < n_words) {
      Word sum = 0;
#pragma unroll
      for (unsigned w = 0; w < kWarps; ++w) {
        const Word warp_sum = columns[l][w][c];
        columns[l][w][c] = sum;
        sum = P::add(sum, warp_sum);
      }
      own[k] = sum;
      state[k] = states.columns + ((at.layer0 + l) * at.n_bands + band) * n_words + word;
      if (has_next) {
        cuda::publishChain(state[k], band == 0 ? cuda::ChainFlag::kPrefix : cuda::ChainFlag::kSum,
                           sum);
      }
    }
  }
  if (band > 0) {
#pragma unroll
    for (unsigned k = 0; k < kItemsPerThread; ++k) {
      if (state[k] != nullptr) {
        const Word above = cuda::threadChainSum(state[k], n_words, band, kAdd);
        if (has_next) {
          cuda::publishChain(state[k], cuda::ChainFlag::kPrefix, P::add(above, own[k]));
        }
        const unsigned item = k * kThreads + threadIdx.x;
#pragma unroll
        for (unsigned w = 0; w < kWarps; ++w) {
          Word& column = columns[item / Tile::kColumns][w][item % Tile::kColumns];
          column = P::add(column, above);
        }
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (unsigned l = 0; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      const Word above = columns[l][cuda::warpId()][P::wordPlace(w)];
#pragma unroll
      for (unsigned r = 0; r < Tile::kRows; ++r) {
        words[l][r][w] = P::add(words[l][r][w], above);
      }
    }
  }
}

/// The rows of one layer of the warp's part, from or to the output.
template <class Tile, class U>
__device__ __forceinline__ void storeLayer(const GridArgs& args,
                                           const Grid& grid,
                                           const WarpPlace& at,
                                           unsigned l,
                                           U* out,
                                           const TileWords<Tile>& words) {
  if (at.layer0 + l >= args.n_layers) {
    return;
  }
#pragma unroll
  for (unsigned r = 0; r < Tile::kRows; ++r) {
    if (at.row0 + r < args.n_rows) {
      U* row = out + (at.layer0 + l) * grid.layer_step + (at.row0 + r) * grid.row_step;
      Tile::P::template store<true>(row, at.x0, grid.nx, words[l][r]);
    }
  }
}

/// Waits until the warp at the same place of the slab before has written its last layer, and adds
/// that layer to all of this one's.
template <class Tile, class U>
__device__ __forceinline__ void addLayerBefore(const GridArgs& args,
                                               const Grid& grid,
                                               const WarpPlace& at,
                                               const std::uint32_t* flag,
                                               const U* out,
                                               TileWords<Tile>& words) {
  using P = typename Tile::P;
  if (cuda::laneId() == 0) {
    std::uint32_t is_written;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(is_written) : "l"(flag) : "memory");
    } while (is_written == 0);
  }
  __syncwarp();
  typename Tile::Word before[Tile::kRows][P::kWords];
#pragma unroll
  for (unsigned r = 0; r < Tile::kRows; ++r) {
    const std::uint64_t end = at.row0 + r < args.n_rows ? grid.nx : 0;
    const U* row = out + (at.layer0 - 1) * grid.layer_step + (at.row0 + r) * grid.row_step;
    P::template load<true, true>(row, at.x0, end, before[r]);
  }
#pragma unroll
  for (unsigned l = 0; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned r = 0; r < Tile::kRows; ++r) {
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        words[l][r][w] = P::add(words[l][r][w], before[r][w]);
      }
    }
  }
}

template <class U, class Tile>
__global__ __launch_bounds__(kThreads, Tile::kMinBlocks) void decodeKernel(
    GridArgs args, DecodeStates<typename Tile::Word> states) {
  using P = typename Tile::P;
  using Word = typename Tile::Word;
  __shared__ __align__(16) Word columns[Tile::kLayers][kWarps][Tile::kColumns];
  const Grid grid = resolveGrid<U>(args);
  if (grid.nx == 0) {
    return;
  }
  WarpPlace at;
  at.n_strips = Tile::strips(grid.nx);
  at.n_bands = Tile::bands(args.n_rows);
  at.tile = tilePlace(at.n_strips, at.n_bands);
  at.x0 = at.tile.strip * P::kRowValues;
  at.row0 = (at.tile.band * kWarps + cuda::warpId()) * Tile::kRows;
  at.layer0 = at.tile.slab * Tile::kLayers;
  if (at.layer0 >= args.n_layers) {
    return;  // the whole block
  }
  const auto* in = static_cast<const U*>(args.in);
  auto* out = static_cast<U*>(args.out);
  TileWords<Tile> words;
#pragma unroll
  for (unsigned l = 0; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned r = 0; r < Tile::kRows; ++r) {
      const bool is_inside = at.row0 + r < args.n_rows && at.layer0 + l < args.n_layers;
      const U* row = in + (at.layer0 + l) * grid.layer_step + (at.row0 + r) * grid.row_step;
      P::template load<true>(row, at.x0, is_inside ? grid.nx : 0, words[l][r]);
    }
  }
  sumAlongX<Tile>(args, states, at, words);
  sumAlongRows<Tile>(args, states, at, Tile::words(grid.nx), columns, words);
#pragma unroll
  for (unsigned l = 1; l < Tile::kLayers; ++l) {
#pragma unroll
    for (unsigned r = 0; r < Tile::kRows; ++r) {
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        words[l][r][w] = P::add(words[l][r][w], words[l - 1][r][w]);
      }
    }
  }
  if (at.row0 >= args.n_rows) {
    return;  // the whole warp; no barriers follow
  }
  std::uint32_t* flag = states.layers + std::uint64_t{blockIdx.x} * kWarps + cuda::warpId();
  if (at.layer0 > 0) {
    addLayerBefore<Tile>(args, grid, at, flag - at.n_strips * at.n_bands * kWarps, out, words);
  }
  // The last layer first: the next slab waits for it.
  storeLayer<Tile>(args, grid, at, Tile::kLayers - 1, out, words);
  if (at.layer0 + Tile::kLayers < args.n_layers) {
    __syncwarp();
    if (cuda::laneId() == 0) {
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
    }
  }
#pragma unroll
  for (unsigned l = 0; l + 1 < Tile::kLayers; ++l) {
    storeLayer<Tile>(args, grid, at, l, out, words);
  }
}

/// Sizes of the three kinds of states, in bytes; each a multiple of 16.
struct DecodeScratch {
  std::size_t rows;
  std::size_t columns;
  std::size_t layers;
  std::size_t total() const { return rows + columns + layers; }
};

template <class Tile>
DecodeScratch decodeScratch(const GridArgs& args) {
  const std::uint64_t n_strips = Tile::strips(args.nx);
  const std::uint64_t n_bands = Tile::bands(args.n_rows);
  const std::uint64_t n_slabs = Tile::slabs(args.n_layers);
  constexpr std::uint64_t kState = sizeof(typename Tile::State);
  const auto rounded = [](std::uint64_t n) { return bits::roundUp<std::uint64_t>(n, 16); };
  return {
      n_strips == 1 ? 0 : rounded(n_strips * args.n_rows * args.n_layers * kState),
      n_bands == 1 ? 0 : rounded(n_bands * args.n_layers * Tile::words(args.nx) * kState),
      n_slabs == 1 ? 0 : rounded(n_strips * n_bands * n_slabs * kWarps * sizeof(std::uint32_t))};
}

template <class U, class Tile>
void launchDecode(const GridArgs& args, void* scratch, cudaStream_t stream) {
  const DecodeScratch sizes = decodeScratch<Tile>(args);
  auto* bytes = static_cast<std::uint8_t*>(scratch);
  const DecodeStates<typename Tile::Word> states = {
      reinterpret_cast<typename Tile::State*>(bytes),
      reinterpret_cast<typename Tile::State*>(bytes + sizes.rows),
      reinterpret_cast<std::uint32_t*>(bytes + sizes.rows + sizes.columns)};
  if (sizes.total() > 0) {
    FZ_CUDA_CHECK(cudaMemsetAsync(scratch, 0, sizes.total(), stream));
  }
  const std::uint64_t n_tiles =
      Tile::strips(args.nx) * Tile::bands(args.n_rows) * Tile::slabs(args.n_layers);
  decodeKernel<U, Tile><<<cuda::gridFor(n_tiles, 1), kThreads, 0, stream>>>(args, states);
  cuda::checkLaunch("Lorenzo decode");
}

}  // namespace fz::lorenzo
