#pragma once

#include <optional>
#include <string>

#include "backends/cuda/group_kernels.h"

namespace fz::cuda::rtc {

/// A kernel for the chain on the current device, from the cache or compiled now. None: `why` says
/// the reason. What is loaded stays loaded.
std::optional<GroupKernel> makeGroupKernel(const GroupChain& chain, std::string& why);

}  // namespace fz::cuda::rtc
