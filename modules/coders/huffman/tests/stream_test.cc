// The stream itself: worked example, files of the original system, damage, and the tuned loops
// against the defining text.
#include "coders/huffman/stream.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "coders/huffman/book.h"
#include "coders/huffman/codec.h"
#include "coders/huffman/huffman_stage.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using huffman::BookTables;

std::vector<std::uint16_t> gaussian(std::size_t n, double spread) {
  std::mt19937_64 rng(n);
  std::vector<std::uint16_t> values(n);
  for (auto& v : values) {
    const double x = 512 + std::normal_distribution<>(0, spread)(rng);
    v = static_cast<std::uint16_t>(x < 0 ? 0 : x > 1023 ? 1023 : x);
  }
  return values;
}

/// Expects Error(kCorrupt) from decoding the stream after one u32 of it was changed.
void expectRefused(Encoded encoded, std::size_t offset, std::uint32_t value) {
  storeLe(encoded.streams[0].data() + offset, value);
  try {
    decode(6, encoded);
    ADD_FAILURE() << "byte " << offset << " = " << value << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorrupt) << e.what();
  }
}

TEST(HuffmanStream, WorkedExampleIsExact) {
  HuffmanStage<std::uint16_t> stage;
  stage.setBklen(4);
  const std::vector<std::uint16_t> values = {1, 1, 1, 1, 2, 2, 3, 0};
  const Encoded encoded = encode(stage, toBytes(values));
  Bytes expected(404);
  ByteWriter out(expected);
  out.u32(4).u32(768).u32(1).u32(0).u64(8).u64(14).u64(1);
  out.u32(0).u32(128).u32(392).u32(396).u32(400).u32(404).zeros(64);
  out.u32(255).u32(1).u32(1).zeros(4 * 29);
  out.u32(0).u32(0).u32(1).u32(2);
  for (int l = 4; l < 32; ++l) {
    out.u32(4);
  }
  out.u16(1).u16(2).u16(0).u16(3).u32(14).u32(0).u32(0xf5200000u);
  ASSERT_EQ(out.position(), expected.size());
  EXPECT_EQ(encoded.streams[0], expected);
  EXPECT_TRUE(decode(6, encoded) == toBytes(values));
}

/// Config and stream of the Huffman stage in a file of the container format, version 3.1.
Encoded huffmanSegment(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const Bytes file(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>{});
  const auto u16 = [&](std::size_t at) { return loadLe<std::uint16_t>(&file.at(at)); };
  const auto u32 = [&](std::size_t at) { return loadLe<std::uint32_t>(&file.at(at)); };
  const auto u64 = [&](std::size_t at) {
    return static_cast<std::ptrdiff_t>(loadLe<std::uint64_t>(&file.at(at)));
  };
  for (std::size_t i = 0; i < u16(6); ++i) {
    const std::size_t record = 80 + 256 * (u32(32) + i);
    if (u16(record) == 6) {
      const auto config = file.begin() + static_cast<std::ptrdiff_t>(record) + 104;
      const auto data = file.begin() + u64(24) + u64(record + 96);
      return {.config = Bytes(config, config + u32(record + 232)),
              .streams = {Bytes(data, data + u64(record + 72))}};
    }
  }
  return {};
}

class HuffmanOriginalFile : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(HuffmanOriginalFile, DecodesAndIsWrittenAgainByteForByte) {
  const auto path = std::filesystem::path(FZ_SHARED_DATA) / "interop" / GetParam().first;
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is absent";
  }
  const Encoded original = huffmanSegment(path);
  ASSERT_EQ(original.config.size(), 11u);
  const Bytes decoded = decode(6, original);
  const auto values = fromBytes<std::uint16_t>(decoded);
  EXPECT_EQ(values.size(), loadLe<std::uint64_t>(original.config.data() + 3));
  for (const std::uint16_t v : values) {
    ASSERT_LT(v, loadLe<std::uint16_t>(original.config.data() + 1));
  }

  HuffmanStage<std::uint16_t> stage;
  setParam(stage, "encode_mode", std::string(GetParam().second));
  const Encoded ours = encode(stage, decoded);
  EXPECT_EQ(ours.config, original.config);
  Bytes cleaned = original.streams[0];
  std::fill(cleaned.begin() + 64, cleaned.begin() + 128, std::uint8_t{0});  // leftovers there
  EXPECT_TRUE(ours.streams[0] == cleaned);
}

