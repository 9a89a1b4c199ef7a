#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/cuda_part.h"
#include "mem/scratch.h"

namespace fz {

/// Working memory on a device that every run finds at zero and leaves at zero. Only memory that is
/// new is cleared: a launch for that before every run would cost a small call more than its use.
class ZeroedScratch {
 public:
  /// At least n_bytes, 64-byte aligned, zero when the stream gets there. What the caller enqueues
  /// must leave them so.
  std::uint8_t* get(const cuda::Call& call, std::size_t n_bytes);
  /// What the last get() gave.
  std::uint8_t* data() const { return data_; }
  /// All of that is enqueued. What a run that breaks off before leaves behind is unknown.
  void recordZero() { is_in_use_ = is_uncertain_; }
  /// Or this instead, behind kernels that leave something else: the kernel that ends a compression
  /// clears it, or a memset where there is none.
  void clear(const cuda::Call& call);

 private:
  Scratch memory_;
  std::uint8_t* data_ = nullptr;
  MemoryPool* pool_ = nullptr;  // that it is from
  std::size_t n_bytes_ = 0;     // that the last get() asked for
  std::size_t n_zero_bytes_ = 0;
  bool is_in_use_ = false;
  bool is_uncertain_ = false;  // cleared in a graph only, which may never run
};

}  // namespace fz
