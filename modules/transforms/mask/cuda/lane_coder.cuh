#pragma once

// The arithmetic coder of codec.h for a thread that has a brick for itself: decisions of any
// outcome take the same way, since the threads of a warp are at different ones. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "transforms/mask/codec.h"

namespace fz::mask {

/// Chances in shared memory, one column per brick.
template <unsigned kColumns>
class LaneChances {
 public:
  using Table = std::uint32_t[kContexts][kColumns];

  __device__ __forceinline__ LaneChances(Table& table, unsigned column)
      : of_one_(&table[0][column]) {
    Chances first;
    first.reset();
#pragma unroll
    for (std::uint32_t i = 0; i < kContexts; ++i) {
      of_one_[i * kColumns] = first.of_one[i];
    }
  }
  __device__ __forceinline__ std::uint32_t ofOne(std::uint32_t context) const {
    return of_one_[context * kColumns];
  }
  __device__ __forceinline__ void update(std::uint32_t context, std::uint32_t p, bool bit) {
    of_one_[context * kColumns] =
        bit ? p + (((1u << kChanceBits) - p) >> kChanceShift) : p - (p >> kChanceShift);
  }

 private:
  std::uint32_t* of_one_;
};

/// An interval, and by how many bits it moves up after a decision.
struct Interval {
  std::uint32_t low = 0;
  std::uint32_t high = 0xffffffffu;

  __device__ __forceinline__ std::uint32_t cut(std::uint32_t chance) const {
    return low + __umulhi(high - low, chance << (32 - kChanceBits));
  }
  __device__ __forceinline__ void take(bool bit, std::uint32_t cut) {
    high = bit ? cut : high;
    low = bit ? low : cut + 1;
  }
  /// Bits that both ends share, in whole bytes.
  __device__ __forceinline__ std::uint32_t settled() const {
    return static_cast<std::uint32_t>(__clz(static_cast<int>(low ^ high))) & ~7u;
  }
  __device__ __forceinline__ void shift(std::uint32_t n) {
    low = __funnelshift_lc(0u, low, n);
    high = __funnelshift_lc(0xffffffffu, high, n);
  }
};

/// As BitDecoder; bytes are asked for before they are needed.
template <unsigned kColumns>
class LaneDecoder {
 public:
  __device__ __forceinline__ LaneDecoder(LaneChances<kColumns> chances,
                                         const std::uint8_t* in,
                                         std::uint32_t n_bytes)
      : chances_(chances), in_(in), n_bytes_(n_bytes) {
    value_ = fetch();
    queue_ = fetch();
    queue_ = queue_ << 32;
    n_queue_ = 32;
    ahead_ = fetch();
  }
  __device__ __forceinline__ bool code(std::uint32_t context, bool /*known*/) {
    const std::uint32_t p = chances_.ofOne(context);
    const bool bit = get(p);
    chances_.update(context, p, bit);
    return bit;
  }
  __device__ __forceinline__ bool codeEven(bool /*known*/) { return get(kEvenChance); }
  __device__ __forceinline__ bool isAtEnd() const { return n_read_ >= n_bytes_; }
  __device__ __forceinline__ bool isDone() const { return false; }

 private:
  __device__ __forceinline__ std::uint32_t fetch() {
    std::uint32_t word = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      word = word << 8 | (n_fetched_ + i < n_bytes_ ? in_[n_fetched_ + i] : 0u);
    }
    n_fetched_ += 4;
    return word;
  }
  __device__ __forceinline__ bool get(std::uint32_t chance) {
    const std::uint32_t cut = interval_.cut(chance);
    const bool bit = value_ <= cut;
    interval_.take(bit, cut);
    const std::uint32_t n = interval_.settled();
    interval_.shift(n);
    value_ = __funnelshift_lc(static_cast<std::uint32_t>(queue_ >> 32), value_, n);
    queue_ <<= n;
    n_queue_ -= n;
    n_read_ += n / 8;
    if (n_queue_ < 32) {  // no decision takes more than 32 bits
      queue_ |= static_cast<std::uint64_t>(ahead_) << (32 - n_queue_);
      n_queue_ += 32;
      ahead_ = fetch();
    }
    return bit;
  }

