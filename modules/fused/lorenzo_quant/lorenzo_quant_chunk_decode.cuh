#pragma once

// The decoder of grids that takes whole chunks: a block walks through the chunks of a unit, down
// the rows of tiles in two dimensions, through the planes of a tile in three. Device code only;
// must compile with NVRTC.

#include "fused/lorenzo_quant/lorenzo_quant_chunk_walk.cuh"

namespace fz::lorenzo_quant::device {

/// Shared memory for what columns have summed up to: 32 bits for each code of a chunk. Where sums
/// are wider, that is for some strips of columns, and chunks are decoded once more for the others.
inline constexpr unsigned kKeptBytes = 4 * kChunkCodes;

template <class T, int kDim, class Inner, class Reader>
struct ChunkDecoder {
  using Word = typename Number<T>::Word;
  template <RowCut kCut>
  using Walk = ChunkWalk<T, kDim, kCut, Inner>;
  static constexpr unsigned kEdge = kDim == 2 ? 32 : 8;
  static_assert(Reader::kThreads == kChunkThreads);
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;  // no chunk

  const DecodeRun& decode;
  const DecodePlan<T>& plan;
  const Inner& inner;
  Reader reader;

  /// By all threads of the block.
  __device__ __forceinline__ void run() {
    __shared__ ChunkNotes notes;
    const Layout& layout = plan.layout;
    if (layout.n_values < plan.n_values) {
      clearBeyond(reader, inner, layout.n_values, plan.n_values);
    }
    if (layout.n_values == 0) {
      return;
    }
    // The plan may change for all that the compiler knows of stores to the field.
    const Facts facts{static_cast<std::uint32_t>(layout.grid.nx), plan.step, plan.n_range != 0,
                      plan.is_wide != 0};
    const unsigned strip_columns =
        facts.isCut(RowCut::kAny) ? cuda::kWarp : cuda::kWarp * kPieceValues<T>;
    const unsigned strip_sums = kDim == 3 ? kEdge * strip_columns : strip_columns;
    const unsigned n_strips =
        ((kDim == 3 || facts.nx > kMostColumns ? kChunkCodes : facts.nx) + strip_sums - 1) /
        strip_sums;
    const unsigned most_strips =
        kKeptBytes / ((facts.hasLongSums() ? 8u : 4u) * strip_sums);  // at a time
    const auto n_units = static_cast<std::uint32_t>(unitCount(layout.grid, kDim));
    for (std::uint32_t number = blockIdx.x; number < n_units; number += gridDim.x) {
      const ChunkUnit unit = ChunkUnit::of<kDim>(layout.grid, number);
      for (unsigned first = 0; first < n_strips; first += most_strips) {
        const unsigned end = n_strips - first < most_strips ? n_strips : first + most_strips;
        for (std::uint32_t i = 0; i < unit.n_chunks; ++i) {
          const std::uint32_t chunk = unit.first_chunk + i * unit.stride;
          takeChunk(facts, unit, i, chunk, i + 1 < unit.n_chunks ? chunk + unit.stride : kNone,
                    first, end, notes);
        }
      }
    }
  }

 private:
  struct Facts {
    std::uint32_t nx;
    T step;
    bool has_entries;  ///< that are added to codes
    bool is_wide;      ///< with entries that no integer holds

    __device__ __forceinline__ bool hasLongSums() const {
      return is_wide || (sizeof(Word) == 8 && has_entries);
    }
    __device__ __forceinline__ bool isCut(RowCut cut) const {
      return cut == (kDim == 3 || nx % kEdge == 0 ? RowCut::kWholeTiles
                     : nx % kPieceValues<T> == 0  ? RowCut::kWholePieces
                                                  : RowCut::kAny);
    }
  };

  /// A chunk, and what is to be done with it.
  struct Place {
    const ChunkUnit& unit;
    std::uint32_t begin;   ///< index of its first value
    std::uint32_t number;  ///< in the unit
    unsigned first_strip, end_strip;
    bool has_special;
  };

  __device__ __forceinline__ void takeChunk(const Facts& facts,
                                            const ChunkUnit& unit,
                                            std::uint32_t number,
                                            std::uint32_t chunk,
                                            std::uint32_t next,
                                            unsigned first_strip,
                                            unsigned end_strip,
                                            ChunkNotes& notes) {
    const std::uint32_t begin = chunk * kChunkCodes;
    const std::uint32_t at = begin + threadIdx.x * kPieceCodes;
    const std::uint32_t marks = facts.has_entries ? marksFrom<T>(decode, plan.layout, at) : 0u;
    std::uint32_t words[group::kChunkThreadWords];
    reader.read(chunk, next, words);
    const ChunkSums sums{reader.staging()};
    const Place place{unit,
                      begin,
                      number,
                      first_strip,
                      end_strip,
                      sumChunk<kEdge>(decode.zigzag, facts.isCut(RowCut::kWholeTiles), marks, words,
                                      sums, notes)};
    if (facts.isCut(RowCut::kWholeTiles)) {
      walkBy<RowCut::kWholeTiles>(facts, place, sums, notes);
    } else if constexpr (kDim == 2) {
      if (facts.isCut(RowCut::kWholePieces)) {
        walkBy<RowCut::kWholePieces>(facts, place, sums, notes);
      } else {
        walkBy<RowCut::kAny>(facts, place, sums, notes);
      }
    }
  }

  template <RowCut kCut>
  __device__ __forceinline__ void walkBy(const Facts& facts,
                                         const Place& place,
                                         const ChunkSums& sums,
                                         const ChunkNotes& notes) const {
    const Walk<kCut> walk{inner,
                          {decode, sums, notes, place.begin, place.number & 1u},
                          place.unit,
                          facts.nx,
                          facts.step,
                          place.number == 0,
                          place.has_special};
    if (facts.is_wide) {
      walkWide<kCut>(walk, place.first_strip, place.end_strip, reader.memory());
      return;
    }
    if constexpr (sizeof(Word) == 8) {
      if (facts.has_entries) {
        walk.template run<Word>(place.first_strip, place.end_strip, reader.memory());
        return;
      }
    }
    walk.template run<std::uint32_t>(place.first_strip, place.end_strip, reader.memory());
  }

  /// By value: nothing that the other ways use should need an address.
  template <RowCut kCut>
  static __device__ __noinline__ void walkWide(Walk<kCut> walk,
                                               unsigned first,
                                               unsigned end,
                                               void* kept) {
    walk.template run<double>(first, end, kept);
  }

  /// Values beyond the layout, which only streams of the original system have. Their codes are
  /// read, so that damage is found.
  static __device__ __noinline__ void clearBeyond(Reader reader,
                                                  Inner inner,
                                                  std::uint64_t begin,
                                                  std::uint64_t n) {
    for (std::uint64_t chunk = begin / kChunkCodes + blockIdx.x; chunk * kChunkCodes < n;
         chunk += gridDim.x) {
      std::uint32_t words[group::kChunkThreadWords];
      reader.read(static_cast<std::uint32_t>(chunk), kNone, words);
      for (unsigned i = 0; i < kPieceCodes; ++i) {
        const std::uint64_t at = chunk * kChunkCodes + i * kChunkThreads + threadIdx.x;
        if (at >= begin && at < n) {
          const T zero[1] = {T{0}};
          inner.putPiece(at, 1, zero);
        }
      }
    }
  }
};

}  // namespace fz::lorenzo_quant::device
