#pragma once

#include <cstddef>
#include <cstdint>

namespace fz::cuda {

/// Memory of a batch, which no pipeline has: on the device, or of the host and pinned. Grows.
class BatchMemory {
 public:
  BatchMemory() = default;
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;
  ~BatchMemory();
  /// Whether it is new. Throws Error(kOutOfMemory, kCuda).
  bool reserve(std::size_t n_bytes, bool is_pinned = false);
  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t n_bytes_ = 0;
  bool is_pinned_ = false;
};

}  // namespace fz::cuda
