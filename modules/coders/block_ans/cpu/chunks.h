#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coders/block_ans/book.h"
#include "coders/block_ans/codec.h"
#include "coders/block_ans/stream.h"

/// Groups and chunks on the CPU, with the widest vectors of this machine.
namespace fz::block_ans {

/// Values of any of the types, and what the coder sees of them.
struct ValueView {
  const void* values;
  std::uint64_t n_values;
  std::size_t value_bytes;
  Map map;
};

struct GroupRange {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Symbols of all tables in several copies, so that equal neighbours do not wait for each other.
inline constexpr std::size_t kCountCopies = 4;
struct SubCounts {
  std::uint32_t of[kCountCopies][kTables][kSymbols];
};

/// Classes of the blocks of some groups (kGroupBlocks for each, counted from the first group of
/// all), and where wanted what is counted of them, which is added.
void measureGroups(const ValueView& in,
                   GroupRange groups,
                   std::uint8_t* classes,
                   SubCounts* counts);

std::uint32_t groupWeight(const std::uint8_t* classes);

/// Encodes the values of a chunk into at most its raw words at `out`; returns the words. `stack`
/// has maxChunkWords for the weight of the chunk.
std::uint32_t encodeChunk(const ValueView& in,
                          const Chunk& chunk,
                          const std::uint8_t* classes,
                          const Coding& coding,
                          std::uint16_t* stack,
                          std::uint8_t* out);

/// Decodes a chunk into values of `out`, which are those of the whole output. False: the stream
/// is damaged.
bool decodeChunk(ByteView stream,
                 const Chunk& chunk,
                 const Coding& coding,
                 const SlotSymbols& slots,
                 const ValueView& shape,
                 void* out);

/// Numbers u of values, for the form kPacked.
void mapValues(const ValueView& in, std::uint32_t* u);
void unmapValues(const std::uint32_t* u, const ValueView& shape, void* out);

}  // namespace fz::block_ans
