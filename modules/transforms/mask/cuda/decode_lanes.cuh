#pragma once

// The decoder of codec.h for a thread that has a brick for itself: decisions of any outcome take
// the same way, since the threads of a warp are at different ones. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "transforms/mask/codec.h"

namespace fz::mask {

/// The chances of a layer in shared memory, where a decision finds its own without much ado: those
/// of runs by their length, those of bits by neighbours in the order of their places.
struct LaneTable {
  static constexpr std::uint32_t kRunsAt = 0;  ///< 32 for each value of west; lone ones behind
  static constexpr std::uint32_t kLoneAt = 2 * kRowBits;
  static constexpr std::uint32_t kOneAt = 4 * kRowBits;
  static constexpr std::uint32_t kTwoAt = kOneAt + 16;
  static constexpr std::uint32_t kLikeAt = kTwoAt + 32;
  static constexpr std::uint32_t kEvenAt = kLikeAt + 2;
  static constexpr std::uint32_t kEntries = kEvenAt + 1;

  std::uint32_t of_one[kEntries];

  /// All threads of the block, with barriers inside; the layer brings the first n_own chances, from
  /// `own` on.
  __device__ __forceinline__ void fill(const std::uint8_t* own, std::uint32_t n_own) {
    __shared__ std::uint8_t first[kContexts];
    if (threadIdx.x == 0) {  // which stores what the compiler knows
      Chances chances;
      chances.reset();
#pragma unroll
      for (unsigned i = 0; i < kContexts; ++i) {
        first[i] = chances.of_one[i];
      }
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < kEntries; i += blockDim.x) {
      const std::uint32_t context = contextOf(i);
      of_one[i] = i == kEvenAt ? kEvenChance : context < n_own ? own[context] : first[context];
    }
    __syncthreads();
  }

 private:
  static __device__ __forceinline__ std::uint32_t contextOf(std::uint32_t i) {
    if (i < kOneAt) {
      const std::uint32_t n_class = bits::bitWidth(i % kRowBits + 1) - 1;
      const std::uint32_t west = i / kRowBits % 2;
      return (i < kLoneAt ? kRuns : kLoneRuns) + west * kRunClasses + n_class;
    }
    if (i >= kLikeAt) {
      return kLikeBehind + (i - kLikeAt) % 2;
    }
    // West, north-west, north, north-east, behind: as codec.h has them.
    const std::uint32_t at = i < kTwoAt ? i - kOneAt : i - kTwoAt;
    const std::uint32_t context = (at & 1) | (at >> 2 & 1) << 1 | (at >> 1 & 1) << 2 | (at & 0x18);
    return (i < kTwoAt ? kOneRow : kTwoRows) + context;
  }
};

/// As BitDecoder, from units in shared memory with kPadUnits zeros behind them. The next one is
/// always at hand, so that a decision has no branch.
class LaneDecoder {
 public:
  static constexpr std::uint32_t kPadUnits = 3;

  __device__ __forceinline__ LaneDecoder(const std::uint16_t* units, std::uint32_t n_units)
      : units_(units),
        n_units_(n_units),
        value_(static_cast<std::uint32_t>(units[0]) << 16 | units[1]),
        ahead_(units[2]) {}
  __device__ __forceinline__ bool decide(std::uint32_t chance) {
    const std::uint32_t cut = cutAt(range_, chance);
    const bool bit = value_ < cut;
    value_ -= bit ? 0 : cut;
    range_ = bit ? cut : range_ - cut;
    const bool takes = range_ < kLeastRange;
    value_ = takes ? value_ << 16 | ahead_ : value_;
    range_ = takes ? range_ << 16 : range_;
    at_ += takes && at_ <= n_units_ ? 1u : 0u;
    ahead_ = units_[at_];
    return bit;
  }
  /// Whether all units were looked at.
  __device__ __forceinline__ bool isAtEnd() const { return at_ >= n_units_; }

 private:
  const std::uint16_t* units_;
  std::uint32_t n_units_;
  std::uint32_t at_ = 2;  ///< of the next one; those that are zero stay so
  std::uint32_t value_;
  std::uint32_t ahead_;
  std::uint32_t range_ = 0xffffffffu;
};

__device__ __forceinline__ std::uint32_t trailingZeros(std::uint32_t word) {
  return static_cast<std::uint32_t>(__popc(static_cast<int>(~word & (word - 1))));
}

/// A row that is being coded.
struct LaneRow {
  std::uint32_t n_bits;
  std::uint32_t found;  ///< what is left is as west
  std::uint32_t any;    ///< where a neighbour is 1
  std::uint32_t none;   ///< where not all of them are
  std::uint32_t north;  ///< with its ends once more, from the bit before the first one on
  std::uint32_t north_high;
  std::uint32_t behind;
  std::uint32_t runs;  ///< in the table
  bool has_two;
  bool west;
  std::uint32_t at;    ///< the next bit
  std::uint32_t left;  ///< among which the first unlike one is, while that is searched for

