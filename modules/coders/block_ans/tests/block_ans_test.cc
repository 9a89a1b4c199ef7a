#include <gtest/gtest.h>
#include <limits>

#include "coders/block_ans/tests/support.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "support/each_target.h"

namespace fz::test {
namespace {

InputCase residualsOf(std::uint32_t max_bits) {
  return {"residuals of " + std::to_string(max_bits) + " bits",
          [max_bits](DataType type, std::size_t n, std::mt19937_64& rng) -> Bytes {
            return getDataTypeSize(type) == 2 ? toBytes(residuals<std::int16_t>(n, max_bits, rng))
                                              : toBytes(residuals<std::int32_t>(n, max_bits, rng));
          }};
}

/// Zeros, with a large value now and then: takes chunks and tables even where there are few values.
InputCase spikes() {
  return {"spikes", [](DataType type, std::size_t n, std::mt19937_64& rng) -> Bytes {
            std::vector<std::int32_t> values(n);
            for (std::size_t i = 9; i < n; i += 10 + rng() % 20) {
              values[i] = static_cast<std::int32_t>(rng() >> 32);
            }
            return getDataTypeSize(type) == 4
                       ? toBytes(values)
                       : toBytes(std::vector<std::int16_t>(values.begin(), values.end()));
          }};
}

const StageConfig kFixed = {"fixed", {{"tables", std::string("fixed")}}};
const StageConfig kNone = {"none", {{"map", std::string("none")}}};
const StageConfig kLong = {"long", {{"chunk", std::int64_t{262144}}}};
const StageConfig kFixedNone = {"fixed_none",
                                {{"tables", std::string("fixed")},
                                 {"map", std::string("none")},
                                 {"chunk", std::int64_t{32768}}}};

FZ_STAGE_CASE(BlockAns,
              {.stage = "BlockANS",
               .tile_values = 4096,
               .configs = {{"default"}, kFixed, kNone, kLong, kFixedNone},
               .inputs = {spikes(), residualsOf(2), residualsOf(5), residualsOf(10), zeros(),
                          sparse(), constant(), extremes(), fullNoise()},
               .extra_sizes = {63, 64, 65, 300, 2 * 4096, 5 * 4096 + 17}});

template <class T>
void expectRoundTrip(BlockAnsStage<T>& stage, const std::vector<T>& values) {
  const Encoded encoded = encodeValues(stage, values);
  EXPECT_TRUE(decodeBlockAns(encoded) == toBytes(values)) << values.size();
  EXPECT_LE(encoded.streams[0].size(), sizeof(T) * values.size() + 4);
}

template <class F>
void forEachType(F f) {
  f(std::int16_t{});
  f(std::int32_t{});
  f(std::uint16_t{});
  f(std::uint32_t{});
}

TEST(BlockAns, EveryTypeSurvivesResidualsOfEveryWidth) {
  forEachType([]<class T>(T /*type*/) {
    BlockAnsStage<T> stage;
    std::mt19937_64 rng(1);
    for (std::uint32_t max_bits = 0; max_bits < 32; ++max_bits) {
      expectRoundTrip(stage, residuals<T>(40000, max_bits, rng));
    }
  });
}

TEST(BlockAns, NoStreamIsMoreThanFourBytesLargerThanItsValues) {
  forEachType([]<class T>(T /*type*/) {
    std::mt19937_64 rng(2);
    for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
      BlockAnsStage<T> stage;
      stage.setTables(tables);
      for (const std::size_t n : {1, 2, 3, 64, 100, 4095, 4096, 4097, 30000}) {
        std::vector<T> values(n);
        for (T& v : values) {
          v = static_cast<T>(rng());
        }
        expectRoundTrip(stage, values);
      }
    }
  });
}

TEST(BlockAns, ExtremesSurviveInEveryPlaceOfABlock) {
  forEachType([]<class T>(T /*type*/) {
    for (std::size_t place = 0; place < 64; ++place) {
      std::vector<T> values(5000, T{1});
      values[640 + place] = std::numeric_limits<T>::min();
      values[1280 + place] = std::numeric_limits<T>::max();
      values[1281 + place] = static_cast<T>(std::numeric_limits<T>::max() / 3);
      for (const auto map : {BlockAnsMap::Zigzag, BlockAnsMap::None}) {
        BlockAnsStage<T> stage;
        stage.setMap(map);
        expectRoundTrip(stage, values);
      }
    }
  });
}

TEST(BlockAns, TwoMillionZerosTake124Bytes) {
  const std::vector<std::int32_t> zeros_of_chunk(512 * 4096);
  BlockAnsStage<std::int32_t> stage;
  stage.setChunk(262144);
  const Encoded encoded = encodeValues(stage, zeros_of_chunk);
  EXPECT_TRUE(decodeBlockAns(encoded) == toBytes(zeros_of_chunk));
  EXPECT_EQ(encoded.streams[0].size(), 4u + 40u + 4u + 76u) << "header, tables, entry, states";
}

TEST(BlockAns, FewValuesTakeAsManyBitsAsTheLargestOfThem) {
  BlockAnsStage<std::int16_t> stage;
  EXPECT_EQ(encodeValues(stage, {0}).streams[0], (Bytes{1, 0}));
  EXPECT_EQ(encodeValues(stage, {-2, 1, 0, 3}).streams[0], (Bytes{1, 3, 0x13, 0x0C}));
}

TEST(BlockAns, CodesOfBothConventionsGiveTheSameStream) {
  std::mt19937_64 rng(3);
  const std::vector<std::int16_t> values = residuals<std::int16_t>(20000, 5, rng);
  std::vector<std::uint16_t> complement;
  std::vector<std::uint16_t> zigzag;
  for (const std::int16_t v : values) {
    complement.push_back(static_cast<std::uint16_t>(v));
    zigzag.push_back(static_cast<std::uint16_t>(v < 0 ? -2 * v - 1 : 2 * v));
  }
  BlockAnsStage<std::int16_t> of_signed;
  BlockAnsStage<std::uint16_t> of_complement;
  BlockAnsStage<std::uint16_t> of_zigzag;
  of_zigzag.setMap(BlockAnsMap::None);
  const Bytes stream = encodeValues(of_signed, values).streams[0];
  EXPECT_TRUE(encodeValues(of_complement, complement).streams[0] == stream);
  EXPECT_TRUE(encodeValues(of_zigzag, zigzag).streams[0] == stream);
}

TEST(BlockAns, CountedTablesAreSmallerThanFixedOnes) {
  std::mt19937_64 rng(4);
  for (const std::uint32_t max_bits : {2u, 4u, 7u, 11u}) {
    const std::vector<std::int32_t> values = residuals<std::int32_t>(300000, max_bits, rng);
    BlockAnsStage<std::int32_t> counted;
    BlockAnsStage<std::int32_t> fixed;
    fixed.setTables(BlockAnsTables::Fixed);
    const std::size_t n_counted = encodeValues(counted, values).streams[0].size();
    const std::size_t n_fixed = encodeValues(fixed, values).streams[0].size();
    EXPECT_LT(n_counted, n_fixed) << max_bits;
    EXPECT_LT(n_fixed, n_counted * 5 / 4) << max_bits;
  }
}

TEST(BlockAns, LongerChunksAreSmaller) {
  std::mt19937_64 rng(5);
  const std::vector<std::int32_t> values = residuals<std::int32_t>(600000, 3, rng);
  std::size_t before = std::numeric_limits<std::size_t>::max();
  for (const std::uint32_t weight : {12288, 16384, 32768, 65536, 262144}) {
    BlockAnsStage<std::int32_t> stage;
    stage.setChunk(weight);
    const Encoded encoded = encodeValues(stage, values);
    EXPECT_LT(encoded.streams[0].size(), before) << weight;
    before = encoded.streams[0].size();
    EXPECT_TRUE(decodeBlockAns(encoded) == toBytes(values)) << weight;
  }
}

TEST(BlockAns, NoiseAmongResidualsIsStoredByChunks) {
  std::mt19937_64 rng(6);
  std::vector<std::int32_t> values = residuals<std::int32_t>(400000, 2, rng);
  for (std::size_t i = 100000; i < 200000; ++i) {
    values[i] = static_cast<std::int32_t>(rng());
  }
  BlockAnsStage<std::int32_t> stage;
  const Encoded encoded = encodeValues(stage, values);
  EXPECT_TRUE(decodeBlockAns(encoded) == toBytes(values));
  EXPECT_LT(encoded.streams[0].size(), 400000u + 300000u / 4);
}

TEST(BlockAns, EveryVectorTargetGivesTheSameStreamOfManyChunks) {
  forEachType([]<class T>(T /*type*/) {
    std::mt19937_64 rng(7);
    std::vector<T> values;
    for (const std::uint32_t max_bits : {0u, 1u, 2u, 4u, 7u, 12u, 24u, 31u}) {
      const std::vector<T> part = residuals<T>(30011, max_bits, rng);
      values.insert(values.end(), part.begin(), part.end());
    }
    for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
      for (const auto map : {BlockAnsMap::Zigzag, BlockAnsMap::None}) {
        Encoded expected;
        forEachVectorTarget([&] {
          BlockAnsStage<T> stage;
          stage.setTables(tables);
          stage.setMap(map);
          const Encoded encoded = encodeValues(stage, values);
          expected = expected.streams.empty() ? encoded : expected;
          EXPECT_TRUE(encoded == expected);
          EXPECT_TRUE(decodeBlockAns(expected) == toBytes(values));
        });
      }
    }
  });
}