INSTANTIATE_TEST_SUITE_P(Interop,
                         HuffmanOriginalFile,
                         testing::Values(std::pair{"v64x64.lq-huffman.fzm", "Coarse"},
                                         std::pair{"v64x64.toml-cusz.fzm", "Fine"}));

TEST(HuffmanStream, LeftoversInTheHeaderAreIgnored) {
  HuffmanStage<std::uint16_t> stage;
  const Bytes input = toBytes(gaussian(2000, 10));
  Encoded encoded = encode(stage, input);
  std::fill(encoded.streams[0].begin() + 64, encoded.streams[0].begin() + 128, std::uint8_t{0xAB});
  EXPECT_TRUE(decode(6, encoded) == input);
}

TEST(HuffmanStream, EveryHeaderFieldIsChecked) {
  HuffmanStage<std::uint16_t> stage;
  const Encoded good = encode(stage, toBytes(gaussian(2000, 10)));
  for (const std::size_t offset : {0, 4, 8, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60}) {
    const auto value = loadLe<std::uint32_t>(good.streams[0].data() + offset);
    expectRefused(good, offset, value ^ 0x80u << (offset == 24 ? 24 : 0));
    expectRefused(good, offset, value ^ 0x8000u << (offset == 24 ? 16 : 0));
  }
  expectRefused(good, 4, 0);
}

TEST(HuffmanStream, ConfigAndStreamMustAgree) {
  HuffmanStage<std::uint16_t> stage;
  Encoded encoded = encode(stage, toBytes(gaussian(2000, 10)));
  encoded.config[3] ^= 1;
  EXPECT_THROW(decode(6, encoded), Error);
  encoded.config[3] ^= 1;
  encoded.config[1] = 0xFF;
  EXPECT_THROW(decode(6, encoded), Error);
}

TEST(HuffmanStream, BookIsChecked) {
  HuffmanStage<std::uint16_t> stage;
  const Encoded good = encode(stage, toBytes(gaussian(2000, 10)));
  const std::size_t first = 128;
  const std::size_t entry = 256;
  expectRefused(good, first + 4 * 1, 7);
  expectRefused(good, first + 4 * 5, 0);
  expectRefused(good, entry + 4 * 1, 1);      // a code of no bits
  expectRefused(good, entry + 4 * 31, 0);     // falls
  expectRefused(good, entry + 4 * 31, 1025);  // past the keys
  expectRefused(good, entry + 4 * 3, 900);    // more codes of 2 bits than there are
  expectRefused(good, 384, 0xFFFFFFFFu);      // a key past the book length
}

TEST(HuffmanStream, PartitionsAreChecked) {
  HuffmanStage<std::uint16_t> stage;
  const Encoded good = encode(stage, toBytes(gaussian(6000, 10)));
  const Bytes& blob = good.streams[0];
  const std::size_t bits_at = loadLe<std::uint32_t>(blob.data() + 48);
  const std::size_t offsets_at = loadLe<std::uint32_t>(blob.data() + 52);
  const auto n_bits = loadLe<std::uint32_t>(blob.data() + bits_at);
  expectRefused(good, bits_at, n_bits - 1);  // the last code runs past the end
  expectRefused(good, bits_at, 0);
  expectRefused(good, bits_at, 0xFFFFFFFFu);
  expectRefused(good, offsets_at, 1);
  expectRefused(good, offsets_at + 4, 0xFFFFFFFFu);
}

TEST(HuffmanStream, ABitThatIsNoCodeIsFoundInEveryPartition) {
  HuffmanStage<std::uint16_t> stage;
  stage.setBklen(8);
  const Encoded good = encode(stage, toBytes(std::vector<std::uint16_t>(768 * 9, 3)));
  const std::size_t words = loadLe<std::uint32_t>(good.streams[0].data() + 56);
  for (std::size_t p = 0; p < 9; ++p) {
    expectRefused(good, words + 4 * (24 * p + 11), 0x00010000u);  // the one code is 0
  }
}

TEST(HuffmanStream, AStreamCannotClaimMoreValuesThanItHasBits) {
  HuffmanStage<std::uint16_t> stage;
  Encoded encoded = encode(stage, toBytes(gaussian(2000, 10)));
  storeLe<std::uint64_t>(encoded.config.data() + 3, std::uint64_t{1} << 40);
  EXPECT_THROW(decode(6, encoded), Error);
}

TEST(HuffmanStream, StreamsPast4GiBAreRefusedByName) {
  const huffman::BlobHeader header{.bklen = 1024,
                                   .partition_values = 768,
                                   .n_partitions = 10,
                                   .n_values = 7680,
                                   .n_bits = 0,
                                   .n_words = std::uint64_t{1} << 30};
  try {
    huffman::requireBlobFits(header, huffman::layoutOf(header, 2));
    FAIL() << "must throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
    EXPECT_NE(std::string(e.what()).find("4294967295"), std::string::npos) << e.what();
  }
}

