// R3: a frame that claims to be large is believed only as far as its payload can expand, and a
// frame that is large costs no more than the caller's limit.
#include <algorithm>
#include <random>
#include <string>

#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fzm_format.h"
#include "trust/corpus.h"
#include "trust/heap.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::size_t kMiB = 1u << 20;
constexpr std::size_t kBaseBytes = 16 * kMiB;
constexpr std::size_t kRefusedBytes = std::size_t{1} << 30;
constexpr std::uint64_t kClaims[] = {std::uint64_t{1} << 26, std::uint64_t{1} << 31,
                                     std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 40,
                                     std::uint64_t{1} << 62};

/// What decoding cost and how it ended.
struct Outcome {
  std::size_t peak_bytes = 0;
  bool is_accepted = false;
  bool is_typed = true;
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
};

Outcome decodeCost(const Bytes& frame, const DecodeLimits& limits) {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.limits = limits;
  Outcome outcome;
  heap::refuseAbove(kRefusedBytes);
  heap::resetPeak();
  try {
    static_cast<void>(decompress(frame, options));
    outcome.is_accepted = true;
  } catch (const Error& e) {
    outcome.code = e.code();
    outcome.text = e.what();
  } catch (const std::exception& e) {
    outcome.is_typed = false;
    outcome.text = e.what();
  }
  outcome.peak_bytes = std::max(heap::peakBytes(), heap::largestRequest());
  heap::refuseAbove(0);
  return outcome;
}

/// False claims about one seed: lengths alone, and together with every word of every config.
void tryClaims(const Seed& seed, Report& report) {
  const OpenFrame truth(seed.frame);
  const FrameDescription& description = truth.header.description;
  const std::uint64_t value_bytes =
      isKnown(description.type) ? getDataTypeSize(description.type) : 1;
  constexpr std::size_t kConfigWords = FZM_STAGE_CONFIG_SIZE / 4;
  const std::size_t n_words = truth.header.stages.size() * kConfigWords;
  for (std::size_t word = 0; word <= n_words; ++word) {
    for (const std::uint64_t claim : kClaims) {
      OpenFrame lie = truth;
      lie.claimLength(claim, value_bytes);
      if (word < n_words) {
        FZMStageInfo& stage = lie.header.stages[word / kConfigWords];
        const std::size_t offset = 4 * (word % kConfigWords);
        if (offset >= stage.config_size) {
          continue;
        }
        storeLe(stage.stage_config.data() + offset, static_cast<std::uint32_t>(claim));
      }
      const Bytes frame = lie.close();
      const Outcome outcome = decodeCost(frame, {});
      const std::string where =
          seed.name + ", word " + std::to_string(word) + ", claim " + std::to_string(claim);
      report.add("false claims");
      report.atLeast("largest peak of a false claim in KiB", outcome.peak_bytes / 1024);
      report.check(outcome.is_typed, where + ": untyped " + outcome.text);
      report.check(!outcome.is_accepted, where + ": believed");
      report.check(
          outcome.peak_bytes <= kBaseBytes,
          where + ": took " + std::to_string(outcome.peak_bytes) + " bytes: " + outcome.text);
    }
  }
}

/// A frame of zeros is small and decodes to a lot; the limit comes first.
void tryTrueBomb(const Preset& preset, Report& report) {
  constexpr std::size_t kBytes = 64 * kMiB;
  constexpr std::uint64_t kLimit = kMiB;
  CompressOptions options;
  options.preset = preset.name;
  options.config_toml = preset.toml;
  options.backend = Backend::CPU;
  options.threads = 1;
  const Frame frame = compress(DataType::FLOAT32, Bytes(kBytes), options);
  const Bytes bytes(frame.bytes().begin(), frame.bytes().end());
  const std::string name(preset.name);
  const Outcome by_output = decodeCost(bytes, {.max_output_bytes = kLimit, .max_memory_bytes = 0});
  report.check(by_output.code == ErrorCode::kLimit && by_output.peak_bytes <= kBaseBytes,
               name + ": output limit, peak " + std::to_string(by_output.peak_bytes) + ", " +
                   by_output.text);
  const Outcome full = decodeCost(bytes, {});
  report.check(
      full.is_accepted && full.peak_bytes <= kBaseBytes + 3 * kBytes,  // frames of outliers too
      name + ": no limit, peak " + std::to_string(full.peak_bytes) + ", " + full.text);
  report.atLeast("largest peak of 64 MiB decoded in MiB", full.peak_bytes / kMiB);
  report.add("true bombs", 2);
}

const RegisterGoal kBombs(
    "R3",
    "memory while decoding stays below 16 MiB + 3 x min(announced, limit); false claims cost "
    "nothing",
    [](const Settings& settings, Report& report) {
      std::vector<Seed> seeds = stageSeeds(70);
      std::vector<Seed> pipelines = pipelineSeeds();
      std::move(pipelines.begin(), pipelines.end(), std::back_inserter(seeds));
      const std::size_t step = settings.release ? 1 : 2;
      const std::size_t n = (seeds.size() + step - 1) / step;
      const auto presets = allPresets();
      runInProcesses(n + presets.size(), settings, report, [&](std::uint64_t trial, Report& mine) {
        if (trial < n) {
          tryClaims(seeds[trial * step], mine);
        } else {
          tryTrueBomb(presets[trial - n], mine);
        }
      });
    });

}  // namespace
}  // namespace fz::trust
