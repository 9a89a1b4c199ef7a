#pragma once

#include <cstddef>
#include <cstdint>

#include "mem/mempool.h"

namespace fz {

/// A buffer of the pool that grows and keeps its contents when it does.
class PoolBuffer {
 public:
  explicit PoolBuffer(MemoryPool& pool) : pool_(&pool) {}
  PoolBuffer(const PoolBuffer&) = delete;
  PoolBuffer& operator=(const PoolBuffer&) = delete;
  ~PoolBuffer() { release(); }

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }
  std::size_t capacity() const { return capacity_bytes_; }
  /// Makes room for n_bytes; the first n_kept bytes survive. Throws Error(kOutOfMemory).
  void reserve(std::size_t n_bytes, std::size_t n_kept, const char* tag);
  void release();

 private:
  MemoryPool* pool_;
  void* memory_ = nullptr;
  std::size_t capacity_bytes_ = 0;
};

}  // namespace fz
