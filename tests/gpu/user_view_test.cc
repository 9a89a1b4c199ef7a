// A program that uses the library does not know how it was built. This file is compiled like one.
#undef FZ_HAVE_CUDA
#include <gtest/gtest.h>
#include <memory>

#include "core/stage_access.h"
#include "fzgpumodules.h"

namespace fz::test {
namespace {

template <class StageT>
void expectKernels() {
  const std::unique_ptr<SimpleStage> stage = std::make_unique<StageT>();
  EXPECT_TRUE(StageAccess::hasKernels(*stage)) << stage->getName();
  stage->setInverse(true);
  EXPECT_TRUE(StageAccess::hasKernels(*stage)) << stage->getName() << ", inverse";
}

TEST(DeviceUserView, StagesMadeByAProgramHaveTheirKernels) {
  expectKernels<QuantizerStage<float, std::uint16_t>>();
  expectKernels<QuantizerStage<double, std::int32_t>>();
  expectKernels<LorenzoQuantStage<float, std::uint16_t>>();
  expectKernels<LorenzoStage<std::int32_t>>();
  expectKernels<TiledLorenzoStage<std::int32_t>>();
  expectKernels<DifferenceStage<std::int32_t, std::uint32_t>>();
  expectKernels<ZigzagStage<std::int32_t>>();
  expectKernels<NegabinaryStage<std::int32_t>>();
  expectKernels<BitshuffleStage>();
  expectKernels<RZEStage>();
  expectKernels<RLEStage<std::uint16_t>>();
  expectKernels<BitpackStage<std::uint16_t>>();
  expectKernels<AdaptiveBitpackStage<std::int32_t>>();
  expectKernels<BitplaneRZEStage>();
  expectKernels<HuffmanStage<std::uint16_t>>();
}

}  // namespace
}  // namespace fz::test
