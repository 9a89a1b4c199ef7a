#pragma once

#include "coders/huffman/huffman_book_impl.h"
#include "mem/scratch.h"

namespace fz::huffman {

/// What a stage keeps between calls.
struct Workspace {
  Scratch sub_histograms;
  Scratch counts;
  BookScratch book;
  Scratch partition_bits;
  Scratch partition_offsets;
  DecodeTable table;

  // Of the CUDA backend; host memory where the name says so.
  BookScratch host_book;
  Scratch host_counts;
  Scratch host_front;  ///< header and book as they stand in the stream
  Scratch device_counts;
  Scratch device_codes;
  Scratch device_states;
  Scratch device_plan;
};

/// Slots of StageRecord::value.
inline constexpr std::uint32_t kCountSlot = 0;   ///< number of values, a field of the config
inline constexpr std::uint32_t kReasonSlot = 1;  ///< a Reason, when an error was noted

/// Why a run on a device failed.
enum class Reason : std::uint64_t {
  kNone = 0,
  kBadSymbol = 1,     ///< encoding: error_value is not below the book length
  kRaggedInput = 2,   ///< encoding: error_value bytes are no whole number of values
  kTooLarge = 3,      ///< encoding: error_value bytes are more than the format can say
  kBadHeader = 4,     ///< decoding
  kBadBook = 5,       ///< decoding
  kBadPartition = 6,  ///< decoding: error_index is the first
};

}  // namespace fz::huffman
