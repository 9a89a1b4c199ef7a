#include "trust/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

// Only there under a leak checker, which names it.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

namespace fz::trust {

namespace {

constexpr std::size_t kMaxDeaths = 20;    // then the rest would tell nothing new
constexpr std::size_t kMaxFailures = 20;  // per child
constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// How often a long run says how far it is.
constexpr auto kNewsInterval = std::chrono::minutes(1);

/// Where a child says what it is doing, or which trial it would have done next; shared with the
/// parent.
struct Progress {
  std::atomic<std::uint64_t> trial{kNone};
};

volatile std::sig_atomic_t stop_signal = 0;  // the last one that came

/// While it lives, signals that end a process end its runs instead, which then say what they found.
class StopSignals {
 public:
  StopSignals() {
    struct sigaction action = {};
    action.sa_handler = [](int number) { stop_signal = number; };
    for (std::size_t i = 0; i < std::size(kNumbers); ++i) {
      ::sigaction(kNumbers[i], &action, &before_[i]);
    }
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() {
    for (std::size_t i = 0; i < std::size(kNumbers); ++i) {
      ::sigaction(kNumbers[i], &before_[i], nullptr);
    }
  }
  /// For a child, which its parent tells to stop.
  static void ignore() {
    for (const int number : kNumbers) {
      ::signal(number, SIG_IGN);
    }
  }

 private:
  static constexpr int kNumbers[] = {SIGINT, SIGTERM};
  struct sigaction before_[std::size(kNumbers)] = {};
};

/// One process with every n_jobs-th trial.
struct Child {
  pid_t pid = -1;
  int result_fd = -1;
  std::uint64_t first_trial = 0;
  std::uint64_t seen_trial = kNone;
  std::chrono::steady_clock::time_point seen_at;
  double seen_cpu_seconds = 0.0;
  std::string text;  // what came through the pipe
};

// A busy machine makes everything slow, so a trial has its seconds of the processor; only one that
// waits for ever is told by the clock.
constexpr int kClockFactor = 24;

/// Seconds of the processor that a process has used.
double cpuSeconds(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // The name, in brackets, may hold spaces; user and system time are the 12th and 13th word after.
  std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  double ticks = 0.0;
  for (int i = 1; i <= 13 && words >> word; ++i) {
    ticks += i >= 12 ? std::stod(word) : 0.0;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void writeText(int fd, const std::string& text) {
  std::size_t n_done = 0;
  while (n_done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + n_done, text.size() - n_done);
    if (n <= 0) {
      return;
    }
    n_done += static_cast<std::size_t>(n);
  }
}

std::string toText(const Report& report) {
  std::string text;
  for (const auto& [what, n] : report.counts()) {
    text += "c\t" + std::to_string(n) + "\t" + what + "\n";
  }
  for (const std::string& failure : report.failures()) {
    std::string line = failure;
    for (char& c : line) {
      c = c == '\n' ? ' ' : c;
    }
    text += "f\t" + line + "\n";
  }
  return text + "end\n";
}

/// Names that start with "largest" are maxima, the others sums.
void mergeText(const std::string& text, Report& report) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      break;
    }
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.rfind("f\t", 0) == 0) {
      report.fail(line.substr(2));
    } else if (line.rfind("c\t", 0) == 0) {
      const std::size_t tab = line.find('\t', 2);
      const std::string what = line.substr(tab + 1);
      const std::uint64_t n = std::stoull(line.substr(2, tab - 2));
      if (what.rfind("largest", 0) == 0) {
        report.atLeast(what, n);
      } else {
        report.add(what, n);
      }
    }
  }
}

struct TrialRange {
  std::uint64_t first;
  std::uint64_t end;
};

