#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fz/stream.h"

namespace fz {
class ZeroedScratch;
}

namespace fz::cuda {

/// Words that a kernel sets to zero besides its own work.
struct ClearRange {
  std::uint64_t* words;
  std::uint64_t n_words;
};

/// While it lives, memory that stages of this thread want cleared behind their kernels is noted
/// here: the kernel that ends the run clears it, where a memset would be one more thing that the
/// stream waits for. What no kernel has taken over is cleared at the end of its life.
class DeferredClears {
 public:
  static constexpr std::size_t kMostRanges = 4;

  explicit DeferredClears(cudaStream_t stream);
  DeferredClears(const DeferredClears&) = delete;
  DeferredClears& operator=(const DeferredClears&) = delete;
  ~DeferredClears();

  /// False: nobody will; the caller must clear it himself. Else the owner, which must live as long,
  /// hears of it when the clearing is enqueued, which may fail.
  static bool add(std::uint8_t* memory,
                  std::size_t n_bytes,
                  cudaStream_t stream,
                  ZeroedScratch& owner);
  /// Its memory is needed before the run ends.
  static void withdraw(const ZeroedScratch& owner);

  std::span<const ClearRange> ranges() const { return {ranges_.data(), n_ranges_}; }
  /// A kernel that clears all of them is enqueued.
  void release();

 private:
  cudaStream_t stream_;
  DeferredClears* previous_;
  std::array<ClearRange, kMostRanges> ranges_ = {};
  std::array<ZeroedScratch*, kMostRanges> owners_ = {};
  std::size_t n_ranges_ = 0;
};

}  // namespace fz::cuda
