#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "coders/huffman/codec.h"
#include "fz/span.h"
#include "mem/scratch.h"

namespace fz::huffman {

/// Working memory of the book builder, kept between calls.
struct BookScratch {
  Scratch heap;
  Scratch parents;
  Scratch depths;
  Scratch symbols;
  Scratch order;
  Scratch codes;
};

/// A book ready for encoding.
struct Book {
  BookTables tables;
  std::span<const std::uint32_t> codes;  ///< packed, one per symbol; lives in the scratch
};

/// Builds the book for counts[symbol] occurrences; at least one count must not be zero. Lengths
/// are those of a Huffman tree made with the heap of the format, limited to kMaxCodeBits where
/// the tree is deeper. Deterministic; one thread.
Book buildBook(std::span<const std::uint64_t> counts, MemoryPool* pool, BookScratch& scratch);

/// Turns the number of codes per length (index 0 .. 63) into one without codes above
/// kMaxCodeBits, Kraft sum exactly 1. The input must be that of a full tree.
void limitLengths(std::span<std::uint32_t> n_codes);

/// Writes first, entry and keys (SPEC: reverse book) for value_bytes-wide keys; unused keys are 0.
void writeBook(const Book& book, std::size_t value_bytes, MutableByteView out);

/// Reads and checks a stored book: lengths, order, prefix property and keys below bklen. Throws
/// Error(kCorrupt).
BookTables readBook(ByteView stored, std::size_t value_bytes, std::uint32_t bklen);

/// Looks up the next kTableBits bits: code length in the lower 8, symbol above; 0 where the code
/// is longer or the bits are not a code.
inline constexpr std::uint32_t kTableBits = 11;
using DecodeTable = std::array<std::uint32_t, std::size_t{1} << kTableBits>;

/// The book must have been checked by readBook.
void makeDecodeTable(const BookTables& book,
                     const std::uint8_t* keys,
                     std::size_t value_bytes,
                     DecodeTable& table);

}  // namespace fz::huffman
