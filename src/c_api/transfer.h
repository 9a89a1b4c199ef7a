#pragma once

#include <cstddef>
#include <vector>

#include "fz/span.h"
#include "fz/stream.h"
#include "mem/mempool.h"

namespace fz::c_api {

/// Copies between any two places of the backend's world and waits. Throws Error(kCuda).
void copyAndWait(
    const MemoryPool& pool, void* to, const void* from, std::size_t n_bytes, cudaStream_t stream);

/// Values as the pipeline's backend takes them: where they are on the CPU, else copied to the
/// device for as long as this lives.
class Uploaded {
 public:
  /// Throws Error (kOutOfMemory, kCuda).
  Uploaded(MemoryPool& pool, ByteView bytes, cudaStream_t stream);
  Uploaded(const Uploaded&) = delete;
  Uploaded& operator=(const Uploaded&) = delete;
  ~Uploaded();
  const void* data() const { return data_; }

 private:
  MemoryPool& pool_;
  cudaStream_t stream_;
  void* memory_ = nullptr;
  const void* data_;
};

}  // namespace fz::c_api
