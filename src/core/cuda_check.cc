#include "cuda_check.h"

#include "core/require.h"
#include "log.h"

namespace fz::detail {

namespace {

std::string cudaErrorText(int code, const char* call, const char* file, int line) {
  return fmt::format("CUDA: error {} from {} ({}:{})", code, call, file, line);
}

}  // namespace

void throwCudaError(int code, const char* call, const char* file, int line) {
  throwError(ErrorCode::kCuda, cudaErrorText(code, call, file, line));
}

void warnCudaError(int code, const char* call, const char* file, int line) noexcept {
  FZ_LOG(WARN, "CUDA: error %d from %s (%s:%d)", code, call, file, line);
}

}  // namespace fz::detail
