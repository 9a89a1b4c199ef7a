#pragma once

#include <string>

#include "fz/error.h"

namespace fz::detail {

/// Slow path of FZ_CUDA_CHECK: throws Error(kCuda) naming the call, its place and the CUDA error.
[[noreturn]] void throwCudaError(int code, const char* call, const char* file, int line);
/// Slow path of FZ_CUDA_CHECK_WARN: logs the same text and returns.
void warnCudaError(int code, const char* call, const char* file, int line) noexcept;

}  // namespace fz::detail

/// Throws when a CUDA call fails. Usable wherever the caller includes the CUDA runtime.
#define FZ_CUDA_CHECK(call)                                                    \
  do {                                                                         \
    const int fz_cuda_status = static_cast<int>(call);                         \
    if (fz_cuda_status != 0) {                                                 \
      ::fz::detail::throwCudaError(fz_cuda_status, #call, __FILE__, __LINE__); \
    }                                                                          \
  } while (false)

/// Logs when a CUDA call fails; for destructors and other places that must not throw.
#define FZ_CUDA_CHECK_WARN(call)                                              \
  do {                                                                        \
    const int fz_cuda_status = static_cast<int>(call);                        \
    if (fz_cuda_status != 0) {                                                \
      ::fz::detail::warnCudaError(fz_cuda_status, #call, __FILE__, __LINE__); \
    }                                                                         \
  } while (false)
