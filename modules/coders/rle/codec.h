#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The bytes of RLE; SPEC.md says the same in words. Encoding marks the first value of every run,
/// counts the marks per tile, and then every tile knows where its runs go.
namespace fz::rle {

constexpr std::uint32_t kTileValues = 4096;  // work per task; not part of the format
constexpr std::uint32_t kTileMarkWords = kTileValues / 64;
constexpr std::uint32_t kTileRuns = 1024;       // runs per partial sum when decoding
constexpr std::uint32_t kFillValues = 1 << 15;  // decoded values per task

/// Where the parts of a stream begin, in bytes.
struct Layout {
  std::uint64_t lengths_at;
  std::uint64_t n_bytes;
};
constexpr std::uint64_t kValuesAt = 4;

FZ_HD constexpr Layout layoutOf(std::uint64_t n_runs, std::uint64_t value_bytes) {
  const std::uint64_t lengths_at = kValuesAt + (n_runs * value_bytes + 3) / 4 * 4;
  return {lengths_at, lengths_at + 4 * n_runs};
}

/// A run begins at value i.
template <class T>
FZ_HD bool startsRun(const T* in, std::uint64_t i) {
  return i == 0 || in[i] != in[i - 1];
}

/// Bit i of marks says whether a run begins at in[begin + i]; `in` is the whole input. Bits from
/// n_values on are zero.
template <class Team, class T>
FZ_HD void markStarts(
    Team team, const T* in, std::uint64_t begin, std::uint32_t n_values, std::uint64_t* marks) {
  team.each(bits::ceilDiv(n_values, 64u), [&](std::uint32_t word) {
    std::uint64_t gathered = 0;
    for (std::uint32_t j = 0; j < 64 && 64 * word + j < n_values; ++j) {
      const bool starts = startsRun(in, begin + 64 * word + j);
      gathered |= static_cast<std::uint64_t>(starts ? 1 : 0) << j;
    }
    marks[word] = gathered;
  });
  team.sync();
}

FZ_HD std::uint32_t popCount64(std::uint64_t v) {
  return bits::popCount(static_cast<std::uint32_t>(v)) +
         bits::popCount(static_cast<std::uint32_t>(v >> 32));
}
/// Index of the lowest set bit; v != 0.
FZ_HD std::uint32_t lowestBit(std::uint64_t v) {
  return bits::bitWidth(v & (~v + 1)) - 1;
}

/// The marks of one tile and the position, in the whole input, of the first run behind it.
struct TileMarks {
  const std::uint64_t* marks;
  std::uint32_t n_words;
  std::uint64_t begin;
  std::uint64_t next_start;
};

/// First run start after bit `bit` of word `word`.
FZ_HD std::uint64_t startAfter(const TileMarks& tile, std::uint32_t word, std::uint32_t bit) {
  std::uint64_t left = bit == 63 ? 0 : tile.marks[word] >> (bit + 1) << (bit + 1);
  while (left == 0) {
    if (++word == tile.n_words) {
      return tile.next_start;
    }
    left = tile.marks[word];
  }
  return tile.begin + 64 * word + lowestBit(left);
}

/// Writes the runs that begin in the tile; values and lengths point at the tile's first run.
template <class Team, class T>
FZ_HD void writeRuns(
    Team team, const T* in, const TileMarks& tile, T* values, std::uint32_t* lengths) {
  team.each(tile.n_words, [&](std::uint32_t word) {
    std::uint32_t rank = 0;
    for (std::uint32_t before = 0; before < word; ++before) {
      rank += popCount64(tile.marks[before]);
    }
    for (std::uint64_t left = tile.marks[word]; left != 0; left &= left - 1, ++rank) {
      const std::uint32_t bit = lowestBit(left);
      const std::uint64_t start = tile.begin + 64 * word + bit;
      values[rank] = in[start];
      lengths[rank] = static_cast<std::uint32_t>(startAfter(tile, word, bit) - start);
    }
  });
  team.sync();
}

/// Decoded positions [begin, end).
struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Puts the part of n_runs runs that lies in the range into out, whose first value is value
/// range.begin of the decoded array. Run r stands at positions starts[r] .. starts[r + 1] - 1.
template <class Team, class T>
FZ_HD void fillRuns(Team team,
                    const T* values,
                    const std::uint64_t* starts,
                    std::uint32_t n_runs,
                    Range range,
                    T* out) {
  team.each(n_runs, [&](std::uint32_t run) {
    const std::uint64_t first = starts[run] < range.begin ? range.begin : starts[run];
    const std::uint64_t last = starts[run + 1] < range.end ? starts[run + 1] : range.end;
    for (std::uint64_t i = first; i < last; ++i) {
      out[i - range.begin] = values[run];
    }
  });
  team.sync();
}

}  // namespace fz::rle
