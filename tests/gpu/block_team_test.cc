#include "gpu/block_team.h"

#include <gtest/gtest.h>
#include <random>

#include "gpu/device_fixture.h"

namespace fz::test {
namespace {

class DeviceBlockTeam : public OnDevice<> {};

TEST_F(DeviceBlockTeam, DoesWhatOneThreadDoes) {
  std::mt19937 rng(1);
  for (const std::size_t n : {0u, 1u, 31u, 256u, 1000u, 5000u}) {
    std::vector<std::uint32_t> values(n);
    for (std::uint32_t& value : values) {
      value = static_cast<std::uint32_t>(rng() >> (rng() % 32));
    }
    for (const unsigned n_threads : {1u, 32u, 96u, 100u, 256u, 1024u}) {
      SCOPED_TRACE(std::to_string(n) + " values, " + std::to_string(n_threads) + " threads");
      EXPECT_EQ(mirrorByBlock(values, 5, n_threads), mirrorSerially(values, 5));
      EXPECT_EQ(mirrorByBlock(values, 6, n_threads), mirrorSerially(values, 6));
    }
  }
}

}  // namespace
}  // namespace fz::test
