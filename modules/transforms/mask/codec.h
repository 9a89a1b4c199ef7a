#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The bits of a mask as bytes, brick by brick; SPEC.md has the layout. A brick is up to 256 rows
/// of up to 64 bits, and stands for itself: one thread codes it, in any order.
namespace fz::mask {

inline constexpr std::uint32_t kRowBits = 64;
inline constexpr std::uint32_t kBrickRows = 256;
/// Bytes of a full brick as it is.
inline constexpr std::uint32_t kMaxRawBytes = kRowBits * kBrickRows / 8;

enum BrickKind : std::uint8_t { kNone = 0, kAll = 1, kCoded = 2, kRaw = 3 };
/// How a layer is stored. SPEC: layer, field 1.
enum LayerForm : std::uint8_t { kAllZeros = 0, kAllOnes = 1, kBricks = 2 };

FZ_HD std::uint64_t lowBits(std::uint32_t n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}

/// Where the rows of the bricks lie among the bits, which follow each other with x fastest.
struct Grid {
  std::uint64_t nx = 0;
  std::uint64_t ny = 1;
  std::uint64_t nz = 1;
  std::uint64_t n_bits = 0;
  std::uint32_t rows_y = kBrickRows;  ///< of a brick
  std::uint32_t rows_z = 1;
  bool is_line = false;  ///< one dimension: rows are consecutive

