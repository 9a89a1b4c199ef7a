#include "backends/cuda/delta_decode.cuh"

namespace fz::delta {

std::size_t decodeScratchBytes(std::uint64_t n_bytes) {
  // The state of a chained tile has 16 bytes at most; before them stands the word of decodeFloats.
  return kScratchStates + (n_bytes / kTileBytes + 1) * sizeof(cuda::ChainState<std::uint64_t>);
}

template <class U>
void decodeBlocks(const CudaBlocks& run, Code code, void* scratch) {
  void* states = static_cast<std::uint8_t*>(scratch) + kScratchStates;
  if (code == Code::kNegabinary) {
    launchDecode<U, Code::kNegabinary>(run, states, nullptr);
  } else {
    launchDecode<U, Code::kPlain>(run, states, nullptr);
  }
}

template void decodeBlocks<std::uint8_t>(const CudaBlocks&, Code, void*);
template void decodeBlocks<std::uint16_t>(const CudaBlocks&, Code, void*);
template void decodeBlocks<std::uint32_t>(const CudaBlocks&, Code, void*);
template void decodeBlocks<std::uint64_t>(const CudaBlocks&, Code, void*);

}  // namespace fz::delta
