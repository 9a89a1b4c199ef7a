#include <gtest/gtest.h>

#include "coders/rze/codec.h"
#include "coders/rze/rze_stage.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "shared/team.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "stage/stage_factory.h"
#include "support/each_target.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

constexpr std::uint16_t kId = 18;

StageConfig chunks(std::int64_t chunk_bytes, std::int64_t levels) {
  return {std::to_string(chunk_bytes) + " at " + std::to_string(levels),
          {{"chunk_size", chunk_bytes}, {"levels", levels}}};
}

/// Bytes that are zero with a probability that drifts from 0 to 1 along the input.
InputCase mixedDensity() {
  return {"mixed density", [](DataType /*type*/, std::size_t n, std::mt19937_64& rng) {
            Bytes bytes(n);
            for (std::size_t i = 0; i < n; ++i) {
              const bool zero = rng() % n < i;
              bytes[i] = zero ? std::uint8_t{0} : static_cast<std::uint8_t>(rng());
            }
            return bytes;
          }};
}

/// Runs of zeros and of other bytes, up to 300 long.
InputCase longRuns() {
  return {"long runs", [](DataType /*type*/, std::size_t n, std::mt19937_64& rng) {
            Bytes bytes(n);
            for (std::size_t i = 0; i < n;) {
              const std::uint8_t value = rng() % 2 == 0 ? 0 : static_cast<std::uint8_t>(rng());
              for (std::size_t end = std::min(n, i + 1 + rng() % 300); i < end; ++i) {
                bytes[i] = value;
              }
            }
            return bytes;
          }};
}

FZ_STAGE_CASE(Rze,
              {.stage = "RZE",
               .tile_values = 16384,
               .configs = {{"default"},
                           chunks(16384, 3),
                           chunks(16384, 2),
                           chunks(16384, 1),
                           chunks(8192, 4),
                           chunks(4096, 4),
                           chunks(4096, 1)},
               .inputs = {sparse(), zeros(), constant(), fullNoise(), mixedDensity(), longRuns()},
               .extra_sizes = {7, 8, 63, 64, 65, 3000, 4095, 4096, 4097, 8192, 15000, 2 * 16384}});

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

Bytes pack(const Bytes& input, std::size_t chunk_bytes = 16384, int levels = 4) {
  RZEStage stage;
  stage.setChunkSize(chunk_bytes);
  stage.setLevels(levels);
  return encode(stage, input).streams[0];
}

Bytes noise(std::size_t n_bytes, unsigned zero_percent, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Bytes bytes(n_bytes);
  for (std::uint8_t& b : bytes) {
    b = rng() % 100 < zero_percent ? std::uint8_t{0} : static_cast<std::uint8_t>(1 + rng() % 255);
  }
  return bytes;
}

TEST(Rze, OneByteAmongEightIsTheWorkedExample) {
  EXPECT_EQ(pack({0, 0, 5, 0, 0, 0, 0, 0}),
            (Bytes{8, 0, 0, 0, 1, 0, 0, 0, 0x0a, 0, 0, 0, 5, 4, 1, 1, 1, 0, 0, 0, 8, 0, 0, 0}));
}

TEST(Rze, TwoBytesAmongSixteenAreTheWorkedExample) {
  Bytes input(16);
  input[2] = 5;
  input[8] = 7;
  EXPECT_EQ(pack(input), (Bytes{0x10, 0, 0, 0, 1, 0, 0, 0, 0x0c, 0, 0,    0,
                                5,    7, 4, 1, 3, 1, 1, 0, 0,    0, 0x10, 0}));
}

TEST(Rze, ZeroChunkTakesTwoBytes) {
  EXPECT_EQ(pack(Bytes(16384)), (Bytes{0, 0x40, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0x40, 0, 0}));
  EXPECT_LE(pack(Bytes(4 * 16384)).size(), 4u * 17u);
}

