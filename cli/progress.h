#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "fz/progress.h"

namespace fz::cli {

enum class ProgressMode : std::uint8_t {
  kAuto,  ///< for work of more than half a second, when standard error is a terminal
  kAlways,
  kNever,
};

/// A line on standard error that says how far the work on one file has come: at most ten times a
/// second, from a thread of its own. What it shows was counted, never guessed.
class Progress {
 public:
  Progress(ProgressMode mode, std::string name);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes the line away.
  ~Progress();

  /// A part of the work that counts bytes with add(); 0 bytes in all: not known.
  void beginBytes(std::string_view what, std::uint64_t n_bytes);
  /// A part of the work that a pipeline does and counts; give it pipeline().
  void beginRun(std::string_view what, std::uint64_t n_bytes);
  void add(std::uint64_t n_bytes) { n_done_.fetch_add(n_bytes, std::memory_order_relaxed); }
  RunProgress* pipeline() { return &run_; }
  /// Takes the line away until the next part of the work begins.
  void pause();
  /// The work is done: the line goes, so that messages can follow.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void begin(std::string_view what, std::uint64_t n_bytes, bool is_run);
  void watch(const std::stop_token& stop);
  void show(Clock::time_point now);
  std::string text(double seconds) const;
  void clearLine();

  const bool is_terminal_;
  const bool is_shown_;
  const bool waits_;
  const std::string name_;
  const Clock::time_point start_;
  RunProgress run_;
  std::atomic<std::uint64_t> n_done_{0};

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any wake_;
  std::string what_;
  std::uint64_t n_bytes_ = 0;
  bool is_run_ = false;
  bool is_working_ = false;
  bool line_is_there_ = false;
  Clock::time_point phase_start_;
  std::jthread thread_;
};

/// "4.29 GB": decimal units, three digits.
std::string bytesText(double n_bytes);
/// "12 s", "3 min 05 s", "2 h 07 min".
std::string durationText(double seconds);

}  // namespace fz::cli
