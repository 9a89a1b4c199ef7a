#pragma once

#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The bytes of an encoded chunk; SPEC.md has the same in words.
///
/// Level 0 is the chunk itself, level i the bitmap over level i - 1. A bitmap marks the bytes that
/// are kept: those of level 0 that are not zero, those of a bitmap that differ from the byte
/// before (0 before the first). Bitmaps are words here, which as little-endian bytes are the
/// format's.
namespace fz::rze {

inline constexpr std::uint32_t kMaxChunkBytes = 16384;
inline constexpr std::uint32_t kMaxLevels = 4;
inline constexpr std::uint32_t kRawFlag = 0x80000000u;  // SPEC: entry, stored as it is
inline constexpr std::uint32_t kTagBytes = 2;           // SPEC: chunk length behind every chunk
inline constexpr std::uint32_t kZeroChunkBytes = kTagBytes;
inline constexpr std::uint32_t kHeaderBytes = 8;  // SPEC: stream, before the entries
inline constexpr std::uint32_t kEntryBytes = 4;
inline constexpr std::uint32_t kStreamAlign = 4;
inline constexpr std::uint64_t kMaxInputBytes = 0xFFFFFFFFu;  // SPEC: stream, field 0

/// What the config fixes for all chunks.
struct ChunkFormat {
  std::uint32_t chunk_bytes;
  std::uint32_t levels;
};

/// Bytes of every level of a chunk, also of those above the last one in use.
struct ChunkShape {
  std::uint32_t n_bytes[kMaxLevels + 1];
  std::uint32_t levels;
};

FZ_HD ChunkShape shapeOf(std::uint32_t chunk_bytes, std::uint32_t levels) {
  ChunkShape shape{};
  shape.levels = levels;
  shape.n_bytes[0] = chunk_bytes;
  for (std::uint32_t level = 1; level <= kMaxLevels; ++level) {
    shape.n_bytes[level] = bits::ceilDiv(shape.n_bytes[level - 1], 8u);
  }
  return shape;
}

/// Bytes of the last bitmap as stored; the fourth always takes a whole word.
FZ_HD std::uint32_t lastBitmapBytes(const ChunkShape& shape) {
  std::uint32_t n_bytes = 4;
  for (std::uint32_t level = 1; level < kMaxLevels; ++level) {  // no index that a GPU cannot fold
    n_bytes = shape.levels == level ? shape.n_bytes[level] : n_bytes;
  }
  return n_bytes;
}

/// What no stored chunk of this shape can exceed unless it is raw: everything is kept.
FZ_HD std::uint32_t maxPackedBytes(const ChunkShape& shape) {
  std::uint32_t n_bytes = lastBitmapBytes(shape) + kTagBytes;
  for (std::uint32_t level = 0; level < kMaxLevels; ++level) {
    n_bytes += level < shape.levels ? shape.n_bytes[level] : 0u;
  }
  return n_bytes;
}

/// Bytes that a stream of n_chunks chunks has at least: every chunk has an entry and two bytes or
/// more; only a last chunk of one byte can do with one.
FZ_HD std::uint64_t minStreamBytes(std::uint64_t n_chunks) {
  return n_chunks == 0 ? 0 : kHeaderBytes + (kEntryBytes + kTagBytes) * n_chunks - 1;
}

/// Raw limits of the original system for 4 levels and chunks of 16384; they look at 16382 bytes
/// even for a shorter chunk, which can therefore grow (SPEC.md: raw chunks).
FZ_HD bool isOverClassicLimits(const ChunkShape& shape, const std::uint32_t* kept) {
  constexpr std::uint32_t kLimit = 16382;
  const std::uint32_t two = kept[0] + kept[1];
  const std::uint32_t three = two + kept[2];
  const std::uint32_t four = three + kept[3];
  return kept[0] > kLimit - shape.n_bytes[1] ||                           //
         two >= kLimit || two > kLimit - shape.n_bytes[2] ||              //
         three >= kLimit - 4 || three > kLimit - 4 - shape.n_bytes[3] ||  //
         four >= kLimit - 4;
}

/// Entry of a chunk of which kept[i] bytes of level i are kept, i < shape.levels.
FZ_HD std::uint32_t entryOf(const ChunkFormat& format,
                            const ChunkShape& shape,
                            const std::uint32_t* kept) {
  const bool is_zero = kept[0] == 0;
  std::uint32_t n_bytes = kTagBytes;
  if (!is_zero) {
    n_bytes += lastBitmapBytes(shape);
    for (std::uint32_t level = 0; level < kMaxLevels; ++level) {
      if (level < shape.levels) {
        n_bytes += kept[level];
      }
    }
  }
  const bool is_classic = format.chunk_bytes == kMaxChunkBytes && shape.levels == kMaxLevels;
  const bool is_raw =
      is_classic ? !is_zero && isOverClassicLimits(shape, kept) : n_bytes >= shape.n_bytes[0];
  return is_raw ? kRawFlag | shape.n_bytes[0] : n_bytes;
}

/// Working memory of a team for one chunk: bitmaps, and for each word the kept bytes before it.
struct ChunkWork {
  static constexpr std::uint32_t kWords = kMaxChunkBytes / 32;
  std::uint32_t bitmap[kMaxLevels + 1][kWords];  // row 0 is unused
  std::uint32_t rank[kMaxLevels + 1][kWords];
  std::uint32_t scan[kWords];
  std::uint32_t kept[kMaxLevels];
};

FZ_HD std::uint32_t bitmapWords(const ChunkShape& shape, std::uint32_t level) {
  return bits::ceilDiv(shape.n_bytes[level], 4u);
}

FZ_HD std::uint32_t bitmapByte(const std::uint32_t* words, std::uint32_t i) {
  return (words[i / 4] >> (8 * (i % 4))) & 0xFFu;
}

/// Ranks of a bitmap's words, and how many bytes it keeps. Doubling steps, so a team needs no
/// order among its items.
template <class Team>
FZ_HD std::uint32_t rankWords(Team team,
                              const std::uint32_t* words,
                              std::uint32_t n_words,
                              std::uint32_t* rank,
                              std::uint32_t* scan) {
  team.each(n_words, [=](std::uint32_t w) { rank[w] = bits::popCount(words[w]); });
  team.sync();
  for (std::uint32_t step = 1; step < n_words; step *= 2) {
    team.each(n_words,
              [=](std::uint32_t w) { scan[w] = rank[w] + (w >= step ? rank[w - step] : 0u); });
    team.sync();
    team.each(n_words, [=](std::uint32_t w) { rank[w] = scan[w]; });
    team.sync();
  }
  const std::uint32_t total = rank[n_words - 1];
  team.sync();
  team.each(n_words, [=](std::uint32_t w) { rank[w] -= bits::popCount(words[w]); });
  team.sync();
  return total;
}

/// Bitmaps, ranks and counts of a chunk of at least one byte.
template <class Team>
FZ_HD void planChunk(Team team, const std::uint8_t* in, const ChunkShape& shape, ChunkWork* work) {
  for (std::uint32_t level = 1; level <= shape.levels; ++level) {
    const std::uint32_t n_below = shape.n_bytes[level - 1];
    const std::uint32_t* below = work->bitmap[level - 1];
    std::uint32_t* words = work->bitmap[level];
    team.each(bitmapWords(shape, level), [=](std::uint32_t w) {
      std::uint32_t word = 0;
      for (std::uint32_t i = 32 * w; i < 32 * w + 32 && i < n_below; ++i) {
        const bool keep = level == 1
                              ? in[i] != 0
                              : bitmapByte(below, i) != (i == 0 ? 0u : bitmapByte(below, i - 1));
        word |= (keep ? 1u : 0u) << (i % 32);
      }
      words[w] = word;
    });
    team.sync();
    const std::uint32_t kept =
        rankWords(team, words, bitmapWords(shape, level), work->rank[level], work->scan);
    team.each(1, [=](std::uint32_t) { work->kept[level - 1] = kept; });
    team.sync();
  }
}

/// Writes a planned chunk that is neither raw nor all zeros.
template <class Team>
FZ_HD void writeChunk(Team team,
                      const std::uint8_t* in,
                      const ChunkShape& shape,
                      const ChunkWork* work,
                      std::uint8_t* out) {
  for (std::uint32_t level = 1; level <= shape.levels; ++level) {
    const std::uint32_t* below = work->bitmap[level - 1];
    const std::uint32_t* words = work->bitmap[level];
    const std::uint32_t* rank = work->rank[level];
    team.each(bitmapWords(shape, level), [=](std::uint32_t w) {
      std::uint8_t* to = out + rank[w];
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        if (((words[w] >> bit) & 1u) != 0) {
          const std::uint32_t i = 32 * w + bit;
          *to++ = level == 1 ? in[i] : static_cast<std::uint8_t>(bitmapByte(below, i));
        }
      }
    });
    out += work->kept[level - 1];
  }
  const std::uint32_t n_bitmap = shape.n_bytes[shape.levels];
  const std::uint32_t n_stored = lastBitmapBytes(shape);
  const std::uint32_t* last = work->bitmap[shape.levels];
  const std::uint32_t tag = shape.n_bytes[0];
  team.each(n_stored + kTagBytes, [=](std::uint32_t i) {
    const std::uint32_t byte = i < n_bitmap   ? bitmapByte(last, i)
                               : i < n_stored ? 0u
                                              : (tag >> (8 * (i - n_stored))) & 0xFFu;
    out[i] = static_cast<std::uint8_t>(byte);
  });
  team.sync();
}

