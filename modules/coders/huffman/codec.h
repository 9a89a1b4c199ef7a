#pragma once

#include <cstdint>

#include "shared/host_device.h"

/// The text that defines the bytes of Huffman partitions and books, for one worker per partition.
/// Tuned loops elsewhere must give exactly what these functions give.
namespace fz::huffman {

// Part of the format.
inline constexpr std::uint32_t kCoarseValues = 768;
inline constexpr std::uint32_t kFineValues = 1024;
inline constexpr std::uint32_t kMaxCodeBits = 27;  // what the original system can read
inline constexpr std::uint32_t kLengthSlots = 32;

/// A code with its length in the lower 8 bits; 0 for a symbol without a code. Codes fit the rest:
/// in this order of codes, none is larger than the number of symbols.
FZ_HD std::uint32_t packCode(std::uint32_t code, std::uint32_t n_bits) {
  return code << 8 | n_bits;
}
FZ_HD std::uint32_t codeBits(std::uint32_t packed) {
  return packed & 0xFFu;
}
FZ_HD std::uint32_t codeOf(std::uint32_t packed) {
  return packed >> 8;
}

/// The canonical book: codes of length l are first[l], first[l] + 1, ...; their symbols are
/// keys[entry[l]], keys[entry[l] + 1], ... Shorter codes are numerically above the prefixes of
/// longer ones.
struct BookTables {
  std::uint32_t first[kLengthSlots];
  std::uint32_t entry[kLengthSlots];
  std::uint32_t longest;  ///< bits of the longest code, at most kLengthSlots - 2
};

FZ_HD std::uint32_t codesOfLength(const BookTables& book, std::uint32_t n_bits) {
  return book.entry[n_bits + 1] - book.entry[n_bits];
}

/// Fills entry, first and longest from the number of codes per length.
FZ_HD void makeTables(const std::uint32_t* n_codes, BookTables& book) {
  book.entry[0] = 0;
  book.longest = 0;
  for (std::uint32_t l = 1; l < kLengthSlots; ++l) {
    book.entry[l] = l == 1 ? 0 : book.entry[l - 1] + n_codes[l - 1];
    book.longest = n_codes[l] != 0 ? l : book.longest;
  }
  for (std::uint32_t l = kLengthSlots; l-- > 1;) {
    book.first[l] = l >= book.longest ? 0 : (book.first[l + 1] + n_codes[l + 1] + 1) / 2;
  }
  book.first[0] = 255;  // what the original system has there; no decoder looks
}

enum class BookFault : std::uint8_t { kNone, kNoBits, kKeyRange, kNoCodes, kTooMany, kFirst };

/// What is wrong with a book, and at which code length.
struct BookCheck {
  BookFault fault;
  std::uint32_t n_bits;
};

/// Derives the book from untrusted tables and compares: lengths, order and prefix property. The
/// keys are not looked at. `n_codes` is room for kLengthSlots numbers.
FZ_HD BookCheck checkBook(const std::uint32_t* first,
                          const std::uint32_t* entry,
                          std::uint32_t bklen,
                          std::uint32_t* n_codes,
                          BookTables& book) {
  if (entry[0] != 0 || entry[1] != 0) {
    return {BookFault::kNoBits, 0};
  }
  n_codes[0] = n_codes[kLengthSlots - 1] = 0;
  for (std::uint32_t l = 1; l + 1 < kLengthSlots; ++l) {
    if (entry[l] > entry[l + 1] || entry[l + 1] > bklen) {
      return {BookFault::kKeyRange, l};
    }
    n_codes[l] = entry[l + 1] - entry[l];
  }
  makeTables(n_codes, book);
  if (book.longest == 0) {
    return {BookFault::kNoCodes, 0};
  }
  // With every first[] as derived, fitting at length 1 means fitting at all lengths.
  if (book.first[1] + n_codes[1] > 2) {
    return {BookFault::kTooMany, book.longest};
  }
  for (std::uint32_t l = 1; l <= book.longest; ++l) {
    if (first[l] != book.first[l]) {
      return {BookFault::kFirst, l};
    }
  }
  return {BookFault::kNone, 0};
}

/// Looks for a code of n_bits to `longest` bits at the top of `bits`; shorter ones must have been
/// excluded. Its length in the lower 8 bits, the place of its symbol in the keys above; 0 when
/// there is none.
FZ_HD std::uint32_t findCode(const BookTables& book,
                             std::uint64_t bits,
                             std::uint32_t n_bits,
                             std::uint32_t longest) {
  for (; n_bits <= longest; ++n_bits) {
    const auto code = static_cast<std::uint32_t>(bits >> (64 - n_bits));
    if (code >= book.first[n_bits]) {
      const std::uint32_t rank = code - book.first[n_bits];
      return rank < codesOfLength(book, n_bits) ? packCode(book.entry[n_bits] + rank, n_bits) : 0;
    }
  }
  return 0;
}

/// findCode for bits that a table of the codes of up to table_bits bits does not resolve.
FZ_HD std::uint32_t findLongCode(const BookTables& book,
                                 std::uint64_t bits,
                                 std::uint32_t table_bits) {
  const bool is_longer = (bits >> (64 - table_bits)) < book.first[table_bits];
  return findCode(book, bits, is_longer ? table_bits + 1 : 1, book.longest);
}

// Words are little-endian at any byte offset: a book of an odd number of bytes precedes them.
FZ_HD std::uint32_t loadWord(const std::uint8_t* words, std::uint64_t index) {
  std::uint32_t word = 0;
  __builtin_memcpy(&word, words + 4 * index, sizeof(word));
  return word;
}
FZ_HD void storeWord(std::uint8_t* words, std::uint64_t index, std::uint32_t word) {
  __builtin_memcpy(words + 4 * index, &word, sizeof(word));
}

template <class T>
FZ_HD std::uint32_t partitionBits(const T* in, std::uint32_t n_values, const std::uint32_t* codes) {
  std::uint32_t n_bits = 0;
  for (std::uint32_t i = 0; i < n_values; ++i) {
    n_bits += codeBits(codes[in[i]]);
  }
  return n_bits;
}

/// Packs one partition MSB-first into fresh words; the last word is filled up with zeros.
template <class T>
FZ_HD void encodePartition(const T* in,
                           std::uint32_t n_values,
                           const std::uint32_t* codes,
                           std::uint8_t* words) {
  std::uint64_t pending = 0;
  std::uint32_t n_pending = 0;
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < n_values; ++i) {
    const std::uint32_t packed = codes[in[i]];
    pending = pending << codeBits(packed) | codeOf(packed);
    n_pending += codeBits(packed);
    if (n_pending >= 32) {
      n_pending -= 32;
      storeWord(words, at++, static_cast<std::uint32_t>(pending >> n_pending));
    }
  }
  if (n_pending > 0) {
    storeWord(words, at, static_cast<std::uint32_t>(pending << (32 - n_pending)));
  }
}

/// Bits [begin, end) of a bitstream, counted from its first word.
struct BitRange {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Decodes n_values symbols, reading no bit outside the range; keys holds the symbols of the
/// book. False when the range ends too early or holds a code that is not in the book.
template <class T>
FZ_HD bool decodePartition(const std::uint8_t* words,
                           BitRange range,
                           const BookTables& book,
                           const std::uint8_t* keys,
                           std::uint32_t n_values,
                           T* out) {
  std::uint64_t at = range.begin;
  for (std::uint32_t i = 0; i < n_values; ++i) {
    std::uint32_t code = 0;
    std::uint32_t n_bits = 0;
    do {
      if (at == range.end || n_bits == book.longest) {
        return false;
      }
      code = code << 1 | (loadWord(words, at / 32) >> (31 - at % 32) & 1u);
      ++at;
      ++n_bits;
    } while (code < book.first[n_bits]);
    const std::uint32_t rank = code - book.first[n_bits];
    if (rank >= codesOfLength(book, n_bits)) {
      return false;
    }
    __builtin_memcpy(out + i, keys + sizeof(T) * (book.entry[n_bits] + rank), sizeof(T));
  }
  return true;
}

}  // namespace fz::huffman
