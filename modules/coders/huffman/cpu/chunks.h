#pragma once

#include <cstddef>
#include <cstdint>

#include "coders/huffman/book.h"
#include "coders/huffman/codec.h"

namespace fz::huffman {

/// Values of 1, 2 or 4 bytes, cut into partitions.
struct ValueView {
  const void* values;
  std::uint64_t n_values;
  std::size_t value_bytes;
  std::uint32_t partition_values;
};

/// Items [begin, end) of something.
struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

inline constexpr std::size_t kSubHistograms = 4;  // equal neighbours must not wait for each other

/// Adds the values of a range to kSubHistograms histograms that lie `stride` counters apart, dealt
/// out in turn. Values of at least `limit` are counted at index `limit`. A range must be shorter
/// than 2^32.
void countValues(const ValueView& in,
                 Range values,
                 std::uint32_t limit,
                 std::size_t stride,
                 std::uint32_t* counts);

/// bits[p] for every partition p of the range.
void countPartitionBits(const ValueView& in,
                        Range partitions,
                        const std::uint32_t* codes,
                        std::uint32_t* bits);

/// What encoding needs besides the values.
struct EncodeJob {
  const std::uint32_t* codes;
  std::uint32_t longest;         ///< bits of the longest code
  std::uint32_t mean_bits;       ///< per value, rounded up; decides about speed only
  const std::uint32_t* offsets;  ///< first word of each partition
  std::uint8_t* words;
};

/// Writes the words of the partitions of the range, and no others.
void writePartitions(const ValueView& in, Range partitions, const EncodeJob& job);

/// A blob whose header and book have been checked.
struct DecodeJob {
  const BookTables* book;
  const DecodeTable* table;
  const std::uint8_t* keys;
  const std::uint8_t* partition_bits;
  const std::uint8_t* partition_offsets;
  const std::uint8_t* words;
  std::uint64_t n_words;
  std::uint64_t n_values;
  std::size_t value_bytes;
  std::uint32_t partition_values;
  void* out;
};

inline constexpr std::uint64_t kAllGood = ~std::uint64_t{0};

/// Decodes the partitions of a range; returns the first damaged one or kAllGood.
std::uint64_t readPartitions(const DecodeJob& job, Range partitions);

}  // namespace fz::huffman
