#include "c_api/transfer.h"

#include <cstring>

#include "core/require.h"

#if FZ_HAVE_CUDA
#include <cuda_runtime_api.h>

#include "cuda_check.h"
#endif

namespace fz::c_api {

void copyAndWait([[maybe_unused]] const MemoryPool& pool,
                 void* to,
                 const void* from,
                 std::size_t n_bytes,
                 [[maybe_unused]] cudaStream_t stream) {
  if (n_bytes == 0) {
    return;
  }
#if FZ_HAVE_CUDA
  if (pool.getBackend() == Backend::CUDA) {
    FZ_CUDA_CHECK(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream));
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    return;
  }
#endif
  std::memcpy(to, from, n_bytes);
}

Uploaded::Uploaded(MemoryPool& pool, ByteView bytes, cudaStream_t stream)
    : pool_(pool), stream_(stream), data_(bytes.data()) {
  if (pool.getBackend() != Backend::CUDA || bytes.empty()) {
    return;
  }
  memory_ = pool.allocate(bytes.size(), stream, "input");
  FZ_REQUIRE(memory_ != nullptr, ErrorCode::kOutOfMemory,
             "cannot allocate {} bytes of device memory for the input", bytes.size());
  data_ = memory_;
  try {
    copyAndWait(pool, memory_, bytes.data(), bytes.size(), stream);
  } catch (...) {
    pool.free(memory_, stream);
    throw;
  }
}

Uploaded::~Uploaded() {
  if (memory_ != nullptr) {
    pool_.free(memory_, stream_);
  }
}

}  // namespace fz::c_api