TEST(Rze, ChunkWithoutZerosIsStoredRaw) {
  const Bytes input(16384, 0xFF);
  const Bytes stream = pack(input);
  EXPECT_EQ(stream.size(), 16396u);
  EXPECT_EQ(Bytes(stream.begin() + 8, stream.begin() + 12), (Bytes{0, 0x40, 0, 0x80}));
  EXPECT_TRUE(std::equal(input.begin(), input.end(), stream.begin() + 12));
}

TEST(Rze, OneByteInAWholeChunkIsTheWorkedExample) {
  Bytes input(16384);
  input[0] = 1;
  const Bytes stream = pack(input);
  EXPECT_EQ(Bytes(stream.begin() + 8, stream.end()),
            (Bytes{0x0d, 0, 0, 0, 1, 1, 0, 3, 0, 3, 0, 3, 0, 0, 0, 0, 0x40, 0, 0, 0}));
}

TEST(Rze, BehindABitshuffleIsTheWorkedExample) {
  std::vector<std::uint32_t> values(4096);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    values[i] = i >> 4;
  }
  BitshuffleStage shuffle;
  const Bytes stream = pack(encode(shuffle, toBytes(values)).streams[0]);
  EXPECT_EQ(stream.size(), 2216u);
  EXPECT_EQ(crc32(stream), 0x6cf2827fu);
}

TEST(Rze, EmptyInputGivesAnEmptyStream) {
  RZEStage stage;
  const Encoded encoded = encode(stage, {});
  EXPECT_TRUE(encoded.streams[0].empty());
  EXPECT_TRUE(decode(kId, encoded).empty());
}

TEST(Rze, FewerLevelsEndInTheirOwnBitmap) {
  Bytes input(32);
  input[2] = 5;
  input[8] = 7;
  const Bytes head = {0x20, 0, 0, 0, 1, 0, 0, 0};
  const auto expected = [&](const Bytes& chunk) {
    Bytes stream = head;
    stream.push_back(static_cast<std::uint8_t>(chunk.size()));
    stream.insert(stream.end(), 3, 0);
    stream.insert(stream.end(), chunk.begin(), chunk.end());
    stream.resize((stream.size() + 3) / 4 * 4);
    return stream;
  };
  EXPECT_EQ(pack(input, 16384, 1), expected({5, 7, 4, 1, 0, 0, 0x20, 0}));
  EXPECT_EQ(pack(input, 16384, 2), expected({5, 7, 4, 1, 0, 7, 0x20, 0}));
  EXPECT_EQ(pack(input, 16384, 3), expected({5, 7, 4, 1, 0, 7, 1, 0x20, 0}));
  EXPECT_EQ(pack(input, 4096, 4), expected({5, 7, 4, 1, 0, 7, 1, 1, 0, 0, 0, 0x20, 0}));
}

TEST(Rze, OtherSettingsThanTheClassicNeverGrowAChunk) {
  for (const auto& [chunk_bytes, levels] :
       {std::pair{16384, 1}, {16384, 2}, {16384, 3}, {8192, 4}, {4096, 1}}) {
    for (const std::size_t n : {1u, 2u, 3u, 100u, 4096u, 15000u}) {
      const std::size_t n_chunks =
          (n + static_cast<std::size_t>(chunk_bytes) - 1) / static_cast<std::size_t>(chunk_bytes);
      const Bytes stream = pack(noise(n, 0, n), static_cast<std::size_t>(chunk_bytes), levels);
      EXPECT_EQ(stream.size(), (8 + 4 * n_chunks + n + 3) / 4 * 4);
    }
  }
}

TEST(Rze, ClassicLimitsDecideWhatIsRaw) {
  rze::ChunkShape whole = rze::shapeOf(16384, 4);
  const auto isRaw = [&](std::uint32_t d, std::uint32_t r2, std::uint32_t r3, std::uint32_t r4) {
    const std::uint32_t kept[] = {d, r2, r3, r4};
    return (rze::entryOf({16384, 4}, whole, kept) & rze::kRawFlag) != 0;
  };
  EXPECT_FALSE(isRaw(14334, 0, 0, 0));
  EXPECT_TRUE(isRaw(14335, 0, 0, 0));
  EXPECT_FALSE(isRaw(14334, 1792, 0, 0));
  EXPECT_TRUE(isRaw(14334, 1793, 0, 0));
  EXPECT_FALSE(isRaw(14334, 1792, 220, 0));
  EXPECT_TRUE(isRaw(14334, 1792, 221, 0));
  EXPECT_FALSE(isRaw(14334, 1792, 220, 31));
  EXPECT_TRUE(isRaw(14334, 1792, 220, 32));
}

