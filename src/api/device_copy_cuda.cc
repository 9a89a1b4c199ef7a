#include <memory>

#include <cuda_runtime_api.h>

#include "api/device_copy.h"
#include "api/host_run.h"
#include "backends/cuda/cuda_memory.h"
#include "core/require.h"
#include "cuda_check.h"

namespace fz {

namespace {

/// A copy of host memory on the device, from the pipeline's pool.
class DeviceCopy {
 public:
  DeviceCopy(MemoryPool& pool, ByteView bytes)
      : pool_(pool), memory_(pool.allocate(bytes.size(), nullptr, "input")) {
    FZ_REQUIRE(memory_ != nullptr || bytes.empty(), ErrorCode::kOutOfMemory,
               "cannot allocate {} bytes of device memory for the input", bytes.size());
    FZ_CUDA_CHECK(cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyDefault));
  }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;
  ~DeviceCopy() { pool_.free(memory_, nullptr); }
  const void* data() const { return memory_; }

 private:
  MemoryPool& pool_;
  void* memory_;
};

std::vector<std::uint8_t> toHost(const void* memory, std::size_t n_bytes) {
  std::vector<std::uint8_t> bytes(n_bytes);
  FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), memory, n_bytes, cudaMemcpyDefault));
  return bytes;
}

}  // namespace

Frame compressByDevice(Pipeline& pipeline, ByteView bytes, const CompressOptions& options) {
  const DeviceCopy input(pipeline.getMemoryPool(), bytes);
  const CompressedView on_device = pipeline.compress(input.data(), bytes.size());
  requireSoundRange(pipeline, bytes, options);
  return Frame(toHost(on_device.data, on_device.n_bytes));
}

std::vector<std::uint8_t> takeFromDevice(void* memory, std::size_t n_bytes) {
  const std::unique_ptr<void, void (*)(void*)> owner(memory, &cuda::freeForCaller);
  return toHost(memory, n_bytes);
}

}  // namespace fz
