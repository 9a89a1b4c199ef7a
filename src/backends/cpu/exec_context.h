#pragma once

#include "fz/backend.h"
#include "fz/fusion.h"

namespace fz {

class CpuExecutor;

/// How a pipeline runs its stages; handed to each stage before it works.
struct ExecContext {
  Backend backend = Backend::CPU;
  const CpuExecutor* cpu = nullptr;
  Fusion fusion = Fusion::Auto;
};

}  // namespace fz
