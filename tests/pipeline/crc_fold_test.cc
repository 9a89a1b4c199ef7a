#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <random>
#include <vector>

#include "format/crc32.h"
#include "shared/crc_remainder.h"

namespace fz::test {
namespace {

std::uint32_t crcBitByBit(ByteView bytes, std::uint32_t crc) {
  std::uint32_t remainder = ~crc;
  for (const std::uint8_t byte : bytes) {
    remainder ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = crcShift(remainder);
    }
  }
  return ~remainder;
}

/// Lengths around the steps in which long messages are folded, and well beyond.
TEST(Crc32, IsThatOfTheBitsOneByOneForEveryLengthAndTarget) {
  std::mt19937_64 rng(32);
  std::vector<std::uint8_t> bytes(5000);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(rng());
  }
  const ByteView all(bytes);
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    SCOPED_TRACE(hwy::TargetName(left & -left));
    hwy::SetSupportedTargetsForTest(left & -left);
    hwy::GetChosenTarget().DeInit();
    for (std::size_t n = 0; n + 3 < bytes.size(); n += n < 1100 ? 1 : 97) {
      const std::uint32_t before = n % 2 == 0 ? 0 : static_cast<std::uint32_t>(rng());
      const ByteView message = all.subspan(n % 4, n);
      ASSERT_EQ(crc32(message, before), crcBitByBit(message, before)) << n;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace
}  // namespace fz::test
