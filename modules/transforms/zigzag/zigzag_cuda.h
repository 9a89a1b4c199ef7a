#pragma once

#include <cstddef>

#include "fz/cuda_part.h"

namespace fz::zigzag {

/// Maps values of value_bytes bytes each on a device.
void enqueueEncode(const CudaRun& run, std::size_t value_bytes);
void enqueueDecode(const CudaRun& run, std::size_t value_bytes);

}  // namespace fz::zigzag
