// The plainest kernel, bound by memory alone.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "transforms/signed_map/codec.h"
#include "transforms/signed_map/cuda/kernels.h"

namespace fz::signed_map {

namespace {

constexpr unsigned kMapThreads = 256;
constexpr unsigned kMapVectors = 4;  // 16-byte loads in flight per thread
constexpr unsigned kMapBlockBytes = kMapThreads * kMapVectors * 16;

/// out[i] = f(in[i]) for values of one width; T and U have the same size.
template <class T, class U, class F>
__global__ void __launch_bounds__(kMapThreads) mapKernel(const std::uint8_t* __restrict__ in,
                                                         DeviceSize size,
                                                         std::uint8_t* __restrict__ out,
                                                         StageRecord* publish_to,
                                                         std::uint64_t capacity_bytes,
                                                         F f) {
  const std::uint64_t n_bytes = cuda::load(size);
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * kMapBlockBytes;
  if (publish_to != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    cuda::publishSize(publish_to, 0, n_bytes, capacity_bytes);
  }
  const auto apply = [&f](uint4 raw) {
    cuda::Vec16<T> from;
    cuda::Vec16<U> to;
    from.raw = raw;
#pragma unroll
    for (unsigned k = 0; k < cuda::Vec16<T>::kCount; ++k) {
      to.v[k] = f(from.v[k]);
    }
    return to.raw;
  };
  if (begin + kMapBlockBytes <= n_bytes) {
    uint4 v[kMapVectors];
#pragma unroll
    for (unsigned k = 0; k < kMapVectors; ++k) {
      v[k] = cuda::loadStream(in + begin + (k * kMapThreads + threadIdx.x) * 16);
    }
#pragma unroll
    for (unsigned k = 0; k < kMapVectors; ++k) {
      cuda::storeStream(out + begin + (k * kMapThreads + threadIdx.x) * 16, apply(v[k]));
    }
    return;
  }
  const std::uint64_t n_values = n_bytes / sizeof(T);
  for (std::uint64_t i = begin / sizeof(T) + threadIdx.x; i < n_values; i += kMapThreads) {
    reinterpret_cast<U*>(out)[i] = f(reinterpret_cast<const T*>(in)[i]);
  }
}

template <class Map>
struct Encode {
  template <class S>
  __device__ __forceinline__ auto operator()(S value) const {
    return Map::encode(value);
  }
};
template <class Map>
struct Decode {
  template <class U>
  __device__ __forceinline__ auto operator()(U code) const {
    return Map::decode(code);
  }
};

template <class T, class U, class F>
void launchFor(const cuda::Call& call, F f) {
  const CudaInput& in = call.inputs[0];
  const CudaOutput& out = call.outputs[0];
  mapKernel<T, U><<<cuda::gridFor(in.size.n_bytes, kMapBlockBytes), kMapThreads, 0, call.stream>>>(
      in.data, in.size, out.data, out.size_known ? nullptr : call.record, out.capacity_bytes, f);
  cuda::checkLaunch("signed map");
}

/// Calls f.operator()<S>() with the signed type of this width.
template <class F>
void withType(std::size_t value_bytes, F f) {
  switch (value_bytes) {
    case 1:
      return f.template operator()<std::int8_t>();
    case 2:
      return f.template operator()<std::int16_t>();
    case 4:
      return f.template operator()<std::int32_t>();
    default:
      return f.template operator()<std::int64_t>();
  }
}

template <class Map>
void encodeBy(std::size_t value_bytes, const cuda::Call& call) {
  withType(value_bytes,
           [&]<class S>() { launchFor<S, std::make_unsigned_t<S>>(call, Encode<Map>{}); });
}
template <class Map>
void decodeBy(std::size_t value_bytes, const cuda::Call& call) {
  withType(value_bytes,
           [&]<class S>() { launchFor<std::make_unsigned_t<S>, S>(call, Decode<Map>{}); });
}

}  // namespace

void launchEncode(Kind kind, std::size_t value_bytes, const cuda::Call& call) {
  kind == Kind::kZigzag ? encodeBy<ZigzagMap>(value_bytes, call)
                        : encodeBy<NegabinaryMap>(value_bytes, call);
}
void launchDecode(Kind kind, std::size_t value_bytes, const cuda::Call& call) {
  kind == Kind::kZigzag ? decodeBy<ZigzagMap>(value_bytes, call)
                        : decodeBy<NegabinaryMap>(value_bytes, call);
}

}  // namespace fz::signed_map
