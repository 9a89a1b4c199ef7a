#pragma once

// Marks code that host and device share. Forced inline on both sides: on the host so that a
// function from here takes on the vector target of its caller, on the device as usual.
#if defined(__CUDACC__)
#define FZ_HD __host__ __device__ __forceinline__
#else
#define FZ_HD inline __attribute__((always_inline))
#endif
