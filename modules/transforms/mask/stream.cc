#include "transforms/mask/stream.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "backends/cpu/missing.h"
#include "core/require.h"
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

std::size_t kindBytes(std::size_t n_bricks) {
  return bits::ceilDiv<std::size_t>(n_bricks, 4);
}

std::size_t maxLayerBytes(const Grid& grid) {
  const std::size_t n_bricks = grid.bricks();
  // A brick is coded only where that takes less than its bits, which end in a byte of their own.
  return 1 + kContexts + kindBytes(n_bricks) + n_bricks + grid.n_bits / 8 + n_bricks;
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
  for (std::size_t i = 0; i < n_bricks; i += 4) {
    std::uint8_t four = 0;
    for (std::size_t k = i; k < std::min(i + 4, n_bricks); ++k) {
      four = static_cast<std::uint8_t>(four | kinds[k] << (2 * (k - i)));
    }
    out.u8(four);
  }
  for (std::size_t i = 0; i < n_bricks; ++i) {
    if (kinds[i] == kCoded) {
      out.u8(static_cast<std::uint8_t>(sizes[i] / kUnitBytes));
    }
  }
  for (std::size_t i = 0; i < n_bricks; ++i) {
    const std::size_t n_bytes = kinds[i] == kCoded ? sizes[i]
                                : kinds[i] == kRaw ? brickAt(grid, i).rawBytes(grid)
                                                   : 0;
    out.bytes(slots.data() + i * slot_bytes, n_bytes);
  }
}

void readLayer(const Grid& grid,
               ByteView& in,
               const CpuExecutor& executor,
               MemoryPool* pool,
               LayerScratch& scratch,
               std::span<std::uint64_t> words) {
  const std::uint8_t form = take(in, 1)[0];
  FZ_REQUIRE(form <= kBricksOfChances, ErrorCode::kCorrupt, "Mask: a layer of form {}", form);
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
  // Before memory is taken for the bricks: each has two bits here.
  const std::size_t n_bricks = grid.bricks();
  const ByteView packed = take(in, kindBytes(n_bricks));
  const auto kind_of = [&](std::size_t i) {
    return static_cast<BrickKind>(packed[i / 4] >> (2 * (i % 4)) & 3u);
  };
  std::size_t n_coded = 0;
  for (std::size_t i = 0; i < n_bricks; ++i) {
    n_coded += kind_of(i) == kCoded ? 1u : 0u;
  }
  const ByteView stored_sizes = take(in, n_coded);
  const auto offsets = scratch.sizes.get<std::uint64_t>(pool, n_bricks + 1);
  std::uint64_t offset = 0;
  for (std::size_t i = 0, coded = 0; i < n_bricks; ++i) {
    offsets[i] = offset;
    if (kind_of(i) == kCoded) {
      offset += stored_sizes[coded] * kUnitBytes;
      ++coded;
    } else if (kind_of(i) == kRaw) {
      offset += brickAt(grid, i).rawBytes(grid);
    }
  }
  offsets[n_bricks] = offset;
  FZ_REQUIRE(offset <= in.size(), ErrorCode::kCorrupt,
             "Mask: {} bytes of bricks needed, {} are left", offset, in.size());
  const ByteView payload = take(in, static_cast<std::size_t>(offset));
  FirstIndex damaged;
  parallelFor(executor, n_bricks, [&](std::size_t i) {
    const BrickKind kind = kind_of(i);
    const ByteView bytes = payload.subspan(static_cast<std::size_t>(offsets[i]),
                                           static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
    if (kind != kNone && !decodeBrick(grid, brickAt(grid, i), kind, bytes, chances, words.data())) {
      damaged.record(i);
    }
  });
  FZ_REQUIRE(!damaged.found(), ErrorCode::kCorrupt, "Mask: brick {} is damaged", damaged.value());
}

}  // namespace fz::mask
