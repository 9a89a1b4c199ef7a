#pragma once

#include <cstdint>

namespace fz::diff {

/// Args of DiffOp.
struct DiffArgs {
  std::uint64_t chunk_values;  ///< a power of two; 0: one chunk, only when encoding
};

}  // namespace fz::diff
