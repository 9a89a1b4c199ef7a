#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The bits of a mask as bytes, brick by brick; SPEC.md has the layout. A brick is up to 128 rows
/// of up to 32 bits, and stands for itself: one thread codes it, in any order.
namespace fz::mask {

inline constexpr std::uint32_t kRowBits = 32;
inline constexpr std::uint32_t kBrickY = 8;          ///< rows above each other
inline constexpr std::uint32_t kBrickZ = 16;         ///< behind each other, in three dimensions
inline constexpr std::uint32_t kFlatRows = kBrickY;  ///< of a brick in one or two dimensions
inline constexpr std::uint32_t kBrickRows = kBrickY * kBrickZ;  ///< at most
/// Bytes of the largest brick as it is.
inline constexpr std::uint32_t kMaxRawBytes = kRowBits * kBrickRows / 8;

/// Coded bricks are units of two bytes, and have no more than a byte can count.
inline constexpr std::uint32_t kUnitBytes = 2;
inline constexpr std::uint32_t kMaxCodedBytes = 255 * kUnitBytes;

FZ_HD bool isWorthCoding(std::uint32_t coded_bytes, std::uint32_t raw_bytes) {
  return coded_bytes < raw_bytes && coded_bytes <= kMaxCodedBytes;
}

enum BrickKind : std::uint8_t { kNone = 0, kAll = 1, kCoded = 2, kRaw = 3 };

/// Bricks whose kinds, sizes and bytes stand together. SPEC: layer, groups.
inline constexpr std::uint32_t kGroupBricks = 64;
/// The kinds of four bricks that are all one; alone they stand for a whole group.
inline constexpr std::uint8_t kFourOnes = 0x55;
/// Where a group ends, among the groups of its layer.
inline constexpr std::uint32_t kEndBytes = 4;
/// Of a layer in bricks: whatever their shape, these groups end where four bytes can tell.
inline constexpr std::uint64_t kMaxBits = std::uint64_t{1} << 33;

FZ_HD std::uint32_t kindBytes(std::uint32_t n_bricks) {
  return (n_bricks + 3) / 4;
}
/// How a layer is stored. SPEC: layer, field 1.
enum LayerForm : std::uint8_t { kAllZeros = 0, kAllOnes = 1, kBricks = 2, kBricksOfChances = 3 };

FZ_HD std::uint64_t lowBits(std::uint32_t n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}
/// The same for a row.
FZ_HD std::uint32_t lowRow(std::uint32_t n) {
  return n >= kRowBits ? ~0u : (1u << n) - 1;
}

/// Where the rows of the bricks lie among the bits, which follow each other with x fastest.
struct Grid {
  std::uint64_t nx = 0;
  std::uint64_t ny = 1;
  std::uint64_t nz = 1;
  std::uint64_t n_bits = 0;
  bool is_line = false;     ///< one dimension: rows are consecutive
  bool has_planes = false;  ///< three dimensions

  FZ_HD std::uint64_t bricksX() const { return (nx + kRowBits - 1) / kRowBits; }
  FZ_HD std::uint64_t bricksY() const { return (ny + kBrickY - 1) / kBrickY; }
  FZ_HD std::uint64_t bricksZ() const { return has_planes ? (nz + kBrickZ - 1) / kBrickZ : nz; }
  FZ_HD std::uint64_t bricks() const { return bricksX() * bricksY() * bricksZ(); }
  FZ_HD std::uint64_t groups() const { return (bricks() + kGroupBricks - 1) / kGroupBricks; }
  /// Of a group.
  FZ_HD std::uint32_t bricksOf(std::uint64_t group) const {
    const std::uint64_t left = bricks() - group * kGroupBricks;
    return left < kGroupBricks ? static_cast<std::uint32_t>(left) : kGroupBricks;
  }
};

/// Axes of one value are no axes, so that 1 x 1 x N is a line too.
FZ_HD Grid makeGrid(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  const std::uint64_t extents[3] = {x, y, z};
  std::uint64_t axes[3] = {1, 1, 1};
  std::uint32_t n_axes = 0;
  for (const std::uint64_t extent : extents) {
    if (extent != 1) {
      axes[n_axes++] = extent;
    }
  }
  Grid grid;
  grid.n_bits = x * y * z;
  if (n_axes < 2) {
    grid.is_line = true;
    grid.nx = kRowBits;
    grid.ny = (grid.n_bits + kRowBits - 1) / kRowBits;
    return grid;
  }
  grid.nx = axes[0];
  grid.ny = axes[1];
  grid.nz = axes[2];
  grid.has_planes = n_axes == 3;
  return grid;
}

/// One brick of a grid.
struct Brick {
  std::uint64_t x;  ///< of its first row
  std::uint64_t y;
  std::uint64_t z;
  std::uint32_t n_y;  ///< rows
  std::uint32_t n_z;
  std::uint32_t n_x;  ///< bits of a row; in a line the last one may have fewer

