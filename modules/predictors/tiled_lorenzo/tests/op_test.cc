// Division by multiplication, as fused kernels find a tile's place.
#include <gtest/gtest.h>
#include <random>

#include "predictors/tiled_lorenzo/cuda/kernels.h"

namespace fz::tiled_lorenzo {
namespace {

TEST(TiledLorenzoOp, FastDivisorsDivide) {
  std::mt19937 engine(3);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  constexpr std::uint32_t kLimit = 0x7fffffffu;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::uint32_t divisor = i < 1500 ? i + 1 : 1 + random() % kLimit;
    const FastDivisor fast = FastDivisor::of(divisor);
    for (std::uint32_t k = 0; k < 200; ++k) {
      const std::uint32_t near = divisor * (random() % (kLimit / divisor + 1)) - k % 2;
      for (const std::uint32_t n : {near & kLimit, random() & kLimit, k, kLimit - k}) {
        ASSERT_EQ(fast.quotient(n), n / divisor) << n << " / " << divisor;
      }
    }
  }
}

}  // namespace
}  // namespace fz::tiled_lorenzo