/// Fills level `level - 1` from its bitmap and the bytes kept of it.
template <class Team>
FZ_HD void expandLevel(Team team,
                       const std::uint8_t* kept,
                       const ChunkShape& shape,
                       std::uint32_t level,
                       ChunkWork* work,
                       std::uint8_t* out) {
  const std::uint32_t n_below = shape.n_bytes[level - 1];
  const std::uint32_t* words = work->bitmap[level];
  const std::uint32_t* rank = work->rank[level];
  const auto rankOf = [=](std::uint32_t i) {  // kept bytes up to and including i
    return rank[i / 32] + bits::popCount(words[i / 32] & (0xFFFFFFFFu >> (31 - i % 32)));
  };
  if (level == 1) {
    team.each(n_below, [=](std::uint32_t i) {
      const bool set = ((words[i / 32] >> (i % 32)) & 1u) != 0;
      out[i] = set ? kept[rankOf(i) - 1] : std::uint8_t{0};
    });
  } else {
    std::uint32_t* below = work->bitmap[level - 1];
    team.each(bits::ceilDiv(n_below, 4u), [=](std::uint32_t w) {
      std::uint32_t word = 0;
      for (std::uint32_t i = 4 * w; i < 4 * w + 4 && i < n_below; ++i) {
        const std::uint32_t n = rankOf(i);
        word |= (n == 0 ? 0u : static_cast<std::uint32_t>(kept[n - 1])) << (8 * (i % 4));
      }
      below[w] = word;
    });
  }
  team.sync();
}

