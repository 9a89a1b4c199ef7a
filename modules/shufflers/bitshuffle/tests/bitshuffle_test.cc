#include <gtest/gtest.h>

#include "fz/error.h"
#include "shared/team.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "shufflers/bitshuffle/codec.h"
#include "shufflers/bitshuffle/cpu/blocks.h"
#include "stage/stage_factory.h"
#include "support/each_target.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

constexpr std::uint16_t kId = 17;

StageConfig blocks(std::int64_t block_bytes, std::int64_t element_bytes) {
  return {std::to_string(block_bytes) + " by " + std::to_string(element_bytes),
          {{"block_size", block_bytes}, {"element_width", element_bytes}}};
}

FZ_STAGE_CASE(Bitshuffle,
              {.stage = "Bitshuffle",
               .tile_values = 16384,
               .configs = {{"default"},
                           blocks(1024, 1),
                           blocks(2048, 2),
                           blocks(4096, 4),
                           blocks(8192, 8),
                           blocks(3072, 1),
                           blocks(8192, 2),
                           blocks(32768, 4),
                           blocks(24576, 8)},
               .inputs = {fullNoise(), ramp(), extremes(), sparse()},
               .extra_sizes = {1024, 4096, 8191, 8192, 8193}});

std::uint32_t crc32(const Bytes& bytes) {
  std::uint32_t crc = ~0u;
  for (const std::uint8_t b : bytes) {
    crc ^= b;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
  }
  return ~crc;
}

Bytes shuffle(const Bytes& input, std::size_t block_bytes, std::size_t element_bytes) {
  BitshuffleStage stage;
  stage.setBlockSize(block_bytes);
  stage.setElementWidth(element_bytes);
  return encode(stage, input).streams[0];
}

Bytes noise(std::size_t n_bytes, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Bytes bytes(n_bytes);
  for (std::uint8_t& b : bytes) {
    b = static_cast<std::uint8_t>(rng());
  }
  return bytes;
}

/// 1024 elements of which only element `index` is not zero, shuffled as one block: the offsets
/// and values of the bytes that are not zero.
template <class E>
std::vector<std::pair<std::size_t, int>> shuffledBitsOf(std::size_t index, E value) {
  std::vector<E> elements(1024);
  elements[index] = value;
  const Bytes shuffled = shuffle(toBytes(elements), 1024 * sizeof(E), sizeof(E));
  std::vector<std::pair<std::size_t, int>> found;
  for (std::size_t i = 0; i < shuffled.size(); ++i) {
    if (shuffled[i] != 0) {
      found.emplace_back(i, shuffled[i]);
    }
  }
  return found;
}

using Found = std::vector<std::pair<std::size_t, int>>;

TEST(Bitshuffle, PlacesSingleBitsAsTheFormatSays) {
  EXPECT_EQ(shuffledBitsOf<std::uint32_t>(0, 0x80000001u), (Found{{3, 0x80}, {3971, 0x80}}));
  EXPECT_EQ(shuffledBitsOf<std::uint32_t>(1, 0x80000001u), (Found{{3, 0x40}, {3971, 0x40}}));
  EXPECT_EQ(shuffledBitsOf<std::uint16_t>(0, 0x8001), (Found{{0, 1}, {1920, 1}}));
  EXPECT_EQ(shuffledBitsOf<std::uint16_t>(1, 0x8001), (Found{{0, 2}, {1920, 2}}));
  EXPECT_EQ(shuffledBitsOf<std::uint64_t>(0, 0x8000000000000001u),
            (Found{{7, 0x80}, {8071, 0x80}}));
  EXPECT_EQ(shuffledBitsOf<std::uint8_t>(0, 0x81), (Found{{0, 1}, {896, 1}}));
}

template <class E>
std::uint32_t crcOfShuffledRamp() {
  std::vector<E> elements(1024);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<E>(i);
  }
  return crc32(shuffle(toBytes(elements), 1024 * sizeof(E), sizeof(E)));
}

TEST(Bitshuffle, RampsHaveTheChecksumsOfTheFormat) {
  EXPECT_EQ(crcOfShuffledRamp<std::uint8_t>(), 0x532a162au);
  EXPECT_EQ(crcOfShuffledRamp<std::uint16_t>(), 0xd7c0609bu);
  EXPECT_EQ(crcOfShuffledRamp<std::uint32_t>(), 0xb78d15fdu);
  EXPECT_EQ(crcOfShuffledRamp<std::uint64_t>(), 0xf2c2ff78u);
}