  FZ_HD std::uint32_t rows() const { return n_y * n_z; }
  FZ_HD std::uint64_t planeStart(const Grid& grid, std::uint32_t at_z) const {
    return ((z + at_z) * grid.ny + y) * grid.nx + x;
  }
  FZ_HD std::uint64_t rowStart(const Grid& grid, std::uint32_t row) const {
    return planeStart(grid, row / n_y) + row % n_y * grid.nx;
  }
  FZ_HD std::uint32_t rowBits(const Grid& grid, std::uint32_t row) const {
    if (!grid.is_line) {
      return n_x;
    }
    const std::uint64_t left = grid.n_bits - rowStart(grid, row);
    return left < kRowBits ? static_cast<std::uint32_t>(left) : kRowBits;
  }
  FZ_HD std::uint64_t bits(const Grid& grid) const {
    const std::uint64_t most = std::uint64_t{n_x} * rows();
    const std::uint64_t left = grid.n_bits - planeStart(grid, 0);
    return grid.is_line && left < most ? left : most;
  }
  FZ_HD std::uint32_t rawBytes(const Grid& grid) const {
    return static_cast<std::uint32_t>((bits(grid) + 7) / 8);
  }
};

/// Where no grid has more than kMaxBits, 32 bits are enough to count its bricks, and are divided in
/// a third of the time.
FZ_HD Brick brickAt(const Grid& grid, std::uint64_t index) {
  const auto n_x = static_cast<std::uint32_t>(grid.bricksX());
  const auto n_y = static_cast<std::uint32_t>(grid.bricksY());
  const std::uint32_t at_yz = static_cast<std::uint32_t>(index) / n_x;
  const std::uint32_t at_z = at_yz / n_y;
  const std::uint32_t rows_z = grid.has_planes ? kBrickZ : 1;
  Brick brick{};
  brick.x = std::uint64_t{static_cast<std::uint32_t>(index) - at_yz * n_x} * kRowBits;
  brick.y = std::uint64_t{at_yz - at_z * n_y} * kBrickY;
  brick.z = std::uint64_t{at_z} * rows_z;
  const auto part = [](std::uint64_t extent, std::uint64_t at, std::uint32_t most) {
    return extent - at < most ? static_cast<std::uint32_t>(extent - at) : most;
  };
  brick.n_x = part(grid.nx, brick.x, kRowBits);
  brick.n_y = part(grid.ny, brick.y, kBrickY);
  brick.n_z = part(grid.nz, brick.z, rows_z);
  return brick;
}

/// f(row, start, n_bits) for the rows of a brick in order, without a division for each.
template <class F>
FZ_HD void forRows(const Grid& grid, const Brick& brick, F f) {
  std::uint32_t row = 0;
  for (std::uint32_t z = 0; z < brick.n_z; ++z) {
    std::uint64_t start = brick.planeStart(grid, z);
    for (std::uint32_t y = 0; y < brick.n_y; ++y, ++row, start += grid.nx) {
      const std::uint64_t left = grid.is_line ? grid.n_bits - start : brick.n_x;
      f(row, start, left < brick.n_x ? static_cast<std::uint32_t>(left) : brick.n_x);
    }
  }
}

/// The n (1 to 64) bits from `start` on.
FZ_HD std::uint64_t loadBits(const std::uint64_t* words, std::uint64_t start, std::uint32_t n) {
  const std::uint64_t* const word = words + start / 64;
  const std::uint32_t shift = static_cast<std::uint32_t>(start % 64);
  std::uint64_t row = word[0] >> shift;
  if (shift + n > 64) {
    row |= word[1] << (64 - shift);
  }
  return row & lowBits(n);
}
FZ_HD std::uint32_t loadRow(const std::uint64_t* words, std::uint64_t start, std::uint32_t n) {
  return static_cast<std::uint32_t>(loadBits(words, start, n));
}

// SPEC: contexts.
inline constexpr std::uint32_t kRunClasses = 6;
/// Runs by the bits of their length, for either value of west: in rows without a row before them,
/// then in others.
inline constexpr std::uint32_t kLoneRuns = 0;
inline constexpr std::uint32_t kRuns = kLoneRuns + 2 * kRunClasses;
/// West, north, north-west, north-east; and the row behind where there are two rows before.
inline constexpr std::uint32_t kOneRow = kRuns + 2 * kRunClasses;
inline constexpr std::uint32_t kTwoRows = kOneRow + 16;
/// Whether a row is as the one behind; whether the last such row was.
inline constexpr std::uint32_t kLikeBehind = kTwoRows + 32;
inline constexpr std::uint32_t kContexts = kLikeBehind + 2;

/// Contexts that masks of a grid can have: the first of all.
FZ_HD std::uint32_t contextsOf(const Grid& grid) {
  return grid.is_line ? kRuns : grid.nz == 1 ? kTwoRows : kContexts;
}

/// Chances of a one, of 256. Where those of kLikeBehind are 0, rows are coded without asking.
struct Chances {
  std::uint8_t of_one[kContexts];

