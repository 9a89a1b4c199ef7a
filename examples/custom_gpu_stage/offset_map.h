#pragma once

// What the stage does to a value: for the CPU, for its kernels and, as text, for the run-time
// compiler of fused groups.

#include <cstdint>

#ifdef __CUDACC__
#define EXAMPLE_HD __host__ __device__
#else
#define EXAMPLE_HD
#endif

namespace example {

struct OffsetMap {
  std::uint32_t offset = 0;

  EXAMPLE_HD std::int32_t encode(std::int32_t value) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) - offset);
  }
  EXAMPLE_HD std::int32_t decode(std::int32_t code) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(code) + offset);
  }
};

}  // namespace example