  FZ_HD std::uint64_t bricksX() const { return (nx + kRowBits - 1) / kRowBits; }
  FZ_HD std::uint64_t bricksY() const { return (ny + rows_y - 1) / rows_y; }
  FZ_HD std::uint64_t bricksZ() const { return (nz + rows_z - 1) / rows_z; }
  FZ_HD std::uint64_t bricks() const { return bricksX() * bricksY() * bricksZ(); }
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
  if (n_axes == 3) {
    grid.rows_y = 16;
    grid.rows_z = 16;
  }
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
  FZ_HD std::uint64_t rowStart(const Grid& grid, std::uint32_t row) const {
    return ((z + row / n_y) * grid.ny + y + row % n_y) * grid.nx + x;
  }
  FZ_HD std::uint32_t rowBits(const Grid& grid, std::uint32_t row) const {
    if (!grid.is_line) {
      return n_x;
    }
    const std::uint64_t left = grid.n_bits - rowStart(grid, row);
    return left < kRowBits ? static_cast<std::uint32_t>(left) : kRowBits;
  }
  FZ_HD std::uint64_t bits(const Grid& grid) const {
    return grid.is_line ? rowStart(grid, rows() - 1) - rowStart(grid, 0) + rowBits(grid, rows() - 1)
                        : std::uint64_t{n_x} * rows();
  }
  FZ_HD std::uint32_t rawBytes(const Grid& grid) const {
    return static_cast<std::uint32_t>((bits(grid) + 7) / 8);
  }
};

FZ_HD Brick brickAt(const Grid& grid, std::uint64_t index) {
  Brick brick{};
  brick.x = index % grid.bricksX() * kRowBits;
  brick.y = index / grid.bricksX() % grid.bricksY() * grid.rows_y;
  brick.z = index / grid.bricksX() / grid.bricksY() * grid.rows_z;
  const auto part = [](std::uint64_t extent, std::uint64_t at, std::uint32_t most) {
    return extent - at < most ? static_cast<std::uint32_t>(extent - at) : most;
  };
  brick.n_x = part(grid.nx, brick.x, kRowBits);
  brick.n_y = part(grid.ny, brick.y, grid.rows_y);
  brick.n_z = part(grid.nz, brick.z, grid.rows_z);
  return brick;
}

/// f(row, start, n_bits) for the rows of a brick in order, without a division for each.
template <class F>
FZ_HD void forRows(const Grid& grid, const Brick& brick, F f) {
  std::uint32_t row = 0;
  for (std::uint32_t z = 0; z < brick.n_z; ++z) {
    std::uint64_t start = brick.rowStart(grid, row);
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

// SPEC: contexts. West, north, north-west, north-east and the row behind; then clean runs by the
// bits of their length, for either value.
inline constexpr std::uint32_t kNeighbourContexts = 32;
inline constexpr std::uint32_t kRunClasses = 7;
inline constexpr std::uint32_t kContexts = kNeighbourContexts + 2 * kRunClasses;

/// Chances of a one, of 65536, before anything was seen; they move by 1/16 of the rest each time.
inline constexpr std::uint32_t kChanceBits = 16;
inline constexpr std::uint32_t kChanceShift = 4;

struct Chances {
  std::uint16_t of_one[kContexts];

  FZ_HD void reset() {
    constexpr std::uint16_t kFirst[kContexts] = {
        1000,  29500, 14900, 52300, 2600,  29900, 8300,  39400, 12300, 53200, 26600, 57500,
        8500,  46300, 26500, 54500, 56600, 63900, 19800, 59800, 5700,  64000, 10900, 58200,
        61600, 64700, 42900, 64500, 12200, 63900, 41300, 64500, 59000, 56200, 55600, 56200,
        56400, 58700, 63100, 62500, 60500, 59900, 60200, 59900, 60400, 64400};
    for (std::uint32_t i = 0; i < kContexts; ++i) {
      of_one[i] = kFirst[i];
    }
  }
  FZ_HD void update(std::uint32_t context, bool bit) {
    const std::uint32_t p = of_one[context];
    of_one[context] = static_cast<std::uint16_t>(
        bit ? p + (((1u << kChanceBits) - p) >> kChanceShift) : p - (p >> kChanceShift));
  }
};

/// Where the interval [low, high] is cut: up to here a one, above it a zero.
FZ_HD std::uint32_t cutAt(std::uint32_t low, std::uint32_t high, std::uint32_t chance) {
  return low + static_cast<std::uint32_t>((std::uint64_t{high - low} * chance) >> kChanceBits);
}

inline constexpr std::uint32_t kEvenChance = 1u << (kChanceBits - 1);

/// Writes what does not exceed `capacity`, and counts all of it.
class BitEncoder {
 public:
  FZ_HD BitEncoder(std::uint8_t* out, std::uint32_t capacity) : out_(out), capacity_(capacity) {
    chances_.reset();
  }
  FZ_HD bool code(std::uint32_t context, bool bit) {
    put(chances_.of_one[context], bit);
    chances_.update(context, bit);
    return bit;
  }
  FZ_HD bool codeEven(bool bit) {
    put(kEvenChance, bit);
    return bit;
  }
  /// The shortest bytes that, with zeros behind them, lie in the interval. Returns the total.
  FZ_HD std::uint32_t finish() {
    for (std::uint32_t n = 0; n <= 4; ++n) {
      const std::uint64_t rest = (std::uint64_t{1} << (32 - 8 * n)) - 1;
      const std::uint64_t value = (low_ + rest) & ~rest;
      if (value <= high_) {
        for (std::uint32_t i = 0; i < n; ++i) {
          emit(static_cast<std::uint8_t>(value >> (24 - 8 * i)));
        }
        break;
      }
    }
    return n_bytes_;
  }
  FZ_HD bool isFull() const { return n_bytes_ >= capacity_; }

 private:
  FZ_HD void emit(std::uint8_t byte) {
    if (n_bytes_ < capacity_) {
      out_[n_bytes_] = byte;
    }
    ++n_bytes_;
  }
  FZ_HD void put(std::uint32_t chance, bool bit) {
    const std::uint32_t cut = cutAt(low_, high_, chance);
    if (bit) {
      high_ = cut;
    } else {
      low_ = cut + 1;
    }
    while ((low_ ^ high_) >> 24 == 0) {
      emit(static_cast<std::uint8_t>(low_ >> 24));
      low_ <<= 8;
      high_ = high_ << 8 | 0xffu;
    }
  }

  std::uint8_t* out_;
  std::uint32_t capacity_;
  std::uint32_t n_bytes_ = 0;
  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0xffffffffu;
  Chances chances_;
};

/// Reads zeros behind the end.
class BitDecoder {
 public:
  FZ_HD BitDecoder(const std::uint8_t* in, std::uint32_t n_bytes) : in_(in), n_bytes_(n_bytes) {
    chances_.reset();
    for (int i = 0; i < 4; ++i) {
      value_ = value_ << 8 | next();
    }
  }
  FZ_HD bool code(std::uint32_t context, bool /*known*/) {
    const bool bit = get(chances_.of_one[context]);
    chances_.update(context, bit);
    return bit;
  }
  FZ_HD bool codeEven(bool /*known*/) { return get(kEvenChance); }
  /// Whether all bytes were looked at.
  FZ_HD bool isAtEnd() const { return n_read_ >= n_bytes_; }

 private:
  FZ_HD std::uint32_t next() {
    const std::uint32_t byte = n_read_ < n_bytes_ ? in_[n_read_] : 0;
    ++n_read_;
    return byte;
  }
  FZ_HD bool get(std::uint32_t chance) {
    const std::uint32_t cut = cutAt(low_, high_, chance);
    const bool bit = value_ <= cut;
    if (bit) {
      high_ = cut;
    } else {
      low_ = cut + 1;
    }
    while ((low_ ^ high_) >> 24 == 0) {
      low_ <<= 8;
      high_ = high_ << 8 | 0xffu;
      value_ = value_ << 8 | next();
    }
    return bit;
  }

  const std::uint8_t* in_;
  std::uint32_t n_bytes_;
  std::uint32_t n_read_ = 0;
  std::uint32_t value_ = 0;
  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0xffffffffu;
  Chances chances_;
};

/// What a row's bits are predicted from.
struct RowNeighbours {
  std::uint64_t north = 0;
  std::uint64_t behind = 0;
  bool has_any = false;
  bool west = false;  ///< of the row's first bit
};

/// A place below `n`, bit by bit from the highest on. A decoder may come to n or more.
template <class Coder>
FZ_HD std::uint32_t codePlace(Coder& coder, std::uint32_t place, std::uint32_t n) {
  std::uint32_t found = 0;
  for (std::uint32_t bit = 1u << 5; bit != 0; bit >>= 1) {
    if (bit < n) {
      found |= coder.codeEven((place & bit) != 0) ? bit : 0;
    }
  }
  return found;
}

/// Codes the n_bits bits of a row, `known` to an encoder; returns them. A run in which all
/// neighbours agree is one decision: whether all of it is as they are.
template <class Coder>
FZ_HD std::uint64_t codeRow(Coder& coder,
                            std::uint64_t known,
                            const RowNeighbours& around,
                            std::uint32_t n_bits) {
  const std::uint64_t north = around.north;
  const std::uint64_t last = std::uint64_t{1} << (n_bits - 1);
  const std::uint64_t north_west = north << 1 | (north & 1);
  const std::uint64_t north_east = north >> 1 | (north & last);
  const std::uint64_t any = north | north_west | north_east | around.behind;
  const std::uint64_t all = north & north_west & north_east & around.behind;
  std::uint64_t row = 0;
  bool west = around.west;
  for (std::uint32_t i = 0; i < n_bits;) {
    const std::uint64_t unlike = !around.has_any ? 0 : (west ? ~all : any) >> i;
    const std::uint32_t n_run = unlike == 0                           ? n_bits - i
                                : bits::firstSet(unlike) < n_bits - i ? bits::firstSet(unlike)
                                                                      : n_bits - i;
    if (n_run == 0) {
      const std::uint32_t context = (west ? 1u : 0u) |
                                    static_cast<std::uint32_t>(north >> i & 1) << 1 |
                                    static_cast<std::uint32_t>(north_west >> i & 1) << 2 |
                                    static_cast<std::uint32_t>(north_east >> i & 1) << 3 |
                                    static_cast<std::uint32_t>(around.behind >> i & 1) << 4;
      west = coder.code(context, (known >> i & 1) != 0);
      row |= std::uint64_t{west} << i;
      ++i;
      continue;
    }
    const std::uint32_t first = bits::firstSet((west ? ~known : known) >> i);
    const std::uint32_t n_class = bits::bitWidth(n_run) - 1;
    const std::uint64_t run = (west ? ~std::uint64_t{0} : 0) << i;
    if (coder.code(kNeighbourContexts + (west ? kRunClasses : 0) + n_class, first >= n_run)) {
      row |= run & lowBits(i + n_run);
      i += n_run;
      continue;
    }
    const std::uint32_t place = codePlace(coder, first, n_run);
    const std::uint32_t change = place < n_run ? place : n_run - 1;
    row |= run & lowBits(i + change);
    i += change;
    west = !west;
    row |= std::uint64_t{west} << i;
    ++i;
  }
  return row;
}

/// Codes the rows of a brick in order, known to an encoder, found by a decoder.
template <class Coder>
FZ_HD void codeBrick(Coder& coder, const Grid& grid, const Brick& brick, std::uint64_t* rows) {
  forRows(grid, brick, [&](std::uint32_t row, std::uint64_t /*start*/, std::uint32_t n_bits) {
    RowNeighbours around;
    if (grid.is_line) {
      around.west = row > 0 && rows[row - 1] >> (kRowBits - 1) != 0;
    } else {
      const bool has_behind = row >= brick.n_y;
      const bool has_north = has_behind ? row % brick.n_y != 0 : row != 0;
      around.has_any = has_north || has_behind;
      around.north = has_north ? rows[row - 1] : has_behind ? rows[row - brick.n_y] : 0;
      around.behind = has_behind ? rows[row - brick.n_y] : around.north;
      around.west = (around.north & 1) != 0;
    }
    rows[row] = codeRow(coder, rows[row], around, n_bits);
  });
}

}  // namespace fz::mask