  /// SPEC: chances, where a layer brings none.
  FZ_HD void reset() {
    constexpr std::uint8_t kFirst[kContexts] = {
        252, 252, 246, 208, 179, 59,  171, 200, 218, 187, 131, 128, 238, 241, 240,
        246, 247, 245, 247, 244, 244, 245, 246, 246, 128, 118, 113, 235, 4,   109,
        9,   207, 49,  240, 156, 252, 15,  217, 126, 128, 128, 60,  21,  108, 11,
        106, 15,  120, 32,  112, 45,  128, 37,  48,  26,  152, 236, 236, 236, 236,
        236, 236, 236, 236, 236, 236, 236, 236, 236, 236, 236, 128, 178, 245};
    for (std::uint32_t i = 0; i < kContexts; ++i) {
      of_one[i] = kFirst[i];
    }
  }
  FZ_HD bool asksLikeBehind() const { return of_one[kLikeBehind] != 0; }
};
inline constexpr std::uint32_t kEvenChance = 128;

/// Where a range is cut: a one takes what is below.
FZ_HD std::uint32_t cutAt(std::uint32_t range, std::uint32_t chance) {
  return (range >> 8) * chance;
}
/// Below this a range takes in a unit of 16 bits, once at most for each decision.
inline constexpr std::uint32_t kLeastRange = 1u << 16;

/// Writes what does not exceed `capacity` bytes, and counts all of them.
class BitEncoder {
 public:
  FZ_HD BitEncoder(const Chances& chances, std::uint8_t* out, std::uint32_t capacity)
      : chances_(chances), out_(out), capacity_(capacity) {}
  FZ_HD bool asksLikeBehind() const { return chances_.asksLikeBehind(); }
  FZ_HD bool code(std::uint32_t context, bool bit) {
    put(chances_.of_one[context], bit);
    return bit;
  }
  FZ_HD bool codeEven(bool bit) {
    put(kEvenChance, bit);
    return bit;
  }
  /// The shortest units that, with zeros behind them, lie in the range. Returns the total.
  FZ_HD std::uint32_t finish() {
    for (std::uint32_t n = 0; n <= 2; ++n) {
      const std::uint64_t rest = (std::uint64_t{1} << (32 - 16 * n)) - 1;
      const std::uint64_t value = (low_ + rest) & ~rest;
      if (value - low_ < range_) {
        carry(value);
        for (std::uint32_t i = 0; i < n; ++i) {
          emit(static_cast<std::uint32_t>(value >> (16 - 16 * i)) & 0xffffu);
        }
        break;
      }
    }
    return n_bytes_;
  }

