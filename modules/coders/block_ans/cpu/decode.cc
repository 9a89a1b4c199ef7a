// Words of chunks to values.
#include <algorithm>
#include <cstring>

#include "backends/cpu/stream_copy.h"
#include "coders/block_ans/cpu/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/block_ans/cpu/decode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "coders/block_ans/cpu/rows.h"

HWY_BEFORE_NAMESPACE();
namespace fz::block_ans::HWY_NAMESPACE {  // NOLINT

#ifdef FZ_BLOCK_ANS_WIDE

/// Whole groups of one chunk, or of two, half block by half block in turn: while one waits for its
/// table or its words, the other goes on. False: the words of one do not suffice.
template <class T, Map kMap, bool kStream, std::size_t kChunks>
bool readGroups(Reader<T>* const* readers, const DecodeTables& tables, std::uint64_t n_groups) {
  Pair x[kChunks];
  Cursor words[kChunks];
  for (std::size_t c = 0; c < kChunks; ++c) {
    x[c] = readers[c]->x;
    words[c] = readers[c]->words;
  }
  const Numbers numbers;
  const auto have_room = [&]() HWY_ATTR {
    bool all_have = true;
    for (std::size_t c = 0; c < kChunks; ++c) {
      all_have = all_have && readers[c]->hasRoom(words[c]);
    }
    return all_have;
  };
  for (std::uint64_t g = 0; g < n_groups; ++g) {
    std::uint8_t classes[kChunks][kGroupBlocks];
    if (!have_room()) {
      return false;
    }
    for (std::size_t c = 0; c < kChunks; ++c) {
      Lanes{x[c], words[c], numbers}.decodeClasses(tables, classes[c]);
    }
    for (std::uint32_t b = 0; b < kGroupBlocks; ++b) {
      if (!have_room()) [[unlikely]] {
        return false;
      }
      Pair even[kChunks];
      for (std::size_t c = 0; c < kChunks; ++c) {
        even[c] = Lanes{x[c], words[c], numbers}.decodeHalf<kMap>(tables, classes[c][b]);
      }
      for (std::size_t c = 0; c < kChunks; ++c) {
        const Pair odd = Lanes{x[c], words[c], numbers}.decodeHalf<kMap>(tables, classes[c][b]);
        storeValues<kStream>(even[c], odd, readers[c]->out + b * kBlockValues);
      }
    }
    for (std::size_t c = 0; c < kChunks; ++c) {
      readers[c]->out += kGroupValues;
      readers[c]->n_left -= kGroupValues;
    }
  }
  for (std::size_t c = 0; c < kChunks; ++c) {
    readers[c]->x = x[c];
    readers[c]->words = words[c];
  }
  return true;
}

/// The group that the values end in. False: words do not suffice, or values go on past the end.
template <class T, Map kMap>
bool readLastGroup(Reader<T>& reader, const DecodeTables& tables) {
  std::uint8_t classes[kGroupBlocks];
  if (!reader.hasRoom(reader.words)) {
    return false;
  }
  const Numbers numbers;
  Lanes lanes{reader.x, reader.words, numbers};
  lanes.decodeClasses(tables, classes);
  T past_end = 0;
  for (std::uint32_t b = 0; b < kGroupBlocks; ++b) {
    if (!reader.hasRoom(reader.words)) {
      return false;
    }
    alignas(64) T block[kBlockValues];
    const Pair even = lanes.decodeHalf<kMap>(tables, classes[b]);
    const Pair odd = lanes.decodeHalf<kMap>(tables, classes[b]);
    storeValues<false>(even, odd, block);
    for (const T value : block) {
      if (reader.n_left != 0) {
        *reader.out++ = value;
        --reader.n_left;
      } else {
        past_end = static_cast<T>(past_end | value);
      }
    }
  }
  return past_end == 0;
}

/// The rest of a chunk.
template <class T, Map kMap, bool kStream>
bool readToEnd(Reader<T>& reader, const DecodeTables& tables) {
  Reader<T>* const one[] = {&reader};
  return readGroups<T, kMap, kStream, 1>(one, tables, reader.wholeGroups()) &&
         (reader.n_left == 0 || readLastGroup<T, kMap>(reader, tables)) && reader.isAtEnd();
}

template <class T, Map kMap, bool kStream>
bool decodeAs(const ChunkWords* in,
              std::span<const Chunk> chunks,
              const DecodeTables& tables,
              T* values) {
  Reader<T> first(in[0], chunks[0], values);
  if (chunks.size() == 1) {
    return readToEnd<T, kMap, kStream>(first, tables);
  }
  Reader<T> second(in[1], chunks[1], values);
  Reader<T>* const both[] = {&first, &second};
  const std::uint64_t n_both = std::min(first.wholeGroups(), second.wholeGroups());
  return readGroups<T, kMap, kStream, 2>(both, tables, n_both) &&
         readToEnd<T, kMap, kStream>(first, tables) && readToEnd<T, kMap, kStream>(second, tables);
}

bool decodeGroups(const ChunkWords* in,
                  std::span<const Chunk> chunks,
                  const DecodeTables& tables,
                  const ValueView& shape,
                  void* out) {
  const bool is_streamed = shape.n_values * shape.value_bytes >= kStreamedBytes &&
                           reinterpret_cast<std::uintptr_t>(out) % 64 == 0;
  bool is_good = false;
  withTypeAndMap(shape, [&]<class T, Map kMap>() {
    T* const values = static_cast<T*>(out);
    is_good = is_streamed ? decodeAs<T, kMap, true>(in, chunks, tables, values)
                          : decodeAs<T, kMap, false>(in, chunks, tables, values);
  });
  if (is_streamed) {
    streamFence();
  }
  return is_good;
}

std::uint32_t directEntry(std::int32_t value, std::uint32_t freq) {
  return lowBits(static_cast<std::uint32_t>(value), 11) << 10 | freq << 21;
}

/// An entry for every slot of a table; entry_of(symbol) is that of the symbol's first slot.
template <class F>
void fillTable(const std::uint16_t* freq, std::uint32_t* table, F entry_of) {
  for (std::uint32_t s = 0; s < kSymbols; ++s) {
    const std::uint32_t first = freq[s] == 0 ? 0 : entry_of(s);
    for (std::uint32_t place = 0; place < freq[s]; ++place) {
      *table++ = first + place;
    }
  }
}

void makeTables(const Coding& coding, Map map, DecodeTables& tables) {
  const auto value_of = [&](std::uint32_t u) { return unmapped<std::int32_t>(u, map); };
  for (std::uint32_t t = 0; t < kTables; ++t) {
    const std::uint16_t* freq = coding.freq[t];
    if (t >= kSymbolTables) {
      fillTable(freq, tables.of[t], [&](std::uint32_t s) {
        return directEntry(static_cast<std::int32_t>(s), freq[s]);
      });
    } else if (t < kMaxDirectClass) {
      fillTable(freq, tables.of[t],
                [&](std::uint32_t s) { return directEntry(value_of(s), freq[s]); });
    } else {
      const bool is_short =
          std::all_of(freq + kFirstSecond, freq + kSymbols, [](std::uint16_t f) { return f == 0; });
      tables.is_short[t] = is_short;
      fillTable(freq, tables.of[t], [&](std::uint32_t s) {
        const std::uint32_t n_raw = rawBits(s);
        return freq[s] << 10 | (is_short ? symbolBase(s) << 21 | n_raw << 29
                                         : symbolBase(s) >> n_raw << 21 | n_raw << 25);
      });
    }
  }
}

#else

bool decodeGroups(const ChunkWords* in,
                  std::span<const Chunk> chunks,
                  const DecodeTables& tables,
                  const ValueView& shape,
                  void* out) {
  bool is_good = true;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    is_good = is_good && decodePlain(in[c], chunks[c], tables.coding, tables.slots, shape, out);
  }
  return is_good;
}

