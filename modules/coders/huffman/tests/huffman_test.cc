#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "coders/huffman/huffman_stage.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fzm_format.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

/// Values of any width from f(index, rng).
template <class F>
Bytes symbols(DataType type, std::size_t n, std::mt19937_64& rng, F f) {
  Bytes bytes(n * getDataTypeSize(type));
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t v = f(i, rng);
    for (std::size_t b = 0; b < getDataTypeSize(type); ++b, v >>= 8) {
      bytes[i * getDataTypeSize(type) + b] = static_cast<std::uint8_t>(v);
    }
  }
  return bytes;
}

template <class F>
InputCase family(std::string label, F f) {
  return {std::move(label), [f](DataType type, std::size_t n, std::mt19937_64& rng) {
            return symbols(type, n, rng, f);
          }};
}

/// Most values 0, each next one half as frequent; at most 15.
InputCase skewed() {
  return family("skewed", [](std::size_t, std::mt19937_64& rng) {
    return static_cast<std::uint64_t>(__builtin_ctzll(rng() | 1u << 15));
  });
}
InputCase alternating() {
  return family("two symbols", [](std::size_t i, std::mt19937_64&) { return 3 + i % 2 * 7; });
}
InputCase uniform() {
  return family("uniform", [](std::size_t, std::mt19937_64& rng) { return rng() % 16; });
}

/// A book that every byte of a hostile stream can be tried on; long defaults take one family.
InputCase forShortBooks(InputCase input) {
  input.applies = [](const StageConfig& config, const std::vector<DataType>&) {
    return config.label != "default";
  };
  return input;
}

FZ_STAGE_CASE(Huffman,
              {.stage = "Huffman",
               .tile_values = 768,
               .configs = {{"default"},
                           {"coarse", {{"bklen", std::int64_t{16}}}},
                           {"fine",
                            {{"bklen", std::int64_t{17}}, {"encode_mode", std::string("Fine")}}}},
               .inputs = {skewed(), forShortBooks(uniform()), forShortBooks(constant()),
                          forShortBooks(zeros()), forShortBooks(alternating())},
               .extra_sizes = {1023, 1024, 1025, 4 * 768, 5 * 1024 + 3}});

std::uint64_t streamBits(const Bytes& blob) {
  return loadLe<std::uint64_t>(blob.data() + 24);
}

template <class T>
void expectRoundTrip(HuffmanStage<T>& stage, const std::vector<T>& values) {
  const Encoded encoded = encode(stage, toBytes(values));
  EXPECT_TRUE(decode(6, encoded) == toBytes(values));
}

/// counts[s] times the value s, shuffled.
template <class T>
std::vector<T> valuesWithCounts(const std::vector<std::uint32_t>& counts) {
  std::vector<T> values;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    values.insert(values.end(), counts[s], static_cast<T>(s));
  }
  std::mt19937_64 rng(counts.size());
  std::shuffle(values.begin(), values.end(), rng);
  return values;
}

/// Frequencies 1, 1, 2, 3, 5, ...: the deepest tree that so many values can have.
std::vector<std::uint32_t> fibonacciCounts(std::size_t n_symbols) {
  std::vector<std::uint32_t> counts = {1, 1};
  while (counts.size() < n_symbols) {
    counts.push_back(counts[counts.size() - 1] + counts[counts.size() - 2]);
  }
  return counts;
}

/// Weight of an optimal code by another algorithm: two sorted queues.
std::uint64_t optimalBits(std::vector<std::uint64_t> counts) {
  std::erase(counts, 0u);
  std::sort(counts.begin(), counts.end());
  std::vector<std::uint64_t> sums;
  std::size_t leaf = 0;
  std::size_t inner = 0;
  std::uint64_t total = 0;
  const auto take = [&] {
    const bool from_leaves =
        inner == sums.size() || (leaf < counts.size() && counts[leaf] <= sums[inner]);
    return from_leaves ? counts[leaf++] : sums[inner++];
  };
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const std::uint64_t first = take();
    sums.push_back(first + take());
    total += sums.back();
  }
  return total;
}

TEST(Huffman, EveryTypeAndModeSurvivesSkewedValuesOfManySizes) {
  const auto check = []<class T>(T) {
    HuffmanStage<T> stage;
    std::mt19937_64 rng(4);
    for (const auto mode : {HuffmanEncodeMode::Coarse, HuffmanEncodeMode::Fine}) {
      stage.setEncodeMode(mode);
      for (const std::size_t n : {1, 767, 768, 769, 1023, 1024, 1025, 3072, 50000, 3}) {
        std::vector<T> values(n);
        for (T& v : values) {
          v = static_cast<T>(std::min(std::abs(std::normal_distribution<>(100, 9)(rng)), 255.0));
        }
        expectRoundTrip(stage, values);
      }
    }
  };
  check(std::uint8_t{});
  check(std::uint16_t{});
  check(std::uint32_t{});
}

