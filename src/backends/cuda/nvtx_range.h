#pragma once

#include <nvtx3/nvToolsExt.h>

namespace fz::cuda {

/// Names what happens in its scope for profilers.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange() { nvtxRangePop(); }
};

}  // namespace fz::cuda