  __device__ __forceinline__ void start(std::uint32_t north_row, bool first_west) {
    const std::uint32_t last = 1u << (n_bits - 1);
    const std::uint32_t with_end = north_row | (north_row & last) << 1;
    north = with_end << 1 | (north_row & 1);
    north_high = with_end >> 31 | (n_bits == kRowBits ? (north_row & last) >> 30 : 0);
    west = first_west;
    found = west ? ~0u : 0;
    at = 0;
    left = 0;
  }
  /// One decision. True: the row is done.
  template <bool kHasBehind>
  __device__ __forceinline__ bool step(LaneDecoder& coder, const LaneTable& table) {
    // Behind the row's end both are ones.
    const std::uint32_t n_run = trailingZeros(__funnelshift_r(west ? none : any, ~0u, at));
    const bool is_search = left > 1;
    const std::uint32_t n = is_search ? left / 2 : n_run;
    const bool is_run = n != 0;
    const std::uint32_t w = west ? 1 : 0;
    const std::uint32_t three = __funnelshift_r(north, north_high, at) & 7u;
    std::uint32_t bit_at = LaneTable::kOneAt + (three << 1 | w);
    if (kHasBehind && has_two) {
      bit_at = LaneTable::kTwoAt + ((behind >> at & 1u) << 4 | three << 1 | w);
    }
    const std::uint32_t in_runs = is_run ? runs + w * kRowBits + n - 1 : bit_at;
    const bool bit = coder.decide(table.of_one[is_search ? LaneTable::kEvenAt : in_runs]);
    at += is_run && bit ? n : 0;
    left = !is_run ? 0 : !bit ? n : is_search ? left - n : 0;
    const bool has_one = !is_run || left == 1;  // bit, which ends a run or stands alone
    const bool has_other = has_one && (is_run || bit != west);
    found ^= has_other ? ~0u << at : 0;
    west = west != has_other;
    at += has_one ? 1u : 0u;
    left = has_one ? 0 : left;
    return at >= n_bits;
  }
};

/// As codeBrick(), decision after decision whatever the rows are.
template <bool kHasBehind>
__device__ __forceinline__ void decodeLaneBrick(LaneDecoder& coder,
                                                const LaneTable& table,
                                                const Grid& grid,
                                                const Brick& brick,
                                                std::uint32_t* rows) {
  const std::uint32_t n_rows = brick.rows();
  const std::uint32_t n_y = brick.n_y;
  const bool asks = kHasBehind && table.of_one[LaneTable::kLikeAt] != 0;
  const bool is_line = grid.is_line;
  LaneRow state;
  state.n_bits = brick.n_x;
  state.found = 0;
  std::uint32_t y = 0;
  bool was_like = true;
  bool is_asked = false;
  const auto startRow = [&](std::uint32_t row) {
    const std::uint32_t before = state.found;
    const bool has_behind = kHasBehind && row >= n_y;
    const bool has_north = !is_line && y != 0;
    state.behind = has_behind ? rows[row - n_y] : 0;
    const std::uint32_t north = has_north ? before : state.behind;
    if (is_line) {
      state.n_bits = brick.rowBits(grid, row);
      state.start(0, row != 0 && before >> (kRowBits - 1) != 0);
    } else {
      state.start(north, (north & 1) != 0);
    }
    const std::uint32_t north_west = north << 1 | (north & 1);
    const std::uint32_t north_east = north >> 1 | (north & 1u << (state.n_bits - 1));
    const std::uint32_t other = has_behind ? state.behind : north;
    const std::uint32_t outside = ~lowRow(state.n_bits);
    const bool has_any = has_north || has_behind;
    state.any = north | north_west | north_east | other | outside;
    state.none = (has_any ? ~(north & north_west & north_east & other) : 0) | outside;
    state.runs = has_any ? LaneTable::kRunsAt : LaneTable::kLoneAt;
    state.has_two = has_north && has_behind;
    is_asked = asks && has_behind;
  };
  startRow(0);
#pragma unroll 1
  for (std::uint32_t row = 0; row < n_rows;) {
    bool is_done = false;
    if (kHasBehind && is_asked) {
      was_like = coder.decide(table.of_one[LaneTable::kLikeAt + (was_like ? 1u : 0u)]);
      is_done = was_like;
      state.found = was_like ? state.behind : state.found;
      is_asked = false;
    } else {
      is_done = state.template step<kHasBehind>(coder, table);
    }
    if (is_done) {
      state.found &= lowRow(state.n_bits);
      rows[row] = state.found;
      ++row;
      y = y + 1 == n_y ? 0 : y + 1;
      if (row < n_rows) {
        startRow(row);
      }
    }
  }
}

}  // namespace fz::mask
