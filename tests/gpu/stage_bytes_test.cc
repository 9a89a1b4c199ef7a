#include <gtest/gtest.h>

#include "fz/backend.h"
#include "fz/error.h"
#include "gpu/device_stage.h"

namespace fz::test {
namespace {

/// How a run ended: its result, or the code of its error.
template <class T>
struct Outcome {
  T result = {};
  std::string error;
};

template <class F>
auto outcomeOf(F f) -> Outcome<decltype(f())> {
  try {
    return {f(), ""};
  } catch (const Error& e) {
    return {{}, errorCodeName(e.code())};
  } catch (const InvalidArgument& e) {
    return {{}, errorCodeName(e.code())};
  }
}

/// f(setup, input bytes) over every setup, input and size.
template <class F>
void forEveryCase(const std::string& name, F f) {
  for (const StageSetup& s : setupsOf(name)) {
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      if (isSmallRun() && &input != &s.stage_case->inputs.back()) {
        continue;
      }
      for (const std::size_t n : conformanceSizes(*s.stage_case)) {
        if (isSmallRun() && n != 1 && n != 257 && n != s.stage_case->tile_values + 1) {
          continue;
        }
        SCOPED_TRACE(s.text() + ", " + input.label + ", " + std::to_string(n) + " values");
        std::mt19937_64 rng(n + 1);
        f(s, input.make(s.inputType(), n, rng));
        if (testing::Test::HasFailure()) {
          return;
        }
      }
    }
  }
}

std::unique_ptr<Stage> makeFor(const StageSetup& s, const Bytes& original) {
  return s.makeStage(original.size() / getDataTypeSize(s.inputType()));
}

/// One test per stage. A stage without kernels runs on the host, and must still be right.
class DeviceBytes : public OnDevice<testing::TestWithParam<std::string>> {};

TEST_P(DeviceBytes, EncodingGivesTheBytesOfTheCpu) {
  forEveryCase(GetParam(), [](const StageSetup& s, const Bytes& original) {
    const auto cpu = outcomeOf([&] { return encode(*makeFor(s, original), original); });
    const auto gpu = outcomeOf([&] { return encodeOnDevice(*makeFor(s, original), original); });
    EXPECT_EQ(gpu.error, cpu.error);
    ASSERT_EQ(gpu.result.streams.size(), cpu.result.streams.size());
    EXPECT_EQ(gpu.result.config, cpu.result.config);
    EXPECT_EQ(gpu.result.version, cpu.result.version);
    for (std::size_t i = 0; i < cpu.result.streams.size(); ++i) {
      EXPECT_EQ(gpu.result.streams[i].size(), cpu.result.streams[i].size()) << "port " << i;
      EXPECT_TRUE(gpu.result.streams[i] == cpu.result.streams[i]) << "port " << i;
    }
  });
}

TEST_P(DeviceBytes, DecodingGivesTheBytesOfTheCpu) {
  forEveryCase(GetParam(), [](const StageSetup& s, const Bytes& original) {
    const std::unique_ptr<Stage> stage = makeFor(s, original);
    const auto encoded = outcomeOf([&] { return encode(*stage, original); });
    if (!encoded.error.empty()) {
      return;
    }
    const std::uint16_t id = stage->getStageTypeId();
    const auto cpu = outcomeOf([&] { return decode(id, encoded.result); });
    const auto gpu = outcomeOf([&] { return decodeOnDevice(id, encoded.result); });
    EXPECT_EQ(gpu.error, cpu.error);
    EXPECT_EQ(gpu.result.size(), cpu.result.size());
    EXPECT_TRUE(gpu.result == cpu.result);
  });
}

TEST_P(DeviceBytes, WhatStoodInTheBuffersDoesNotMatter) {
  for (const StageSetup& s : setupsOf(GetParam())) {
    const InputCase& input = s.stage_case->inputs.front();
    if (input.applies && !input.applies(*s.config, s.types)) {
      continue;
    }
    SCOPED_TRACE(s.text());
    std::mt19937_64 rng(1);
    const Bytes original =
        input.make(s.inputType(),
                   isSmallRun() ? s.stage_case->tile_values + 1 : s.stage_case->large_values, rng);
    const std::unique_ptr<Stage> stage = makeFor(s, original);
    const auto first = outcomeOf([&] { return encodeOnDevice(*stage, original, 0x00); });
    const auto second = outcomeOf([&] { return encodeOnDevice(*stage, original, 0xFF); });
    EXPECT_EQ(first.error, second.error);
    EXPECT_TRUE(first.result == second.result);
  }
}

/// Damage must end as on the CPU: the same data, or an error; never a write outside, never a hang.
TEST_P(DeviceBytes, DamagedStreamsEndAsOnTheCpu) {
  for (const StageSetup& s : setupsOf(GetParam())) {
    const InputCase& input = s.stage_case->inputs.back();
    if (input.applies && !input.applies(*s.config, s.types)) {
      continue;
    }
    std::mt19937_64 rng(5);
    const Bytes original = input.make(s.inputType(), s.stage_case->tile_values + 3, rng);
    const std::unique_ptr<Stage> stage = makeFor(s, original);
    const auto encoded = outcomeOf([&] { return encode(*stage, original); });
    if (!encoded.error.empty()) {
      continue;
    }
    for (int round = 0; round < (isSmallRun() ? 10 : 40); ++round) {
      Encoded damaged = encoded.result;
      Bytes& stream = damaged.streams[rng() % damaged.streams.size()];
      if (stream.empty()) {
        continue;
      }
      if (round % 4 == 0) {
        stream.resize(rng() % stream.size());
      } else {
        stream[round % 2 == 0 ? rng() % stream.size()
                              : rng() % std::min<std::size_t>(64, stream.size())] ^=
            static_cast<std::uint8_t>(1u << (rng() % 8));
      }
      SCOPED_TRACE(s.text() + ", round " + std::to_string(round));
      const auto cpu = outcomeOf([&] { return decode(stage->getStageTypeId(), damaged); });
      const auto gpu = outcomeOf([&] { return decodeOnDevice(stage->getStageTypeId(), damaged); });
      EXPECT_EQ(gpu.error, cpu.error);
      EXPECT_TRUE(gpu.result == cpu.result);
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages,
                         DeviceBytes,
                         testing::ValuesIn(stageNames()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace fz::test
