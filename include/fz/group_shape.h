#pragma once

#include <cstdint>

namespace fz {

/// How a group's kernel is launched; known when it is compiled.
struct GroupShape {
  std::uint32_t n_threads = 0;             ///< of a thread block
  std::uint32_t tile_values = 0;           ///< values that a thread block works on at a time
  std::uint32_t shared_bytes = 0;          ///< dynamic shared memory
  std::uint32_t blocks_per_processor = 0;  ///< 0: one thread block per tile
  std::uint32_t args_bytes = 0;            ///< size of the kernel's parameter
};

}  // namespace fz
