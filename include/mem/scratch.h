#pragma once

#include <cstddef>
#include <span>

namespace fz {

class MemoryPool;

/// Working memory that a stage keeps between calls. Grows when asked for more, never shrinks, so
/// the second call of the same size allocates nothing.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  /// At least n values, 64-byte aligned, contents undefined. From the pool when there is one.
  /// Throws Error(kOutOfMemory), and Error(kLimit) beyond the pool's allowance. The pool must
  /// outlive this object or be the same in every call.
  template <class T>
  std::span<T> get(MemoryPool* pool, std::size_t n) {
    return {static_cast<T*>(bytes(pool, n * sizeof(T))), n};
  }

  void release();

 private:
  void* bytes(MemoryPool* pool, std::size_t n_bytes);

  MemoryPool* pool_ = nullptr;
  void* memory_ = nullptr;
  std::size_t capacity_bytes_ = 0;
};

}  // namespace fz
