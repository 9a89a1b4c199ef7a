// R11 on a device: every call makes a pipeline of its own there, and drops it.
#include "trust/mixed_calls.h"

namespace fz::trust {
namespace {

constexpr unsigned kThreads = 16;

const RegisterGoal kThreadsOnDevice("R11-gpu",
                                    "independent pipelines work in any threads at once on a device",
                                    [](const Settings& settings, Report& report) {
                                      mixedCalls(expectations(), Backend::CUDA, kThreads,
                                                 settings.trials(100, 1000), settings.seed, report);
                                    });

}  // namespace
}  // namespace fz::trust
