#include "coders/huffman/stream.h"

#include "coders/huffman/codec.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/bits.h"

namespace fz::huffman {

namespace {

void checkPartitions(ByteView blob, const BlobHeader& header, const BlobLayout& layout) {
  std::uint64_t word = 0;
  for (std::uint64_t p = 0; p < header.n_partitions; ++p) {
    const std::uint32_t n_bits = loadWord(blob.data() + layout.partition_bits, p);
    const std::uint32_t offset = loadWord(blob.data() + layout.partition_offsets, p);
    FZ_REQUIRE(offset == word, ErrorCode::kCorrupt,
               "Huffman: partition {} must begin at word {}, not {}", p, word, offset);
    word += bits::ceilDiv<std::uint64_t>(n_bits, 32);
    FZ_REQUIRE(word <= header.n_words, ErrorCode::kCorrupt,
               "Huffman: partition {} ends at word {} of {}", p, word, header.n_words);
  }
}

}  // namespace

void requireBlobFits(const BlobHeader& header, const BlobLayout& layout) {
  FZ_REQUIRE(layout.end <= kMaxBlobBytes, ErrorCode::kBadSize,
             "Huffman: {} values need a stream of {} bytes; the limit of the format is {} bytes",
             header.n_values, layout.end, kMaxBlobBytes);
}

void writeHeader(const BlobHeader& header, const BlobLayout& layout, MutableByteView out) {
  ByteWriter writer(out.first(kHeaderBytes));
  writer.u16(static_cast<std::uint16_t>(header.bklen)).u16(0);  // 65536 is stored as 0
  writer.u32(header.partition_values).u32(static_cast<std::uint32_t>(header.n_partitions)).u32(0);
  writer.u64(header.n_values).u64(header.n_bits).u64(header.n_words);
  for (const std::uint64_t offset : {std::uint64_t{0}, layout.book, layout.partition_bits,
                                     layout.partition_offsets, layout.words, layout.end}) {
    writer.u32(static_cast<std::uint32_t>(offset));
  }
  writer.zeros(kHeaderBytes - writer.position());
}

BlobHeader readHeader(ByteView blob, std::size_t value_bytes) {
  FZ_REQUIRE(blob.size() >= kHeaderBytes && blob.size() <= kMaxBlobBytes, ErrorCode::kCorrupt,
             "Huffman: a stream has {} to {} bytes, not {}", kHeaderBytes, kMaxBlobBytes,
             blob.size());
  ByteReader in(blob);
  BlobHeader header{};
  header.bklen = in.u16();
  header.bklen = header.bklen == 0 ? 65536 : header.bklen;
  in.skip(2);
  header.partition_values = in.u32();
  header.n_partitions = in.u32();
  in.skip(4);
  header.n_values = in.u64();
  header.n_bits = in.u64();
  header.n_words = in.u64();
  std::uint32_t offsets[kHeaderOffsets];
  for (std::uint32_t& offset : offsets) {
    offset = in.u32();
  }

  const HeaderFault fault = checkHeader(header, offsets, blob.size(), value_bytes);
  FZ_REQUIRE(fault != HeaderFault::kPartitions, ErrorCode::kCorrupt,
             "Huffman: {} values in {} partitions of {}", header.n_values, header.n_partitions,
             header.partition_values);
  FZ_REQUIRE(fault != HeaderFault::kWords, ErrorCode::kCorrupt,
             "Huffman: {} words in a stream of {} bytes", header.n_words, blob.size());
  const BlobLayout layout = layoutOf(header, value_bytes);
  FZ_REQUIRE(fault != HeaderFault::kOffsets, ErrorCode::kCorrupt,
             "Huffman: parts at {}, {}, {}, {}, {}; needed {}, {}, {}, {} and {} bytes, got {}",
             offsets[1], offsets[2], offsets[3], offsets[4], offsets[5], layout.partition_bits,
             layout.partition_offsets, layout.words, layout.end, layout.end, blob.size());
  FZ_REQUIRE(fault != HeaderFault::kBits, ErrorCode::kCorrupt,
             "Huffman: {} values in {} bits in {} words", header.n_values, header.n_bits,
             header.n_words);
  checkPartitions(blob, header, layout);
  return header;
}

}  // namespace fz::huffman