/// FNV-1a, 64 bits.
std::uint64_t hashOf(const Bytes& bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const std::uint8_t b : bytes) {
    hash = (hash ^ b) * 0x100000001B3u;
  }
  return hash;
}

// The golden files have few values; here are chunks of all classes with counted tables.
TEST(BlockAns, StreamsOfManyChunksAreWhatTheyHaveAlwaysBeen) {
  struct Golden {
    BlockAnsTables tables;
    std::uint32_t chunk;
    std::uint64_t hash16;
    std::uint64_t hash32;
  };
  for (const Golden& golden :
       {Golden{BlockAnsTables::Counted, 0, 0x88d7bd85e3f21313u, 0x7c4390eddc303b21u},
        Golden{BlockAnsTables::Counted, 65536, 0x1641e7f0c5e6bad9u, 0xcbbb4770f45343b9u},
        Golden{BlockAnsTables::Fixed, 0, 0x3f37602285bef898u, 0x003887610742aa92u}}) {
    std::mt19937_64 rng(10);
    std::vector<std::int32_t> values;
    for (std::uint32_t max_bits = 0; max_bits < 32; ++max_bits) {
      const auto part = residuals<std::int32_t>(5003, max_bits, rng);
      values.insert(values.end(), part.begin(), part.end());
    }
    BlockAnsStage<std::int32_t> of_32;
    of_32.setTables(golden.tables);
    of_32.setChunk(golden.chunk);
    EXPECT_EQ(hashOf(encodeValues(of_32, values).streams[0]), golden.hash32);
    BlockAnsStage<std::int16_t> of_16;
    of_16.setTables(golden.tables);
    of_16.setChunk(golden.chunk);
    const std::vector<std::int16_t> narrow(values.begin(), values.end());
    EXPECT_EQ(hashOf(encodeValues(of_16, narrow).streams[0]), golden.hash16);
  }
}

