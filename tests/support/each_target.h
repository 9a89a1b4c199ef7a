#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace fz::test {

/// Runs f once for every kind of vectors that this machine has, from the widest down to the
/// baseline. A source file that was not compiled for one of them uses its next best. Not for use
/// while other threads run stages.
template <class F>
void forEachVectorTarget(F f) {
  const std::int64_t supported = hwy::SupportedTargets();
  for (const std::int64_t target : {std::int64_t{HWY_AVX3_DL}, std::int64_t{HWY_AVX3},
                                    std::int64_t{HWY_AVX2}, std::int64_t{0}}) {
    if (target == 0 || (supported & target) != 0) {
      SCOPED_TRACE(testing::Message() << "vector target " << target);
      hwy::GetChosenTarget().Update(target);  // 0 leaves only the baseline
      f();
    }
  }
  hwy::GetChosenTarget().Update(supported);
}

}  // namespace fz::test
