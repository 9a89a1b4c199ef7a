#include "transforms/mask/stream.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "backends/cpu/missing.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/bits.h"
#include "transforms/mask/book.h"

namespace fz::mask {

namespace {

constexpr std::size_t kCountParts = 64;

/// Rows of a brick, loaded; what kind of brick they make.
struct BrickRows {
  std::uint32_t rows[kBrickRows];

  BrickKind load(const Grid& grid, const Brick& brick, const std::uint64_t* words) {
    std::uint32_t ones = 0;
    std::uint32_t zeros = 0;
    if (grid.nx % kRowBits == 0 && !grid.is_line && brick.n_x == kRowBits) {  // rows are words
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(words);
      std::uint32_t row = 0;
      for (std::uint32_t z = 0; z < brick.n_z; ++z) {
        const std::uint8_t* from = bytes + brick.rowStart(grid, row) / 8;
        for (std::uint32_t y = 0; y < brick.n_y; ++y, ++row, from += grid.nx / 8) {
          std::memcpy(&rows[row], from, sizeof(std::uint32_t));
          ones |= rows[row];
          zeros |= ~rows[row];
        }
      }
      return kindOf(ones, zeros);
    }
    forRows(grid, brick, [&](std::uint32_t row, std::uint64_t start, std::uint32_t n) {
      rows[row] = loadRow(words, start, n);
      ones |= rows[row];
      zeros |= rows[row] ^ lowRow(n);
    });
    return kindOf(ones, zeros);
  }

 private:
  static BrickKind kindOf(std::uint32_t ones, std::uint32_t zeros) {
    return ones == 0 ? kNone : zeros == 0 ? kAll : kCoded;
  }
};

void packRaw(const Grid& grid, const Brick& brick, const std::uint32_t* rows, std::uint8_t* out) {
  std::memset(out, 0, brick.rawBytes(grid));
  std::uint32_t at = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    const std::uint32_t n = brick.rowBits(grid, row);
    for (std::uint32_t i = 0; i < n; ++i, ++at) {
      out[at / 8] = static_cast<std::uint8_t>(out[at / 8] | (rows[row] >> i & 1u) << (at % 8));
    }
  }
}

void unpackRaw(const Grid& grid, const Brick& brick, const std::uint8_t* in, std::uint32_t* rows) {
  std::uint32_t at = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    const std::uint32_t n = brick.rowBits(grid, row);
    rows[row] = 0;
    for (std::uint32_t i = 0; i < n; ++i, ++at) {
      rows[row] |= (in[at / 8] >> (at % 8) & 1u) << i;
    }
  }
}

/// Sets bits of words that other threads set other bits of.
void orBits(std::uint64_t* words, std::uint64_t start, std::uint32_t row, std::uint32_t n_bits) {
  static_assert(std::endian::native == std::endian::little);
  if (start % kRowBits == 0 && n_bits == kRowBits) {
    std::memcpy(reinterpret_cast<std::uint8_t*>(words) + start / 8, &row, sizeof(row));
    return;  // nobody else's
  }
  const auto set = [](std::uint64_t& word, std::uint64_t bits) {
    if (bits != 0) {
      std::atomic_ref<std::uint64_t>(word).fetch_or(bits, std::memory_order_relaxed);
    }
  };
  const std::uint32_t shift = static_cast<std::uint32_t>(start % 64);
  set(words[start / 64], std::uint64_t{row} << shift);
  if (shift > 64 - kRowBits) {
    set(words[start / 64 + 1], std::uint64_t{row} >> (64 - shift));
  }
}

std::size_t maxLayerBytes(const Grid& grid) {
  const std::size_t n_bricks = grid.bricks();
  // A brick is coded only where that takes less than its bits, which end in a byte of their own.
  return 1 + kContexts + grid.groups() * (kEndBytes + kindBytes(kGroupBricks)) + n_bricks +
         grid.n_bits / 8 + n_bricks;
}

/// Encodes a brick into its slot; returns its kind, and the bytes of a coded one.
BrickKind encodeBrick(const Grid& grid,
                      const Brick& brick,
                      const std::uint64_t* words,
                      const Chances& chances,
                      std::uint8_t* slot,
                      std::uint16_t& n_bytes) {
  BrickRows loaded;
  const BrickKind kind = loaded.load(grid, brick, words);
  n_bytes = 0;
  if (kind != kCoded) {
    return kind;
  }
  const std::uint32_t raw_bytes = brick.rawBytes(grid);
  BitEncoder encoder(chances, slot, raw_bytes);
  codeBrick(encoder, grid, brick, loaded.rows);
  const std::uint32_t coded_bytes = encoder.finish();
  if (!isWorthCoding(coded_bytes, raw_bytes)) {
    packRaw(grid, brick, loaded.rows, slot);
    return kRaw;
  }
  n_bytes = static_cast<std::uint16_t>(coded_bytes);
  return kCoded;
}

