#include "coders/adaptive_bitpack/tests/support.h"

namespace fz::test::adaptive_bitpack_test {
namespace {

TEST(AdaptiveBitpack, PaddingBitsAndThePlaneBitsOfAnOutlierAreIgnored) {
  EXPECT_EQ(decode(kId, forged<std::int32_t>({8, false}, 3, {0x01, 0xf2, 0xff})),
            toBytes(Int32s{1, -1, 1}));
  EXPECT_EQ(decode(kId, forged<std::int32_t>({8, true}, 2, {0x01, 0x01, 0x07, 0x01, 0x03})),
            toBytes(Int32s{-7, 1}));
}

TEST(AdaptiveBitpack, MinusZeroIsZeroAndMagnitudesWrap) {
  EXPECT_EQ(decode(kId, forged<std::int32_t>({1, false}, 1, {0x01, 0x01, 0x00})),
            toBytes(Int32s{0}));
  Bytes top(18, 0);
  top[0] = 16;
  top[17] = 1;
  const Int16s smallest = {std::numeric_limits<std::int16_t>::min()};
  EXPECT_EQ(decode(kId, forged<std::int16_t>({1, false}, 1, top)), toBytes(smallest));
  top[1] = 1;
  EXPECT_EQ(decode(kId, forged<std::int16_t>({1, false}, 1, top)), toBytes(smallest));
}

TEST(AdaptiveBitpack, RatesBeyondTheTypeAreRefused) {
  Encoded bad = encodeValues(Int32s(70, 3), {32, false});
  bad.streams[0][1] = 33;
  expectCorrupt(bad, "block 1 has rate 33");
  bad = encodeValues(Int16s(70, 3), {32, false});
  bad.streams[0][2] = 17;
  expectCorrupt(bad, "block 2 has rate 17");
}

TEST(AdaptiveBitpack, UnknownSelectionsAreRefused) {
  for (const int sel : {0x02, 0x04, 0x06, 0x08, 0x09, 0x80}) {
    Encoded bad = encodeValues(Int32s(70, 3), {32, true});
    bad.streams[0][1] = static_cast<std::uint8_t>(sel);
    expectCorrupt(bad, "selection " + std::to_string(sel));
  }
  for (const int sel : {0x05, 0x07}) {
    Encoded bad = encodeValues(Int16s(70, 3), {32, true});
    bad.streams[0][1] = static_cast<std::uint8_t>(sel);
    expectCorrupt(bad, "selection " + std::to_string(sel));
  }
}

TEST(AdaptiveBitpack, InvalidMetadataIsNamedWhereverItStandsOnEveryTarget) {
  forEveryTarget([] {
    for (std::size_t block = 0; block < 200; block += block < 70 ? 1 : 13) {
      Encoded bad = encodeValues(Int32s(32 * 200, 3), {32, false});
      bad.streams[0][block] = static_cast<std::uint8_t>(block % 2 == 0 ? 33 : 255);
      expectCorrupt(bad, "block " + std::to_string(block) + " has");
      bad = encodeValues(Int32s(32 * 200, 3), {32, true});
      bad.streams[0][2 * block] = 33;
      expectCorrupt(bad, "block " + std::to_string(block) + " has");
      for (const int sel : {0x02, 0x08, 0x09, 0xff}) {
        bad.streams[0][2 * block] = 2;
        bad.streams[0][2 * block + 1] = static_cast<std::uint8_t>(sel);
        expectCorrupt(bad, "block " + std::to_string(block) + " has");
      }
    }
  });
}

TEST(AdaptiveBitpack, PayloadMustBeExactlyAsLongAsTheBlocksNeed) {
  Encoded bad = encodeValues(Int32s(70, 3), {32, false});
  bad.streams[0].push_back(0);
  expectCorrupt(bad, "need 36 payload bytes, got 37");
  bad.streams[0].resize(bad.streams[0].size() - 2);
  expectCorrupt(bad, "need 36 payload bytes, got 35");
}

TEST(AdaptiveBitpack, AShortStreamCannotClaimManyValues) {
  expectCorrupt(forged<std::int32_t>({1024, false}, 20 * 1024 + 1, Bytes(20)), "20 bytes");
  expectCorrupt(forged<std::int32_t>({1024, true}, 10 * 1024 + 1, Bytes(20)), "20 bytes");
  expectCorrupt(forged<std::int32_t>({1, false}, ~std::uint64_t{0}, Bytes(20)), "20 bytes");
  expectCorrupt(forged<std::int32_t>({32, false}, 0, Bytes(1)), "no values");
  EXPECT_EQ(decode(kId, forged<std::int32_t>({1024, false}, 20 * 1024, Bytes(20))).size(), 81920u);
}

TEST(AdaptiveBitpack, BadConfigsAreRefused) {
  const Encoded good = encodeValues(Int32s(70, 3), {32, false});
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Encoded bad = good;
    bad.config[at] = value;
    return bad;
  };
  expectCorrupt(with(1, 2), "outlier selection 2");
  expectCorrupt(with(2, 1), "reserved");
  expectCorrupt(with(4, 0), "block size 0");
  expectCorrupt(with(5, 4), "block size 1056");
  Encoded cut = good;
  cut.config.resize(15);
  expectCorrupt(cut, "expected 16");
  cut.config.clear();
  EXPECT_THROW(decode(kId, cut), Error);
  EXPECT_THROW(decode(kId, with(0, static_cast<std::uint8_t>(DataType::FLOAT32))), Error);
}

}  // namespace
}  // namespace fz::test::adaptive_bitpack_test
