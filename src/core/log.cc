#include "log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace fz {

namespace {

std::atomic<Logger::Callback> g_callback{nullptr};
std::atomic<LogLevel> g_min_level{LogLevel::INFO};

constexpr int kMessageBytes = 1024;

void toStderr(LogLevel level, const char* message) {
  std::fprintf(stderr, "[fz %s] %s\n", Logger::levelTag(level), message);
}

}  // namespace

void Logger::setCallback(Callback callback) noexcept {
  g_callback = callback;
}
void Logger::setMinLevel(LogLevel level) noexcept {
  g_min_level = level;
}
LogLevel Logger::getMinLevel() noexcept {
  return g_min_level;
}

void Logger::enableStderr(LogLevel level) noexcept {
  setMinLevel(level);
  setCallback(&toStderr);
}

void Logger::log(LogLevel level, const char* format, ...) noexcept {
  const Callback callback = g_callback;
  if (callback == nullptr || static_cast<int>(level) < static_cast<int>(getMinLevel())) {
    return;
  }
  char message[kMessageBytes];
  std::va_list args;
  va_start(args, format);
  std::vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  callback(level, message);
}

void Logger::print(const char* format, ...) noexcept {
  char message[kMessageBytes];
  std::va_list args;
  va_start(args, format);
  std::vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  const Callback callback = g_callback;
  if (callback != nullptr) {
    callback(LogLevel::INFO, message);
  } else {
    std::fputs(message, stdout);
    std::fputc('\n', stdout);
  }
}

const char* Logger::levelTag(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::TRACE:
      return "trace";
    case LogLevel::DEBUG:
      return "debug";
    case LogLevel::INFO:
      return "info";
    case LogLevel::WARN:
      return "warning";
    case LogLevel::SILENT:
      return "silent";
  }
  return "?";
}

}  // namespace fz
