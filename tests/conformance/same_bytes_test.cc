#include <gtest/gtest.h>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

Encoded encodeWith(const StageSetup& s,
                   const Bytes& original,
                   const CpuExecutor& executor,
                   std::uint8_t poison) {
  const ExecContext context{Backend::CPU, &executor};
  const std::size_t n = original.size() / getDataTypeSize(s.inputType());
  const std::unique_ptr<Stage> stage = s.makeStage(n);
  return encode(*stage, original, &context, poison);
}

/// Runs f(setup, input bytes) over every setup and input, at sizes that need several tiles.
template <class F>
void forEverySetup(const std::string& name, F f) {
  for (const StageSetup& s : setupsOf(name)) {
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      for (const std::size_t n : {3 * s.stage_case->tile_values + 7, s.stage_case->large_values}) {
        SCOPED_TRACE(s.text() + ", " + input.label + ", " + std::to_string(n) + " values");
        std::mt19937_64 rng(n);
        f(s, input.make(s.inputType(), n, rng));
        if (testing::Test::HasFailure()) {
          return;
        }
      }
    }
  }
}

/// One test per stage.
class SameBytes : public testing::TestWithParam<std::string> {};

TEST_P(SameBytes, ThreadCountsAndExecutorsDoNotMatter) {
  const auto two = makeCpuExecutor(2, ThreadBackend::kTbb);
  const auto seven = makeCpuExecutor(7, ThreadBackend::kTbb);
  const auto seven_std = makeCpuExecutor(7, ThreadBackend::kStd);
  forEverySetup(GetParam(), [&](const StageSetup& s, const Bytes& original) {
    const Encoded one = encodeWith(s, original, CpuExecutor::serial(), 0x00);
    EXPECT_TRUE(one == encodeWith(s, original, *two, 0x00));
    EXPECT_TRUE(one == encodeWith(s, original, *seven, 0x00));
    EXPECT_TRUE(one == encodeWith(s, original, *seven_std, 0x00));
  });
}

TEST_P(SameBytes, OrderOfTilesDoesNotMatter) {
  const ShuffledExecutor shuffled(99);
  forEverySetup(GetParam(), [&](const StageSetup& s, const Bytes& original) {
    EXPECT_TRUE(encodeWith(s, original, CpuExecutor::serial(), 0x00) ==
                encodeWith(s, original, shuffled, 0x00));
  });
}

TEST_P(SameBytes, WhatStoodInTheBuffersDoesNotMatter) {
  forEverySetup(GetParam(), [&](const StageSetup& s, const Bytes& original) {
    EXPECT_TRUE(encodeWith(s, original, CpuExecutor::serial(), 0x00) ==
                encodeWith(s, original, CpuExecutor::serial(), 0xFF));
  });
}

TEST_P(SameBytes, EncodingTwiceWithOneObjectGivesTheSame) {
  forEverySetup(GetParam(), [&](const StageSetup& s, const Bytes& original) {
    const std::size_t n = original.size() / getDataTypeSize(s.inputType());
    const std::unique_ptr<Stage> stage = s.makeStage(n);
    const Encoded first = encode(*stage, original);
    EXPECT_TRUE(first == encode(*stage, original));
  });
}

TEST_P(SameBytes, DecodingWithThreadsGivesTheSame) {
  const auto seven = makeCpuExecutor(7, ThreadBackend::kTbb);
  const ShuffledExecutor shuffled(7);
  forEverySetup(GetParam(), [&](const StageSetup& s, const Bytes& original) {
    const std::size_t n = original.size() / getDataTypeSize(s.inputType());
    const std::unique_ptr<Stage> stage = s.makeStage(n);
    const Encoded encoded = encode(*stage, original);
    const Bytes one = decode(stage->getStageTypeId(), encoded);
    const ExecContext with_threads{Backend::CPU, seven.get()};
    const ExecContext with_shuffling{Backend::CPU, &shuffled};
    EXPECT_TRUE(one == decode(stage->getStageTypeId(), encoded, &with_threads));
    EXPECT_TRUE(one == decode(stage->getStageTypeId(), encoded, &with_shuffling));
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, SameBytes, testing::ValuesIn(stageNames()), [](const auto& param) {
  return param.param;
});

}  // namespace
}  // namespace fz::test