TEST(BlockAns, ConfigIsTypeMapTablesChunkAndCount) {
  BlockAnsStage<std::uint32_t> stage;
  stage.setMap(BlockAnsMap::None);
  stage.setTables(BlockAnsTables::Fixed);
  stage.setChunk(65536);
  const Encoded encoded = encodeValues(stage, std::vector<std::uint32_t>(0x123, 7));
  EXPECT_EQ(encoded.config, (Bytes{2, 1, 1, 0, 0, 0, 1, 0, 0x23, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(BlockAns, SavedStateComesBackAfterAForeignConfig) {
  BlockAnsStage<std::int16_t> stage;
  encodeValues(stage, std::vector<std::int16_t>(900, 3));
  stage.saveState();
  const Bytes foreign = {5, 1, 1, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0};
  stage.deserializeHeader(foreign.data(), foreign.size());
  EXPECT_EQ(stage.getMap(), BlockAnsMap::None);
  stage.restoreState();
  EXPECT_EQ(stage.getMap(), BlockAnsMap::Zigzag);
  EXPECT_EQ(stage.getTables(), BlockAnsTables::Counted);
  EXPECT_EQ(stage.getChunk(), 0u);
  Bytes config(16);
  EXPECT_EQ(stage.serializeHeader(0, config.data(), config.size()), 16u);
  EXPECT_EQ(loadLe<std::uint64_t>(config.data() + 8), 900u);
}

TEST(BlockAns, SettingsThatDoNotExistAreRefused) {
  BlockAnsStage<std::int32_t> stage;
  EXPECT_THROW(stage.setChunk(1), InvalidArgument);
  EXPECT_THROW(stage.setChunk(524288), InvalidArgument);
  EXPECT_THROW(stage.setMap(static_cast<BlockAnsMap>(2)), InvalidArgument);
  EXPECT_THROW(stage.setTables(static_cast<BlockAnsTables>(2)), InvalidArgument);
  EXPECT_EQ(stage.getChunk(), 0u);
}

TEST(BlockAns, RefusesAnInputThatIsNoWholeNumberOfValues) {
  BlockAnsStage<std::int32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

TEST(BlockAns, EmptyInputGivesAnEmptyStreamAndBack) {
  BlockAnsStage<std::int16_t> stage;
  const Encoded encoded = encode(stage, {});
  EXPECT_TRUE(encoded.streams[0].empty());
  EXPECT_TRUE(decodeBlockAns(encoded).empty());
}

}  // namespace
}  // namespace fz::test
