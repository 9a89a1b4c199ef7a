// Streams that do not tell the truth.
#include <algorithm>
#include <gtest/gtest.h>

#include "coders/block_ans/book.h"
#include "coders/block_ans/tests/support.h"
#include "fz/byte_io.h"
#include "fz/error.h"

namespace fz::test {
namespace {

constexpr std::size_t kDirectory = 4;  // of a stream with the tables of the bank

Encoded coded(std::size_t n_values, BlockAnsTables tables) {
  std::mt19937_64 rng(8);
  BlockAnsStage<std::int32_t> stage;
  stage.setTables(tables);
  std::vector<std::int32_t> values = residuals<std::int32_t>(n_values, 3, rng);
  for (std::int32_t& v : values) {
    v = std::clamp(v, -7, 7);  // a raw bit that flips is another value, and nothing else
  }
  values.back() = 5;
  return encodeValues(stage, values);
}

ErrorCode codeOf(const Encoded& encoded) {
  try {
    decodeBlockAns(encoded);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kInternal;  // which no decoder throws
}

template <class F>
void expectCorrupt(const Encoded& good, const char* what, F change) {
  Encoded bad = good;
  change(bad.streams[0]);
  EXPECT_EQ(codeOf(bad), ErrorCode::kCorrupt) << what;
}

void addTo(Bytes& stream, std::size_t offset, std::uint32_t amount) {
  storeLe(stream.data() + offset, loadLe<std::uint32_t>(stream.data() + offset) + amount);
}

TEST(BlockAnsHostile, ChunksThatAreNotWhereTheyMustBeAreRefused) {
  const Encoded good = coded(50000, BlockAnsTables::Fixed);
  ASSERT_EQ(good.streams[0][0], 2);
  constexpr std::uint32_t kWord = 1u << 10;
  expectCorrupt(good, "a form that there is not", [](Bytes& s) { s[0] = 4; });
  expectCorrupt(good, "counted tables that are not there", [](Bytes& s) { s[0] = 3; });
  expectCorrupt(good, "a chunk more", [](Bytes& s) { addTo(s, 0, 1u << 8); });
  expectCorrupt(good, "a chunk less", [](Bytes& s) { addTo(s, 0, 0u - (1u << 8)); });
  expectCorrupt(good, "no chunk", [](Bytes& s) { s[1] = s[2] = s[3] = 0; });
  expectCorrupt(good, "all chunks that the header can say",
                [](Bytes& s) { s[1] = s[2] = s[3] = 255; });
  expectCorrupt(good, "a group more", [](Bytes& s) { addTo(s, kDirectory, 1); });
  expectCorrupt(good, "a group less", [](Bytes& s) { addTo(s, kDirectory, 0u - 1u); });
  expectCorrupt(good, "1024 groups", [](Bytes& s) {
    s[kDirectory] = 255;
    s[kDirectory + 1] |= 3;
  });
  expectCorrupt(good, "a word more", [](Bytes& s) { addTo(s, kDirectory, kWord); });
  expectCorrupt(good, "a word less", [](Bytes& s) { addTo(s, kDirectory, 0u - kWord); });
  expectCorrupt(good, "a word that changes its chunk", [](Bytes& s) {
    addTo(s, kDirectory, kWord);
    addTo(s, kDirectory + 4, 0u - kWord);
  });
  expectCorrupt(good, "no words",
                [](Bytes& s) { storeLe<std::uint32_t>(s.data() + kDirectory, 1); });
  expectCorrupt(good, "a byte more", [](Bytes& s) { s.push_back(0); });
  expectCorrupt(good, "a word more behind all", [](Bytes& s) { s.insert(s.end(), 2, 0); });
}

TEST(BlockAnsHostile, EveryFlippedBitBeforeTheChunksAndNearlyEveryOtherIsNoticed) {
  for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
    const Encoded good = coded(9000, tables);
    const Bytes& stream = good.streams[0];
    ASSERT_EQ(stream[0], tables == BlockAnsTables::Counted ? 3 : 2);
    block_ans::Coding coding;
    const std::size_t n_book =
        stream[0] == 3 ? block_ans::readBook(ByteView(stream).subspan(4), 4, coding) : 0;
    const std::size_t n_front = 4 + n_book + 4 * std::size_t{stream[1]};
    // A symbol can become another one of the same frequency, or a raw bit its opposite, with all
    // else as it was: that is for the checksum of the frame.
    std::size_t n_unnoticed = 0;
    for (std::size_t bit = 0; bit < 8 * stream.size(); ++bit) {
      Encoded bad = good;
      bad.streams[0][bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      const bool is_noticed = codeOf(bad) == ErrorCode::kCorrupt;
      ASSERT_TRUE(is_noticed || bit >= 8 * n_front) << "bit " << bit;
      n_unnoticed += is_noticed ? 0 : 1;
    }
    EXPECT_LT(n_unnoticed, 8 * stream.size() / 50);
  }
}

TEST(BlockAnsHostile, EveryTruncationIsNoticed) {
  for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
    const Encoded good = coded(9000, tables);
    for (std::size_t n = 0; n < good.streams[0].size(); ++n) {
      Encoded bad = good;
      bad.streams[0].resize(n);
      ASSERT_EQ(codeOf(bad), ErrorCode::kCorrupt) << n;
    }
  }
}

TEST(BlockAnsHostile, CountsThatTheStreamCannotHoldAreRefused) {
  const Encoded good = coded(9000, BlockAnsTables::Counted);
  for (const std::uint64_t n :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8192}, std::uint64_t{8999},
        std::uint64_t{12289}, std::uint64_t{1} << 31, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    Encoded bad = good;
    storeLe(bad.config.data() + 8, n);
    EXPECT_EQ(codeOf(bad), ErrorCode::kCorrupt) << n;
  }
}

TEST(BlockAnsHostile, PackedAndStoredStreamsMustHaveTheirExactSize) {
  BlockAnsStage<std::int32_t> stage;
  const Encoded packed = encodeValues(stage, {1, -5, 1000});
  ASSERT_EQ(packed.streams[0][0], 1);
  expectCorrupt(packed, "a byte more", [](Bytes& s) { s.push_back(0); });
  expectCorrupt(packed, "a byte less", [](Bytes& s) { s.pop_back(); });
  expectCorrupt(packed, "a width of 33", [](Bytes& s) { s[1] = 33; });
  expectCorrupt(packed, "bits behind the values", [](Bytes& s) { s.back() |= 0x80; });
  Encoded of_many = packed;
  of_many.streams[0] = Bytes(66);
  of_many.streams[0][0] = 1;
  storeLe<std::uint64_t>(of_many.config.data() + 8, 4097);
  EXPECT_EQ(codeOf(of_many), ErrorCode::kCorrupt) << "4097 packed values";

  std::mt19937_64 rng(9);
  std::vector<std::int32_t> noise(5000);
  for (std::int32_t& v : noise) {
    v = static_cast<std::int32_t>(rng());
  }
  const Encoded stored = encodeValues(stage, noise);
  ASSERT_EQ(stored.streams[0][0], 0);
  expectCorrupt(stored, "a byte more", [](Bytes& s) { s.push_back(0); });
  expectCorrupt(stored, "a byte less", [](Bytes& s) { s.pop_back(); });
  expectCorrupt(stored, "a chunk", [](Bytes& s) { s[1] = 1; });
}

TEST(BlockAnsHostile, ConfigsThatDoNotExistAreRefused) {
  const Encoded good = coded(9000, BlockAnsTables::Counted);
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    Encoded bad = good;
    bad.config[at] = value;
    return codeOf(bad) == ErrorCode::kCorrupt;
  };
  EXPECT_TRUE(refused(1, 2)) << "map";
  EXPECT_TRUE(refused(2, 2)) << "tables";
  EXPECT_TRUE(refused(4, 1)) << "chunk";
  for (std::size_t n = 1; n < good.config.size(); ++n) {
    Encoded bad = good;
    bad.config.resize(n);
    EXPECT_EQ(codeOf(bad), ErrorCode::kCorrupt) << n;
  }
}

}  // namespace
}  // namespace fz::test
