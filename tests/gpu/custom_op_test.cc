// The op of examples/custom_gpu_stage, whose code the library does not have.
#include <gtest/gtest.h>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "gpu/rtc_chains.h"
#include "offset_stage.h"
#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz::test {
namespace {

TEST_F(RunTimeCompiler, TakesAnOpFromOutsideTheLibrary) {
  Stages stages;
  stages.push_back(make<example::OffsetStage>());
  stages.push_back(make<AdaptiveBitpackStage<std::int32_t>>());
  expectCompiles(stages, DataType::INT32);
}

TEST_F(RunTimeCompiler, TakesAnOpFromOutsideTwiceAndBehindRows) {
  Stages stages;
  stages.push_back(make<example::OffsetStage>());
  auto lorenzo = make<LorenzoStage<std::int32_t>>();
  lorenzo->setBlockSize(64);
  stages.push_back(std::move(lorenzo));
  stages.push_back(make<example::OffsetStage>());
  expectCompiles(stages, DataType::INT32);
}

TEST_F(RunTimeCompiler, KeepsApartOpsOfOneNameWithOtherCode) {
  Stages stages;
  stages.push_back(make<example::OffsetStage>());
  cuda::GroupChain chain = chainOf(stages, DataType::INT32, false);
  const std::string key = chain.key();
  chain.ops[0].source += "// changed";
  EXPECT_NE(chain.key(), key);
}

}  // namespace
}  // namespace fz::test
