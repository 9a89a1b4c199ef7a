#pragma once

// A barrier in shared memory at which arriving and waiting are two things. Device code only.

#include <cstdint>

namespace fz::cuda {

/// Passes phase after phase; a phase ends when `count` threads have arrived. What a thread wrote
/// before it arrived is seen by those who saw the phase end.
class BlockBarrier {
 public:
  /// One thread, before a barrier of the block.
  __device__ __forceinline__ void init(unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    [[maybe_unused]] std::uint64_t state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(address()) : "memory");
  }
  /// Until the phase with this parity has ended. The caller must not be two phases late.
  __device__ __forceinline__ void wait(unsigned parity) const {
#if __CUDA_ARCH__ >= 900  // the hardware lets others run meanwhile
    std::uint32_t done;
    do {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(address()), "r"(parity)
          : "memory");
    } while (done == 0);
#else
    while (!isPast(parity)) {
    }
#endif
  }
  /// Whether that phase has ended.
  __device__ __forceinline__ bool isPast(unsigned parity) const {
    std::uint32_t done;
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(address()), "r"(parity)
        : "memory");
    return done != 0;
  }

 private:
  __device__ __forceinline__ std::uint32_t address() const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(&word_));
  }

  std::uint64_t word_;
};

}  // namespace fz::cuda
