#pragma once

// Sums of the rows of a chunk from the left ends of their tiles on, a few neighbouring values for
// each lane of a warp. Device code only; must compile with NVRTC.

#include "fused/lorenzo_quant/lorenzo_quant_chunk_sums.cuh"

namespace fz::lorenzo_quant::device {

template <class Sum>
inline constexpr bool kIsWideSum = std::is_same_v<Sum, double>;

/// How rows lie in chunks and in the field.
enum class RowCut {
  kWholeTiles,   ///< which then are whole in a chunk, or not in it
  kWholePieces,  ///< of 16 bytes of the field, which then are whole in a chunk
};

template <class T, int kDim, RowCut kCut>
struct ChunkRows {
  using Int = IntOf<T>;
  static constexpr unsigned kEdge = kDim == 2 ? 32 : 8;
  static constexpr unsigned kV = kPieceValues<T>;
  static constexpr unsigned kTileLanes = kEdge / kV;
  static constexpr unsigned kStripColumns = cuda::kWarp * kV;
  static constexpr bool kWholeTiles = kCut == RowCut::kWholeTiles;

  /// This lane's values in a row.
  struct Lane {
    int place;         ///< of the first in the chunk
    std::uint32_t at;  ///< its index in the field
    unsigned in_tile;  ///< values of its tile's row on the left of it
    bool has;          ///< they exist, and are in the chunk

    /// Where the tile begins; before the chunk: less than 0.
    __device__ __forceinline__ int tilePlace() const { return place - static_cast<int>(in_tile); }
  };

  const DecodeRun& decode;
  ChunkSums sums;
  const ChunkNotes& notes;
  std::uint32_t begin;  ///< index of the chunk's first value
  unsigned carry_in;    ///< which of notes.carry

  template <class Sum>
  __device__ __forceinline__ Sum* carryAt(unsigned which) const {
    return reinterpret_cast<Sum*>(const_cast<std::uint64_t*>(notes.carry + which));
  }

  /// Of a row without entries, whose sums fit 16 bits; what the tile has in the chunk.
  template <class Sum>
  __device__ __forceinline__ void sumFitting(int place, unsigned in_tile, Sum (&own)[kV]) const {
    using Signed = std::make_signed_t<Sum>;
    std::uint32_t through[kV];  // only the low halves count
    sums.fewAt(static_cast<unsigned>(place), through);
    std::uint32_t before = 0;  // the tile
    if constexpr (!kWholeTiles) {
      const int tile = place - static_cast<int>(in_tile);
      before = tile > 0 ? static_cast<std::uint32_t>(sums.at(static_cast<unsigned>(tile) - 1)) : 0u;
    }
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      own[k] = static_cast<Sum>(Signed{static_cast<std::int16_t>(through[k] - before)});
    }
  }

  /// Of any row, what the tile has in the chunk. All lanes.
  template <class Sum>
  __device__ __forceinline__ void sumRow(const Lane& lane, int strip_place, Sum (&own)[kV]) const {
    if constexpr (kIsWideSum<Sum>) {
#pragma unroll 1
      for (unsigned k = 0; k < kV; ++k) {
        own[k] = lane.has ? wideSum(lane, k) : 0.0;
      }
      __syncwarp();  // everybody has read the entries
    } else if (isSpecial(strip_place)) {
      sumSpecial(lane, own);
    } else if (lane.has) {
      sumFitting(lane.place, lane.in_tile, own);
    }
  }

 private:
  /// The pieces of a strip's row.
  __device__ __forceinline__ bool isSpecial(int strip_place) const {
    constexpr int kLast = static_cast<int>(kStripColumns) - 1;
    const unsigned from = strip_place < 0 ? 0u : static_cast<unsigned>(strip_place);
    const auto through = static_cast<unsigned>(strip_place + kLast);
    const unsigned last = through < kChunkCodes ? through : kChunkCodes - 1;
    const unsigned piece = from / kPieceCodes;
    const unsigned n = last / kPieceCodes - piece;  // that follow
    const std::uint32_t* words = notes.special + piece / 32;
    return (__funnelshift_r(words[0], words[1], piece % 32) & ((2u << n) - 1u)) != 0;
  }

  /// The delta at a place in the chunk.
  __device__ __forceinline__ std::int32_t deltaAt(unsigned place) const {
    const bool begins = kWholeTiles ? place % kEdge == 0 : place == 0;
    const std::int32_t left = begins ? 0 : sums.at(place - 1);
    return static_cast<std::int16_t>(sums.at(place) - left);
  }
  __device__ __forceinline__ bool isMarked(unsigned place) const {
    return (notes.marks[place / 32] >> place % 32 & 1u) != 0;
  }
  /// Range entries wait where the values will be.
  __device__ __forceinline__ T entryAt(std::uint32_t at) const {
    return static_cast<const T*>(decode.out)[at];
  }

  /// Of any row, in integers. All lanes.
  template <class Sum>
  __device__ __forceinline__ void sumSpecial(const Lane& lane, Sum (&own)[kV]) const {
    using Signed = std::make_signed_t<Sum>;
    Sum sum = 0;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      if (lane.has) {
        const unsigned place = static_cast<unsigned>(lane.place) + k;
        sum += static_cast<Sum>(Signed{deltaAt(place)});
        if (isMarked(place)) {
          sum += static_cast<Sum>(static_cast<Int>(entryAt(lane.at + k)));
        }
      }
      own[k] = sum;
    }
    const Sum before = sumOfLanes<kTileLanes>(sum) - sum;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      own[k] += before;
    }
  }

  /// In double, in the order in which the CPU adds, by every lane for itself: slow, and enough for
  /// streams that need it. With what the tile has in the chunk before.
  __device__ __forceinline__ double wideSum(const Lane& lane, unsigned k) const {
    const int tile = lane.tilePlace();
    const int last = lane.place + static_cast<int>(k);
    double sum = tile < 0 ? *carryAt<double>(carry_in) : 0.0;
    for (int i = tile < 0 ? 0 : tile; i <= last; ++i) {
      const auto place = static_cast<unsigned>(i);
      double delta = static_cast<double>(deltaAt(place));
      if (isMarked(place)) {
        delta = fp::add(delta, static_cast<double>(entryAt(begin + place)));
      }
      sum = fp::add(sum, delta);
    }
    return sum;
  }
};

}  // namespace fz::lorenzo_quant::device
