#pragma once

#include <cstddef>
#include <cstdint>

#include "coders/huffman/codec.h"
#include "coders/huffman/cuda/policy.h"
#include "coders/huffman/stream.h"
#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

/// Launchers; every one only enqueues. Value types have 1, 2 or 4 bytes.
namespace fz::huffman {

/// Slots of StageRecord::value.
inline constexpr std::uint32_t kCountSlot = 0;   ///< number of values, a field of the config
inline constexpr std::uint32_t kReasonSlot = 1;  ///< a Reason, when an error was recorded

/// Why a run on a device failed.
enum class Reason : std::uint64_t {
  kNone = 0,
  kBadSymbol = 1,     ///< encoding: error_value is not below the book length
  kRaggedInput = 2,   ///< encoding: error_value bytes are not a multiple of a value
  kTooLarge = 3,      ///< encoding: error_value bytes are more than the format can say
  kBadHeader = 4,     ///< decoding
  kBadBook = 5,       ///< decoding
  kBadPartition = 6,  ///< decoding: error_index is the first
};

/// Head of the device memory that counting fills; one 64-bit counter per symbol follows.
struct CountHead {
  std::uint64_t n_bytes;    ///< exact size of the input
  std::uint64_t first_bad;  ///< index of the first value that is not a symbol; all ones: none
};

struct CountArgs {
  const std::uint8_t* in;
  DeviceSize size;
  std::uint32_t n_symbols;
  CountHead* head;
  StageRecord* record;
};

void launchCount(const CountArgs& args, std::size_t value_bytes, const cuda::Call& call);

/// Why encoding cannot be done, for the record.
struct FailureArgs {
  std::uint64_t reason = 0;  ///< a Reason
  std::uint64_t index = 0;
  std::uint64_t value = 0;                ///< for error_value
  const std::uint8_t* symbols = nullptr;  ///< when given, error_value becomes symbols[index]
};

void launchFailure(const FailureArgs& args, std::size_t value_bytes, const cuda::Call& call);

struct EncodeArgs {
  const std::uint8_t* in;
  std::uint64_t n_values;
  std::uint64_t n_partitions;
  const std::uint32_t* codes;  ///< packed, one per symbol
  std::uint32_t n_codes;
  std::uint32_t longest;  ///< bits of the longest code
  std::uint64_t* states;  ///< encodeStates(...) words, any contents
  std::uint8_t* out;      ///< header and book are in place where they fit
  std::uint64_t capacity_bytes;
  BlobLayout layout;  ///< without the end
  StageRecord* record;
};

std::size_t encodeStates(std::uint64_t n_partitions);

/// Writes partition tables and words, completes the header, publishes the size.
void launchEncode(const EncodeArgs& args,
                  std::size_t value_bytes,
                  std::uint32_t partition_values,
                  const cuda::Call& call);

/// What the decoder has found out about a stream before it begins.
struct DecodePlan {
  std::uint64_t n_values;
  std::uint64_t n_partitions;
  std::uint64_t n_words;
  std::uint64_t partition_bits;  ///< byte offsets
  std::uint64_t partition_offsets;
  std::uint64_t words;
  std::uint32_t partition_values;
  std::uint32_t is_good;  ///< 0: nothing to decode, or damage that has been recorded
  BookTables book;
  alignas(16) std::uint32_t table[std::size_t{1} << kDeviceTableBits];
};

struct DecodeArgs {
  const std::uint8_t* blob;
  DeviceSize size;
  std::uint32_t bklen;
  DecodePlan* plan;  ///< room
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  bool size_known;
  StageRecord* record;  ///< value[kCountSlot] holds the number of values
};

void launchDecode(const DecodeArgs& args, std::size_t value_bytes, const cuda::Call& call);

}  // namespace fz::huffman
