#include "predictors/diff/diff.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "backends/cpu/delta_cpu.h"
#include "backends/cpu/exec_context.h"
#include "fz/error.h"
#include "shared/delta.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

template <class T>
Bytes wholeFloats(std::size_t n, std::mt19937_64& rng) {
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(static_cast<std::int64_t>(rng() % 2001) - 1000);
  }
  return toBytes(values);
}

/// Floats that differences keep exactly; for integer types simply numbers.
InputCase wholeNumbers() {
  return {"whole numbers", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            if (type == DataType::FLOAT32) {
              return wholeFloats<float>(n, rng);
            }
            if (type == DataType::FLOAT64) {
              return wholeFloats<double>(n, rng);
            }
            return smallNoise().make(type, n, rng);
          }};
}

InputCase integersOnly(InputCase input) {
  input.applies = [](const StageConfig&, const std::vector<DataType>& types) {
    return !isFloat(types[0]);
  };
  return input;
}

StageConfig chunkOf(std::int64_t n_bytes) {
  return {"chunk " + std::to_string(n_bytes), {{"chunk_size", n_bytes}}};
}

FZ_STAGE_CASE(Difference,
              {.stage = "Difference",
               .tile_values = delta::kTileValues,
               .configs = {{"default"}, chunkOf(8), chunkOf(16384), chunkOf(1 << 18)},
               .inputs = {wholeNumbers(), integersOnly(fullNoise()), integersOnly(extremes()),
                          zeros(), ramp(), constant()},
               .extra_sizes = {4 * delta::kTileValues + 3}});

template <class T, class TOut>
std::vector<TOut> codesOf(const std::vector<T>& values, std::size_t chunk_bytes = 0) {
  DifferenceStage<T, TOut> stage;
  stage.setChunkSize(chunk_bytes);
  return fromBytes<TOut>(encode(stage, toBytes(values)).streams[0]);
}

template <class T>
std::vector<T> randomValues(std::size_t n) {
  std::mt19937_64 rng(n);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(rng());
  }
  return values;
}

TEST(Difference, GivesTheWorkedExampleOfTheFormat) {
  const std::vector<std::int32_t> values = {0, 4, 3, 4, 10, 11, 0, 20};
  EXPECT_EQ((codesOf<std::int32_t, std::uint32_t>(values)),
            (std::vector<std::uint32_t>{0, 4, 3, 1, 26, 1, 53, 20}));
  EXPECT_EQ((codesOf<std::int32_t, std::int32_t>(values)),
            (std::vector<std::int32_t>{0, 4, -1, 1, 6, 1, -11, 20}));
}

TEST(Difference, ChunkStartsAreStoredAsTheyAre) {
  const std::vector<std::uint16_t> values = {7, 9, 4, 4, 100, 101, 90, 90, 5};
  EXPECT_EQ((codesOf<std::uint16_t, std::uint16_t>(values, 8)),
            (std::vector<std::uint16_t>{7, 2, 65531, 0, 100, 1, 65525, 0, 5}));
}

TEST(Difference, ChunksAreIndependent) {
  std::vector<std::int32_t> values = randomValues<std::int32_t>(4096);
  const auto before = codesOf<std::int32_t, std::int32_t>(values, 1024);
  std::iota(values.begin(), values.begin() + 256, 5);
  const auto after = codesOf<std::int32_t, std::int32_t>(values, 1024);
  EXPECT_TRUE(std::equal(before.begin() + 256, before.end(), after.begin() + 256));
}

TEST(Difference, ConstantInputBecomesZeros) {
  const std::vector<std::int16_t> values(1000, -7);
  const auto codes = codesOf<std::int16_t, std::uint16_t>(values, 256);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(codes[i], i % 128 == 0 ? bits::negabinary(std::int16_t{-7}) : 0u);
  }
}

TEST(Difference, WrapsAround) {
  EXPECT_EQ((codesOf<std::uint8_t, std::uint8_t>({250, 5, 0})),
            (std::vector<std::uint8_t>{250, 11, 251}));
  EXPECT_EQ((codesOf<std::int64_t, std::int64_t>({INT64_MIN, INT64_MAX, 0})),
            (std::vector<std::int64_t>{INT64_MIN, -1, -INT64_MAX}));
}

