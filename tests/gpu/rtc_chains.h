#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cuda/rtc/compiler.h"
#include "core/stage_access.h"
#include "fz/simple_stage.h"
#include "log.h"

/// Chains of stages for the run-time compiler, which needs no device.
namespace fz::test {

using Stages = std::vector<std::unique_ptr<SimpleStage>>;

inline cuda::GroupChain chainOf(const Stages& stages, DataType field_type, bool is_inverse) {
  cuda::GroupChain chain;
  chain.is_inverse = is_inverse;
  chain.field_type = field_type;
  for (const auto& stage : stages) {
    stage->setInverse(is_inverse);
    const CudaPart& part = *StageAccess::cudaPart(*stage);
    chain.ops.push_back({part.tileOpType(), part.tileOpHeader(), part.tileOpSource()});
    chain.has_coder = std::holds_alternative<CoderOp>(stage->tileOp(Backend::CUDA));
  }
  return chain;
}

template <class StageT>
std::unique_ptr<StageT> make() {
  return std::make_unique<StageT>();
}

inline void expectCompiles(const Stages& stages, DataType field_type, bool both_ways = true) {
  for (const bool is_inverse : {false, true}) {
    if (is_inverse && !both_ways) {
      continue;
    }
    const cuda::GroupChain chain = chainOf(stages, field_type, is_inverse);
    SCOPED_TRACE(chain.key());
    std::string why;
    EXPECT_FALSE(cuda::rtc::compile(cuda::rtc::sourceOf(chain), 90, why).empty()) << why;
  }
}

class RunTimeCompiler : public testing::Test {
 protected:
  void SetUp() override {
    Logger::enableStderr(LogLevel::WARN);
    if (cuda::rtc::compilerVersion().empty()) {
      GTEST_SKIP() << "no run-time compiler";
    }
  }
  void TearDown() override { Logger::setCallback(nullptr); }
};

}  // namespace fz::test
