#pragma once

#include <cstdint>
#include <string>

#include "shared/function_ref.h"
#include "trust/trust.h"

namespace fz::trust {

/// Seconds of the processor after which a trial counts as hung.
inline constexpr int kHangSeconds = 5;

/// Runs work(i, report) for i in [settings.first, n) in settings.n_jobs processes (0: this one). A
/// trial that ends its process or hangs is a failure with its number in the text, and the rest goes
/// on without it. What the children count and find is added to `report`; under a leak checker so is
/// what they lost. `work` must not throw. A run of more than a minute says on stderr how far it is;
/// SIGINT and SIGTERM end it early, which is a failure that says where to go on, and keep what was
/// counted.
void runInProcesses(std::uint64_t n_trials,
                    const Settings& settings,
                    Report& report,
                    FunctionRef<void(std::uint64_t trial, Report& report)> work,
                    int hang_seconds = kHangSeconds);

/// Whether such a signal has come.
bool wasStopped();

/// The generator state of a trial: trials are independent of their order and of the processes.
std::uint64_t trialSeed(std::uint64_t seed, std::uint64_t trial);

}  // namespace fz::trust