TEST(Bitshuffle, HighestBitsComeFirst) {
  const std::vector<std::uint16_t> elements(1024, 0x8000);
  const Bytes shuffled = shuffle(toBytes(elements), 2048, 2);
  EXPECT_EQ(shuffled, [] {
    Bytes expected(2048, 0);
    std::fill_n(expected.begin(), 128, 0xFF);
    return expected;
  }());
}

/// The stage's bytes against the codec text, run by a team.
template <class E, class Team>
void expectCodecBytes(Team team, std::size_t n_elements) {
  using Word = typename bitshuffle::PlaneLayout<E>::Word;
  const Bytes input = noise(n_elements * sizeof(E), n_elements + sizeof(E));
  const auto elements = fromBytes<E>(input);
  std::vector<Word> words(input.size() / sizeof(Word));
  bitshuffle::encodeBlock<E>(team, elements.data(), static_cast<std::uint32_t>(n_elements),
                             words.data());
  EXPECT_TRUE(shuffle(input, input.size(), sizeof(E)) == toBytes(words));
  std::vector<E> back(n_elements);
  bitshuffle::decodeBlock<E>(team, words.data(), static_cast<std::uint32_t>(n_elements),
                             back.data());
  EXPECT_TRUE(back == elements);
}

using Elements = TypeList<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;

TEST(Bitshuffle, StageAndTeamsGiveTheSameBytes) {
  std::mt19937_64 rng(4);
  const ShuffledTeam shuffled{&rng};
  for (const std::size_t n : {1024u, 3072u, 4096u}) {
    forEachType(Elements{}, [&]<class E>() {
      expectCodecBytes<E>(SerialTeam{}, n);
      expectCodecBytes<E>(shuffled, n);
    });
  }
}

TEST(Bitshuffle, EveryVectorTargetGivesTheBytesOfTheCodec) {
  forEachVectorTarget([] {
    forEachType(Elements{}, []<class E>() {
      expectCodecBytes<E>(SerialTeam{}, 2048);
      const Bytes input = noise(50000, sizeof(E));
      BitshuffleStage stage;
      stage.setElementWidth(sizeof(E));
      EXPECT_TRUE(decode(kId, encode(stage, input)) == input);
    });
  });
}

TEST(Bitshuffle, WritingPastTheCachesGivesTheSameBytes) {
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  constexpr std::size_t kBytes = 5 * 16384;
  const Bytes input = noise(kBytes, 12);
  forEachVectorTarget([&] {
    for (const std::size_t width : {1u, 2u, 4u, 8u}) {
      std::vector<Line> shuffled(kBytes / 64);
      std::vector<Line> back(kBytes / 64);
      const bitshuffle::BlockLayout layout{16384, width};
      const std::size_t n_units = kBytes / layout.unitBytes();
      bitshuffle::encodeUnits({layout, input.data(), shuffled[0].bytes, 0, n_units, true});
      const Bytes expected = shuffle(input, 16384, width);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), shuffled[0].bytes));
      bitshuffle::decodeUnits({layout, expected.data(), back[0].bytes, 0, n_units, true});
      EXPECT_TRUE(std::equal(input.begin(), input.end(), back[0].bytes));
    }
  });
}

TEST(Bitshuffle, KeepsTheSizeAndChangesTheData) {
  for (const std::size_t width : {1u, 2u, 4u, 8u}) {
    const Bytes input = noise(3 * 16384, width);
    const Bytes shuffled = shuffle(input, 16384, width);
    EXPECT_EQ(shuffled.size(), input.size());
    EXPECT_FALSE(shuffled == input);
  }
}

TEST(Bitshuffle, AllZerosAndAllOnesStayAsTheyAre) {
  for (const std::size_t width : {1u, 2u, 4u, 8u}) {
    for (const std::uint8_t value : {std::uint8_t{0x00}, std::uint8_t{0xFF}}) {
      const Bytes input(2 * 16384, value);
      EXPECT_TRUE(shuffle(input, 16384, width) == input);
    }
  }
}