TEST(Huffman, EmptyInputGivesAnEmptyStreamAndBack) {
  HuffmanStage<std::uint16_t> stage;
  const Encoded encoded = encode(stage, {});
  EXPECT_TRUE(encoded.streams[0].empty());
  EXPECT_TRUE(decode(6, encoded).empty());
}

TEST(Huffman, SkewedDataShrinks) {
  HuffmanStage<std::uint16_t> stage;
  std::mt19937_64 rng(1);
  const Bytes input = skewed().make(DataType::UINT16, 100000, rng);
  EXPECT_LT(encode(stage, input).streams[0].size(), input.size() / 6);
}

TEST(Huffman, CodeLengthsAreOptimal) {
  std::mt19937_64 rng(8);
  for (const double spread : {0.3, 2.0, 40.0, 150.0}) {
    std::vector<std::uint64_t> counts(1024);
    std::vector<std::uint16_t> values(60000);
    for (auto& v : values) {
      const double x = 512 + std::normal_distribution<>(0, spread)(rng);
      v = static_cast<std::uint16_t>(std::clamp(x, 0.0, 1023.0));
      ++counts[v];
    }
    HuffmanStage<std::uint16_t> stage;
    EXPECT_EQ(streamBits(encode(stage, toBytes(values)).streams[0]), optimalBits(counts));
  }
}

TEST(Huffman, OneSymbolTakesOneBitEach) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{768}, std::size_t{5000}}) {
    HuffmanStage<std::uint16_t> stage;
    const std::vector<std::uint16_t> values(n, 77);
    const Encoded encoded = encode(stage, toBytes(values));
    EXPECT_EQ(streamBits(encoded.streams[0]), n);
    EXPECT_TRUE(decode(6, encoded) == toBytes(values));
  }
}

TEST(Huffman, TwoSymbolsTakeOneBitEach) {
  HuffmanStage<std::uint8_t> stage;
  std::vector<std::uint8_t> values(3000, 255);
  std::fill(values.begin() + 1000, values.begin() + 1010, std::uint8_t{0});
  const Encoded encoded = encode(stage, values);
  EXPECT_EQ(streamBits(encoded.streams[0]), 3000u);
  EXPECT_TRUE(decode(6, encoded) == values);
}

TEST(Huffman, BookOf65536SymbolsHoldsEvery16BitValue) {
  const auto check = []<class T>(T) {
    HuffmanStage<T> stage;
    stage.setBklen(65536);
    std::vector<T> values(65536);
    std::iota(values.begin(), values.end(), T{0});
    const Encoded encoded = encode(stage, toBytes(values));
    EXPECT_EQ(streamBits(encoded.streams[0]), 16u * 65536u);
    EXPECT_EQ(loadLe<std::uint16_t>(encoded.config.data() + 1), 0u);
    EXPECT_EQ(loadLe<std::uint16_t>(encoded.streams[0].data()), 0u);
    EXPECT_TRUE(decode(6, encoded) == toBytes(values));
  };
  check(std::uint16_t{});
  check(std::uint32_t{});
}

TEST(Huffman, CodesWouldPass27BitsAndAreLimited) {
  for (const std::size_t n_symbols : {28, 29, 30, 31}) {
    const std::vector<std::uint32_t> counts = fibonacciCounts(n_symbols);
    const std::vector<std::uint16_t> values = valuesWithCounts<std::uint16_t>(counts);
    HuffmanStage<std::uint16_t> stage;
    stage.setBklen(static_cast<std::uint32_t>(n_symbols));
    const Encoded encoded = encode(stage, toBytes(values));
    EXPECT_TRUE(decode(6, encoded) == toBytes(values)) << n_symbols;
    const std::uint64_t best = optimalBits({counts.begin(), counts.end()});
    const std::uint64_t got = streamBits(encoded.streams[0]);
    EXPECT_GE(got, best);
    // A tree of n leaves of these counts is n - 1 deep.
    EXPECT_LE(got, n_symbols <= 28 ? best : best + 100);
    const std::uint8_t* entry = encoded.streams[0].data() + 128 + 128;
    EXPECT_EQ(loadLe<std::uint32_t>(entry + 4 * 28), n_symbols) << "codes of 28 bits or more";
  }
}

