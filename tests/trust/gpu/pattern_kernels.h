#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/stream.h"

/// Kernels of the goals that run on a device.
namespace fz::trust {

/// values[i] = the float whose bits are first + i.
void enqueuePatterns(float* values, std::size_t n, std::uint32_t first, cudaStream_t stream);

/// values[i] = a double that depends on seed and i alone: any bit pattern, or with `near_one` one
/// between 2^-4 and 2^4 in size.
void enqueueRandomDoubles(
    double* values, std::size_t n, std::uint64_t seed, bool near_one, cudaStream_t stream);

/// Decoded values that miss their bound.
struct Misses {
  unsigned long long n;
  unsigned long long example;  ///< bits of one of the originals
};

/// Adds to *found how many of the decoded values miss the bound (exact.h), and names one of them.
void enqueueMisses(const float* values,
                   const float* decoded,
                   std::size_t n,
                   double bound,
                   bool relative,
                   Misses* found,
                   cudaStream_t stream);
void enqueueMisses(const double* values,
                   const double* decoded,
                   std::size_t n,
                   double bound,
                   bool relative,
                   Misses* found,
                   cudaStream_t stream);

}  // namespace fz::trust