TEST(Rze, ShortChunksThatGrowStayInsideTheReserve) {
  std::size_t most = 0;
  for (const std::size_t n : {8u, 64u, 100u, 3000u, 8192u, 12000u, 15000u, 16000u, 16383u}) {
    for (const unsigned zero_percent : {0u, 1u, 3u, 6u, 10u, 13u, 20u}) {
      RZEStage stage;
      const Bytes input = noise(n, zero_percent, n + zero_percent);
      const Encoded encoded = encode(stage, input);  // checks reserve, limit and guards
      most = std::max(most, encoded.streams[0].size() - std::min(n, encoded.streams[0].size()));
      ASSERT_TRUE(decode(kId, encoded) == input);
    }
  }
  EXPECT_GT(most, 200u);
}

TEST(Rze, WorstShortChunkStaysInsideTheReserve) {
  // Every other bitmap byte lacks one mark, so all of bitmap 1 is kept on top of nearly all bytes.
  Bytes input(12000, 1);
  for (std::size_t i = 8; i < input.size(); i += 16) {
    input[i] = 0;
  }
  RZEStage stage;
  const Encoded encoded = encode(stage, input);
  EXPECT_GT(encoded.streams[0].size(), 12000u + 700u);
  EXPECT_TRUE(decode(kId, encoded) == input);
}

template <class Team>
void expectCodecBytes(Team team, const Bytes& input, std::uint32_t chunk_bytes, int levels) {
  const auto n = static_cast<std::uint32_t>(input.size());
  const rze::ChunkShape shape = rze::shapeOf(n, static_cast<std::uint32_t>(levels));
  const Bytes stream = pack(input, chunk_bytes, levels);
  const auto entry = loadLe<std::uint32_t>(stream.data() + 8);
  rze::ChunkWork work;
  rze::planChunk(team, input.data(), shape, &work);
  ASSERT_EQ(rze::entryOf({chunk_bytes, shape.levels}, shape, work.kept), entry);
  if ((entry & rze::kRawFlag) != 0) {
    return;
  }
  if (entry != rze::kZeroChunkBytes) {
    Bytes chunk(entry, 0xCD);
    rze::writeChunk(team, input.data(), shape, &work, chunk.data());
    ASSERT_TRUE(std::equal(chunk.begin(), chunk.end(), stream.begin() + 12));
  }
  Bytes back(n, 0xEE);
  ASSERT_TRUE(rze::decodeChunk(team, stream.data() + 12, entry, shape, &work, back.data()));
  ASSERT_TRUE(back == input);
}

TEST(Rze, StageAndTeamsGiveTheSameBytes) {
  std::mt19937_64 rng(8);
  const ShuffledTeam shuffled{&rng};
  for (const std::uint32_t chunk_bytes : {4096u, 16384u}) {
    for (int levels = 1; levels <= 4; ++levels) {
      for (const std::size_t n :
           {std::size_t{1}, std::size_t{77}, std::size_t{3000}, std::size_t{chunk_bytes}}) {
        for (const unsigned zero_percent : {5u, 50u, 99u, 100u}) {
          const Bytes input = noise(n, zero_percent, n);
          expectCodecBytes(SerialTeam{}, input, chunk_bytes, levels);
          expectCodecBytes(shuffled, input, chunk_bytes, levels);
        }
      }
    }
  }
}