TEST(Difference, AMillionValuesComeBackFromOneChunkOnAnyNumberOfThreads) {
  const std::vector<std::int32_t> values = randomValues<std::int32_t>(1 << 20);
  DifferenceStage<std::int32_t, std::uint32_t> stage;
  const Encoded encoded = encode(stage, toBytes(values));
  for (const std::size_t n_threads : {1, 2, 5}) {
    const auto executor = makeCpuExecutor(n_threads, defaultThreadBackend());
    const ExecContext context{Backend::CPU, executor.get()};
    EXPECT_EQ(fromBytes<std::int32_t>(decode(2, encoded, &context)), values);
  }
}

template <class U, delta::Code kCode, class Team>
void expectTeamAgrees(const Team& team, std::size_t n, std::size_t block) {
  const std::vector<U> values = randomValues<U>(n);
  std::vector<U> stage_codes(n);
  delta::encodeBlocks<U>(CpuExecutor::serial(), values, block, kCode, stage_codes.data());
  std::vector<U> codes(n);
  std::vector<U> decoded(n);
  for (std::size_t begin = 0; begin < n; begin += block) {
    const auto length = static_cast<std::uint32_t>(std::min(block, n - begin));
    U part_sums[delta::kParts];
    delta::encodeBlock<kCode>(team, values.data() + begin, length, codes.data() + begin);
    delta::decodePiece<kCode>(team, codes.data() + begin, length, U{0}, part_sums,
                              decoded.data() + begin);
  }
  EXPECT_EQ(codes, stage_codes) << n << " values in blocks of " << block;
  EXPECT_EQ(decoded, values) << n << " values in blocks of " << block;
}

TEST(Difference, TunedCodeGivesTheBytesOfTheCodec) {
  std::mt19937_64 rng(12);
  for (const std::size_t block : {1, 2, 3, 31, 32, 100, 1024, 1 << 20}) {
    for (const std::size_t n : {1, 2, 33, 1000, 40000}) {
      expectTeamAgrees<std::uint8_t, delta::Code::kNegabinary>(SerialTeam{}, n, block);
      expectTeamAgrees<std::uint16_t, delta::Code::kPlain>(ShuffledTeam{&rng}, n, block);
      expectTeamAgrees<std::uint32_t, delta::Code::kNegabinary>(ShuffledTeam{&rng}, n, block);
      expectTeamAgrees<std::uint64_t, delta::Code::kPlain>(SerialTeam{}, n, block);
    }
  }
}

TEST(Difference, FloatsComeBackInAnyChunking) {
  std::mt19937_64 rng(3);
  const Bytes original = wholeFloats<double>(70000, rng);
  for (const std::size_t chunk_bytes : {0, 8, 128, 4096, 1 << 17}) {
    DifferenceStage<double> stage;
    stage.setChunkSize(chunk_bytes);
    EXPECT_TRUE(decode(2, encode(stage, original)) == original) << chunk_bytes;
  }
}

template <class T>
std::string messageFor(const std::vector<T>& values, std::size_t chunk_bytes = 0) {
  DifferenceStage<T> stage;
  stage.setChunkSize(chunk_bytes);
  try {
    encode(stage, toBytes(values));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBoundViolation);
    return e.what();
  }
  return "";
}

TEST(Difference, FloatsThatWouldNotComeBackAreRefusedWithCountAndIndex) {
  // The difference from 1e8 to 0.25 rounds to -1e8: that sum and all after it come out wrong.
  const std::string message = messageFor<float>({1.0f, 2.0f, 1e8f, 0.25f, 1.0f});
  EXPECT_NE(message.find("2 of 5 values"), std::string::npos) << message;
  EXPECT_NE(message.find("index 3"), std::string::npos) << message;
  EXPECT_NE(message.find("float32"), std::string::npos) << message;
}

TEST(Difference, AChunkThatStartsAfterTheLossIsExact) {
  EXPECT_EQ(messageFor<float>({1.0f, 1e8f, 0.25f, 1.0f}, 8), "");
}

