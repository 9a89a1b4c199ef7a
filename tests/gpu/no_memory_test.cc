#include <gtest/gtest.h>

#include "gpu/device_fixture.h"
#include "gpu/device_lives.h"

namespace fz::test {
namespace {

/// A few lives; tools/trust --gpu R10-gpu lives them all.
class DeviceNoMemory : public OnDevice<testing::TestWithParam<Life>> {};

TEST_P(DeviceNoMemory, ACallThatFindsNoneIsATypedErrorAndTheNextOneWorks) {
  for (const bool and_all_later : {false, true}) {
    const LifeReport report = liveWithFailures(GetParam(), and_all_later, 10'000);
    EXPECT_GT(report.n_calls, 10u);
    EXPECT_GT(report.n_typed_errors, 10u);
    for (const std::string& text : report.failures) {
      ADD_FAILURE() << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lives,
                         DeviceNoMemory,
                         testing::ValuesIn(fewLives()),
                         [](const auto& param) {
                           return param.param.name.substr(0, param.param.name.find(','));
                         });

}  // namespace
}  // namespace fz::test
