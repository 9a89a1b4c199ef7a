#include "progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "standard_streams.h"

namespace fz::cli {

namespace {

constexpr std::chrono::milliseconds kInterval{100};  // ten updates a second
constexpr std::chrono::milliseconds kLongWork{500};
constexpr double kShortestRateSeconds = 0.05;  // before that a rate says nothing

bool errorIsTerminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

std::string bytesText(double n_bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  constexpr double kStep = 1000.0;
  std::size_t unit = 0;
  // 999.95 would be printed as 1000.
  while (n_bytes >= 999.5 && unit + 1 < std::size(kUnits)) {
    n_bytes /= kStep;
    ++unit;
  }
  const int n_digits = unit == 0 || n_bytes >= 99.95 ? 0 : n_bytes >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", n_bytes, n_digits, kUnits[unit]);
}

std::string durationText(double seconds) {
  constexpr long kMinute = 60;
  constexpr long kHour = 3600;
  const long whole = std::lround(std::min(seconds, 1e9));
  if (whole < kMinute) {
    return fmt::format("{} s", whole);
  }
  if (whole < kHour) {
    return fmt::format("{} min {:02} s", whole / kMinute, whole % kMinute);
  }
  return fmt::format("{} h {:02} min", whole / kHour, whole % kHour / kMinute);
}

Progress::Progress(ProgressMode mode, std::string name)
    : is_terminal_(errorIsTerminal()),
      is_shown_(mode == ProgressMode::kAlways || (mode == ProgressMode::kAuto && is_terminal_)),
      waits_(mode != ProgressMode::kAlways),
      name_(std::move(name)),
      start_(Clock::now()) {
  if (is_shown_) {
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  }
}

Progress::~Progress() {
  end();
}

void Progress::begin(std::string_view what, std::uint64_t n_bytes, bool is_run) {
  const std::lock_guard lock(mutex_);
  if (is_shown_ && !waits_ && is_working_) {
    show(Clock::now());  // how the part before ended
  }
  what_ = what;
  n_bytes_ = n_bytes;
  is_run_ = is_run;
  is_working_ = true;
  n_done_.store(0, std::memory_order_relaxed);
  run_.beginCall(0);
  phase_start_ = Clock::now();
}

void Progress::beginBytes(std::string_view what, std::uint64_t n_bytes) {
  begin(what, n_bytes, false);
}

void Progress::beginRun(std::string_view what, std::uint64_t n_bytes) {
  begin(what, n_bytes, true);
}

void Progress::end() {
  if (thread_.joinable()) {
    thread_.request_stop();
    wake_.notify_all();
    thread_.join();
  }
  pause();
}

void Progress::pause() {
  const std::lock_guard lock(mutex_);
  if (is_shown_ && !waits_ && is_working_) {
    show(Clock::now());
  }
  is_working_ = false;
  clearLine();
}

void Progress::clearLine() {
  if (line_is_there_) {
    sayText("\r\033[K");
    std::fflush(stderr);
    line_is_there_ = false;
  }
}

void Progress::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, kInterval, [] { return false; });
    const Clock::time_point now = Clock::now();
    if (!stop.stop_requested() && is_working_ && (!waits_ || now - start_ >= kLongWork)) {
      show(now);
    }
  }
}

void Progress::show(Clock::time_point now) {
  const std::string line =
      fmt::format("{}: {}", name_, text(std::chrono::duration<double>(now - phase_start_).count()));
  if (is_terminal_) {
    // A line that wraps could not be taken away again.
    constexpr std::size_t kMaxColumns = 79;
    say("\r{}\033[K", line.substr(0, kMaxColumns));
    line_is_there_ = true;
  } else {
    say("{}\n", line);
  }
  std::fflush(stderr);
}

std::string Progress::text(double seconds) const {
  const auto n_all = static_cast<double>(n_bytes_);
  const double done =
      is_run_ ? run_.part() * n_all : static_cast<double>(n_done_.load(std::memory_order_relaxed));
  std::string line = what_;
  if (n_bytes_ > 0) {
    line +=
        fmt::format(" {:3.0f} % of {}", std::min(100.0, 100.0 * done / n_all), bytesText(n_all));
  } else if (!is_run_) {
    line += " " + bytesText(done);
  }
  if (done <= 0.0 || seconds < kShortestRateSeconds) {
    return line;
  }
  const double rate = done / seconds;
  line += fmt::format(", {}/s", bytesText(rate));
  if (n_bytes_ > 0 && done < n_all) {
    line += fmt::format(", {} left", durationText((n_all - done) / rate));
  }
  return line;
}

}  // namespace fz::cli
