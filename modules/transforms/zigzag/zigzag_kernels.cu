#include "backends/cuda/map_kernel.cuh"
#include "shared/bits.h"
#include "transforms/zigzag/zigzag_cuda.h"

namespace fz::zigzag {

namespace {

struct Encode {
  template <class T>
  __device__ __forceinline__ auto operator()(T v) const {
    return bits::zigzag(v);
  }
};
struct Decode {
  template <class U>
  __device__ __forceinline__ auto operator()(U v) const {
    return bits::unzigzag(v);
  }
};

}  // namespace

void enqueueEncode(const CudaRun& run, std::size_t value_bytes) {
  cuda::enqueueMapToUnsigned(run, value_bytes, Encode{});
}
void enqueueDecode(const CudaRun& run, std::size_t value_bytes) {
  cuda::enqueueMapToSigned(run, value_bytes, Decode{});
}

}  // namespace fz::zigzag