  LaneChances<kColumns> chances_;
  const std::uint8_t* in_;
  std::uint32_t n_bytes_;
  std::uint32_t n_fetched_ = 0;
  std::uint32_t n_read_ = 4;
  std::uint32_t n_queue_;
  std::uint64_t queue_;
  std::uint32_t ahead_;
  std::uint32_t value_;
  Interval interval_;
};

/// As BitEncoder, to memory that begins at a multiple of four bytes and has room for the capacity,
/// rounded up to one.
template <unsigned kColumns>
class LaneEncoder {
 public:
  __device__ __forceinline__ LaneEncoder(LaneChances<kColumns> chances,
                                         std::uint8_t* out,
                                         std::uint32_t capacity)
      : chances_(chances), out_(out), capacity_(capacity) {}
  __device__ __forceinline__ bool code(std::uint32_t context, bool bit) {
    const std::uint32_t p = chances_.ofOne(context);
    put(p, bit);
    chances_.update(context, p, bit);
    return bit;
  }
  __device__ __forceinline__ bool codeEven(bool bit) {
    put(kEvenChance, bit);
    return bit;
  }
  /// No better than the bits as they are.
  __device__ __forceinline__ bool isDone() const { return n_bytes_ >= capacity_; }
  __device__ __forceinline__ std::uint32_t finish() {
    for (std::uint32_t n = 0; n <= 4; ++n) {
      const std::uint64_t rest = (std::uint64_t{1} << (32 - 8 * n)) - 1;
      const std::uint64_t value = (interval_.low + rest) & ~rest;
      if (value <= interval_.high) {
        emit(static_cast<std::uint32_t>(value), 8 * n);
        break;
      }
    }
    for (; n_held_ != 0; n_held_ -= 8, ++n_bytes_) {
      if (n_bytes_ < capacity_) {
        out_[n_bytes_] = static_cast<std::uint8_t>(held_ >> (n_held_ - 8));
      }
    }
    return n_bytes_;
  }

 private:
  /// The highest n bits, whole bytes.
  __device__ __forceinline__ void emit(std::uint32_t bits, std::uint32_t n) {
    held_ = held_ << n | (std::uint64_t{bits} << n) >> 32;
    n_held_ += n;
    if (n_held_ >= 32) {
      n_held_ -= 32;
      const auto word = static_cast<std::uint32_t>(held_ >> n_held_);
      if (n_bytes_ < capacity_) {
        *reinterpret_cast<std::uint32_t*>(out_ + n_bytes_) = __byte_perm(word, 0, 0x0123);
      }
      n_bytes_ += 4;
    }
  }
  __device__ __forceinline__ void put(std::uint32_t chance, bool bit) {
    interval_.take(bit, interval_.cut(chance));
    const std::uint32_t n = interval_.settled();
    emit(interval_.low, n);
    interval_.shift(n);
  }

  LaneChances<kColumns> chances_;
  std::uint8_t* out_;
  std::uint32_t capacity_;
  std::uint32_t n_bytes_ = 0;
  std::uint32_t n_held_ = 0;
  std::uint64_t held_ = 0;
  Interval interval_;
};

/// What the bits of a row are predicted from, by whole rows. All words here have the first bit of
/// a row at the top, where bits that are alike can be counted.
struct RowAround {
  std::uint64_t north;
  std::uint64_t north_west;
  std::uint64_t north_east;
  std::uint64_t behind;
  std::uint64_t agree_on_zero;  ///< all of them are 0
  std::uint64_t agree_on_one;

