#include "gpu/failing_cuda.h"

#include <atomic>

#include <cuda_runtime_api.h>

// NOLINTNEXTLINE: the name that the linker gives it
extern "C" cudaError_t __real_cudaMalloc(void** memory, std::size_t n_bytes);

namespace fz::test::failing_cuda {

namespace {

struct State {
  bool is_watched = false;
  bool is_failing = false;
  bool and_all_later = false;
  std::uint64_t fail_at = 0;
  std::uint64_t n_calls = 0;
  const char* failed_call = "";
  std::atomic<std::int64_t> n_held = 0;  // threads take resources too
};
State state;  // NOLINT: the wrapped calls have no context

/// Whether this call is to fail.
bool isRefused(const char* name) {
  if (!state.is_watched || !state.is_failing) {
    return false;
  }
  const std::uint64_t i = state.n_calls++;
  const bool fails = i == state.fail_at || (state.and_all_later && i > state.fail_at);
  state.failed_call = fails && *state.failed_call == '\0' ? name : state.failed_call;
  return fails;
}

/// The driver's own failure, which also leaves its mark for whoever asks for the last error.
cudaError_t outOfMemory() {
  // Else a stream that is being captured would be spoilt by a call it does not allow.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  void* memory = nullptr;
  const cudaError_t status = __real_cudaMalloc(&memory, std::size_t{1} << 60);
  cudaThreadExchangeStreamCaptureMode(&mode);
  return status;
}

cudaError_t taken(cudaError_t status) {
  state.n_held += status == cudaSuccess ? 1 : 0;
  return status;
}
cudaError_t given(const void* resource, cudaError_t status) {
  state.n_held -= status == cudaSuccess && resource != nullptr ? 1 : 0;
  return status;
}

}  // namespace

Watch::Watch() {
  state.is_watched = true;
}
Watch::~Watch() {
  state.is_watched = false;
}

void failAt(std::uint64_t n, bool and_all_later) {
  state.fail_at = n;
  state.and_all_later = and_all_later;
  state.n_calls = 0;
  state.failed_call = "";
  state.is_failing = true;
}
void stop() {
  state.is_failing = false;
}
std::uint64_t callCount() {
  return state.n_calls;
}
const char* failedCall() {
  return state.failed_call;
}
std::int64_t heldCount() {
  return state.n_held;
}

}  // namespace fz::test::failing_cuda

// The linker sends calls of NAME to __wrap_NAME, and __real_NAME to the runtime.
using namespace fz::test::failing_cuda;  // NOLINT(google-build-using-namespace)

// Parameter lists, and names that the linker has chosen.
// NOLINTBEGIN(bugprone-macro-parentheses,bugprone-reserved-identifier,readability-identifier-naming)
#define FZ_TAKES(name, parameters, arguments)                                 \
  cudaError_t __real_##name parameters;                                       \
  cudaError_t __wrap_##name parameters {                                      \
    return isRefused(#name) ? outOfMemory() : taken(__real_##name arguments); \
  }
#define FZ_USES(name, parameters, arguments)                           \
  cudaError_t __real_##name parameters;                                \
  cudaError_t __wrap_##name parameters {                               \
    return isRefused(#name) ? outOfMemory() : __real_##name arguments; \
  }
#define FZ_GIVES(name, type)                         \
  cudaError_t __real_##name(type resource);          \
  cudaError_t __wrap_##name(type resource) {         \
    return given(resource, __real_##name(resource)); \
  }

extern "C" {

FZ_TAKES(cudaMalloc, (void** memory, std::size_t n_bytes), (memory, n_bytes))
FZ_TAKES(cudaMallocHost, (void** memory, std::size_t n_bytes), (memory, n_bytes))
FZ_TAKES(cudaMallocFromPoolAsync,
         (void** memory, std::size_t n_bytes, cudaMemPool_t pool, cudaStream_t stream),
         (memory, n_bytes, pool, stream))
FZ_TAKES(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* props), (pool, props))
FZ_TAKES(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
FZ_TAKES(cudaStreamCreateWithPriority,
         (cudaStream_t * stream, unsigned flags, int priority),
         (stream, flags, priority))
FZ_TAKES(cudaEventCreate, (cudaEvent_t * event), (event))
FZ_TAKES(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
FZ_TAKES(cudaGraphInstantiate,
         (cudaGraphExec_t * made, cudaGraph_t graph, unsigned long long flags),
         (made, graph, flags))

FZ_USES(cudaGraphExecUpdate,
        (cudaGraphExec_t made, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info),
        (made, graph, info))
FZ_USES(cudaGraphLaunch, (cudaGraphExec_t made, cudaStream_t stream), (made, stream))
FZ_USES(cudaFuncSetAttribute, (const void* f, cudaFuncAttribute what, int value), (f, what, value))
FZ_USES(cudaLaunchKernel,
        (const void* f, dim3 grid, dim3 block, void** args, std::size_t n_shared, cudaStream_t s),
        (f, grid, block, args, n_shared, s))
FZ_USES(__cudaLaunchKernel,
        (cudaKernel_t f, dim3 grid, dim3 block, void** args, std::size_t n_shared, cudaStream_t s),
        (f, grid, block, args, n_shared, s))

FZ_GIVES(cudaFree, void*)
FZ_GIVES(cudaFreeHost, void*)
FZ_GIVES(cudaMemPoolDestroy, cudaMemPool_t)
FZ_GIVES(cudaStreamDestroy, cudaStream_t)
FZ_GIVES(cudaEventDestroy, cudaEvent_t)
FZ_GIVES(cudaGraphExecDestroy, cudaGraphExec_t)

cudaError_t __real_cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t __wrap_cudaFreeAsync(void* memory, cudaStream_t stream) {
  return given(memory, __real_cudaFreeAsync(memory, stream));
}

// A capture that fails is over all the same, as the runtime has it.
cudaError_t __real_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const cudaError_t status = __real_cudaStreamEndCapture(stream, graph);
  if (status != cudaSuccess || !isRefused("cudaStreamEndCapture")) {
    return status;
  }
  cudaGraphDestroy(*graph);
  *graph = nullptr;
  return outOfMemory();
}

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses,bugprone-reserved-identifier,readability-identifier-naming)
