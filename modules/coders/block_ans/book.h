#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coders/block_ans/codec.h"
#include "fz/span.h"

/// Tables of frequencies: from counts, from the bank, as bytes.
namespace fz::block_ans {

/// How often each symbol of each table occurs.
struct Counts {
  std::uint64_t of[kTables][kSymbols];
};

inline constexpr std::size_t kMaxTableBytes = 255;  // its size is one byte
inline constexpr std::size_t kBookAlign = 4;        // so that the directory behind it is aligned
inline constexpr std::size_t kMaxBookBytes =
    bits::roundUp<std::size_t>(kTables * (1 + kMaxTableBytes), kBookAlign);

/// The tables of a stream and their bytes; no bytes: all are from the bank.
struct Book {
  Coding coding;
  std::array<std::uint8_t, kMaxBookBytes> bytes;
  std::size_t n_bytes;
};

/// Frequencies of kScale in proportion to counts, at least 1 for what occurs; 0 for all where
/// nothing does. The rule is part of the format.
void normalise(const std::uint64_t* counts, std::uint32_t n_symbols, std::uint16_t* freq);

/// Tables without counts, in which every symbol of its table's limit has a frequency. The same on
/// every machine; part of the format.
const Coding& bank(std::size_t value_bytes);

/// For each table the counted one or that of the bank, whichever makes the stream smaller.
void makeBook(const Counts& counts, std::size_t value_bytes, Book& book);

/// Reads untrusted tables from the front of `in`; returns their bytes. Throws Error(kCorrupt).
std::size_t readBook(ByteView in, std::size_t value_bytes, Coding& coding);

/// Which symbol has which slot.
void fillSlots(const Coding& coding, SlotSymbols& slots);

}  // namespace fz::block_ans
