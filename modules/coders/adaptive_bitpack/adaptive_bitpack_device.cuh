#pragma once

// What the kernels of this stage share.

#include "backends/cuda/device.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/adaptive_bitpack/adaptive_bitpack_cuda.h"

namespace fz::adaptive_bitpack {

/// The parts of the stream that an encoder writes.
struct EncodeShape {
  std::uint64_t n_values;
  std::uint64_t n_blocks;
  std::uint64_t meta_bytes;

  __device__ __forceinline__ EncodeShape(std::uint64_t n, BlockLayout layout)
      : n_values(n),
        n_blocks(bits::ceilDiv(n, std::uint64_t{layout.block_values})),
        meta_bytes(n_blocks * layout.metaBytes()) {}
};

template <class T>
__device__ __forceinline__ EncodeShape encodeShape(const CudaEncode& args) {
  return {cuda::load(args.in_size) / sizeof(T), args.layout};
}

/// One thread of the grid: what only the device knows after encoding.
template <class T>
__device__ __forceinline__ void finishEncode(const CudaEncode& args,
                                             const EncodeShape& shape,
                                             std::uint64_t payload_bytes) {
  const std::uint64_t in_bytes = cuda::load(args.in_size);
  if (in_bytes % sizeof(T) != 0) {
    args.record->value[kCameSlot] = in_bytes;
    cuda::noteError(args.record, DeviceError::kCorrupt, in_bytes);
  }
  args.record->value[kCountSlot] = shape.n_values;
  cuda::publishSize(args.record, 0, shape.meta_bytes + payload_bytes, args.capacity_bytes);
}

/// The parts of a stream that a decoder reads. Untrusted: when it is not `sound`, nothing else
/// holds and nothing may be read or written.
struct DecodeShape {
  std::uint64_t n_values;
  std::uint64_t n_blocks;
  std::uint64_t stream_bytes;
  std::uint64_t meta_bytes;
  bool sound;

  __device__ __forceinline__
  DecodeShape(std::uint64_t n, std::uint64_t n_bytes, BlockLayout layout, std::uint64_t most_values)
      : n_values(n),
        n_blocks(bits::ceilDiv(n, std::uint64_t{layout.block_values})),
        stream_bytes(n_bytes),
        meta_bytes(n_blocks * layout.metaBytes()),
        sound(n_blocks <= stream_bytes / layout.metaBytes() &&
              (n_blocks != 0 || stream_bytes == 0) && n_values <= most_values) {}
};

template <class T>
__device__ __forceinline__ DecodeShape decodeShape(const CudaDecode& args) {
  return {args.record->value[kCountSlot], cuda::load(args.in_size), args.layout,
          args.capacity_bytes / sizeof(T)};
}

/// A form that passed isForm; an invalid block counts as empty, so that nothing behind it goes out
/// of bounds. The measuring kernel reports it.
template <class T>
__device__ __forceinline__ BlockForm soundForm(const std::uint8_t* meta, BlockLayout layout) {
  return isForm<T>(meta, layout) ? getForm(meta, layout) : BlockForm{};
}

}  // namespace fz::adaptive_bitpack
