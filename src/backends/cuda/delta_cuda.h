#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/cuda_part.h"
#include "shared/delta.h"

/// Block-local differences on the device; what backends/cpu/delta_cpu.h is on the host. U is one of
/// the unsigned integers and serves the signed type of its width too; T is float or double. All
/// functions only enqueue. A wrong size is recorded as DeviceError::kCorrupt, with the size as its
/// index.
namespace fz::delta {

struct CudaBlocks {
  CudaInput input;
  CudaOutput output;  ///< as large as the input
  /// Values per block: up to 1024, or a power of two; 0 means one block.
  std::uint64_t block;
  /// The only size that is right; 0 for any whole number of values.
  std::uint64_t expected_bytes;
  StageRecord* record;
  cudaStream_t stream;
};

CudaBlocks cudaBlocks(const cuda::Call& call,
                      std::uint64_t block,
                      std::uint64_t expected_bytes = 0);

template <class U>
void encodeBlocks(const CudaBlocks& run, Code code);
/// Notes DeviceError::kBound at the first value that its difference does not restore.
template <class T>
void encodeFloats(const CudaBlocks& run);

/// Working memory of the decoders for inputs of up to n_bytes.
std::size_t decodeScratchBytes(std::uint64_t n_bytes);

template <class U>
void decodeBlocks(const CudaBlocks& run, Code code, void* scratch);
/// Sums from left to right, as the format asks. Parallel where the sums turn out not to depend on
/// the order (whole numbers, say); otherwise one warp per block, one value at a time.
template <class T>
void decodeFloats(const CudaBlocks& run, void* scratch);

}  // namespace fz::delta
