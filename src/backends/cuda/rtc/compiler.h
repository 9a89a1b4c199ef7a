#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/group_kernels.h"

namespace fz::cuda::rtc {

/// What a chain's kernel is compiled from: includes of its ops, the kernel fz_group and its shape
/// fz_group_shape.
std::string sourceOf(const GroupChain& chain);

/// Whether chains may be compiled at run time: always, unless FZ_NVRTC is `off`. It may also name
/// the compiler's library.
bool isEnabled();

/// Machine code of a source for one architecture (90 for sm_90), from the headers that were
/// compiled into the library. Empty when there is no compiler (NVRTC) on this machine or it
/// refuses; `why` says the reason.
std::vector<char> compile(const std::string& source, int architecture, std::string& why);

/// Version of the compiler; empty when there is none.
std::string compilerVersion();

}  // namespace fz::cuda::rtc
