#pragma once

// The encoder of codec.h in two steps, since only the second one is a chain: rows list their
// decisions side by side, then a thread codes the list of a brick. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "transforms/mask/codec.h"

namespace fz::mask {

/// A decision is a byte: its context, and in the lowest bit its outcome.
constexpr std::uint32_t kEven = kContexts;  ///< the context of those of an even chance
static_assert(2 * kEven + 1 <= 0xff);
/// What no row exceeds: 135 where every bit ends a run of all that are left, n of them, since 1 +
/// floor(log2 n) decisions tell that; one for the row behind.
constexpr std::uint32_t kMaxRowDecisions = 136;

/// The chances of a layer in shared memory.
struct ChanceTable {
  std::uint32_t of_one[kContexts + 1];

  /// All threads of the block.
  __device__ __forceinline__ void fill(const Chances& chances) {
    for (std::uint32_t i = threadIdx.x; i <= kContexts; i += blockDim.x) {
      of_one[i] = i == kEven ? kEvenChance : chances.of_one[i];
    }
  }
  __device__ __forceinline__ bool asksLikeBehind() const { return of_one[kLikeBehind] != 0; }
};

/// Takes the decisions of rows for a coder, counts all, and keeps the first ones.
struct DecisionList {
  std::uint8_t* to;
  std::uint32_t n_kept;
  std::uint32_t n = 0;

  __device__ __forceinline__ bool code(std::uint32_t context, bool bit) {
    if (n < n_kept) {
      to[n] = static_cast<std::uint8_t>(context << 1 | (bit ? 1u : 0u));
    }
    ++n;
    return bit;
  }
  __device__ __forceinline__ bool codeEven(bool bit) { return code(kEven, bit); }
};

/// What rows of a brick must know of it.
struct BrickRowsShape {
  std::uint8_t n_x;
  std::uint8_t n_y;
  std::uint8_t n_rows;
  bool is_line;
  std::uint16_t n_bits;  ///< of the brick

  __device__ __forceinline__ std::uint32_t rowBits(std::uint32_t row) const {
    const std::uint32_t left = n_bits - row * kRowBits;
    return is_line ? (left < kRowBits ? left : kRowBits) : n_x;
  }
};

/// One thread: what coding a row decides, all rows of the brick being known. Whether the row is as
/// the one behind comes first, and then what is decided where that is not asked, or not so. y is
/// its place in its plane.
__device__ __forceinline__ void listDecisions(const BrickRowsShape& shape,
                                              const std::uint32_t* rows,
                                              std::uint32_t row,
                                              std::uint32_t y,
                                              DecisionList& list) {
  Grid grid;
  grid.is_line = shape.is_line;
  Brick brick{};
  brick.n_y = shape.n_y;
  const RowNeighbours around = neighboursOf(grid, brick, rows, row, y);
  if (around.has_behind) {
    const bool was_like = row == brick.n_y || rows[row - 1] == rows[row - 1 - brick.n_y];
    list.code(kLikeBehind + (was_like ? 1u : 0u), rows[row] == around.behind);
  }
  codeRow(list, rows[row], around, shape.rowBits(row));
}

/// As BitEncoder, to memory that begins at a multiple of two bytes.
class LaneEncoder {
 public:
  __device__ __forceinline__ LaneEncoder(std::uint8_t* out, std::uint32_t capacity)
      : out_(reinterpret_cast<std::uint16_t*>(out)), max_units_(capacity / kUnitBytes) {}

  /// The decisions of a brick, four to a word, in two lists of which the second begins with a row.
  /// kPlanes: some may be about rows behind.
  template <bool kPlanes>
  __device__ __forceinline__ void codeLists(const ChanceTable& chances,
                                            const std::uint32_t* first,
                                            std::uint32_t n_first,
                                            const std::uint32_t* second,
                                            std::uint32_t n_second) {
    const bool asks = kPlanes && chances.asksLikeBehind();
    bool is_known = false;  // the row, as it is as the one behind
    const std::uint32_t n_words = (n_first + 3) / 4;
    const std::uint32_t n_all_words = n_words + (n_second + 3) / 4;
#pragma unroll 1
    for (std::uint32_t i = 0; i < n_all_words; ++i) {
      const bool is_first = i < n_words;
      const std::uint32_t word = is_first ? i : i - n_words;
      const std::uint32_t four = (is_first ? first : second)[word];
      const std::uint32_t n = (is_first ? n_first : n_second) - 4 * word;
      std::uint32_t chance[4];
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        const std::uint32_t context = four >> (8 * k + 1) & 0x7fu;
        chance[k] = chances.of_one[context <= kEven ? context : kEven];
      }
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        const bool bit = (four >> (8 * k) & 1u) != 0;
        if constexpr (kPlanes) {
          const std::uint32_t context = four >> (8 * k + 1) & 0x7fu;
          const bool is_about_row = context == kLikeBehind || context == kLikeBehind + 1;
          if (is_about_row ? !asks : is_known) {
            continue;
          }
          is_known = is_about_row ? bit && k < n : is_known;
        }
        if (k < n) {
          decide(chance[k], bit);
        }
      }
    }
  }
  __device__ std::uint32_t finish() {
    for (std::uint32_t n = 0; n <= 2; ++n) {
      const std::uint64_t rest = (std::uint64_t{1} << (32 - 16 * n)) - 1;
      const std::uint64_t value = (low_ + rest) & ~rest;
      if (value - low_ < range_) {
        carry(has_carry_ || value >> 32 != 0);
        for (std::uint32_t i = 0; i < n; ++i) {
          emit(static_cast<std::uint32_t>(value >> (16 - 16 * i)) & 0xffffu);
        }
        break;
      }
    }
    return n_units_ * kUnitBytes;
  }

 private:
  __device__ __forceinline__ void decide(std::uint32_t chance, bool bit) {
    const std::uint32_t cut = cutAt(range_, chance);
    const std::uint32_t more = bit ? 0 : cut;
    low_ += more;
    has_carry_ = has_carry_ || low_ < more;
    range_ = bit ? cut : range_ - cut;
    if (range_ < kLeastRange) {
      carry(has_carry_);
      has_carry_ = false;
      emit(low_ >> 16);
      low_ <<= 16;
      range_ <<= 16;
    }
  }
  __device__ __forceinline__ void carry(bool has_carry) {
    for (std::uint32_t at = n_units_; has_carry && at > 0 && at <= max_units_; --at) {
      const auto unit = static_cast<std::uint16_t>(out_[at - 1] + 1);
      out_[at - 1] = unit;
      has_carry = unit == 0;
    }
  }
  __device__ __forceinline__ void emit(std::uint32_t unit) {
    if (n_units_ < max_units_) {
      out_[n_units_] = static_cast<std::uint16_t>(unit);
    }
    ++n_units_;
  }

  std::uint16_t* out_;
  std::uint32_t max_units_;
  std::uint32_t n_units_ = 0;
  std::uint32_t low_ = 0;
  bool has_carry_ = false;  ///< of low
  std::uint32_t range_ = 0xffffffffu;
};

}  // namespace fz::mask
