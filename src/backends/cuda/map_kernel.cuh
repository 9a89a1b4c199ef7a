#pragma once

// A map value by value: the plainest kernel, bound by memory alone.

#include <cstddef>
#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"

namespace fz::cuda {

inline constexpr unsigned kMapThreads = 256;
inline constexpr unsigned kMapVectors = 4;  // 16-byte loads in flight per thread
inline constexpr unsigned kMapBlockBytes = kMapThreads * kMapVectors * 16;

/// out[i] = f(in[i]) for values of one width; T and U have the same size.
template <class T, class U, class F>
__global__ void __launch_bounds__(kMapThreads) mapKernel(const std::uint8_t* __restrict__ in,
                                                         DeviceSize size,
                                                         std::uint8_t* __restrict__ out,
                                                         StageRecord* publish_to,
                                                         std::uint64_t capacity_bytes,
                                                         F f) {
  const std::uint64_t n_bytes = load(size);
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * kMapBlockBytes;
  if (publish_to != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    publishSize(publish_to, 0, n_bytes, capacity_bytes);
  }
  const auto apply = [&f](uint4 raw) {
    Vec16<T> from;
    Vec16<U> to;
    from.raw = raw;
#pragma unroll
    for (unsigned k = 0; k < Vec16<T>::kCount; ++k) {
      to.v[k] = f(from.v[k]);
    }
    return to.raw;
  };
  if (begin + kMapBlockBytes <= n_bytes) {
    uint4 v[kMapVectors];
#pragma unroll
    for (unsigned k = 0; k < kMapVectors; ++k) {
      v[k] = loadStream(in + begin + (k * kMapThreads + threadIdx.x) * 16);
    }
#pragma unroll
    for (unsigned k = 0; k < kMapVectors; ++k) {
      storeStream(out + begin + (k * kMapThreads + threadIdx.x) * 16, apply(v[k]));
    }
    return;
  }
  const std::uint64_t n_values = n_bytes / sizeof(T);
  for (std::uint64_t i = begin / sizeof(T) + threadIdx.x; i < n_values; i += kMapThreads) {
    reinterpret_cast<U*>(out)[i] = f(reinterpret_cast<const T*>(in)[i]);
  }
}

template <class T, class U, class F>
void enqueueMap(const CudaRun& run, F f) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  mapKernel<T, U><<<gridFor(in.size.n_bytes, kMapBlockBytes), kMapThreads, 0, run.stream>>>(
      in.data, in.size, out.data, out.size_known ? nullptr : run.record, out.capacity_bytes, f);
  checkLaunch("mapKernel");
}

/// The same for signed integers of value_bytes bytes and their unsigned ones, both ways.
template <class F>
void enqueueMapToUnsigned(const CudaRun& run, std::size_t value_bytes, F f) {
  switch (value_bytes) {
    case 1:
      return enqueueMap<std::int8_t, std::uint8_t>(run, f);
    case 2:
      return enqueueMap<std::int16_t, std::uint16_t>(run, f);
    case 4:
      return enqueueMap<std::int32_t, std::uint32_t>(run, f);
    default:
      return enqueueMap<std::int64_t, std::uint64_t>(run, f);
  }
}
template <class F>
void enqueueMapToSigned(const CudaRun& run, std::size_t value_bytes, F f) {
  switch (value_bytes) {
    case 1:
      return enqueueMap<std::uint8_t, std::int8_t>(run, f);
    case 2:
      return enqueueMap<std::uint16_t, std::int16_t>(run, f);
    case 4:
      return enqueueMap<std::uint32_t, std::int32_t>(run, f);
    default:
      return enqueueMap<std::uint64_t, std::int64_t>(run, f);
  }
}

}  // namespace fz::cuda