  __device__ __forceinline__
  RowAround(std::uint64_t north_row, std::uint64_t row_behind, bool has_any, std::uint32_t n_bits)
      : north(north_row), behind(row_behind) {
    const std::uint64_t row = ~std::uint64_t{0} << (kRowBits - n_bits);
    const std::uint64_t last = row & (0 - row);
    north_west = north >> 1 | (north & std::uint64_t{1} << 63);
    north_east = north << 1 | (north & last);
    agree_on_zero = ~(north | north_west | north_east | behind) & row;
    agree_on_one = north & north_west & north_east & behind & row;
    if (!has_any) {
      agree_on_zero = row;
      agree_on_one = row;
    }
  }
  __device__ __forceinline__ std::uint32_t context(std::uint32_t i, bool west) const {
    const auto at = [i](std::uint64_t word) {
      return static_cast<std::uint32_t>((word << i) >> 32) >> 31;
    };
    return (west ? 1u : 0u) | at(north) << 1 | at(north_west) << 2 | at(north_east) << 3 |
           at(behind) << 4;
  }
};

__device__ __forceinline__ std::uint32_t leadingZeros(std::uint64_t word) {
  return static_cast<std::uint32_t>(__clzll(static_cast<long long>(word)));
}

/// A row from the places where its bits change.
__device__ __forceinline__ std::uint64_t rowOfChanges(std::uint64_t changes, bool first) {
#pragma unroll
  for (unsigned step = 1; step < kRowBits; step *= 2) {
    changes ^= changes >> step;
  }
  return first ? ~changes : changes;
}

/// As codeRow(), with bits in the other order: places where the row changes.
template <class Coder>
__device__ __forceinline__ std::uint64_t codeLaneRow(
    Coder& coder, std::uint64_t known, const RowAround& around, bool west, std::uint32_t n_bits) {
  std::uint64_t changes = 0;
  for (std::uint32_t i = 0; i < n_bits;) {
    const std::uint64_t agree = (west ? around.agree_on_one : around.agree_on_zero) << i;
    const std::uint32_t n_run = leadingZeros(~agree);
    const std::uint32_t first = leadingZeros((west ? ~known : known) << i);
    const bool is_run = n_run != 0;
    const std::uint32_t context =
        is_run ? kNeighbourContexts + (west ? kRunClasses : 0) + 31 -
                     static_cast<std::uint32_t>(__clz(static_cast<int>(n_run)))
               : around.context(i, west);
    // Of a run whether it goes on as west is, else what the bit is.
    const bool bit = coder.code(context, is_run ? first >= n_run : (first == 0) != west);
    bool changes_here = bit != west;
    std::uint32_t n_like = 0;
    if (is_run) {
      changes_here = !bit;
      n_like = n_run;
      if (!bit) {
        const std::uint32_t place = codePlace(coder, first, n_run);
        n_like = place < n_run ? place : n_run - 1;
      }
    }
    i += n_like;
    if (changes_here) {
      changes |= std::uint64_t{1} << (kRowBits - 1 - i);
      west = !west;
    }
    i += is_run && !changes_here ? 0 : 1;
  }
  return changes;
}

/// As codeBrick(), decision after decision whatever the rows are.
template <class Coder>
__device__ void codeLaneBrick(Coder& coder,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint64_t* rows) {
  const std::uint32_t n_rows = brick.rows();
  std::uint64_t before = 0;
  std::uint32_t y = 0;  // of the row, in its plane
  for (std::uint32_t row = 0; row < n_rows; ++row, y = y + 1 == brick.n_y ? 0 : y + 1) {
    const std::uint32_t n = grid.is_line ? brick.rowBits(grid, row) : brick.n_x;
    const bool has_behind = !grid.is_line && row >= brick.n_y;
    const bool has_north = !grid.is_line && y != 0;
    const std::uint64_t row_behind = has_behind ? __brevll(rows[row - brick.n_y]) : 0;
    const std::uint64_t north = has_north ? before : row_behind;
    const RowAround around(north, has_behind ? row_behind : north, has_north || has_behind, n);
    const bool west = grid.is_line ? (before & 1) != 0 : north >> 63 != 0;
    const std::uint64_t changes = codeLaneRow(coder, __brevll(rows[row]), around, west, n);
    before = rowOfChanges(changes, west) & ~std::uint64_t{0} << (kRowBits - n);
    rows[row] = __brevll(before);
    if (coder.isDone()) {
      return;
    }
  }
}

}  // namespace fz::mask
