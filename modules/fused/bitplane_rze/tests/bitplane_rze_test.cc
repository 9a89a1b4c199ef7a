#include <cstring>
#include <gtest/gtest.h>

#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "fused/bitplane_rze/codec.h"
#include "fused/bitplane_rze/cpu/chunks.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

namespace bp = bitplane_rze;

/// Magnitudes like those of a quantiser: mostly small, now and then a large one, gaps of zeros.
InputCase codes() {
  return {"codes", [](DataType /*type*/, std::size_t n, std::mt19937_64& rng) {
            std::vector<std::uint16_t> values(n);
            for (std::size_t i = 0; i < n; ++i) {
              const std::uint64_t r = rng();
              values[i] = static_cast<std::uint16_t>(
                  i / 300 % 3 == 1 ? 0 : (r % 400 == 0 ? r >> 16 : (r >> 16) % 6));
            }
            return toBytes(values);
          }};
}

FZ_STAGE_CASE(BitplaneRZE,
              {.stage = "BitplaneRZE",
               .tile_values = bp::kChunkSymbols,
               .inputs = {codes(), fullNoise(), smallNoise(), zeros(), sparse(), extremes(), ramp(),
                          constant()},
               .input_type = [](const std::vector<DataType>&) { return DataType::UINT16; },
               .extra_sizes = {3, 64, 2 * bp::kChunkSymbols, 33'333}});

Encoded encodeSymbols(const std::vector<std::uint16_t>& symbols) {
  BitplaneRZEStage stage;
  return encode(stage, toBytes(symbols));
}

TEST(BitplaneRZE, GivesTheBytesOfTheWorkedExample) {
  const Encoded encoded = encodeSymbols({1, 0, 0, 0, 3, 0, 0, 0});
  Bytes expected(196);
  ByteWriter out(expected);
  out.u64(8).u32(0).u32(0x80).u32(0xA0).u32(0xA4).u32(0xC4).zeros(100);
  out.u32(0x0101).zeros(28).u32(0);
  out.u8(5).zeros(15).u8(4).zeros(15);
  ASSERT_EQ(out.position(), expected.size());
  EXPECT_EQ(encoded.streams[0], expected);
  EXPECT_EQ(encoded.config, (Bytes{8, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(BitplaneRZE, NoSymbolsGiveAnEmptyArchive) {
  const Encoded encoded = encodeSymbols({});
  EXPECT_TRUE(encoded.streams[0].empty());
  EXPECT_EQ(encoded.config, Bytes(8));
  EXPECT_TRUE(decode(23, encoded).empty());
}

TEST(BitplaneRZE, ZerosTakeOnlyHeaderFlagsAndStarts) {
  EXPECT_EQ(encodeSymbols(std::vector<std::uint16_t>(10 * bp::kChunkSymbols)).streams[0].size(),
            128u + 10 * 36);
}

TEST(BitplaneRZE, NoiseReachesTheLimitAndNeverExceedsIt) {
  std::vector<std::uint16_t> symbols(3 * bp::kChunkSymbols, 0xFFFF);
  BitplaneRZEStage stage;
  EXPECT_EQ(encode(stage, toBytes(symbols)).streams[0].size(), 128u + 3 * (36 + 4096));
  EXPECT_EQ(stage.maxOutputSizes({symbols.size() * 2})[0], 128u + 3 * (36 + 4096));
}

TEST(BitplaneRZE, SmallCodesCompressWell) {
  std::mt19937_64 rng(1);
  std::vector<std::uint16_t> symbols(100'000);
  for (std::uint16_t& s : symbols) {
    s = static_cast<std::uint16_t>(rng() % 4);
  }
  EXPECT_LT(encodeSymbols(symbols).streams[0].size(), 2 * symbols.size() / 7);
}

TEST(BitplaneRZE, CanBePartOfAGraphInBothDirections) {
  BitplaneRZEStage stage;
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setInverse(true);
  EXPECT_TRUE(stage.isGraphCompatible());
}

TEST(BitplaneRZE, PortsAreSixteenBitCodesAndBytes) {
  BitplaneRZEStage stage;
  EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::UINT16));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UINT8));
}

TEST(BitplaneRZE, RefusesHalfASymbol) {
  BitplaneRZEStage stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

TEST(BitplaneRZE, RefusesMoreSymbolsThanItsOffsetsCanReach) {
  EXPECT_LE(bp::layoutOf(bp::kMaxSymbols).maxBytes(), 0xFFFFFFFFu);
  EXPECT_GT(bp::layoutOf(bp::kMaxSymbols + 1).maxBytes(), 0xFFFFFFFFu);
  BitplaneRZEStage stage;
  std::uint16_t symbol = 0;
  std::uint8_t out = 0;
  stage.setOutputCapacities({1});
  try {  // the size is refused before anything is read
    stage.execute(nullptr, nullptr, {&symbol}, {&out}, {2 * bp::kMaxSymbols + 2});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
    EXPECT_NE(std::string(e.what()).find("2128773120"), std::string::npos) << e.what();
  }
}

/// Three different chunks, encoded.
Encoded threeChunks() {
  std::mt19937_64 rng(2);
  return encodeSymbols(
      fromBytes<std::uint16_t>(codes().make(DataType::UINT16, 3 * bp::kChunkSymbols - 9, rng)));
}

TEST(BitplaneRZE, DecoderFollowsStartPositionsInAnyOrder) {
  const Encoded good = threeChunks();
  const bp::Layout layout = bp::layoutOf(3 * bp::kChunkSymbols - 9);
  const Bytes& in = good.streams[0];
  const std::size_t n_words = (in.size() - layout.stream_at) / 4;
  Encoded moved = good;
  Bytes& out = moved.streams[0];
  std::size_t at = 0;
  for (const std::size_t chunk : {2u, 0u, 1u}) {
    const std::size_t start = loadLe<std::uint32_t>(in.data() + layout.startAt(chunk));
    const std::size_t end =
        chunk == 2 ? n_words : loadLe<std::uint32_t>(in.data() + layout.startAt(chunk + 1));
    std::memcpy(out.data() + layout.stream_at + 4 * at, in.data() + layout.stream_at + 4 * start,
                4 * (end - start));
    storeLe(out.data() + layout.startAt(chunk), static_cast<std::uint32_t>(at));
    at += end - start;
  }
  ASSERT_NE(moved.streams[0], good.streams[0]);
  EXPECT_EQ(decode(23, moved), decode(23, good));
}

TEST(BitplaneRZE, ChunksThatShareTheirWordsDecode) {
  const std::vector<std::uint16_t> one(bp::kChunkSymbols, 9);
  const Encoded single = encodeSymbols(one);
  const bp::Layout single_layout = bp::layoutOf(one.size());
  const bp::Layout layout = bp::layoutOf(2 * one.size());
  Encoded shared;
  shared.config.resize(8);
  ByteWriter(shared.config).u64(2 * one.size());
  const ByteView stream = ByteView(single.streams[0]).subspan(single_layout.stream_at);
  const ByteView flags = ByteView(single.streams[0]).subspan(128, 32);
  Bytes archive(layout.stream_at + stream.size());
  ByteWriter out(archive);
  out.u64(2 * one.size()).u32(0).u32(128).u32(static_cast<std::uint32_t>(layout.starts_at));
  out.u32(static_cast<std::uint32_t>(layout.stream_at));
  out.u32(static_cast<std::uint32_t>(archive.size())).zeros(100).raw(flags).raw(flags);
  out.u32(0).u32(0).raw(stream);
  shared.streams = {archive};
  EXPECT_EQ(fromBytes<std::uint16_t>(decode(23, shared)),
            std::vector<std::uint16_t>(2 * one.size(), 9));
}

TEST(BitplaneRZE, StartPositionsOutsideTheStreamAreCorrupt) {
  const Encoded good = threeChunks();
  const bp::Layout layout = bp::layoutOf(3 * bp::kChunkSymbols - 9);
  const auto n_words = static_cast<std::uint32_t>((good.streams[0].size() - layout.stream_at) / 4);
  for (const std::uint32_t start : {n_words, n_words - 4, 0x3FFFFFFFu, 0xFFFFFFFFu}) {
    Encoded bad = good;
    storeLe(bad.streams[0].data() + layout.startAt(1), start);
    EXPECT_THROW(decode(23, bad), Error) << start;
  }
}

TEST(BitplaneRZE, AHeaderThatContradictsTheConfigOrTheSizeIsCorrupt) {
  const Encoded good = threeChunks();
  for (std::size_t byte = 0; byte < 28; ++byte) {
    Encoded bad = good;
    bad.streams[0][byte] ^= 0x10;
    EXPECT_THROW(decode(23, bad), Error) << byte;
  }
  Encoded longer = good;
  longer.streams[0].resize(longer.streams[0].size() + 4);
  EXPECT_THROW(decode(23, longer), Error);
  for (std::size_t byte = 28; byte < 128; ++byte) {
    Encoded other = good;
    other.streams[0][byte] = 0xAB;
    EXPECT_EQ(decode(23, other), decode(23, good));
  }
}

TEST(BitplaneRZE, AClaimedLengthIsBoundedByTheSize) {
  Encoded bad = threeChunks();
  ByteWriter(bad.config).u64(bp::kMaxSymbols);
  EXPECT_THROW(decode(23, bad), Error);
  ByteWriter(bad.config).u64(~std::uint64_t{0});
  EXPECT_THROW(decode(23, bad), Error);
  bad.config.clear();
  EXPECT_THROW(decode(23, bad), Error);
}

template <class Team>
void expectTextEqualsTuned(Team team, const std::uint32_t* words) {
  std::vector<std::uint32_t> planes(bp::kChunkWords);
  std::uint32_t flags[bp::kFlagWords];
  bp::transposeChunk(team, words, planes.data());
  bp::flagGroups(team, planes.data(), flags);
  std::vector<std::uint32_t> stream(bp::storedWords(flags));
  bp::packGroups(team, planes.data(), flags, stream.data());

  const auto* chunk = reinterpret_cast<const std::uint8_t*>(words);
  Bytes tuned_flags(bp::kFlagBytes);
  bp::flagChunk(chunk, tuned_flags.data());
  EXPECT_EQ(std::memcmp(tuned_flags.data(), flags, bp::kFlagBytes), 0);
  Bytes tuned(4 * stream.size() + 1, 0xEE);
  bp::encodeChunk(chunk, tuned_flags.data(), tuned.data());
  EXPECT_EQ(tuned.back(), 0xEE);
  tuned.pop_back();
  EXPECT_EQ(tuned, toBytes(stream));

  std::vector<std::uint32_t> planes_back(bp::kChunkWords, 0xEEEEEEEEu);
  std::vector<std::uint32_t> words_back(bp::kChunkWords);
  bp::unpackGroups(team, flags, stream.data(), planes_back.data());
  EXPECT_EQ(planes_back, planes);
  bp::untransposeChunk(team, planes_back.data(), words_back.data());
  EXPECT_TRUE(std::equal(words_back.begin(), words_back.end(), words));
  Bytes tuned_back(bp::kChunkBytes);
  bp::decodeChunk(tuned_flags.data(), tuned.data(), tuned_back.data());
  EXPECT_EQ(std::memcmp(tuned_back.data(), words, bp::kChunkBytes), 0);
}

TEST(BitplaneRZE, StageGivesTheBytesOfTheCodecText) {
  std::mt19937_64 rng(5);
  for (const InputCase& input : {codes(), fullNoise(), sparse(), zeros(), extremes()}) {
    for (const std::uint32_t n : {bp::kChunkSymbols, 1001u}) {
      const auto symbols = fromBytes<std::uint16_t>(input.make(DataType::UINT16, n, rng));
      std::vector<std::uint32_t> words(bp::kChunkWords);
      for (std::uint32_t i = 0; i < bp::kChunkWords; ++i) {
        words[i] = bp::wordOf(symbols.data(), n, i);
      }
      expectTextEqualsTuned(SerialTeam{}, words.data());
      expectTextEqualsTuned(ShuffledTeam{&rng}, words.data());
    }
  }
}

}  // namespace
}  // namespace fz::test
