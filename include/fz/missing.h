#pragma once

#include <cstdint>
#include <vector>

namespace fz {

/// Missing values of a field: NaN, infinities, and values equal to a declared fill value.
struct MissingInfo {
  std::uint64_t n_missing = 0;
  std::uint64_t n_filled = 0;  ///< those of them that are finite, and so missing by declaration
  std::vector<double> fill;    ///< declared
};

}  // namespace fz