TEST(HuffmanStream, AnOutputThatIsTooSmallIsAskedToGrow) {
  HuffmanStage<std::uint16_t> stage;
  Bytes input = toBytes(gaussian(5000, 10));
  const Bytes expected = encode(stage, input).streams[0];
  Bytes small(expected.size() - 1, 0xCD);
  stage.setOutputCapacities({small.size()});
  stage.execute(nullptr, nullptr, {input.data()}, {small.data()}, {input.size()});
  EXPECT_EQ(stage.neededOutputSizes(), std::vector<std::size_t>{expected.size()});
  EXPECT_EQ(small, Bytes(small.size(), 0xCD));
}

TEST(HuffmanStream, LimitedLengthsFormACompleteBook) {
  std::vector<std::uint32_t> n_codes(64);
  for (std::size_t l = 1; l < 40; ++l) {
    n_codes[l] = 1;
  }
  n_codes[40] = 2;
  huffman::limitLengths(n_codes);
  std::uint64_t kraft = 0;
  std::uint32_t n_symbols = 0;
  for (std::size_t l = 1; l < 64; ++l) {
    EXPECT_TRUE(l <= 27 || n_codes[l] == 0);
    kraft += l <= 27 ? std::uint64_t{n_codes[l]} << (27 - l) : 0;
    n_symbols += n_codes[l];
  }
  EXPECT_EQ(kraft, std::uint64_t{1} << 27);
  EXPECT_EQ(n_symbols, 41u);
}

/// Decodes and encodes every partition with the text of codec.h.
void expectSameAsText(double spread, HuffmanEncodeMode mode, std::size_t n) {
  HuffmanStage<std::uint16_t> stage;
  stage.setEncodeMode(mode);
  const std::vector<std::uint16_t> values = gaussian(n, spread);
  const Bytes blob = encode(stage, toBytes(values)).streams[0];
  const huffman::BlobHeader header = huffman::readHeader(blob, 2);
  const huffman::BlobLayout layout = huffman::layoutOf(header, 2);
  const BookTables book = huffman::readBook(
      ByteView(blob).subspan(layout.book, layout.partition_bits - layout.book), 2, header.bklen);
  const std::uint8_t* keys = blob.data() + layout.book + huffman::kBookTableBytes;
  std::vector<std::uint32_t> codes(header.bklen);
  for (std::uint32_t l = 1; l <= book.longest; ++l) {
    for (std::uint32_t rank = 0; rank < huffman::codesOfLength(book, l); ++rank) {
      const auto key = loadLe<std::uint16_t>(keys + 2 * (book.entry[l] + rank));
      codes[key] = huffman::packCode(book.first[l] + rank, l);
    }
  }
  Bytes words(4 * header.n_words);
  std::vector<std::uint16_t> decoded(n);
  for (std::uint64_t p = 0; p < header.n_partitions; ++p) {
    const std::size_t begin = p * header.partition_values;
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(header.partition_values, n - begin));
    const std::uint64_t offset = huffman::loadWord(blob.data() + layout.partition_offsets, p);
    const std::uint32_t n_bits = huffman::loadWord(blob.data() + layout.partition_bits, p);
    EXPECT_EQ(huffman::partitionBits(values.data() + begin, count, codes.data()), n_bits);
    huffman::encodePartition(values.data() + begin, count, codes.data(), &words[4 * offset]);
    EXPECT_TRUE(huffman::decodePartition(blob.data() + layout.words,
                                         {32 * offset, 32 * offset + n_bits}, book, keys, count,
                                         decoded.data() + begin));
  }
  EXPECT_TRUE(decoded == values);
  EXPECT_TRUE(std::equal(words.begin(), words.end(), blob.begin() + std::ptrdiff_t(layout.words)));
}

TEST(HuffmanStream, TunedLoopsGiveTheBytesOfTheText) {
  for (const double spread : {0.1, 0.7, 3.0, 20.0, 200.0}) {
    expectSameAsText(spread, HuffmanEncodeMode::Coarse, 30001);
    expectSameAsText(spread, HuffmanEncodeMode::Fine, 30001);
  }
  expectSameAsText(1.0, HuffmanEncodeMode::Coarse, 4'000'000);  // codes of more than 16 bits
}

}  // namespace
}  // namespace fz::test