TEST(Bitshuffle, BlocksAreIndependent) {
  const Bytes two = noise(2 * 4096, 9);
  const Bytes second(two.begin() + 4096, two.end());
  const Bytes shuffled = shuffle(two, 4096, 2);
  EXPECT_EQ(Bytes(shuffled.begin() + 4096, shuffled.end()), shuffle(second, 4096, 2));
}

TEST(Bitshuffle, TailShorterThanABlockIsCopied) {
  const Bytes input = noise(16384 + 16383, 2);
  const Bytes shuffled = shuffle(input, 16384, 4);
  EXPECT_TRUE(std::equal(input.begin() + 16384, input.end(), shuffled.begin() + 16384));
  EXPECT_FALSE(std::equal(input.begin(), input.begin() + 16384, shuffled.begin()));
}

TEST(Bitshuffle, WideTransformsAreTheirOwnInverseOnAGroup) {
  // 32 elements of 32 bits: gathering their plane words gives a matrix whose transpose is itself.
  const Bytes input = noise(4096, 6);
  const auto elements = fromBytes<std::uint32_t>(input);
  const auto words = fromBytes<std::uint32_t>(shuffle(input, 4096, 4));
  std::vector<std::uint32_t> gathered(1024);
  for (std::size_t plane = 0; plane < 32; ++plane) {
    for (std::size_t group = 0; group < 32; ++group) {
      gathered[group * 32 + plane] = words[plane * 32 + group];
    }
  }
  const auto again = fromBytes<std::uint32_t>(shuffle(toBytes(gathered), 4096, 4));
  for (std::size_t plane = 0; plane < 32; ++plane) {
    for (std::size_t group = 0; group < 32; ++group) {
      ASSERT_EQ(again[plane * 32 + group], elements[group * 32 + plane]);
    }
  }
}

TEST(Bitshuffle, ConfigHasBlockSizeAndWidth) {
  BitshuffleStage stage;
  stage.setBlockSize(8192);
  stage.setElementWidth(2);
  EXPECT_EQ(encode(stage, Bytes(10)).config, (Bytes{0x00, 0x20, 0, 0, 2}));
}

TEST(Bitshuffle, AbsentConfigMeansTheDefaults) {
  const Bytes input = noise(16384, 5);
  EXPECT_TRUE(decode(kId, {.config = {}, .streams = {shuffle(input, 16384, 4)}}) == input);
}

TEST(Bitshuffle, BadConfigsAreCorrupt) {
  const std::vector<Bytes> bad = {{0, 0x40, 0, 0},    {0, 0x40, 0, 0, 3}, {0, 0, 0, 0, 4},
                                  {0, 0x04, 0, 0, 4}, {1, 0x40, 0, 0, 4}, {0, 0x40, 0, 0, 0},
                                  {0, 0x40, 0, 0, 16}};
  for (const Bytes& config : bad) {
    try {
      makeStage(kId, config.data(), config.size());
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(Bitshuffle, SettersRefuseWhatNoWidthAllows) {
  BitshuffleStage stage;
  for (const std::size_t width : {0u, 3u, 5u, 16u}) {
    EXPECT_THROW(stage.setElementWidth(width), std::invalid_argument) << width;
  }
  for (const std::size_t block : {std::size_t{0}, std::size_t{1000}, std::size_t{1} << 32}) {
    EXPECT_THROW(stage.setBlockSize(block), std::invalid_argument) << block;
  }
  EXPECT_EQ(stage.getBlockSize(), 16384u);
  EXPECT_EQ(stage.getElementWidth(), 4u);
}

TEST(Bitshuffle, BlockThatDoesNotFitTheWidthIsRefusedWhenTheStageRuns) {
  BitshuffleStage stage;
  stage.setBlockSize(1024);
  try {
    encode(stage, Bytes(1024));
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "Bitshuffle: block_size must be a multiple of 4096 (1024 elements of 4 bytes), "
                 "not 1024");
  }
}

TEST(Bitshuffle, TakesAnyTypeNeedsNoPaddingAndIsGraphCompatible) {
  BitshuffleStage stage;
  EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::UNKNOWN));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UINT8));
  EXPECT_EQ(stage.getRequiredInputAlignment(), 1u);
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setInverse(true);
  EXPECT_TRUE(stage.isGraphCompatible());
}

}  // namespace
}  // namespace fz::test
