#include "pipeline/pool_buffer.h"

#include <cstring>

#include "core/require.h"

namespace fz {

void PoolBuffer::reserve(std::size_t n_bytes, std::size_t n_kept, const char* tag) {
  if (n_bytes <= capacity_bytes_) {
    return;
  }
  void* larger = pool_->allocatePersistentDevice(n_bytes, tag);
  FZ_REQUIRE(larger != nullptr, ErrorCode::kOutOfMemory,
             "Pipeline: cannot allocate {} bytes for the {}", n_bytes, tag);
  if (n_kept > 0) {
    std::memcpy(larger, memory_, n_kept);
  }
  release();
  memory_ = larger;
  capacity_bytes_ = n_bytes;
}

void PoolBuffer::release() {
  if (memory_ != nullptr) {
    pool_->freePersistentDevice(memory_);
  }
  memory_ = nullptr;
  capacity_bytes_ = 0;
}

}  // namespace fz
