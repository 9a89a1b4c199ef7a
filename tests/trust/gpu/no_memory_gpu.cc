// R10 on a device: whatever CUDA call fails for want of memory, the library's call ends in
// Error(kOutOfMemory) or does without, leaves nothing behind, and works when it is made again.
#include <memory>

#include "gpu/device_lives.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

void liveThrough(const test::Life& life, bool and_all_later, std::uint64_t most, Report& report) {
  const test::LifeReport found = test::liveWithFailures(life, and_all_later, most);
  report.add("lives");
  report.add("failing CUDA calls", found.n_typed_errors + found.n_did_without);
  report.add("typed errors", found.n_typed_errors);
  report.add("calls that did without", found.n_did_without);
  for (const std::string& text : found.failures) {
    report.fail(text);
  }
}

const RegisterGoal kNoDeviceMemory(
    "R10-gpu",
    "a CUDA call that finds no memory is a typed error, nothing is left, the next call works",
    [](const Settings& settings, Report& report) {
      constexpr int kSeconds = 120;
      // Made without CUDA, which does not survive fork().
      const std::vector<test::Life> lives = test::allLives();
      runInProcesses(
          2 * lives.size(), settings, report,
          [&](std::uint64_t trial, Report& mine) {
            liveThrough(lives[trial / 2], trial % 2 == 1, settings.trials(10'000, 10'000), mine);
          },
          kSeconds);
    });

}  // namespace
}  // namespace fz::trust
