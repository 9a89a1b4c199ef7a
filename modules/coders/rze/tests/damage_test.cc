#include <gtest/gtest.h>

#include "coders/rze/rze_stage.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "support/each_target.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

constexpr std::uint16_t kId = 18;

Bytes noise(std::size_t n_bytes, unsigned zero_percent, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  Bytes bytes(n_bytes);
  for (std::uint8_t& b : bytes) {
    b = rng() % 100 < zero_percent ? std::uint8_t{0} : static_cast<std::uint8_t>(1 + rng() % 255);
  }
  return bytes;
}

TEST(RzeDamage, DamageEndsInAResultOrATypedErrorOnEveryVectorTarget) {
  forEachVectorTarget([] {
    for (int levels = 1; levels <= 4; ++levels) {
      RZEStage stage;
      stage.setLevels(levels);
      const Encoded good = encode(stage, noise(20000, 80, 3));
      std::mt19937_64 rng(9);
      for (int round = 0; round < 300; ++round) {
        Encoded damaged = good;
        for (std::uint64_t flips = 1 + rng() % 3; flips > 0; --flips) {
          damaged.streams[0][16 + rng() % (good.streams[0].size() - 16)] ^=
              static_cast<std::uint8_t>(1u << (rng() % 8));
        }
        try {
          decode(kId, damaged);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::kCorrupt);
        }
      }
    }
  });
}

void expectCorrupt(const Encoded& encoded, const std::string& part) {
  try {
    decode(kId, encoded);
    ADD_FAILURE() << "accepted: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(RzeDamage, BadConfigsAreCorrupt) {
  RZEStage stage;
  const Encoded good = encode(stage, noise(1000, 50, 1));
  const auto with = [&](const Bytes& config) {
    Encoded damaged = good;
    damaged.config = config;
    return damaged;
  };
  expectCorrupt(with({0, 0x40, 0, 0, 4, 0, 0, 0}), "expected a config of 9 bytes, got 8");
  expectCorrupt(with({0, 0x41, 0, 0, 4, 0xe8, 3, 0, 0}), "chunks of 16640 bytes");
  expectCorrupt(with({0, 0x40, 0, 0, 0, 0xe8, 3, 0, 0}), "0 levels");
  expectCorrupt(with({0, 0x40, 0, 0, 5, 0xe8, 3, 0, 0}), "5 levels");
  expectCorrupt(with({0, 0x40, 0, 0, 4, 0xe9, 3, 0, 0}), "config has 1001 bytes");
  expectCorrupt(with({0, 0x40, 0, 0, 4, 0xff, 0xff, 0xff, 0xff}), "4294967295 bytes");
  expectCorrupt(with({}), "0 bytes");
}

TEST(RzeDamage, DamagedChunksAreNamed) {
  RZEStage stage;
  const Encoded good = encode(stage, noise(4 * 16384, 60, 2));
  Encoded damaged = good;
  const std::size_t end_of_second = 8 + 16 + loadLe<std::uint32_t>(&good.streams[0][8]) +
                                    loadLe<std::uint32_t>(&good.streams[0][12]);
  damaged.streams[0][end_of_second - 3] ^= 0x01;  // a mark of its bitmap 4
  expectCorrupt(damaged, "chunk 1 is damaged");
  damaged = good;
  damaged.streams[0][end_of_second - 1] ^= 0x01;  // its tag, which nobody needs
  EXPECT_TRUE(decode(kId, damaged) == decode(kId, good));
  damaged = good;
  damaged.streams[0][8] ^= 0x10;
  expectCorrupt(damaged, "chunks end at byte");
  damaged = good;
  damaged.streams[0].resize(damaged.streams[0].size() + 4);
  expectCorrupt(damaged, "chunks end at byte");
}

TEST(RzeDamage, RawChunkOfAnotherLengthIsCorrupt) {
  RZEStage stage;
  Encoded damaged = encode(stage, Bytes(16384, 3));
  damaged.streams[0].resize(damaged.streams[0].size() - 260);
  damaged.streams[0][8] = 0xFC;
  damaged.streams[0][9] = 0x3E;
  expectCorrupt(damaged, "chunk 0 is damaged");
}

TEST(RzeDamage, LengthsThatTheStreamCannotHoldAreRefusedBeforeAllocating) {
  RZEStage stage;
  const Bytes config = {0, 0x10, 0, 0, 1, 0xff, 0xff, 0xff, 0xff};
  stage.deserializeHeader(config.data(), config.size());
  stage.setInverse(true);
  EXPECT_THROW(stage.estimateOutputSizes({20}), Error);
}

}  // namespace
}  // namespace fz::test
