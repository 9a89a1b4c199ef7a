#include "coders/rle/cpu/tile.h"

#include <algorithm>
#include <bit>

#include "fz/byte_io.h"
#include "shared/team.h"

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/rle/cpu/tile.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::rle::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

/// Marks of the 64 values from `in` on; in[-1] must exist.
template <class T>
HWY_INLINE std::uint64_t marksOf64(const T* in) {
  const hn::CappedTag<T, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  std::uint64_t marks = 0;
  for (std::size_t i = 0; i < 64; i += lanes) {
    const auto differs = hn::Ne(hn::LoadU(d, in + i), hn::LoadU(d, in + i - 1));
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, differs, bytes);
    marks |= loadLe<std::uint64_t>(bytes) << i;
  }
  return marks;
}

template <class T>
std::uint32_t markValues(const void* input,
                         std::uint64_t begin,
                         std::uint32_t n_values,
                         std::uint64_t* marks) {
  const T* in = static_cast<const T*>(input);
  std::uint32_t word = 0;
  if (begin == 0) {  // the very first value has none before it
    markStarts(SerialTeam{}, in, 0, std::min(n_values, 64u), marks);
    word = 1;
  }
  for (; 64 * word + 64 <= n_values; ++word) {
    marks[word] = marksOf64(in + begin + 64 * word);
  }
  if (64 * word < n_values) {
    markStarts(SerialTeam{}, in, begin + 64 * word, n_values - 64 * word, marks + word);
  }
  std::uint64_t n_marks = 0;
  for (std::uint32_t i = 0; i < bits::ceilDiv(n_values, 64u); ++i) {
    n_marks += static_cast<std::uint64_t>(std::popcount(marks[i]));
  }
  return static_cast<std::uint32_t>(n_marks);
}

/// Positions of the marks, relative to the tile. Eight at a time whether they are there or not:
/// that is faster than a loop whose length nobody can predict. `positions` needs 64 spare places.
HWY_INLINE std::size_t listMarks(const TileMarks& tile, std::uint32_t* positions) {
  std::size_t n = 0;
  for (std::uint32_t word = 0; word < tile.n_words; ++word) {
    std::uint64_t left = tile.marks[word];
    const auto n_marks = static_cast<std::size_t>(std::popcount(left));
    if (n_marks == 64) {  // noise: every value is a run
      for (std::uint32_t j = 0; j < 64; ++j) {
        positions[n + j] = 64 * word + j;
      }
      n += 64;
      continue;
    }
    for (std::size_t done = 0; done < n_marks; done += 8) {
      for (std::size_t j = 0; j < 8; ++j) {
        positions[n + done + j] = 64 * word + static_cast<std::uint32_t>(std::countr_zero(left));
        left &= left - 1;
      }
    }
    n += n_marks;
  }
  return n;
}

template <class T>
void writeValues(const void* input, const TileMarks& tile, void* out, std::uint32_t* lengths) {
  const T* in = static_cast<const T*>(input) + tile.begin;
  T* values = static_cast<T*>(out);
  std::uint32_t positions[kTileValues + 64];
  const std::size_t n = listMarks(tile, positions);
  if (n == 0) {
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = in[positions[i]];
  }
  for (std::size_t i = 0; i + 1 < n; ++i) {
    lengths[i] = positions[i + 1] - positions[i];
  }
  lengths[n - 1] = static_cast<std::uint32_t>(tile.next_start - tile.begin - positions[n - 1]);
}

template <class T>
void fillValues(const Runs& runs, void* out, std::uint64_t n_values) {
  const hn::CappedTag<T, 32 / sizeof(T)> d;
  const std::uint64_t lanes = hn::Lanes(d);
  const T* value = static_cast<const T*>(runs.values);
  const std::uint32_t* length = runs.lengths;
  std::uint64_t skip = runs.skip;
  T* to = static_cast<T*>(out);
  T* const end = to + n_values;
  for (; to < end; ++value, ++length, skip = 0) {
    const auto left = static_cast<std::uint64_t>(end - to);
    std::uint64_t n = *length - skip;
    if (left < lanes) {
      n = std::min(n, left);
      std::fill_n(to, n, *value);
    } else {
      // A short run is one whole vector; what is too much is overwritten by the next run.
      hn::StoreU(hn::Set(d, *value), d, to);
      if (n > lanes) {
        n = std::min(n, left);
        std::fill_n(to + lanes, n - lanes, *value);
      }
    }
    to += n;
  }
}

std::uint32_t mark(const void* in,
                   std::uint64_t begin,
                   std::uint32_t n_values,
                   std::size_t value_bytes,
                   std::uint64_t* marks) {
  switch (value_bytes) {
    case 1:
      return markValues<std::uint8_t>(in, begin, n_values, marks);
    case 2:
      return markValues<std::uint16_t>(in, begin, n_values, marks);
    default:
      return markValues<std::uint32_t>(in, begin, n_values, marks);
  }
}

void write(const void* in,
           const TileMarks& tile,
           std::size_t value_bytes,
           void* values,
           std::uint32_t* lengths) {
  switch (value_bytes) {
    case 1:
      return writeValues<std::uint8_t>(in, tile, values, lengths);
    case 2:
      return writeValues<std::uint16_t>(in, tile, values, lengths);
    default:
      return writeValues<std::uint32_t>(in, tile, values, lengths);
  }
}

std::uint64_t sum(const std::uint32_t* lengths, std::size_t n_runs) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < n_runs; ++i) {
    total += lengths[i];
  }
  return total;
}

void fill(const Runs& runs, std::size_t value_bytes, void* out, std::uint64_t n_values) {
  switch (value_bytes) {
    case 1:
      return fillValues<std::uint8_t>(runs, out, n_values);
    case 2:
      return fillValues<std::uint16_t>(runs, out, n_values);
    default:
      return fillValues<std::uint32_t>(runs, out, n_values);
  }
}

}  // namespace fz::rle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::rle {

HWY_EXPORT(mark);
HWY_EXPORT(write);
HWY_EXPORT(sum);
HWY_EXPORT(fill);

std::uint32_t markTile(const void* in,
                       std::uint64_t begin,
                       std::uint32_t n_values,
                       std::size_t value_bytes,
                       std::uint64_t* marks) {
  return HWY_DYNAMIC_DISPATCH(mark)(in, begin, n_values, value_bytes, marks);
}
void writeTile(const void* in,
               const TileMarks& tile,
               std::size_t value_bytes,
               void* values,
               std::uint32_t* lengths) {
  HWY_DYNAMIC_DISPATCH(write)(in, tile, value_bytes, values, lengths);
}
std::uint64_t sumLengths(const std::uint32_t* lengths, std::size_t n_runs) {
  return HWY_DYNAMIC_DISPATCH(sum)(lengths, n_runs);
}
void fillTile(const Runs& runs, std::size_t value_bytes, void* out, std::uint64_t n_values) {
  HWY_DYNAMIC_DISPATCH(fill)(runs, value_bytes, out, n_values);
}

}  // namespace fz::rle
#endif
