// R1 and R3: whatever bytes a decoder gets, it ends in a result or a typed error, in time, inside
// the memory that the announced size and the caller's limit allow.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "trust/corpus.h"
#include "trust/heap.h"
#include "trust/mutate.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kBaseBytes = 16 * kMiB;
constexpr std::uint64_t kRefusedBytes = std::uint64_t{1} << 30;  // more is not given in the tests
constexpr std::uint64_t kLimits[] = {0, 0, 64 * 1024, kMiB, 8 * kMiB};

/// min(announced, limit), where 0 means no limit.
std::uint64_t believable(const Bytes& frame, std::uint64_t limit) {
  const std::uint64_t announced = frame.size() < 16 ? 0 : loadLe<std::uint64_t>(frame.data() + 8);
  return limit == 0 ? announced : std::min(announced, limit);
}

std::string describe(const Settings& settings, std::uint64_t trial, const Seed& seed) {
  return "trial " + std::to_string(trial) + " of seed " + std::to_string(settings.seed) + " (" +
         seed.name + ")";
}

void decodeMutant(const Mutant& mutant, std::uint64_t limit, Report& report) {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.limits = {.max_output_bytes = limit, .max_memory_bytes = 2 * limit};
  const Array array = decompress(mutant.bytes, options);
  const FrameInfo info = inspect(mutant.bytes);
  if (array.bytes().size() != info.original_bytes) {
    report.fail("result of " + std::to_string(array.bytes().size()) + " bytes, announced " +
                std::to_string(info.original_bytes));
  }
  report.add("accepted");
}

void tryMutant(const std::vector<Seed>& seeds,
               const Settings& settings,
               std::uint64_t trial,
               Report& report) {
  std::mt19937_64 rng(trialSeed(settings.seed, trial));
  const Mutant mutant = makeMutant(seeds, rng);
  const std::uint64_t limit = kLimits[rng() % std::size(kLimits)];
  const std::uint64_t n_accepted_before =
      report.counts().count("accepted") != 0 ? report.counts().at("accepted") : 0;
  report.add("mutants");
  report.add(mutant.is_repaired ? "with repaired checksums" : "with checksums as they came out");
  heap::refuseAbove(kRefusedBytes);
  heap::resetPeak();
  try {
    decodeMutant(mutant, limit, report);
  } catch (const Error& e) {
    report.add(std::string("refused: ") + errorCodeName(e.code()));
    if (e.code() == ErrorCode::kInternal) {
      report.fail(describe(settings, trial, seeds[mutant.seed_index]) + ": " + e.what());
    }
  } catch (const std::bad_alloc&) {
    report.fail(describe(settings, trial, seeds[mutant.seed_index]) + ": std::bad_alloc");
  } catch (const std::exception& e) {
    report.fail(describe(settings, trial, seeds[mutant.seed_index]) + ": untyped " + e.what());
  }
  const std::size_t peak = heap::peakBytes();
  heap::refuseAbove(0);
  const bool is_accepted =
      report.counts().count("accepted") != 0 && report.counts().at("accepted") != n_accepted_before;
  // A frame of version 3.0 has no checksums, so that damage may pass there.
  const unsigned version =
      mutant.bytes.size() < 6 ? 0 : loadLe<std::uint16_t>(mutant.bytes.data() + 4);
  const bool has_checksums = version > 0xFF && version != 0x300;
  if (is_accepted && mutant.is_changed && !mutant.is_repaired && has_checksums) {
    report.fail(describe(settings, trial, seeds[mutant.seed_index]) + ": damage was not noticed");
  }
  report.atLeast("largest peak in KiB", peak / 1024);
  const std::uint64_t believed = believable(mutant.bytes, limit);
  const std::uint64_t allowed =
      believed > kRefusedBytes ? kBaseBytes + 3 * kRefusedBytes : kBaseBytes + 3 * believed;
  if (peak > allowed) {
    report.fail(describe(settings, trial, seeds[mutant.seed_index]) + ": peak " +
                std::to_string(peak) + " bytes, allowed " + std::to_string(allowed));
  }
}

const RegisterGoal kMutants(
    "R1",
    "decoding mutated frames ends in a result or a typed error, within time and memory",
    [](const Settings& settings, Report& report) {
      const std::vector<Seed> seeds = mutationSeeds();
      report.add("seeds", seeds.size());
      runInProcesses(
          settings.trials(300'000, 10'000'000), settings, report,
          [&](std::uint64_t trial, Report& mine) { tryMutant(seeds, settings, trial, mine); });
    });

}  // namespace
}  // namespace fz::trust
