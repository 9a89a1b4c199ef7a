#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cuda/graph_launcher.h"
#include "mem/mempool.h"

namespace fz {

/// Where a field of a batch begins, and where what is made of it goes.
struct BatchAddresses {
  std::uint64_t input;
  std::uint64_t output;
  std::uint64_t input_bytes;  ///< decoding: of the frame
};

/// What one field of a batch takes, by a pipeline that has run before.
struct BatchRecording {
  cuda::LaunchLog log;
  std::vector<PoolBlock> blocks;         ///< of its memory
  const std::uint8_t* result = nullptr;  ///< where the run would leave its records for the host
  std::size_t n_records = 0;
  std::vector<std::uint32_t> quiet;  ///< CudaPart::quietValues(), by record
  std::size_t output_bytes = 0;      ///< room that the output must have
  std::size_t bound_word = 0;        ///< of the result: the absolute bound; 0: there is none
};

}  // namespace fz
