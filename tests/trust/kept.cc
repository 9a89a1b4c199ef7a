// R1, for decoders that are kept: what one was used for before changes neither what it accepts nor
// the values it gives. A stage that took what a config does not say from the frame before would
// decode a damaged frame when its neighbour happened to be a good one.
#include <random>
#include <string>

#include "format/frame_layout.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fzm_format.h"
#include "pipeline/compressor.h"
#include "trust/corpus.h"
#include "trust/mutate.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::size_t kConfigSizeOffset = 168;  // in a stage record

struct Outcome {
  Bytes decoded;
  std::string error;  ///< name of the code; empty: decoded
  bool operator==(const Outcome&) const = default;
};

void setUp(Pipeline& pipeline) {
  pipeline.setBackend(Backend::CPU);
  pipeline.setThreads(1);
}

Outcome outcomeOf(Pipeline& pipeline, const Bytes& frame) {
  Outcome outcome;
  try {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompressFrame(frame, &out, &n_bytes);
    const auto* bytes = static_cast<const std::uint8_t*>(out);
    outcome.decoded.assign(bytes, bytes + n_bytes);
  } catch (const Error& e) {
    outcome.error = errorCodeName(e.code());
  }
  return outcome;
}

/// The frame in a new decoder, and in one that has just decoded the frame it was made from.
void compare(const Seed& seed, const Bytes& frame, const std::string& where, Report& report) {
  Pipeline fresh;
  setUp(fresh);
  const Outcome expected = outcomeOf(fresh, frame);
  Pipeline kept;
  setUp(kept);
  report.check(outcomeOf(kept, seed.frame).error.empty(), where + ": the seed is refused");
  const Outcome found = outcomeOf(kept, frame);
  report.add("frames");
  report.add(expected.error.empty() ? "decoded" : "refused");
  report.check(found == expected, where + ": a new decoder says '" + expected.error +
                                      "', a kept one '" + found.error + "'" +
                                      (found.error == expected.error ? ", other values" : ""));
}

/// Every stage's config cut to every length.
void cutCompactConfigs(const Seed& seed, Report& report) {
  const OpenFrame whole(seed.frame);
  for (std::size_t s = 0; s < whole.header.stages.size(); ++s) {
    for (std::uint32_t n = 0; n < whole.header.stages[s].config_size; ++n) {
      OpenFrame cut = whole;
      cut.header.stages[s].config_size = n;
      compare(seed, cut.close(),
              seed.name + ", config of stage " + std::to_string(s) + " cut to " +
                  std::to_string(n) + " bytes",
              report);
    }
  }
}

void cutConfigs(const Seed& seed, Report& report) {
  if (isCompact(seed.frame)) {
    return cutCompactConfigs(seed, report);
  }
  const bool is_v30 = loadLe<std::uint16_t>(seed.frame.data() + 4) == 0x300;
  const std::size_t core = is_v30 ? kCoreBytesV30 : kCoreBytes;
  const auto n_stages = loadLe<std::uint32_t>(seed.frame.data() + 32);
  for (std::uint32_t s = 0; s < n_stages; ++s) {
    const std::size_t at = core + kRecordBytes * s + kConfigSizeOffset;
    const auto n_config = loadLe<std::uint32_t>(seed.frame.data() + at);
    for (std::uint32_t n = 0; n < n_config; ++n) {
      Bytes frame = seed.frame;
      ByteWriter({frame.data() + at, 4}).u32(n);
      if (!is_v30) {
        repairFrame(frame);
      }
      compare(seed, frame,
              seed.name + ", config of stage " + std::to_string(s) + " cut to " +
                  std::to_string(n) + " bytes",
              report);
    }
  }
}

const RegisterGoal kKeptDecoders(
    "R1-kept",
    "what a decoder was used for before changes neither what it accepts nor the values it gives",
    [](const Settings& settings, Report& report) {
      const std::vector<Seed> seeds = mutationSeeds();
      const std::uint64_t n_mutants = settings.trials(30'000, 1'000'000);
      runInProcesses(seeds.size() + n_mutants, settings, report,
                     [&](std::uint64_t trial, Report& mine) {
                       if (trial < seeds.size()) {
                         return cutConfigs(seeds[trial], mine);
                       }
                       std::mt19937_64 rng(trialSeed(settings.seed, trial - seeds.size()));
                       const Mutant mutant = makeMutant(seeds, rng);
                       const Seed& seed = seeds[mutant.seed_index];
                       compare(seed, mutant.bytes,
                               "mutant " + std::to_string(trial - seeds.size()) + " of seed " +
                                   std::to_string(settings.seed) + " (" + seed.name + ")",
                               mine);
                     });
    });

}  // namespace
}  // namespace fz::trust
