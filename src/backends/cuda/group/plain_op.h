#pragma once

#include "fz/device_types.h"

namespace fz::group {

/// Where the values of a group without a coder go, or come from.
struct alignas(16) PlainArgs {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint64_t n_values;
};

}  // namespace fz::group