 private:
  /// The bit above the 32 of low goes to what was written before.
  FZ_HD void carry(std::uint64_t value) {
    bool has_carry = value >> 32 != 0;
    for (std::uint32_t at = n_bytes_; has_carry && at > 0 && at <= capacity_; at -= 2) {
      const std::uint32_t unit = (out_[at - 2] | static_cast<std::uint32_t>(out_[at - 1]) << 8) + 1;
      out_[at - 2] = static_cast<std::uint8_t>(unit);
      out_[at - 1] = static_cast<std::uint8_t>(unit >> 8);
      has_carry = unit >> 16 != 0;
    }
  }
  FZ_HD void emit(std::uint32_t unit) {
    if (n_bytes_ + 2 <= capacity_) {
      out_[n_bytes_] = static_cast<std::uint8_t>(unit);
      out_[n_bytes_ + 1] = static_cast<std::uint8_t>(unit >> 8);
    }
    n_bytes_ += 2;
  }
  FZ_HD void put(std::uint32_t chance, bool bit) {
    const std::uint32_t cut = cutAt(range_, chance);
    low_ += bit ? 0 : cut;
    range_ = bit ? cut : range_ - cut;
    if (range_ < kLeastRange) {
      carry(low_);
      emit(static_cast<std::uint32_t>(low_ >> 16) & 0xffffu);
      low_ = (low_ & 0xffffu) << 16;
      range_ <<= 16;
    }
  }

  const Chances& chances_;
  std::uint8_t* out_;
  std::uint32_t capacity_;
  std::uint32_t n_bytes_ = 0;
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xffffffffu;
};

/// Reads zeros behind the end.
class BitDecoder {
 public:
  FZ_HD BitDecoder(const Chances& chances, const std::uint8_t* in, std::uint32_t n_bytes)
      : chances_(chances), in_(in), n_bytes_(n_bytes) {
    value_ = next() << 16;
    value_ |= next();
  }
  FZ_HD bool asksLikeBehind() const { return chances_.asksLikeBehind(); }
  FZ_HD bool code(std::uint32_t context, bool /*known*/) { return get(chances_.of_one[context]); }
  FZ_HD bool codeEven(bool /*known*/) { return get(kEvenChance); }
  /// Whether all bytes were looked at.
  FZ_HD bool isAtEnd() const { return n_read_ >= n_bytes_; }

 private:
  FZ_HD std::uint32_t next() {
    const std::uint32_t low = n_read_ < n_bytes_ ? in_[n_read_] : 0;
    const std::uint32_t high = n_read_ + 1 < n_bytes_ ? in_[n_read_ + 1] : 0;
    n_read_ += 2;
    return low | high << 8;
  }
  FZ_HD bool get(std::uint32_t chance) {
    const std::uint32_t cut = cutAt(range_, chance);
    const bool bit = value_ < cut;
    value_ -= bit ? 0 : cut;
    range_ = bit ? cut : range_ - cut;
    if (range_ < kLeastRange) {
      range_ <<= 16;
      value_ = value_ << 16 | next();
    }
    return bit;
  }

