#pragma once

// The tiles of the decoder. A tile is a strip in x (32 times 16 bytes), a band of rows (kRows per
// warp) and one layer; a block holds it in registers, [row][word] per lane, and goes through the
// layers of a slab one after the other.

#include "predictors/lorenzo/cuda/grid.cuh"
#include "shared/bits.h"

namespace fz::lorenzo {

inline constexpr unsigned kRows = 8;
inline constexpr unsigned kBandRows = kWarps * kRows;

template <class U, bool kVectorRows>
struct Tile {
  using Value = U;
  using P = cuda::Packed<U, kVectorRows>;
  using Word = typename P::Word;
  using Words = Word[kRows][P::kWords];
  static constexpr unsigned kColumns = cuda::kWarp * P::kWords;  // in words
};

/// With so few strips, and several layers, a tile itself sums up what the strips before it have in
/// its rows: a lane for each.
inline constexpr unsigned kFewStrips = cuda::kWarp / kRows;

/// Sums over parts of the grid, in working memory; what a tile needs to know of all others. Behind
/// the layers of the grid stands one more per slab: the sum of the slab's layers.
template <class Word>
struct PartSums {
  std::uint64_t n_strips;
  std::uint64_t n_bands;
  std::uint64_t n_slabs;
  std::uint64_t slab_layers;
  std::uint64_t n_words;  ///< per row
  /// [layer][band][word, then strip]: sums of the columns of a tile, then those of whole tiles;
  /// after the first pass those of all bands before. Unused when there is one band.
  Word* columns;
  std::uint64_t pitch;  ///< of `columns`, in words
  /// [layer][row][strip]: sums of rows; after the first pass those of all strips before, unless
  /// has_own_rows. Unused when there is one strip.
  Word* rows;
  /// [slab][band][strip][warp][row][lane]: sums of the layers of a slab. Unused when there is one.
  uint4* slabs;
  bool has_own_rows;  ///< see kFewStrips

  FZ_HD std::uint64_t layerCount(std::uint64_t n_layers) const {
    return n_layers + (n_slabs > 1 ? n_slabs : 0);
  }
  __device__ __forceinline__ Word* columnsOf(std::uint64_t layer, std::uint64_t band) const {
    return columns + (layer * n_bands + band) * pitch;
  }
};

/// Where the rows of a warp are.
struct WarpPlace : TilePlace {
  std::uint64_t row0;

  __device__ __forceinline__ explicit WarpPlace(const TilePlace& tile)
      : TilePlace(tile), row0((tile.band * kWarps + cuda::warpId()) * kRows) {}
};

/// Where the slab that begins with layer0 ends.
template <class Word>
__device__ __forceinline__ std::uint64_t layerEnd(const GridArgs& args,
                                                  const PartSums<Word>& sums,
                                                  std::uint64_t layer0) {
  const std::uint64_t end = layer0 + sums.slab_layers;
  return end < args.n_layers ? end : args.n_layers;
}

template <class T>
__device__ __forceinline__ void loadTile(const GridArgs& args,
                                         const Grid& grid,
                                         const WarpPlace& at,
                                         std::uint64_t layer,
                                         typename T::Words& words) {
  const auto* first = static_cast<const typename T::Value*>(args.in) + layer * grid.layer_step +
                      at.row0 * grid.row_step;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    T::P::template load<true>(first + r * grid.row_step, at.strip * T::P::kRowValues,
                              at.row0 + r < args.n_rows ? grid.nx : 0, words[r]);
  }
}

template <class T>
__device__ __forceinline__ void storeTile(const GridArgs& args,
                                          const Grid& grid,
                                          const WarpPlace& at,
                                          std::uint64_t layer,
                                          const typename T::Words& words) {
  auto* first =
      static_cast<typename T::Value*>(args.out) + layer * grid.layer_step + at.row0 * grid.row_step;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    if (at.row0 + r < args.n_rows) {
      T::P::template store<true, true>(first + r * grid.row_step, at.strip * T::P::kRowValues,
                                       grid.nx, words[r]);
    }
  }
}

template <class T>
__device__ __forceinline__ void addTile(const typename T::Words& from, typename T::Words& to) {
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
    for (unsigned w = 0; w < T::P::kWords; ++w) {
      to[r][w] = T::P::add(to[r][w], from[r][w]);
    }
  }
}

/// This lane's part of a tile of PartSums::slabs.
template <class Word>
__device__ __forceinline__ uint4* slabTile(const PartSums<Word>& sums,
                                           const WarpPlace& at,
                                           std::uint64_t slab) {
  const std::uint64_t tile = (slab * sums.n_bands + at.band) * sums.n_strips + at.strip;
  return sums.slabs + (tile * kWarps + cuda::warpId()) * kRows * cuda::kWarp + cuda::laneId();
}
template <class T>
__device__ __forceinline__ void loadSlabTile(const uint4* from, typename T::Words& words) {
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const uint4 lane = from[r * cuda::kWarp];
    memcpy(words[r], &lane, sizeof(lane));
  }
}
template <class T>
__device__ __forceinline__ void storeSlabTile(uint4* to, const typename T::Words& words) {
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    uint4 lane;
    memcpy(&lane, words[r], sizeof(lane));
    to[r * cuda::kWarp] = lane;
  }
}

}  // namespace fz::lorenzo
