#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/span.h"

namespace fz::huffman {

inline constexpr std::size_t kHeaderBytes = 128;
inline constexpr std::size_t kBookTableBytes = 256;            // first[32] and entry[32]
inline constexpr std::uint64_t kMaxBlobBytes = 0xFFFFFFFFull;  // offsets are 32 bits

/// What the header of a blob says.
struct BlobHeader {
  std::uint32_t bklen = 0;
  std::uint32_t partition_values = 0;
  std::uint64_t n_partitions = 0;
  std::uint64_t n_values = 0;
  std::uint64_t n_bits = 0;
  std::uint64_t n_words = 0;
};

/// Where the parts of a blob begin; `end` is its size.
struct BlobLayout {
  std::uint64_t book;
  std::uint64_t partition_bits;
  std::uint64_t partition_offsets;
  std::uint64_t words;
  std::uint64_t end;
};

/// Never throws; the end may be past kMaxBlobBytes.
BlobLayout layoutOf(const BlobHeader& header, std::size_t value_bytes);

/// Throws Error(kBadSize) when the blob would be larger than its 32-bit offsets can say.
void requireBlobFits(const BlobHeader& header, const BlobLayout& layout);

/// Writes all 128 bytes.
void writeHeader(const BlobHeader& header, const BlobLayout& layout, MutableByteView out);

/// Reads an untrusted blob: every count and offset is consistent with the others and with the
/// size, and the partitions lie back to back inside the words. Throws Error(kCorrupt).
BlobHeader readHeader(ByteView blob, std::size_t value_bytes);

}  // namespace fz::huffman
