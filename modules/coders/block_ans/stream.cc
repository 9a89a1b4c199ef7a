#include "coders/block_ans/stream.h"

#include <algorithm>

#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::block_ans {

namespace {

// Fields of an entry of the directory.
constexpr std::uint32_t kGroupsField = 10;
static_assert(kMaxChunkGroups <= 1u << kGroupsField);

std::uint32_t widthOf(std::span<const std::uint32_t> block) {
  std::uint32_t all = 0;
  for (const std::uint32_t u : block) {
    all |= u;
  }
  return bits::bitWidth(all);
}

std::size_t blockBytes(std::size_t n_values, std::uint32_t width) {
  return bits::ceilDiv<std::size_t>(n_values * width, 8);
}

template <class U, class F>
void forBlocks(std::span<U> u, F f) {
  for (std::size_t at = 0; at < u.size(); at += kBlockValues) {
    f(u.subspan(at, std::min<std::size_t>(kBlockValues, u.size() - at)));
  }
}

}  // namespace

std::size_t writeStates(const std::uint32_t* x, MutableByteView out) {
  BitWriter bits(out);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    bits.put(bits::bitWidth(x[lane]) - kMinStateLength, kStateLengthBits);
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t n_bits = bits::bitWidth(x[lane]) - 1;
    bits.put(lowBits(x[lane], n_bits), n_bits);
  }
  const std::size_t n_bytes = bits.finish();
  if (n_bytes % 2 != 0) {
    out[n_bytes] = 0;
  }
  return bits::roundUp<std::size_t>(n_bytes, 2);
}

std::size_t readStates(ByteView in, std::uint32_t* x) {
  BitReader bits(in);
  std::uint32_t n_bits[kLanes];
  std::uint32_t total = kLanes * kStateLengthBits;
  for (std::uint32_t& n : n_bits) {
    n = kMinStateLength - 1 + bits.get(kStateLengthBits);
    total += n;
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    x[lane] = 1u << n_bits[lane] | bits.get(n_bits[lane]);
  }
  const std::size_t n_bytes = 2 * bits::ceilDiv<std::size_t>(total, 16);
  const std::uint32_t padding = bits.get(static_cast<std::uint32_t>(8 * n_bytes - total));
  return n_bytes <= in.size() && padding == 0 ? n_bytes : 0;
}

void writeHeader(Form form, std::uint64_t n_chunks, MutableByteView out) {
  storeLe(out.data(), static_cast<std::uint32_t>(n_chunks << 8 | static_cast<std::uint8_t>(form)));
}

Header readHeader(ByteView stream) {
  const std::uint8_t form = stream[0];
  FZ_REQUIRE(form <= static_cast<std::uint8_t>(Form::kCounted), ErrorCode::kCorrupt,
             "BlockANS: a stream of form {}", form);
  Header header{.form = static_cast<Form>(form), .n_chunks = 0};
  if (header.form == Form::kPacked) {
    return header;
  }
  FZ_REQUIRE(stream.size() >= kHeaderBytes, ErrorCode::kCorrupt,
             "BlockANS: a stream of {} bytes, the header alone has {}", stream.size(),
             kHeaderBytes);
  header.n_chunks = loadLe<std::uint32_t>(stream.data()) >> 8;
  FZ_REQUIRE((header.form == Form::kStored) == (header.n_chunks == 0) &&
                 header.n_chunks <= (stream.size() - kHeaderBytes) / kEntryBytes,
             ErrorCode::kCorrupt, "BlockANS: {} chunks in a stream of form {} with {} bytes",
             header.n_chunks, form, stream.size());
  return header;
}

void writeEntry(const Chunk& chunk, std::uint8_t* out) {
  storeLe(out, chunk.n_words << kGroupsField | (chunk.n_groups - 1));
}

