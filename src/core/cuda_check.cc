#include "cuda_check.h"

#if FZ_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "core/require.h"
#include "log.h"

namespace fz::detail {

namespace {

const char* nameOf([[maybe_unused]] int code) {
#if FZ_HAVE_CUDA
  return cudaGetErrorString(static_cast<cudaError_t>(code));
#else
  return "unknown in a build without CUDA";
#endif
}

std::string cudaErrorText(int code, const char* call, const char* file, int line) {
  return fmt::format("CUDA: error {} ({}) from {} ({}:{})", code, nameOf(code), call, file, line);
}

}  // namespace

void throwCudaError(int code, const char* call, const char* file, int line) {
  constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
#if FZ_HAVE_CUDA
  cudaGetLastError();  // the exception carries it; nobody else may find it as an error of theirs
#endif
  throwError(code == kMemoryAllocation ? ErrorCode::kOutOfMemory : ErrorCode::kCuda,
             cudaErrorText(code, call, file, line));
}

void warnCudaError(int code, const char* call, const char* file, int line) noexcept {
#if FZ_HAVE_CUDA
  cudaGetLastError();  // said here; nobody else may find it
#endif
  FZ_LOG(WARN, "CUDA: error %d (%s) from %s (%s:%d)", code, nameOf(code), call, file, line);
}

}  // namespace fz::detail