void makeTables(const Coding& coding, Map /*map*/, DecodeTables& tables) {
  tables.coding = coding;
  fillSlots(coding, tables.slots);
}

#endif

}  // namespace fz::block_ans::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::block_ans {

HWY_EXPORT(decodeGroups);  // NOLINT
HWY_EXPORT(makeTables);    // NOLINT

void makeDecodeTables(const Coding& coding, Map map, DecodeTables& tables) {
  HWY_DYNAMIC_DISPATCH(makeTables)(coding, map, tables);
}

namespace {

/// Stored values, or all of a chunk's words. False: it has no states.
bool open(ByteView stream, const Chunk& chunk, ChunkWords& words) {
  const ByteView bytes =
      stream.subspan(static_cast<std::size_t>(chunk.byte_offset), 2 * std::size_t{chunk.n_words});
  const std::size_t n_front = readStates(bytes, words.states);
  words.words = bytes.data() + n_front;
  words.n_words = static_cast<std::uint32_t>((bytes.size() - n_front) / 2);
  return n_front != 0;
}

bool decodeChunk(ByteView stream,
                 const Chunk& chunk,
                 const DecodeTables& tables,
                 const ValueView& shape,
                 void* out) {
  if (isStored(chunk, shape.value_bytes)) {
    std::memcpy(static_cast<std::uint8_t*>(out) + chunk.first_value * shape.value_bytes,
                stream.data() + chunk.byte_offset, 2 * std::size_t{chunk.n_words});
    return true;
  }
  ChunkWords words;
  return open(stream, chunk, words) &&
         HWY_DYNAMIC_DISPATCH(decodeGroups)(&words, {&chunk, 1}, tables, shape, out);
}

}  // namespace

std::size_t decodeChunks(ByteView stream,
                         std::span<const Chunk> chunks,
                         const DecodeTables& tables,
                         const ValueView& shape,
                         void* out) {
  std::size_t at = 0;
  for (ChunkWords words[2]; at + 2 <= chunks.size(); at += 2) {
    const std::span<const Chunk> two = chunks.subspan(at, 2);
    const bool are_coded =
        !isStored(two[0], shape.value_bytes) && !isStored(two[1], shape.value_bytes);
    if (!are_coded || !open(stream, two[0], words[0]) || !open(stream, two[1], words[1]) ||
        !HWY_DYNAMIC_DISPATCH(decodeGroups)(words, two, tables, shape, out)) {
      break;
    }
  }
  // One by one from the first pair on that is not of the usual kind, or damaged.
  while (at < chunks.size() && decodeChunk(stream, chunks[at], tables, shape, out)) {
    ++at;
  }
  return at;
}

}  // namespace fz::block_ans
#endif