class Pool {
 public:
  Pool(TrialRange trials,
       unsigned n_jobs,
       FunctionRef<void(std::uint64_t, Report&)> work,
       Report& report,
       int hang_seconds)
      : n_trials_(trials.end),
        children_(n_jobs),
        work_(work),
        report_(report),
        hang_seconds_(hang_seconds) {
    void* memory =
        ::mmap(nullptr, sharedBytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    progress_ = static_cast<Progress*>(memory);
    is_stopped_ = new (progress_ + n_jobs) std::atomic<bool>(false);
    for (unsigned i = 0; i < n_jobs; ++i) {
      new (&progress_[i]) Progress();
      children_[i].first_trial = trials.first + i;
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { ::munmap(progress_, sharedBytes()); }

  void run() {
    const StopSignals signals;
    auto next_news = std::chrono::steady_clock::now() + kNewsInterval;
    for (Child& child : children_) {
      start(child);
    }
    while (n_running_ > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (stop_signal != 0) {
        is_stopped_->store(true, std::memory_order_relaxed);
      }
      for (Child& child : children_) {
        watch(child);
      }
      if (std::chrono::steady_clock::now() >= next_news) {
        next_news += kNewsInterval;
        std::fprintf(stderr, "fz_trust: %llu of %llu trials\n",
                     static_cast<unsigned long long>(doneTrials()),
                     static_cast<unsigned long long>(n_trials_));
      }
    }
    const std::uint64_t n_done = doneTrials();
    if (is_stopped_->load(std::memory_order_relaxed) && n_done < n_trials_) {
      report_.fail("stopped by signal " + std::to_string(stop_signal) + " after trial " +
                   std::to_string(n_done) + " of " + std::to_string(n_trials_) + "; --first " +
                   std::to_string(n_done) + " goes on there");
    }
  }

 private:
  std::size_t sharedBytes() const {
    return children_.size() * sizeof(Progress) + sizeof(std::atomic<bool>);
  }
  /// All trials before this one are done, and some of those behind it.
  std::uint64_t doneTrials() const {
    std::uint64_t n_done = n_trials_;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      n_done = std::min(n_done, progress_[i].trial.load(std::memory_order_relaxed));
    }
    return n_done;
  }

  Progress& progressOf(const Child& child) {
    return progress_[static_cast<std::size_t>(&child - children_.data())];
  }

  [[noreturn]] void work(Child& child, int fd) {
    StopSignals::ignore();
    Report mine;
    std::uint64_t i = child.first_trial;
    for (; i < n_trials_; i += children_.size()) {
      progressOf(child).trial.store(i, std::memory_order_relaxed);
      if (is_stopped_->load(std::memory_order_relaxed)) {
        break;
      }
      try {
        work_(i, mine);
      } catch (const std::exception& e) {
        mine.fail("trial " + std::to_string(i) + ": " + e.what());
      }
      if (mine.failures().size() >= kMaxFailures) {
        break;
      }
    }
    if (i >= n_trials_) {
      progressOf(child).trial.store(n_trials_, std::memory_order_relaxed);
    }
    if (__lsan_do_recoverable_leak_check != nullptr) {
      mine.check(__lsan_do_recoverable_leak_check() == 0, "memory was lost");
    }
    writeText(fd, toText(mine));
    ::close(fd);
    ::_exit(0);
  }

  void start(Child& child) {
    int fds[2] = {-1, -1};
    if (child.first_trial >= n_trials_ || ::pipe(fds) != 0) {
      return;
    }
    progressOf(child).trial = child.first_trial;
    child.seen_trial = kNone;
    child.seen_at = std::chrono::steady_clock::now();
    child.text.clear();
    child.pid = ::fork();
    if (child.pid == 0) {
      ::close(fds[0]);
      work(child, fds[1]);
    }
    ::close(fds[1]);
    child.result_fd = fds[0];
    ++n_running_;
  }

  void readAll(Child& child) {
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(child.result_fd, buffer, sizeof(buffer))) > 0;) {
      child.text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(child.result_fd);
  }

  void watch(Child& child) {
    if (child.pid < 0) {
      return;
    }
    const std::uint64_t trial = progressOf(child).trial.load(std::memory_order_relaxed);
    const auto now = std::chrono::steady_clock::now();
    if (trial != child.seen_trial) {
      child.seen_trial = trial;
      child.seen_at = now;
      child.seen_cpu_seconds = cpuSeconds(child.pid);
    }
    bool hung = false;
    int status = 0;
    if (::waitpid(child.pid, &status, WNOHANG) == 0) {
      const auto waited = now - child.seen_at;
      if (waited < std::chrono::seconds(hang_seconds_) ||
          (waited < std::chrono::seconds(kClockFactor * hang_seconds_) &&
           cpuSeconds(child.pid) - child.seen_cpu_seconds < hang_seconds_)) {
        return;
      }
      hung = true;
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, &status, 0);
    }
    readAll(child);
    child.pid = -1;
    --n_running_;
    const bool is_complete = child.text.size() >= 4 && child.text.ends_with("end\n");
    mergeText(child.text, report_);
    if (is_complete && status == 0) {
      return;
    }
    const std::string how = hung ? "hung"
                            : WIFSIGNALED(status)
                                ? "died by signal " + std::to_string(WTERMSIG(status))
                                : "ended with " + std::to_string(WEXITSTATUS(status));
    report_.add(hung ? "hangs" : "deaths");
    report_.fail("trial " + std::to_string(trial) + " " + how);
    child.first_trial = trial + children_.size();
    if (++n_deaths_ < kMaxDeaths) {
      start(child);
    }
  }

  std::uint64_t n_trials_;
  std::vector<Child> children_;
  FunctionRef<void(std::uint64_t, Report&)> work_;
  Report& report_;
  int hang_seconds_;
  Progress* progress_ = nullptr;
  std::atomic<bool>* is_stopped_ = nullptr;  // shared as well
  std::size_t n_running_ = 0;
  std::size_t n_deaths_ = 0;
};

}  // namespace

void runInProcesses(std::uint64_t n_trials,
                    const Settings& settings,
                    Report& report,
                    FunctionRef<void(std::uint64_t trial, Report& report)> work,
                    int hang_seconds) {
  if (settings.n_jobs == 0) {
    for (std::uint64_t i = settings.first; i < n_trials && report.failures().size() < kMaxFailures;
         ++i) {
      work(i, report);
    }
    return;
  }
  Pool({settings.first, n_trials}, settings.n_jobs, work, report, hang_seconds).run();
}

bool wasStopped() {
  return stop_signal != 0;
}

std::uint64_t trialSeed(std::uint64_t seed, std::uint64_t trial) {
  // One round of a good integer hash, so that neighbouring trials have unlike generators.
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + trial;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace fz::trust
