#pragma once

#include <cstddef>
#include <memory>

#include "backends/cpu/parallel_for.h"

namespace fz {

bool hasTbb() noexcept;
/// Null when the build has no TBB.
std::unique_ptr<CpuExecutor> makeTbbExecutor(std::size_t n_threads);
std::unique_ptr<CpuExecutor> makeStdExecutor(std::size_t n_threads);

}  // namespace fz
