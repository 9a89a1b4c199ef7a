#pragma once

#include <cstddef>
#include <cstdint>

#include "coders/huffman/huffman_blob_impl.h"
#include "coders/huffman/huffman_codec.h"
#include "fz/device_types.h"

/// Launchers; every one only enqueues. Value types have 1, 2 or 4 bytes.
namespace fz::huffman {

/// Head of the device memory that counting fills; one 64-bit counter per symbol follows.
struct CountHead {
  std::uint64_t n_bytes;    ///< exact size of the input
  std::uint64_t first_bad;  ///< index of the first value that is no symbol; all ones: none
};

struct CountArgs {
  const std::uint8_t* in;
  DeviceSize size;
  std::uint32_t n_symbols;
  CountHead* head;
  StageRecord* record;
};

void launchCount(const CountArgs& args, std::size_t value_bytes, cudaStream_t stream);

/// Why encoding cannot be done, for the record.
struct NoteArgs {
  std::uint64_t reason = 0;  ///< a Reason
  std::uint64_t index = 0;
  std::uint64_t value = 0;                ///< for error_value
  const std::uint8_t* symbols = nullptr;  ///< when given, error_value becomes symbols[index]
};

void launchNote(const NoteArgs& args,
                StageRecord* record,
                std::size_t value_bytes,
                cudaStream_t stream);

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
                  cudaStream_t stream);

/// Of the decoder's look-up table, in the form of DecodeTable. Fewer bits send more codes the slow
/// way; more take shared memory from the other threads and the cache.
inline constexpr std::uint32_t kDeviceTableBits = 11;

/// What the decoder has found out about a stream before it begins.
struct DecodePlan {
  std::uint64_t n_values;
  std::uint64_t n_partitions;
  std::uint64_t n_words;
  std::uint64_t partition_bits;  ///< byte offsets
  std::uint64_t partition_offsets;
  std::uint64_t words;
  std::uint32_t partition_values;
  std::uint32_t is_good;  ///< 0: nothing to decode, or damage that has been noted
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

void launchDecode(const DecodeArgs& args, std::size_t value_bytes, cudaStream_t stream);

}  // namespace fz::huffman
