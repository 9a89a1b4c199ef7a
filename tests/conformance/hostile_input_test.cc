#include <gtest/gtest.h>

#include "fz/error.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

constexpr std::size_t kSmallValues = 70;
// Each stream begins elsewhere, so that together they meet every kind of place.
constexpr std::size_t kStep = FZ_TEST_STEP;

// A damaged stream must decode to something or throw fz::Error; reading or writing outside the
// buffers fails under the guards of decode() and under the sanitizers.
void decodeDamaged(std::uint16_t stage_id, const Encoded& damaged) {
  try {
    decode(stage_id, damaged);
  } catch (const Error&) {
  }
}

/// f(stage id, stream, its number).
template <class F>
void forEveryStream(const std::string& name, F f) {
  std::size_t index = 0;
  for (const StageSetup& s : setupsOf(name)) {
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      SCOPED_TRACE(s.text() + ", " + input.label);
      std::mt19937_64 rng(5);
      const Bytes original = input.make(s.inputType(), kSmallValues, rng);
      const std::unique_ptr<Stage> stage = s.makeStage(kSmallValues);
      f(stage->getStageTypeId(), encode(*stage, original), index++);
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

/// One test per stage.
class HostileInput : public testing::TestWithParam<std::string> {};

TEST_P(HostileInput, EveryTruncationEndsInAResultOrATypedError) {
  forEveryStream(GetParam(), [](std::uint16_t id, const Encoded& good, std::size_t index) {
    for (std::size_t port = 0; port < good.streams.size(); ++port) {
      for (std::size_t n = index % kStep; n < good.streams[port].size(); n += kStep) {
        Encoded damaged = good;
        damaged.streams[port].resize(n);
        decodeDamaged(id, damaged);
      }
    }
    for (std::size_t n = index % kStep; n < good.config.size(); n += kStep) {
      Encoded damaged = good;
      damaged.config.resize(n);
      decodeDamaged(id, damaged);
    }
  });
}

TEST_P(HostileInput, EveryBitFlipEndsInAResultOrATypedError) {
  forEveryStream(GetParam(), [](std::uint16_t id, const Encoded& good, std::size_t index) {
    for (std::size_t port = 0; port < good.streams.size(); ++port) {
      for (std::size_t bit = index % kStep; bit < 8 * good.streams[port].size(); bit += kStep) {
        Encoded damaged = good;
        damaged.streams[port][bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        decodeDamaged(id, damaged);
      }
    }
    for (std::size_t bit = index % kStep; bit < 8 * good.config.size(); bit += kStep) {
      Encoded damaged = good;
      damaged.config[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      decodeDamaged(id, damaged);
    }
  });
}

TEST_P(HostileInput, RandomBytesEndInAResultOrATypedError) {
  forEveryStream(GetParam(), [](std::uint16_t id, const Encoded& good, std::size_t index) {
    std::mt19937_64 rng(11 + index % kStep);
    for (std::size_t round = 0; round < 200 / kStep; ++round) {
      Encoded damaged = good;
      for (Bytes& stream : damaged.streams) {
        stream.resize(rng() % (2 * stream.size() + 16));
        for (std::uint8_t& b : stream) {
          b = rng() % 4 == 0 ? static_cast<std::uint8_t>(rng()) : b;
        }
      }
      decodeDamaged(id, damaged);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Stages,
                         HostileInput,
                         testing::ValuesIn(stageNames()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace fz::test
