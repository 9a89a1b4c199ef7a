#pragma once

#include <cstdlib>
#include <gtest/gtest.h>

#include "fz/backend.h"

/// What every test on a device begins with.
namespace fz::test {

/// Under a sanitizer every access is followed, so only small sizes are tried there.
inline bool isSmallRun() {
  return std::getenv("FZ_GPU_SMALL") != nullptr;
}

/// `Base` (testing::Test, testing::TestWithParam), skipped where no device answers.
template <class Base = testing::Test>
class OnDevice : public Base {
 protected:
  void SetUp() override {
    if (!isBackendAvailable(Backend::CUDA)) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
};

}  // namespace fz::test
