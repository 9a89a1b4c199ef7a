#pragma once

#include <cstdint>

#include "transforms/mask/cuda/kernels.h"

namespace fz::mask {

/// Args of MaskOp; one of `found` and `plan` is null.
template <class T>
struct alignas(16) MaskArgs {
  Fills<T> fills;
  std::uint32_t n_fills;
  // Encoding.
  std::uint32_t hold_values;  ///< a power of two from 32 on
  Findings* found;
  std::uint64_t marker;
  bool is_looked_at;  ///< an earlier pass has found everything
  // Both.
  std::uint32_t* words;  ///< 32 values each
  // Decoding.
  const MaskPlan* plan;
  StageRecord* record;
};

}  // namespace fz::mask
