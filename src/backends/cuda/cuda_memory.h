#pragma once

#include <cstddef>
#include <memory>

namespace fz::cuda {

/// Where a pool on a device takes its blocks from: the driver's stream-ordered pool, or plain
/// cudaMalloc where there is none (or where it was asked for). Blocks are usable on every stream as
/// soon as they are returned. Releasing waits for the device; the pool above keeps its blocks, so
/// that happens when it shrinks or ends, not while it works.
class CudaMemory {
 public:
  CudaMemory(int device, bool force_fallback);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory();

  /// Null when memory cannot be had.
  void* allocateDevice(std::size_t n_bytes) noexcept;
  void releaseDevice(void* memory) noexcept;
  void* allocatePinned(std::size_t n_bytes) noexcept;
  void releasePinned(void* memory) noexcept;

  bool isFallback() const { return pool_ == nullptr; }
  /// The cudaMemPool_t; null in fallback mode.
  void* pool() const { return pool_; }
  int device() const { return device_; }

 private:
  int device_;
  void* pool_ = nullptr;
  void* stream_ = nullptr;
};

/// Memory that leaves the library: the caller frees it with cudaFree. Throws Error(kOutOfMemory).
void* allocateForCaller(std::size_t n_bytes, int device);
void freeForCaller(void* memory) noexcept;

}  // namespace fz::cuda
