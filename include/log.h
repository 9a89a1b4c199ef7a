#pragma once

namespace fz {

// NOLINTBEGIN(readability-identifier-naming)
enum class LogLevel : int { TRACE = 0, DEBUG = 1, INFO = 2, WARN = 3, SILENT = 255 };
// NOLINTEND(readability-identifier-naming)

/// Messages for people, never needed for correctness: a condition that loses data throws instead.
/// Silent until a callback is set. Setting the callback is thread-safe.
class Logger {
 public:
  using Callback = void (*)(LogLevel, const char*);

  /// Null silences the library.
  static void setCallback(Callback callback) noexcept;
  static void setMinLevel(LogLevel level) noexcept;
  static LogLevel getMinLevel() noexcept;
  /// Installs a callback that writes to standard error.
  static void enableStderr(LogLevel level = LogLevel::INFO) noexcept;
  static void log(LogLevel level, const char* format, ...) noexcept
      __attribute__((format(printf, 2, 3)));
  /// To the callback as INFO; to standard output when there is none.
  static void print(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));
  static const char* levelTag(LogLevel level) noexcept;
};

}  // namespace fz

#ifndef FZ_LOG_MIN_LEVEL
#define FZ_LOG_MIN_LEVEL 2
#endif

/// FZ_LOG(WARN, "format", ...): compiled out below FZ_LOG_MIN_LEVEL.
#define FZ_LOG(level, ...)                                                       \
  do {                                                                           \
    if constexpr (static_cast<int>(::fz::LogLevel::level) >= FZ_LOG_MIN_LEVEL) { \
      ::fz::Logger::log(::fz::LogLevel::level, __VA_ARGS__);                     \
    }                                                                            \
  } while (false)
#define FZ_PRINT(...) ::fz::Logger::print(__VA_ARGS__)