void readDirectory(ByteView stream,
                   std::size_t offset,
                   std::uint64_t n_values,
                   std::size_t value_bytes,
                   std::span<Chunk> chunks) {
  const std::size_t n_bytes = chunks.size() * kEntryBytes;
  FZ_REQUIRE(offset <= stream.size() && n_bytes <= stream.size() - offset, ErrorCode::kCorrupt,
             "BlockANS: a directory of {} bytes at {} in a stream of {}", n_bytes, offset,
             stream.size());
  std::uint64_t value = 0;
  std::uint64_t byte = offset + n_bytes;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const auto entry = loadLe<std::uint32_t>(stream.data() + offset + c * kEntryBytes);
    const std::uint32_t n_groups = lowBits(entry, kGroupsField) + 1;
    const std::uint64_t in_chunk =
        std::min<std::uint64_t>(n_values - value, std::uint64_t{n_groups} * kGroupValues);
    const Chunk chunk{.first_value = value,
                      .n_values = in_chunk,
                      .byte_offset = byte,
                      .n_groups = n_groups,
                      .n_words = entry >> kGroupsField};
    FZ_REQUIRE(n_groups <= kMaxChunkGroups &&
                   bits::ceilDiv<std::uint64_t>(in_chunk, kGroupValues) == n_groups &&
                   chunk.n_words <= rawWords(in_chunk, value_bytes),
               ErrorCode::kCorrupt,
               "BlockANS: chunk {} of {} groups and {} words at value {} of {}", c, n_groups,
               chunk.n_words, value, n_values);
    value += in_chunk;
    byte += 2 * std::uint64_t{chunk.n_words};
    FZ_REQUIRE(byte <= stream.size(), ErrorCode::kCorrupt,
               "BlockANS: chunk {} ends at byte {} of {}", c, byte, stream.size());
    chunks[c] = chunk;
  }
  FZ_REQUIRE(value == n_values && byte == stream.size(), ErrorCode::kCorrupt,
             "BlockANS: chunks with {} of {} values in {} of {} bytes", value, n_values, byte,
             stream.size());
}

std::size_t packedBytes(std::span<const std::uint32_t> u) {
  std::size_t n_bytes = 1;
  forBlocks(u, [&](std::span<const std::uint32_t> block) {
    n_bytes += 1 + blockBytes(block.size(), widthOf(block));
  });
  return n_bytes;
}

void writePacked(std::span<const std::uint32_t> u, MutableByteView out) {
  out[0] = static_cast<std::uint8_t>(Form::kPacked);
  std::size_t at = 1;
  forBlocks(u, [&](std::span<const std::uint32_t> block) {
    const std::uint32_t width = widthOf(block);
    out[at++] = static_cast<std::uint8_t>(width);
    BitWriter bits(out.subspan(at));
    for (const std::uint32_t value : block) {
      bits.put(value, width);
    }
    at += bits.finish();
  });
}

void readPacked(ByteView stream, std::size_t value_bytes, std::span<std::uint32_t> u) {
  std::size_t at = 1;
  forBlocks(u, [&](std::span<std::uint32_t> block) {
    FZ_REQUIRE(at < stream.size(), ErrorCode::kCorrupt,
               "BlockANS: {} bytes are too few for {} packed values", stream.size(), u.size());
    const std::uint32_t width = stream[at++];
    const std::size_t n_bytes = blockBytes(block.size(), width);
    FZ_REQUIRE(width <= 8 * value_bytes && n_bytes <= stream.size() - at, ErrorCode::kCorrupt,
               "BlockANS: a packed block of width {} at byte {} of {}", width, at, stream.size());
    BitReader bits(stream.subspan(at, n_bytes));
    for (std::uint32_t& value : block) {
      value = bits.get(width);
    }
    FZ_REQUIRE(bits.isAtEnd(), ErrorCode::kCorrupt,
               "BlockANS: packed values with bits behind them");
    at += n_bytes;
  });
  FZ_REQUIRE(at == stream.size(), ErrorCode::kCorrupt,
             "BlockANS: packed values end at byte {} of {}", at, stream.size());
}

}  // namespace fz::block_ans
