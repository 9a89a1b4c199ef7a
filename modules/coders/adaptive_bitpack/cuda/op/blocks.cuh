#pragma once

// What the kernels of this stage share. In the register kernels one thread holds a group of 32
// values of a block, a warp 1024 values. Device code only; must compile with NVRTC.

#include "backends/cuda/device.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/adaptive_bitpack/cuda/kernels.h"

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
    cuda::recordError(args.record, DeviceError::kCorrupt, in_bytes);
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

/// What the threads of a block share: its groups lie on kGroups neighbouring lanes, or as many as
/// only the kernel's arguments tell (kGroups = 0).
template <unsigned kGroups>
struct Lanes {
  unsigned count_log2;  ///< of the number of groups in a block

  __device__ __forceinline__ explicit Lanes(std::uint32_t block_values)
      : count_log2(bits::bitWidth(kGroups != 0 ? kGroups : block_values / kGroupValues) - 1) {}
  __device__ __forceinline__ unsigned count() const {
    return kGroups != 0 ? kGroups : 1u << count_log2;
  }
  /// The thread's group inside its block.
  __device__ __forceinline__ unsigned group() const {
    return kGroups == 1 ? 0u : cuda::laneId() & (count() - 1);
  }
};

/// Calls f.operator()<P>() with the smallest P of 8, 12, 16 and 32 planes that holds n_planes.
template <class T, class F>
__device__ __forceinline__ void withPlanes(std::uint32_t n_planes, F f) {
  if (n_planes <= 8) {
    f.template operator()<8>();
  } else if (n_planes <= 12) {
    f.template operator()<12>();
  } else if (sizeof(T) == 2 || n_planes <= 16) {
    f.template operator()<16>();
  } else if constexpr (sizeof(T) == 4) {
    f.template operator()<32>();
  }
}

}  // namespace fz::adaptive_bitpack