  const Chances& chances_;
  const std::uint8_t* in_;
  std::uint32_t n_bytes_;
  std::uint32_t n_read_ = 0;
  std::uint32_t value_ = 0;
  std::uint32_t range_ = 0xffffffffu;
};

/// What a row's bits are predicted from.
struct RowNeighbours {
  std::uint32_t north = 0;
  std::uint32_t behind = 0;
  bool has_any = false;
  bool has_behind = false;
  bool has_two = false;
  bool west = false;  ///< of the row's first bit
};

/// The neighbours of one of a brick's rows, where those before it are known; y is its place in its
/// plane.
FZ_HD RowNeighbours neighboursOf(const Grid& grid,
                                 const Brick& brick,
                                 const std::uint32_t* rows,
                                 std::uint32_t row,
                                 std::uint32_t y) {
  RowNeighbours around;
  if (grid.is_line) {
    around.west = row > 0 && rows[row - 1] >> (kRowBits - 1) != 0;
    return around;
  }
  const bool has_north = y != 0;
  around.has_behind = row >= brick.n_y;
  around.has_any = has_north || around.has_behind;
  around.has_two = has_north && around.has_behind;
  around.north = has_north ? rows[row - 1] : around.has_behind ? rows[row - brick.n_y] : 0;
  around.behind = around.has_behind ? rows[row - brick.n_y] : around.north;
  around.west = (around.north & 1) != 0;
  return around;
}

/// How many of the n bits from place `at` on are as they are there, `unlike` those that are not.
FZ_HD std::uint32_t runLength(std::uint32_t unlike, std::uint32_t at, std::uint32_t n_bits) {
  const std::uint32_t left = unlike >> at;
  const std::uint32_t first = bits::bitWidth(left & (0u - left)) - 1;  // where there is one
  return first < n_bits - at ? first : n_bits - at;
}

/// Codes the n_bits bits of a row, `known` to an encoder; returns them. A run in which all
/// neighbours agree is one decision: whether all of it is as they are.
template <class Coder>
FZ_HD std::uint32_t codeRow(Coder& coder,
                            std::uint32_t known,
                            const RowNeighbours& around,
                            std::uint32_t n_bits) {
  const std::uint32_t north = around.north;
  const std::uint32_t north_west = north << 1 | (north & 1);
  const std::uint32_t north_east = north >> 1 | (north & 1u << (n_bits - 1));
  const std::uint32_t any = around.has_any ? north | north_west | north_east | around.behind : 0;
  const std::uint32_t all = around.has_any ? north & north_west & north_east & around.behind : ~0u;
  const std::uint32_t runs = around.has_any ? kRuns : kLoneRuns;
  std::uint32_t row = 0;
  bool west = around.west;
  for (std::uint32_t i = 0; i < n_bits;) {
    const std::uint32_t n_run = runLength(west ? ~all : any, i, n_bits);
    if (n_run == 0) {
      const std::uint32_t four = (west ? 1u : 0u) | (north >> i & 1) << 1 |
                                 (north_west >> i & 1) << 2 | (north_east >> i & 1) << 3;
      const std::uint32_t context =
          around.has_two ? kTwoRows + (four | (around.behind >> i & 1) << 4) : kOneRow + four;
      west = coder.code(context, (known >> i & 1) != 0);
      row |= (west ? 1u : 0u) << i;
      ++i;
      continue;
    }
    std::uint32_t n_like = runLength(west ? ~known : known, i, n_bits);  // an encoder's
    std::uint32_t left = n_run;  // among which the first unlike one is
    const std::uint32_t n_class = bits::bitWidth(n_run) - 1;
    if (coder.code(runs + (west ? kRunClasses : 0) + n_class, n_like >= n_run)) {
      row |= west ? lowRow(i + n_run) & ~lowRow(i) : 0;
      i += n_run;
      continue;
    }
    const std::uint32_t begin = i;
    while (left > 1) {
      const std::uint32_t half = left / 2;
      const bool is_behind = coder.codeEven(n_like >= half);
      i += is_behind ? half : 0;
      n_like -= is_behind ? half : 0;
      left = is_behind ? left - half : half;
    }
    row |= west ? lowRow(i) & ~lowRow(begin) : 1u << i;
    west = !west;
    ++i;
  }
  return row;
}

/// Codes the rows of a brick in order, known to an encoder, found by a decoder.
template <class Coder>
FZ_HD void codeBrick(Coder& coder, const Grid& grid, const Brick& brick, std::uint32_t* rows) {
  const bool asks = coder.asksLikeBehind();
  bool was_like = true;
  std::uint32_t y = 0;
  forRows(grid, brick, [&](std::uint32_t row, std::uint64_t /*start*/, std::uint32_t n_bits) {
    const RowNeighbours around = neighboursOf(grid, brick, rows, row, y);
    y = y + 1 == brick.n_y ? 0 : y + 1;
    if (around.has_behind && asks) {
      was_like = coder.code(kLikeBehind + (was_like ? 1u : 0u), rows[row] == around.behind);
      if (was_like) {
        rows[row] = around.behind;
        return;
      }
    }
    rows[row] = codeRow(coder, rows[row], around, n_bits);
  });
}

}  // namespace fz::mask
