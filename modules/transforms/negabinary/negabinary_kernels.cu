#include <cstdint>

#include "backends/cuda/map_kernel.cuh"
#include "shared/bits.h"
#include "transforms/negabinary/negabinary_cuda.h"

namespace fz::negabinary {

namespace {

struct Encode {
  template <class T>
  __device__ __forceinline__ auto operator()(T v) const {
    return bits::negabinary(v);
  }
};
struct Decode {
  template <class U>
  __device__ __forceinline__ auto operator()(U v) const {
    return bits::unnegabinary(v);
  }
};

}  // namespace

void enqueueEncode(const CudaRun& run, std::size_t value_bytes) {
  switch (value_bytes) {
    case 1:
      return cuda::enqueueMap<std::int8_t, std::uint8_t>(run, Encode{});
    case 2:
      return cuda::enqueueMap<std::int16_t, std::uint16_t>(run, Encode{});
    case 4:
      return cuda::enqueueMap<std::int32_t, std::uint32_t>(run, Encode{});
    default:
      return cuda::enqueueMap<std::int64_t, std::uint64_t>(run, Encode{});
  }
}

void enqueueDecode(const CudaRun& run, std::size_t value_bytes) {
  switch (value_bytes) {
    case 1:
      return cuda::enqueueMap<std::uint8_t, std::int8_t>(run, Decode{});
    case 2:
      return cuda::enqueueMap<std::uint16_t, std::int16_t>(run, Decode{});
    case 4:
      return cuda::enqueueMap<std::uint32_t, std::int32_t>(run, Decode{});
    default:
      return cuda::enqueueMap<std::uint64_t, std::int64_t>(run, Decode{});
  }
}

}  // namespace fz::negabinary