/// What was made of the bricks of a layer.
struct StoredBricks {
  const Grid& grid;
  std::span<const std::uint8_t> kinds;
  std::span<const std::uint16_t> sizes;  ///< of coded ones
  std::span<const std::uint8_t> slots;
  std::size_t slot_bytes;

  /// The bytes of a brick itself.
  std::size_t bytesOf(std::uint64_t brick) const {
    return kinds[brick] == kCoded ? sizes[brick]
           : kinds[brick] == kRaw ? brickAt(grid, brick).rawBytes(grid)
                                  : 0;
  }
  bool areAll(std::uint64_t group, BrickKind kind) const {
    const auto own = kinds.subspan(group * kGroupBricks, grid.bricksOf(group));
    return std::all_of(own.begin(), own.end(), [=](std::uint8_t k) { return k == kind; });
  }
  std::size_t groupBytes(std::uint64_t group) const {
    if (areAll(group, kNone)) {
      return 0;
    }
    if (areAll(group, kAll)) {
      return 1;
    }
    const std::uint64_t first = group * kGroupBricks;
    const std::uint64_t n = grid.bricksOf(group);
    std::size_t n_bytes = kindBytes(static_cast<std::uint32_t>(n));
    for (std::uint64_t i = first; i < first + n; ++i) {
      n_bytes += bytesOf(i) + (kinds[i] == kCoded ? 1 : 0);
    }
    return n_bytes;
  }
  void writeGroup(std::uint64_t group, StreamWriter& out) const {
    if (areAll(group, kNone)) {
      return;
    }
    if (areAll(group, kAll)) {
      return out.u8(kFourOnes);
    }
    const std::uint64_t first = group * kGroupBricks;
    const std::uint64_t end = first + grid.bricksOf(group);
    for (std::uint64_t i = first; i < end; i += 4) {
      std::uint8_t four = 0;
      for (std::uint64_t k = i; k < std::min(i + 4, end); ++k) {
        four = static_cast<std::uint8_t>(four | kinds[k] << (2 * (k - i)));
      }
      out.u8(four);
    }
    for (std::uint64_t i = first; i < end; ++i) {
      if (kinds[i] == kCoded) {
        out.u8(static_cast<std::uint8_t>(sizes[i] / kUnitBytes));
      }
    }
    for (std::uint64_t i = first; i < end; ++i) {
      out.bytes(slots.data() + i * slot_bytes, bytesOf(i));
    }
  }
};

/// Decodes the bytes of a brick into words that are zero. False: they are not such a brick.
bool decodeBrick(const Grid& grid,
                 const Brick& brick,
                 BrickKind kind,
                 ByteView bytes,
                 const Chances& chances,
                 std::uint64_t* words) {
  std::uint32_t rows[kBrickRows];
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  if (kind == kRaw) {
    unpackRaw(grid, brick, bytes.data(), rows);
  } else if (kind == kCoded) {
    BitDecoder decoder(chances, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    codeBrick(decoder, grid, brick, rows);
    if (!decoder.isAtEnd()) {
      return false;
    }
  }
  forRows(grid, brick, [&](std::uint32_t row, std::uint64_t start, std::uint32_t n) {
    const std::uint32_t bits = kind == kAll ? lowRow(n) : rows[row];
    ones |= bits;
    zeros |= bits ^ lowRow(n);
    orBits(words, start, bits, n);
  });
  return kind == kAll || (ones != 0 && zeros != 0);
}

/// Decodes the record of a group into words that are zero. Returns a brick that is damaged, or
/// how many there are in all.
std::uint64_t decodeGroup(const Grid& grid,
                          std::uint64_t group,
                          ByteView record,
                          const Chances& chances,
                          std::uint64_t* words) {
  const std::uint64_t first = group * kGroupBricks;
  const std::uint32_t n = grid.bricksOf(group);
  if (record.empty()) {
    return grid.bricks();
  }
  const std::uint32_t n_kinds = record.size() == 1 ? 1 : kindBytes(n);
  if (record.size() < n_kinds || (n_kinds < kindBytes(n) && record[0] != kFourOnes)) {
    return first;
  }
  const auto kind_of = [&](std::uint32_t i) {
    return static_cast<BrickKind>(record[n_kinds == 1 ? 0 : i / 4] >> (2 * (i % 4)) & 3u);
  };
  std::uint32_t n_coded = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    n_coded += kind_of(i) == kCoded ? 1u : 0u;
  }
  if (record.size() < n_kinds + n_coded) {
    return first;
  }
  const ByteView sizes = record.subspan(n_kinds, n_coded);
  ByteView left = record.subspan(n_kinds + n_coded);
  for (std::uint32_t i = 0, coded = 0; i < n; ++i) {
    const BrickKind kind = kind_of(i);
    const Brick brick = brickAt(grid, first + i);
    const std::size_t n_bytes = kind == kCoded ? sizes[coded++] * std::size_t{kUnitBytes}
                                : kind == kRaw ? brick.rawBytes(grid)
                                               : 0;
    if (left.size() < n_bytes ||
        (kind != kNone && !decodeBrick(grid, brick, kind, left.first(n_bytes), chances, words))) {
      return first + i;
    }
    left = left.subspan(n_bytes);
  }
  return left.empty() ? grid.bricks() : first;
}

