#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/span.h"
#include "shared/bits.h"
#include "shared/host_device.h"

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
FZ_HD BlobLayout layoutOf(const BlobHeader& header, std::size_t value_bytes) {
  BlobLayout layout{};
  layout.book = kHeaderBytes;
  layout.partition_bits = layout.book + kBookTableBytes + value_bytes * header.bklen;
  layout.partition_offsets = layout.partition_bits + 4 * header.n_partitions;
  layout.words = layout.partition_offsets + 4 * header.n_partitions;
  layout.end = layout.words + 4 * header.n_words;
  return layout;
}

inline constexpr std::size_t kHeaderOffsets = 6;

enum class HeaderFault : std::uint8_t { kNone, kPartitions, kWords, kOffsets, kBits };

/// Whether an untrusted header contradicts itself or the size of the blob. `offsets` are the six
/// that it stores.
FZ_HD HeaderFault checkHeader(const BlobHeader& header,
                              const std::uint32_t* offsets,
                              std::uint64_t blob_bytes,
                              std::size_t value_bytes) {
  if (header.partition_values == 0 ||
      header.n_partitions !=
          bits::ceilDiv<std::uint64_t>(header.n_values, header.partition_values)) {
    return HeaderFault::kPartitions;
  }
  if (header.n_words > blob_bytes / 4) {
    return HeaderFault::kWords;
  }
  const BlobLayout layout = layoutOf(header, value_bytes);
  if (offsets[0] != 0 || offsets[1] != layout.book || offsets[2] != layout.partition_bits ||
      offsets[3] != layout.partition_offsets || offsets[4] != layout.words ||
      offsets[5] != layout.end || layout.end != blob_bytes) {
    return HeaderFault::kOffsets;
  }
  return header.n_values <= header.n_bits && header.n_bits <= 32 * header.n_words
             ? HeaderFault::kNone
             : HeaderFault::kBits;
}

/// Throws Error(kBadSize) when the blob would be larger than its 32-bit offsets can say.
void requireBlobFits(const BlobHeader& header, const BlobLayout& layout);

/// Writes all 128 bytes.
void writeHeader(const BlobHeader& header, const BlobLayout& layout, MutableByteView out);

/// Reads an untrusted blob: every count and offset is consistent with the others and with the
/// size, and the partitions lie back to back inside the words. Throws Error(kCorrupt).
BlobHeader readHeader(ByteView blob, std::size_t value_bytes);

}  // namespace fz::huffman
