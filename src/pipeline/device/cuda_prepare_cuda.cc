// Taking at finalize() what the first compress() would otherwise take.
#include <algorithm>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/nvtx_range.h"
#include "cuda_check.h"
#include "log.h"
#include "pipeline/device/cuda_runner.h"

namespace fz {

namespace {

struct StreamDestroy {
  void operator()(CUstream_st* stream) const { FZ_CUDA_CHECK_WARN(cudaStreamDestroy(stream)); }
};
using OwnStream = std::unique_ptr<CUstream_st, StreamDestroy>;

OwnStream makeStream() {
  cudaStream_t stream = nullptr;
  FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return OwnStream(stream);
}

using PreparedInput = std::unique_ptr<void, void (*)(void*) noexcept>;

/// Not from the pool, which would keep a block that is not needed again. Null when there is none.
PreparedInput makeInput(std::size_t n_bytes, int device) try {
  return {cuda::allocateForCaller(n_bytes, device), &cuda::freeForCaller};
} catch (const Error&) {
  cudaGetLastError();  // dealt with here, so nobody else may find it
  return {nullptr, &cuda::freeForCaller};
}

}  // namespace

void CudaRunner::prepare(std::size_t n_bytes) {
  const cuda::NvtxRange range("fz::prepare");
  const cuda::DeviceGuard guard(core_.device);
  const std::vector<DAGNode*>& order = core_.engine->graph.order();
  // A stage from outside is run when the caller asks for it, not before.
  if (std::any_of(order.begin(), order.end(),
                  [](const DAGNode* node) { return simpleStage(*node) == nullptr; })) {
    return;
  }
  const OwnStream own_stream = makeStream();
  cudaStream_t stream = own_stream.get();
  const PreparedInput zeros = makeInput(n_bytes, core_.device);
  if (zeros == nullptr) {
    FZ_LOG(INFO, "finalize: no memory for an input of %zu bytes; the first call will allocate it",
           n_bytes);
    return;
  }
  for (const DAGNode* node : order) {
    node->stage->saveState();
  }
  const auto restore = [&] {
    core_.engine->reset(stream);
    for (const DAGNode* node : order) {
      node->stage->restoreState();
    }
    last_stream_ = nullptr;  // the stream goes, and all work on it is done
  };
  try {
    enter(stream);
    FZ_CUDA_CHECK(cudaMemsetAsync(zeros.get(), 0, n_bytes, stream));
    runToEnd(alignedInput(zeros.get(), n_bytes, stream), n_bytes, stream);
  } catch (const Error& e) {
    abandon(stream);
    restore();
    if (e.code() == ErrorCode::kOutOfMemory || e.code() == ErrorCode::kCuda) {
      throw;
    }
    // Zeros of this length are not what the stages are set up for; that is for compress() to tell.
    FZ_LOG(INFO, "finalize: the first call will allocate memory: %s", e.what());
    return;
  }
  restore();
}

}  // namespace fz