/// The chances of a layer, and whether it has to bring them.
bool findChances(const Grid& grid, const std::uint64_t* words, Chances& chances) {
  LayerCounts counts = {};
  const std::uint64_t n_bricks = grid.bricks();
  for (std::uint64_t i = 0; i < n_bricks; i += sampleStep(n_bricks)) {
    const Brick brick = brickAt(grid, i);
    BrickRows loaded;
    if (loaded.load(grid, brick, words) == kCoded) {
      for (std::uint32_t row = 0; row < brick.rows(); ++row) {
        countRow(grid, brick, loaded.rows, row, counts, [](std::uint32_t& n) { ++n; });
      }
    }
  }
  Chances first;
  first.reset();
  LayerCosts costs;
  for (std::uint32_t i = 0; i < contextsOf(grid); ++i) {
    const LayerCosts part = costsOf(counts, first, i);
    costs.asking += part.asking;
    costs.plain += part.plain;
    costs.first += part.first;
  }
  const LayerWay way = chooseWay(costs, grid);
  for (std::uint32_t i = 0; i < kContexts; ++i) {
    chances.of_one[i] = static_cast<std::uint8_t>(chanceIn(counts, way, first, i));
  }
  return way.has_own;
}

ByteView take(ByteView& in, std::size_t n_bytes) {
  FZ_REQUIRE(in.size() >= n_bytes, ErrorCode::kCorrupt,
             "Mask: {} bytes of the mask needed, {} are left", n_bytes, in.size());
  const ByteView taken = in.first(n_bytes);
  in = in.subspan(n_bytes);
  return taken;
}

}  // namespace

std::uint32_t indexLayers(std::size_t n_patterns) {
  return n_patterns < 2 ? 0 : bits::bitWidth(static_cast<std::uint64_t>(n_patterns - 1));
}

std::size_t maxStreamBytes(const Grid& grid, std::size_t value_bytes) {
  const std::size_t layer = maxLayerBytes(grid);
  const std::size_t n_layers = 1 + std::size_t{indexLayers(kMaxPatterns)};
  return 4 + std::max(n_layers * layer + kMaxPatterns * value_bytes,
                      layer + static_cast<std::size_t>(grid.n_bits) * value_bytes);
}

void StreamWriter::bytes(const void* data, std::size_t n_bytes) {
  if (n_bytes != 0 && n_bytes_ <= out_.size() && out_.size() - n_bytes_ >= n_bytes) {
    std::memcpy(out_.data() + n_bytes_, data, n_bytes);
  }
  n_bytes_ += n_bytes;
}

