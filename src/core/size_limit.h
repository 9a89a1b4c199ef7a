#pragma once

#include <fmt/format.h>

#include "fz/size_limit.h"

/// Checks that a stage can count what came; throws fz::SizeLimitError, whose message begins with
/// the name of the stage.
#define FZ_REQUIRE_SIZE(condition, stage, ...)                                            \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      throw ::fz::SizeLimitError((stage), (stage) + (": " + ::fmt::format(__VA_ARGS__))); \
    }                                                                                     \
  } while (false)
