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

/// An EncodeStep for each symbol. The shift is in the upper half of `factor`.
struct StepTable {
  alignas(64) std::uint32_t reciprocal[kSymbols];
  alignas(64) std::uint32_t threshold[kSymbols];
  alignas(64) std::uint32_t factor[kSymbols];
  alignas(64) std::uint32_t bias[kSymbols];
};
void fillStep(std::uint32_t freq,
              std::uint32_t start,
              std::uint32_t n_raw,
              std::uint32_t symbol,
              StepTable& table);

/// What chunks are encoded with; which part is filled depends on the vectors.
struct EncodeTables {
  StepTable of[kTables];
  Coding coding;
};
void makeEncodeTables(const Coding& coding, EncodeTables& tables);

/// What chunks are decoded with.
struct DecodeTables {
  alignas(64) std::uint32_t of[kTables][kScale];
  bool is_short[kSymbolTables];  ///< no symbol of the table has raw bits in a step of their own
  Coding coding;
  SlotSymbols slots;
};
void makeDecodeTables(const Coding& coding, Map map, DecodeTables& tables);

/// Classes of the blocks of some groups (kGroupBlocks for each, counted from the first group of
/// all), and where wanted what is counted of them, which is added.
void measureGroups(const ValueView& in,
                   GroupRange groups,
                   std::uint8_t* classes,
                   SubCounts* counts);

std::uint32_t groupWeight(const std::uint8_t* classes);

/// Words behind the end of a stack that may be written.
inline constexpr std::size_t kStackSlack = 32;

/// Encodes the values of a chunk into at most its raw words at `out`; returns the words. `stack`
/// has room for those of a chunk of its weight, and kStackSlack more.
std::uint32_t encodeChunk(const ValueView& in,
                          const Chunk& chunk,
                          const std::uint8_t* classes,
                          const EncodeTables& tables,
                          std::uint16_t* stack,
                          std::uint8_t* out);

/// Decodes chunks into values of `out`, which are those of the whole output. Returns how many were
/// decoded before the first one that is damaged.
std::size_t decodeChunks(ByteView stream,
                         std::span<const Chunk> chunks,
                         const DecodeTables& tables,
                         const ValueView& shape,
                         void* out);

/// A chunk behind its front.
struct ChunkWords {
  std::uint32_t states[kLanes];
  const std::uint8_t* words;
  std::uint32_t n_words;
};

// The codec's text as it stands, for machines without such vectors.

void measurePlain(const ValueView& in, GroupRange groups, std::uint8_t* classes, SubCounts* counts);
/// Returns the words on the stack, last one first. Ends early when there are as many as raw ones.
std::uint32_t encodePlain(const ValueView& in,
                          const Chunk& chunk,
                          const std::uint8_t* classes,
                          const Coding& coding,
                          std::uint16_t* stack,
                          std::uint32_t* states);
void copyReversedPlain(const std::uint16_t* words, std::uint32_t n_words, std::uint8_t* out);
bool decodePlain(const ChunkWords& in,
                 const Chunk& chunk,
                 const Coding& coding,
                 const SlotSymbols& slots,
                 const ValueView& shape,
                 void* out);

/// Numbers u of values, for the form kPacked.
void mapValues(const ValueView& in, std::uint32_t* u);
void unmapValues(const std::uint32_t* u, const ValueView& shape, void* out);

}  // namespace fz::block_ans