TEST(Difference, NotANumberAndNegativeZeroAreKeptOnlyAsChunkStarts) {
  const float nan = std::nanf("");
  EXPECT_NE(messageFor<float>({1.0f, nan, 1.0f}), "");
  EXPECT_NE(messageFor<float>({nan, nan}), "");
  EXPECT_NE(messageFor<float>({0.0f, -0.0f}), "");
  EXPECT_NE(messageFor<double>({1.0, INFINITY, 1.0}), "");
  EXPECT_EQ(messageFor<float>({nan, -0.0f, INFINITY}, 4), "");
}

TEST(Difference, ALossInOneRunIsForgottenInTheNext) {
  DifferenceStage<float> stage;
  EXPECT_THROW(encode(stage, toBytes(std::vector<float>{1e8f, 0.25f})), Error);
  EXPECT_NO_THROW(encode(stage, toBytes(std::vector<float>{1.0f, 2.0f})));
}

TEST(Difference, LossesInLaterTilesAreFound) {
  std::vector<double> values(100000, 2.0);
  values[77777] = 1e-30;
  EXPECT_NE(messageFor(values).find("the first at index 77777"), std::string::npos);
}

TEST(Difference, ConfigHasTypesAndChunkSize) {
  DifferenceStage<std::int16_t, std::uint16_t> stage;
  stage.setChunkSize(16384);
  EXPECT_EQ(encode(stage, Bytes(6)).config, (Bytes{5, 1, 0x00, 0x40, 0, 0}));
}

TEST(Difference, ConfigOfOneByteIsOneChunkOfThatType) {
  const Encoded encoded{{6}, 1, {toBytes(std::vector<std::int32_t>{5, 1, -2})}};
  EXPECT_EQ(fromBytes<std::int32_t>(decode(2, encoded)), (std::vector<std::int32_t>{5, 6, 4}));
}

TEST(Difference, MissingConfigMeansFloat32) {
  const Encoded encoded{{}, 1, {toBytes(std::vector<float>{5, 1, -2})}};
  EXPECT_EQ(fromBytes<float>(decode(2, encoded)), (std::vector<float>{5, 6, 4}));
}

TEST(Difference, TypesThatAreNoPairGoByTheFirst) {
  const Encoded encoded{{6, 1, 0, 0, 0, 0}, 1, {toBytes(std::vector<std::int32_t>{5, -1})}};
  EXPECT_EQ(fromBytes<std::int32_t>(decode(2, encoded)), (std::vector<std::int32_t>{5, 4}));
}

TEST(Difference, BadConfigsAreCorrupt) {
  for (const Bytes& config : {Bytes{6, 6, 0}, Bytes{6, 6, 12, 0, 0, 0}, Bytes{6, 6, 2, 0, 0, 0}}) {
    try {
      decode(2, {config, 1, {Bytes(8)}});
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(Difference, ChunkSizeIsAPowerOfTwoOfValues) {
  DifferenceStage<std::int32_t> stage;
  for (const std::size_t bad : {std::size_t{2}, std::size_t{6}, std::size_t{12},
                                std::size_t{1} << 32, static_cast<std::size_t>(-1)}) {
    EXPECT_THROW(stage.setChunkSize(bad), InvalidArgument) << bad;
  }
  EXPECT_EQ(stage.getChunkSize(), 0u);
  stage.setChunkSize(4);
  EXPECT_EQ(stage.getChunkSize(), 4u);
  EXPECT_EQ(stage.getRequiredInputAlignment(), 1u);
}

TEST(Difference, OutputTypeLeftOutIsThatOfTheInput) {
  const std::vector<DataType> types = {DataType::INT32, DataType::UNKNOWN};
  const auto stage = diff::descriptor().make(types);
  ASSERT_NE(stage, nullptr);
  EXPECT_EQ(stage->elementTypes(), (std::vector{DataType::INT32, DataType::INT32}));
}

TEST(Difference, RefusesAnInputThatIsNotAMultipleOfTheValueSize) {
  DifferenceStage<std::int32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

}  // namespace
}  // namespace fz::test
