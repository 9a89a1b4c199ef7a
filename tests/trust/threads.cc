// R11: independent pipelines in any threads, and in a child after fork().
#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

#include "trust/mixed_calls.h"

namespace fz::trust {
namespace {

constexpr unsigned kThreads = 32;

/// What a child does with the library that its parent has used with threads.
int childWork(const std::vector<Expected>& all) {
  return std::all_of(all.begin(), all.end(),
                     [](const Expected& e) {
                       return roundTrip(e, Backend::CPU, 1) && roundTrip(e, Backend::CPU, 4);
                     })
             ? 0
             : 1;
}

void forks(const std::vector<Expected>& all, Report& report) {
  constexpr unsigned kForks = 10;
  constexpr unsigned kSeconds = 30;
  for (unsigned i = 0; i < kForks; ++i) {
    static_cast<void>(childWork(all));  // with threads, so that there is something to inherit
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kSeconds);
      ::_exit(childWork(all));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    report.add("forks");
    report.check(status == 0, "a child ended with status " + std::to_string(status));
  }
}

const RegisterGoal kThreadsGoal(
    "R11",
    "independent pipelines work in any threads at once, and in a child after fork()",
    [](const Settings& settings, Report& report) {
      const std::vector<Expected> all = expectations();
      forks(all, report);
      mixedCalls(all, Backend::CPU, kThreads, settings.trials(1000, 10'000), settings.seed, report);
    });

}  // namespace
}  // namespace fz::trust