TEST(Huffman, SymbolOutsideTheBookIsNamed) {
  HuffmanStage<std::uint16_t> stage;
  std::vector<std::uint16_t> values(2000, 1);
  values[1234] = 1024;
  values[1500] = 2000;
  try {
    encode(stage, toBytes(values));
    FAIL() << "must throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
    const std::string text = e.what();
    EXPECT_NE(text.find("symbol 1024 at index 1234"), std::string::npos) << text;
    EXPECT_NE(text.find("(bklen) 1024"), std::string::npos) << text;
  }
  values[1234] = values[1500] = 1023;
  expectRoundTrip(stage, values);

  HuffmanStage<std::uint32_t> wide;
  wide.setBklen(65536);
  EXPECT_THROW(encode(wide, toBytes(std::vector<std::uint32_t>{1, 70000})), Error);
}

TEST(Huffman, BookLengthMustBe1To65536) {
  HuffmanStage<std::uint16_t> stage;
  EXPECT_THROW(stage.setBklen(0), InvalidArgument);
  EXPECT_THROW(stage.setBklen(65537), InvalidArgument);
  EXPECT_EQ(stage.getBklen(), 1024u);
  stage.setBklen(65536);
  EXPECT_EQ(stage.getBklen(), 65536u);
  stage.setBklen(1);
  expectRoundTrip(stage, std::vector<std::uint16_t>(10, 0));
  EXPECT_EQ(HuffmanStage<std::uint8_t>().getBklen(), 256u);
  EXPECT_EQ(HuffmanStage<std::uint32_t>().getBklen(), 1024u);
  EXPECT_EQ(stage.getEncodeMode(), HuffmanEncodeMode::Coarse);
}

TEST(Huffman, RefusesAnInputThatIsNoWholeNumberOfValues) {
  HuffmanStage<std::uint32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

TEST(Huffman, ConfigIsTypeBookLengthAndCount) {
  HuffmanStage<std::uint16_t> stage;
  const Encoded encoded = encode(stage, toBytes(std::vector<std::uint16_t>(0x123, 5)));
  EXPECT_EQ(encoded.config, (Bytes{1, 0, 4, 0x23, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(Huffman, SavedStateComesBackAfterAForeignConfig) {
  HuffmanStage<std::uint16_t> stage;
  const std::vector<std::uint16_t> values(900, 3);
  encode(stage, toBytes(values));
  stage.saveState();
  const Bytes foreign = {1, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0};
  stage.deserializeHeader(foreign.data(), foreign.size());
  EXPECT_EQ(stage.getBklen(), 8u);
  stage.restoreState();
  EXPECT_EQ(stage.getBklen(), 1024u);
  Bytes config(FZM_STAGE_CONFIG_SIZE);
  config.resize(stage.serializeHeader(0, config.data(), config.size()));
  EXPECT_EQ(loadLe<std::uint64_t>(config.data() + 3), 900u);
}

TEST(Huffman, OnlyDecodingIsGraphCompatibleAndPortsCarryNoType) {
  HuffmanStage<std::uint16_t> stage;
  for (const bool inverse : {false, true}) {
    stage.setInverse(inverse);
    EXPECT_EQ(stage.isGraphCompatible(), inverse);
    EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::UNKNOWN));
    EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UNKNOWN));
  }
}

TEST(Huffman, DecodingWithoutAConfigIsAnError) {
  HuffmanStage<std::uint16_t> encoder;
  Encoded encoded = encode(encoder, toBytes(std::vector<std::uint16_t>(100, 1)));
  encoded.config.clear();
  EXPECT_THROW(decode(6, encoded), std::runtime_error);
}

TEST(Huffman, ModesDifferInPartitionLengthAlone) {
  HuffmanStage<std::uint16_t> stage;
  std::mt19937_64 rng(3);
  const Bytes input = skewed().make(DataType::UINT16, 700, rng);
  Bytes coarse = encode(stage, input).streams[0];
  stage.setEncodeMode(HuffmanEncodeMode::Fine);
  const Bytes fine = encode(stage, input).streams[0];
  EXPECT_EQ(loadLe<std::uint32_t>(coarse.data() + 4), 768u);
  EXPECT_EQ(loadLe<std::uint32_t>(fine.data() + 4), 1024u);
  storeLe<std::uint32_t>(coarse.data() + 4, 1024);
  EXPECT_TRUE(coarse == fine);
  stage.setEncodeMode(HuffmanEncodeMode::Coarse);
  storeLe<std::uint32_t>(coarse.data() + 4, 768);
  EXPECT_TRUE(encode(stage, input).streams[0] == coarse) << "after switching back";
}

}  // namespace
}  // namespace fz::test