void StreamWriter::le(std::uint64_t value, std::size_t n_bytes) {
  for (std::size_t i = 0; i < n_bytes; ++i) {
    u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

std::uint64_t countOnes(std::span<const std::uint64_t> words, const CpuExecutor& executor) {
  std::uint64_t counts[kCountParts] = {};
  const std::size_t share = bits::ceilDiv(words.size(), kCountParts);
  parallelFor(executor, kCountParts, [&](std::size_t part) {
    const std::size_t begin = std::min(words.size(), part * share);
    counts[part] = fz::countOnes(words.subspan(begin, std::min(words.size() - begin, share)));
  });
  std::uint64_t total = 0;
  for (const std::uint64_t n : counts) {
    total += n;
  }
  return total;
}

void writeLayer(const Grid& grid,
                bool may_have_chances,
                std::span<const std::uint64_t> words,
                const CpuExecutor& executor,
                MemoryPool* pool,
                LayerScratch& scratch,
                StreamWriter& out) {
  const std::uint64_t n_ones = countOnes(words, executor);
  if (n_ones == 0 || n_ones == grid.n_bits) {
    out.u8(n_ones == 0 ? kAllZeros : kAllOnes);
    return;
  }
  FZ_REQUIRE(grid.n_bits <= kMaxBits, ErrorCode::kUnsupported,
             "Mask: {} values, at most {} are coded", grid.n_bits, kMaxBits);
  const std::size_t n_bricks = grid.bricks();
  const auto kinds = scratch.kinds.get<std::uint8_t>(pool, n_bricks);
  const auto sizes = scratch.sizes.get<std::uint16_t>(pool, n_bricks);
  const std::size_t slot_bytes = bits::roundUp<std::size_t>(brickAt(grid, 0).rawBytes(grid), 2);
  const auto slots = scratch.slots.get<std::uint8_t>(pool, n_bricks * slot_bytes);
  Chances chances;
  chances.reset();
  const bool has_own = may_have_chances && findChances(grid, words.data(), chances);
  parallelFor(executor, n_bricks, [&](std::size_t i) {
    kinds[i] = encodeBrick(grid, brickAt(grid, i), words.data(), chances,
                           slots.data() + i * slot_bytes, sizes[i]);
  });
  out.u8(has_own ? kBricksOfChances : kBricks);
  if (has_own) {
    out.bytes(chances.of_one, contextsOf(grid));
  }
  const StoredBricks bricks{grid, kinds, sizes, slots, slot_bytes};
  std::uint64_t end = 0;
  for (std::uint64_t group = 0; group < grid.groups(); ++group) {
    end += bricks.groupBytes(group);
    out.le(end, kEndBytes);
  }
  for (std::uint64_t group = 0; group < grid.groups(); ++group) {
    bricks.writeGroup(group, out);
  }
}

void readLayer(const Grid& grid,
               ByteView& in,
               const CpuExecutor& executor,
               std::span<std::uint64_t> words) {
  const std::uint8_t form = take(in, 1)[0];
  FZ_REQUIRE(form <= kBricksOfChances && (form < kBricks || grid.n_bits <= kMaxBits),
             ErrorCode::kCorrupt, "Mask: a layer of form {}, {} values", form, grid.n_bits);
  std::fill(words.begin(), words.end(), 0);
  if (form == kAllZeros || form == kAllOnes) {
    for (std::uint64_t at = 0; form == kAllOnes && at < grid.n_bits; at += 64) {
      const std::uint64_t left = std::min<std::uint64_t>(64, grid.n_bits - at);
      words[static_cast<std::size_t>(at / 64)] = lowBits(static_cast<std::uint32_t>(left));
    }
    return;
  }
  Chances chances;
  chances.reset();
  if (form == kBricksOfChances) {
    const ByteView own = take(in, contextsOf(grid));
    std::copy(own.begin(), own.end(), chances.of_one);
  }
  const std::uint64_t n_groups = grid.groups();
  FZ_REQUIRE(n_groups != 0 && n_groups <= in.size() / kEndBytes, ErrorCode::kCorrupt,
             "Mask: {} groups of bricks, {} bytes of the mask are left", n_groups, in.size());
  const ByteView ends = take(in, static_cast<std::size_t>(n_groups) * kEndBytes);
  const auto end_of = [&](std::uint64_t group) {
    return loadLe<std::uint32_t>(ends.data() + group * kEndBytes);
  };
  const ByteView records = take(in, end_of(n_groups - 1));
  FirstIndex damaged;
  parallelFor(executor, static_cast<std::size_t>(n_groups), [&](std::size_t group) {
    const std::uint32_t begin = group == 0 ? 0 : end_of(group - 1);
    const std::uint32_t end = end_of(group);
    const bool is_there = begin <= end && end <= records.size();
    const std::uint64_t bad =
        is_there
            ? decodeGroup(grid, group, records.subspan(begin, end - begin), chances, words.data())
            : group * kGroupBricks;
    if (bad < grid.bricks()) {
      damaged.record(bad);
    }
  });
  FZ_REQUIRE(!damaged.found(), ErrorCode::kCorrupt, "Mask: brick {} is damaged", damaged.value());
}

}  // namespace fz::mask
