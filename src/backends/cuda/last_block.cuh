#pragma once

// What the block of a grid does that is done last. Device code only.

#include <cstdint>

namespace fz::cuda {

/// All threads of every block, when the block has no more to do with the run: true in the block
/// that comes last, which sees what all have written. *n_blocks_done is 0 before.
__device__ __forceinline__ bool isLastBlock(std::uint64_t* n_blocks_done) {
  __syncthreads();
  bool is_last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    auto* counter = reinterpret_cast<unsigned long long*>(n_blocks_done);
    is_last = atomicAdd(counter, 1ull) == gridDim.x - 1;  // order-free: whoever it is
    __threadfence();
  }
  return __syncthreads_or(is_last ? 1 : 0) != 0;
}

/// The same, for memory that a grid shares and leaves at zero, so that no launch must clear it
/// before the next one: the last block sets the n words back, the counter among them too.
__device__ __forceinline__ void clearWhenLast(std::uint64_t* words,
                                              std::uint64_t n,
                                              std::uint64_t* n_blocks_done) {
  if (isLastBlock(n_blocks_done)) {
    for (std::uint64_t i = threadIdx.x; i < n; i += blockDim.x) {
      words[i] = 0;
    }
  }
}

}  // namespace fz::cuda
