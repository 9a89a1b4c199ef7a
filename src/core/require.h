#pragma once

#include <fmt/format.h>
#include <string>

#include "fz/error.h"

namespace fz::detail {

[[noreturn]] void throwError(ErrorCode code, const std::string& message);
[[noreturn]] void throwInvalidArgument(const std::string& message);
[[noreturn]] void throwAssert(const char* condition, const char* file, int line);

}  // namespace fz::detail

/// Checks input, files and settings; throws fz::Error with a formatted message.
#define FZ_REQUIRE(condition, code, ...)                            \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::fz::detail::throwError((code), ::fmt::format(__VA_ARGS__)); \
    }                                                               \
  } while (false)

/// Checks a setting at its setter; throws fz::InvalidArgument.
#define FZ_REQUIRE_ARG(condition, ...)                                \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      ::fz::detail::throwInvalidArgument(::fmt::format(__VA_ARGS__)); \
    }                                                                 \
  } while (false)

/// Checks a promise of our own code; throws fz::Error(kInternal).
#define FZ_ASSERT(condition)                                     \
  do {                                                           \
    if (!(condition)) [[unlikely]] {                             \
      ::fz::detail::throwAssert(#condition, __FILE__, __LINE__); \
    }                                                            \
  } while (false)