/// Decodes a chunk of n_stored untrusted bytes that is not raw. False when they are not a chunk of
/// this shape; `out` is then undefined.
template <class Team>
FZ_HD bool decodeChunk(Team team,
                       const std::uint8_t* in,
                       std::uint32_t n_stored,
                       const ChunkShape& shape,
                       ChunkWork* work,
                       std::uint8_t* out) {
  if (n_stored == kZeroChunkBytes) {
    team.each(shape.n_bytes[0], [=](std::uint32_t i) { out[i] = 0; });
    team.sync();
    return true;
  }
  const std::uint32_t n_last = lastBitmapBytes(shape);
  if (n_stored < n_last + kTagBytes) {
    return false;
  }
  std::uint32_t at = n_stored - kTagBytes - n_last;
  const std::uint8_t* stored_last = in + at;
  std::uint32_t* last = work->bitmap[shape.levels];
  team.each(bits::ceilDiv(n_last, 4u), [=](std::uint32_t w) {
    std::uint32_t word = 0;
    for (std::uint32_t i = 4 * w; i < 4 * w + 4 && i < n_last; ++i) {
      word |= static_cast<std::uint32_t>(stored_last[i]) << (8 * (i % 4));
    }
    last[w] = word;
  });
  team.sync();
  for (std::uint32_t level = shape.levels; level >= 1; --level) {
    const std::uint32_t n_words = bitmapWords(shape, level);
    const std::uint32_t n_marked = shape.n_bytes[level - 1];
    if (n_marked % 32 != 0 && work->bitmap[level][n_words - 1] >> (n_marked % 32) != 0) {
      return false;  // a mark behind the end
    }
    const std::uint32_t kept =
        rankWords(team, work->bitmap[level], n_words, work->rank[level], work->scan);
    if (kept > at) {
      return false;
    }
    at -= kept;
    expandLevel(team, in + at, shape, level, work, out);
  }
  return at == 0;
}

}  // namespace fz::rze