TEST(Rze, EveryVectorTargetGivesTheBytesOfTheCodec) {
  forEachVectorTarget([] {
    for (int levels = 1; levels <= 4; ++levels) {
      for (const std::size_t n : {1u, 7u, 64u, 100u, 3000u, 16384u}) {
        for (const unsigned zero_percent : {5u, 50u, 90u, 99u, 100u}) {
          const Bytes input = noise(n, zero_percent, n + zero_percent);
          expectCodecBytes(SerialTeam{}, input, 16384, levels);
          RZEStage stage;
          stage.setLevels(levels);
          ASSERT_TRUE(decode(kId, encode(stage, input)) == input);
        }
      }
    }
  });
}

TEST(Rze, SparseAndCheckeredDataShrink) {
  EXPECT_LT(pack(noise(65536, 99, 1)).size(), 65536u / 10);
  Bytes checkered(65536);
  for (std::size_t i = 0; i < checkered.size(); i += 2) {
    checkered[i] = 7;
  }
  EXPECT_LT(pack(checkered).size(), 65536u / 2 + 200);
}

TEST(Rze, OneObjectServesManyRuns) {
  RZEStage stage;
  for (unsigned round = 0; round < 5; ++round) {
    const Bytes input = noise(50000 - 9000 * round, 20 * round, round);
    const Encoded encoded = encode(stage, input);
    EXPECT_EQ(stage.getCachedOrigBytes(), input.size());
    EXPECT_TRUE(decode(kId, encoded) == input);
  }
}

TEST(Rze, TheEncodingObjectDecodesWithoutAConfig) {
  RZEStage stage;
  Bytes input = noise(40000, 70, 3);
  Encoded encoded = encode(stage, input);
  stage.saveState();
  stage.setInverse(true);
  const std::size_t n_stream = encoded.streams[0].size();
  ASSERT_EQ(stage.estimateOutputSizes({n_stream})[0], input.size());
  Bytes back(input.size());
  stage.execute(nullptr, nullptr, {encoded.streams[0].data()}, {back.data()}, {n_stream});
  stage.setInverse(false);
  stage.restoreState();
  EXPECT_TRUE(back == input);
  EXPECT_EQ(stage.getCachedOrigBytes(), input.size());
}

TEST(Rze, ConfigHasChunkSizeLevelsAndLength) {
  RZEStage stage;
  stage.setChunkSize(8192);
  stage.setLevels(3);
  const Bytes config = encode(stage, Bytes(70000)).config;
  EXPECT_EQ(config, (Bytes{0, 0x20, 0, 0, 3, 0x70, 0x11, 1, 0}));
  const auto copy = makeStage(kId, config.data(), config.size());
  EXPECT_EQ(static_cast<const RZEStage&>(*copy).getCachedOrigBytes(), 70000u);
}

TEST(Rze, SettersRefuseWhatTheFormatHasNot) {
  RZEStage stage;
  for (const std::size_t chunk : {0u, 1024u, 4095u, 12288u, 32768u}) {
    EXPECT_THROW(stage.setChunkSize(chunk), std::invalid_argument) << chunk;
  }
  for (const int levels : {-1, 0, 5}) {
    EXPECT_THROW(stage.setLevels(levels), std::invalid_argument) << levels;
  }
  EXPECT_EQ(stage.getChunkSize(), 16384u);
  EXPECT_EQ(stage.getLevels(), 4);
}

TEST(Rze, InputsOf4GiBAreRefusedByName) {
  RZEStage stage;
  std::uint8_t byte = 0;
  stage.setOutputCapacities({1});
  try {  // refused by its size, before a byte is read
    stage.execute(nullptr, nullptr, {&byte}, {&byte}, {std::size_t{1} << 32});
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
    EXPECT_NE(std::string(e.what()).find("4294967295"), std::string::npos) << e.what();
  }
}

TEST(Rze, TakesAnyTypeAndIsGraphCompatibleBothWays) {
  RZEStage stage;
  EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::UNKNOWN));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UINT8));
  EXPECT_EQ(stage.getRequiredInputAlignment(), 1u);
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setInverse(true);
  EXPECT_TRUE(stage.isGraphCompatible());
}

}  // namespace
}  // namespace fz::test
