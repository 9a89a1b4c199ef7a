#pragma once

// Sums of the rows of a chunk from the left ends of their tiles on, two values for each lane of a
// warp. Device code only; must compile with NVRTC.

#include "fused/lorenzo_quant/lorenzo_quant_chunk_sums.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_column_walk.cuh"

namespace fz::lorenzo_quant::device {

template <class Sum>
inline constexpr bool kIsWideSum = std::is_same_v<Sum, double>;

template <class T, int kDim>
struct ChunkRows {
  using Int = IntOf<T>;
  static constexpr unsigned kEdge = kDim == 2 ? 32 : 8;
  static constexpr unsigned kV = 2;
  static constexpr unsigned kTileLanes = kEdge / kV;
  static_assert(kStripColumns == cuda::kWarp * kV);

  /// This lane's values in a row.
  struct Lane {
    int place;         ///< of the first in the chunk; may be in the one before or behind
    std::uint32_t at;  ///< its index in the field
    bool has[kV];      ///< exist, and are in the chunk
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

  /// From the left end of the tile on. All lanes.
  template <bool kChecks, Rows kRows, class Sum>
  __device__ __forceinline__ void sumRow(const Lane& lane, int strip_place, Sum (&own)[kV]) const {
    if constexpr (kIsWideSum<Sum>) {
#pragma unroll 1
      for (unsigned k = 0; k < kV; ++k) {
        own[k] = wideSum<kRows>(lane, k);
      }
      __syncwarp();  // everybody has read the entries
    } else if (kChecks && isSpecial(strip_place)) {
      sumSpecial<kRows>(lane, own);
    } else {
      sumFitting<kRows>(lane, own);
    }
  }

 private:
  /// Where this lane's tile begins; before the chunk: less than 0.
  static __device__ __forceinline__ int tileAt(const Lane& lane) {
    return lane.place - static_cast<int>(cuda::laneId() * kV % kEdge);
  }

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

  /// Of a row without entries, whose sums fit 16 bits.
  template <Rows kRows, class Sum>
  __device__ __forceinline__ void sumFitting(const Lane& lane, Sum (&own)[kV]) const {
    using Signed = std::make_signed_t<Sum>;
    std::int32_t through[kV];
    if constexpr (kRows != Rows::kAny) {
      const std::uint32_t two = sums.pairAt(lane.has[0] ? static_cast<unsigned>(lane.place) : 0u);
      through[0] = static_cast<std::int16_t>(two);
      through[1] = static_cast<std::int32_t>(two) >> 16;
    } else {
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        through[k] = sums.at(lane.has[k] ? static_cast<unsigned>(lane.place) + k : 0u);
      }
    }
    std::int32_t before = 0;  // the tile
    Sum carried = 0;
    if constexpr (kRows != Rows::kWhole) {
      const int tile = tileAt(lane);
      before = tile > 0 && lane.has[0] ? sums.at(static_cast<unsigned>(tile) - 1) : 0;
      carried = tile < 0 ? *carryAt<Sum>(carry_in) : Sum{0};
    }
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      const std::int32_t sum =
          kRows == Rows::kWhole ? through[k] : static_cast<std::int16_t>(through[k] - before);
      own[k] = static_cast<Sum>(Signed{sum}) + carried;
    }
  }

  /// The delta at a place in the chunk.
  template <Rows kRows>
  __device__ __forceinline__ std::int32_t deltaAt(unsigned place) const {
    const bool begins = kRows == Rows::kWhole ? place % kEdge == 0 : place == 0;
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
  template <Rows kRows, class Sum>
  __device__ __forceinline__ void sumSpecial(const Lane& lane, Sum (&own)[kV]) const {
    using Signed = std::make_signed_t<Sum>;
    Sum sum = 0;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      if (lane.has[k]) {
        const unsigned place = static_cast<unsigned>(lane.place) + k;
        sum += static_cast<Sum>(Signed{deltaAt<kRows>(place)});
        if (isMarked(place)) {
          sum += static_cast<Sum>(static_cast<Int>(entryAt(lane.at + k)));
        }
      }
      own[k] = sum;
    }
    Sum before = sumOfLanes<kTileLanes>(sum) - sum;
    if (kRows != Rows::kWhole && tileAt(lane) < 0) {
      before += *carryAt<Sum>(carry_in);
    }
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      own[k] += before;
    }
  }

  /// In double, in the order in which the CPU adds, by every lane for itself: slow, and enough for
  /// streams that need it.
  template <Rows kRows>
  __device__ __forceinline__ double wideSum(const Lane& lane, unsigned k) const {
    if (!lane.has[k]) {
      return 0.0;
    }
    const int tile = tileAt(lane);
    const int last = lane.place + static_cast<int>(k);
    double sum = kRows != Rows::kWhole && tile < 0 ? *carryAt<double>(carry_in) : 0.0;
    for (int i = tile < 0 ? 0 : tile; i <= last; ++i) {
      const auto place = static_cast<unsigned>(i);
      double delta = static_cast<double>(deltaAt<kRows>(place));
      if (isMarked(place)) {
        delta = fp::add(delta, static_cast<double>(entryAt(begin + place)));
      }
      sum = fp::add(sum, delta);
    }
    return sum;
  }
};

}  // namespace fz::lorenzo_quant::device
