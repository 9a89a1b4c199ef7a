#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "coders/bitpack/codec.h"
#include "coders/bitpack/cuda/kernels.h"
#include "coders/bitpack/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::bitpack {

namespace {

template <class T>
inline constexpr unsigned kPieceValues = 16 / sizeof(T);

/// Ones in the low n_bits bits of every lane of a word.
__host__ __device__ constexpr std::uint32_t laneMask(unsigned lane_bits, unsigned n_bits) {
  std::uint32_t mask = 0;
  for (unsigned at = 0; at < 32; at += lane_bits) {
    mask |= (n_bits >= 32 ? ~0u : (1u << n_bits) - 1u) << at;
  }
  return mask;
}

/// Lanes of kLane bits, kBits of them in use -> one run of bits at the bottom of the word.
template <unsigned kLane, unsigned kBits>
__device__ __forceinline__ std::uint32_t foldWord(std::uint32_t word) {
  if constexpr (kLane >= 32 || kLane == kBits) {
    return word;
  } else {
    const std::uint32_t paired = (word | word >> (kLane - kBits)) & laneMask(2 * kLane, 2 * kBits);
    return foldWord<2 * kLane, 2 * kBits>(paired);
  }
}

/// The inverse of foldWord.
template <unsigned kLane, unsigned kBits>
__device__ __forceinline__ std::uint32_t spreadWord(std::uint32_t word) {
  if constexpr (kLane >= 32 || kLane == kBits) {
    return word;
  } else {
    const std::uint32_t paired = spreadWord<2 * kLane, 2 * kBits>(word);
    return (paired | paired << (kLane - kBits)) & laneMask(kLane, kBits);
  }
}

/// Bits that a word of values becomes, and a 16-byte piece of them.
template <class T, unsigned kBits>
inline constexpr unsigned kWordBits = kBits*(4 / sizeof(T));
template <class T, unsigned kBits>
inline constexpr unsigned kPackedBits = 4 * kWordBits<T, kBits>;
/// Values that come and go together: a piece, or two where a piece becomes half a byte.
template <class T, unsigned kBits>
inline constexpr unsigned kUnitValues = kPieceValues<T>*(kPackedBits<T, kBits> < 8 ? 2 : 1);

/// Packs piece `at` and stores it; `active` says whether there is one. All lanes of the warp take
/// part, and two lanes that share a byte are active together.
template <class T, unsigned kBits>
__device__ __forceinline__ void packPiece(uint4 piece,
                                          std::uint64_t at,
                                          bool active,
                                          std::uint8_t* out) {
  constexpr unsigned kLane = 8 * sizeof(T);
  constexpr unsigned kWord = kWordBits<T, kBits>;
  const std::uint32_t x = foldWord<kLane, kBits>(piece.x);
  const std::uint32_t y = foldWord<kLane, kBits>(piece.y);
  const std::uint32_t z = foldWord<kLane, kBits>(piece.z);
  const std::uint32_t w = foldWord<kLane, kBits>(piece.w);
  if constexpr (kWord == 32) {
    if (active) {
      cuda::storeStream(out + 16 * at, uint4{x, y, z, w});
    }
  } else if constexpr (kWord == 16) {
    if (active) {
      __stcs(reinterpret_cast<uint2*>(out) + at, uint2{x | y << 16, z | w << 16});
    }
  } else {
    std::uint32_t packed = x | y << kWord | z << 2 * kWord | w << 3 * kWord;
    if constexpr (kWord == 8) {
      if (active) {
        __stcs(reinterpret_cast<std::uint32_t*>(out) + at, packed);
      }
    } else if constexpr (kWord == 4) {
      if (active) {
        reinterpret_cast<std::uint16_t*>(out)[at] = static_cast<std::uint16_t>(packed);
      }
    } else if constexpr (kWord == 2) {
      if (active) {
        out[at] = static_cast<std::uint8_t>(packed);
      }
    } else {
      packed |= __shfl_down_sync(cuda::kAllLanes, packed, 1) << 4;
      if (active && at % 2 == 0) {
        out[at / 2] = static_cast<std::uint8_t>(packed);
      }
    }
  }
}

/// The packed form of piece `at`, in the low bits.
template <class T, unsigned kBits>
__device__ __forceinline__ uint4 loadPacked(const std::uint8_t* in, std::uint64_t at) {
  constexpr unsigned kWord = kWordBits<T, kBits>;
  uint4 packed = {0, 0, 0, 0};
  if constexpr (kWord == 32) {
    packed = cuda::loadStream(in + 16 * at);
  } else if constexpr (kWord == 16) {
    const uint2 two = __ldcs(reinterpret_cast<const uint2*>(in) + at);
    packed.x = two.x;
    packed.y = two.y;
  } else if constexpr (kWord == 8) {
    packed.x = __ldcs(reinterpret_cast<const std::uint32_t*>(in) + at);
  } else if constexpr (kWord == 4) {
    packed.x = __ldcs(reinterpret_cast<const std::uint16_t*>(in) + at);
  } else if constexpr (kWord == 2) {
    packed.x = __ldcs(in + at);
  } else {
    packed.x = static_cast<std::uint32_t>(__ldcs(in + at / 2)) >> (at % 2 * 4) & 0xFu;
  }
  return packed;
}

template <class T, unsigned kBits>
__device__ __forceinline__ uint4 unpackPiece(uint4 packed) {
  constexpr unsigned kLane = 8 * sizeof(T);
  constexpr unsigned kWord = kWordBits<T, kBits>;
  if constexpr (kWord == 16) {
    packed = {packed.x & 0xFFFFu, packed.x >> 16, packed.y & 0xFFFFu, packed.y >> 16};
  } else if constexpr (kWord < 16) {
    constexpr std::uint32_t kMask = (1u << kWord) - 1u;
    const std::uint32_t all = packed.x;
    packed = {all & kMask, all >> kWord & kMask, all >> 2 * kWord & kMask,
              all >> 3 * kWord & kMask};
  }
  return {spreadWord<kLane, kBits>(packed.x), spreadWord<kLane, kBits>(packed.y),
          spreadWord<kLane, kBits>(packed.z), spreadWord<kLane, kBits>(packed.w)};
}

/// Records a value that does not fit. Only what can still be the first one goes to memory.
__device__ __forceinline__ void recordWide(StageRecord* record,
                                           std::uint64_t index,
                                           std::uint32_t value) {
  if (index >= *static_cast<volatile std::uint64_t*>(&record->error_index)) {
    return;
  }
  cuda::recordError(record, DeviceError::kDoesNotFit, index, 0);
  if (index >> 32 < kWideSlots) {
    atomicMax(reinterpret_cast<unsigned long long*>(&record->value[kWideSlot + (index >> 32)]),
              static_cast<unsigned long long>(wideEntry(index, value)));
  }
}

/// Records the first value from `begin` to `end` that does not fit. Rare, so it reads them anew.
template <class T>
__device__ __forceinline__ void findWide(const PackArgs& args,
                                         std::uint32_t n_bits,
                                         std::uint64_t begin,
                                         std::uint64_t end) {
  const T* values = reinterpret_cast<const T*>(args.in);
#pragma unroll 1
  for (std::uint64_t i = begin; i < end; ++i) {
    if (!fits(values[i], n_bits)) {
      recordWide(args.record, i, values[i]);
      return;
    }
  }
}

template <class T, unsigned kBits>
__device__ __forceinline__ void packBlockPieces(const PackArgs& args, std::uint64_t n_values) {
  constexpr std::uint32_t kTooWide = ~laneMask(8 * sizeof(T), kBits);
  const std::uint64_t n_pieces =
      n_values / kUnitValues<T, kBits> * (kUnitValues<T, kBits> / kPieceValues<T>);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kBlockPieces + threadIdx.x;
  uint4 piece[kPiecesPerThread];
#pragma unroll
  for (unsigned i = 0; i < kPiecesPerThread; ++i) {
    const std::uint64_t at = first + i * kThreads;
    piece[i] = at < n_pieces ? cuda::loadStream(args.in + 16 * at) : uint4{0, 0, 0, 0};
  }
  std::uint32_t any = 0;
#pragma unroll
  for (unsigned i = 0; i < kPiecesPerThread; ++i) {
    any |= piece[i].x | piece[i].y | piece[i].z | piece[i].w;
    packPiece<T, kBits>(piece[i], first + i * kThreads, first + i * kThreads < n_pieces, args.out);
  }
  if ((any & kTooWide) != 0) {
#pragma unroll 1
    for (std::uint64_t at = first; at < min(n_pieces, first + kBlockPieces); at += kThreads) {
      findWide<T>(args, kBits, at * kPieceValues<T>, (at + 1) * kPieceValues<T>);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {  // what is left behind the last whole piece
    const T* values = reinterpret_cast<const T*>(args.in);
    const std::uint64_t n_done = n_pieces * kPieceValues<T>;
    findWide<T>(args, kBits, n_done, n_values);
    for (std::uint64_t byte = packedBytes(n_done, kBits); byte < packedBytes(n_values, kBits);
         ++byte) {
      args.out[byte] = packedByte(values, n_values, kBits, byte);
    }
  }
}

template <class T, unsigned kBits>
__device__ __forceinline__ void unpackBlockPieces(const PackArgs& args, std::uint64_t n_values) {
  const std::uint64_t n_pieces =
      n_values / kUnitValues<T, kBits> * (kUnitValues<T, kBits> / kPieceValues<T>);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kBlockPieces + threadIdx.x;
  uint4 packed[kPiecesPerThread];
#pragma unroll
  for (unsigned i = 0; i < kPiecesPerThread; ++i) {
    const std::uint64_t at = first + i * kThreads;
    if (at < n_pieces) {
      packed[i] = loadPacked<T, kBits>(args.in, at);
    }
  }
#pragma unroll
  for (unsigned i = 0; i < kPiecesPerThread; ++i) {
    const std::uint64_t at = first + i * kThreads;
    if (at < n_pieces) {
      cuda::storeStream(args.out + 16 * at, unpackPiece<T, kBits>(packed[i]));
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (std::uint64_t i = n_pieces * kPieceValues<T>; i < n_values; ++i) {
      reinterpret_cast<T*>(args.out)[i] = unpackedValue<T>(args.in, kBits, i);
    }
  }
}

/// Calls f.operator()<Bits>() for a number of bits that T has.
template <class T, class F>
__device__ __forceinline__ void withBits(std::uint32_t n_bits, F f) {
  if (n_bits == 1) {
    f.template operator()<1>();
  } else if (n_bits == 2) {
    f.template operator()<2>();
  } else if (n_bits == 4) {
    f.template operator()<4>();
  } else if (n_bits == 8) {
    f.template operator()<8>();
  }
  if constexpr (sizeof(T) >= 2) {
    if (n_bits == 16) {
      f.template operator()<16>();
    }
  }
  if constexpr (sizeof(T) >= 4) {
    if (n_bits == 32) {
      f.template operator()<32>();
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) orValues(const PackArgs args) {
  const std::uint64_t n_values = cuda::load(args.in_size) / sizeof(T);
  const std::uint64_t n_pieces = n_values / kPieceValues<T>;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kThreads;
  std::uint32_t any = 0;
  for (std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; at < n_pieces;
       at += kPiecesPerThread * stride) {
    uint4 piece[kPiecesPerThread];
#pragma unroll
    for (unsigned i = 0; i < kPiecesPerThread; ++i) {
      const std::uint64_t mine = at + i * stride;
      piece[i] = mine < n_pieces ? __ldg(reinterpret_cast<const uint4*>(args.in) + mine)
                                 : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (unsigned i = 0; i < kPiecesPerThread; ++i) {
      any |= piece[i].x | piece[i].y | piece[i].z | piece[i].w;
    }
  }
  if (sizeof(T) == 1) {
    any |= any >> 8;
  }
  if (sizeof(T) <= 2) {
    any |= any >> 16;
  }
  any = static_cast<T>(any);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (std::uint64_t i = n_pieces * kPieceValues<T>; i < n_values; ++i) {
      any |= reinterpret_cast<const T*>(args.in)[i];
    }
  }
  any = __reduce_or_sync(cuda::kAllLanes, any);
  const std::uint64_t known = *static_cast<volatile std::uint64_t*>(&args.record->value[kOrSlot]);
  if (cuda::laneId() == 0 && (any & ~known) != 0) {
    atomicOr(reinterpret_cast<unsigned long long*>(&args.record->value[kOrSlot]),
             static_cast<unsigned long long>(any));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) packValues(const PackArgs args) {
  const std::uint64_t in_bytes = cuda::load(args.in_size);
  const std::uint64_t n_values = in_bytes / sizeof(T);
  const std::uint32_t n_bits =
      args.n_bits != 0
          ? args.n_bits
          : bitsFor(static_cast<std::uint32_t>(args.record->value[kOrSlot]), kWidth<T>);
  const std::uint64_t n_bytes = packedBytes(n_values, n_bits);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    args.record->value[kBitsSlot] = n_bits;
    args.record->value[kCountSlot] = n_values;
    if (in_bytes % sizeof(T) != 0) {
      args.record->error_value = in_bytes;
      cuda::recordError(args.record, DeviceError::kCorrupt, in_bytes);
    }
    if (!args.size_known) {
      cuda::publishSize(args.record, 0, n_bytes, args.capacity_bytes);
    }
  }
  if (n_bytes > args.capacity_bytes) {
    return;
  }
  withBits<T>(n_bits, [&]<unsigned kBits>() { packBlockPieces<T, kBits>(args, n_values); });
}

template <class T>
__global__ void __launch_bounds__(kThreads) unpackValues(const PackArgs args) {
  const std::uint64_t in_bytes = cuda::load(args.in_size);
  const bool has_count = args.n_bits == 0;
  const std::uint64_t wide_bits = has_count ? args.record->value[kBitsSlot] : args.n_bits;
  const bool bits_known = isPowerOfTwoUpTo(wide_bits, kWidth<T>);
  const std::uint32_t n_bits = bits_known ? static_cast<std::uint32_t>(wide_bits) : kWidth<T>;
  const std::uint64_t most = packedValues(in_bytes, n_bits);
  const std::uint64_t n_values = has_count ? args.record->value[kCountSlot] : most;
  const bool sound = bits_known && n_values <= most && packedBytes(n_values, n_bits) == in_bytes &&
                     n_values <= args.capacity_bytes / sizeof(T);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (!sound) {
      args.record->error_value = in_bytes;
      cuda::recordError(args.record, DeviceError::kCorrupt, 0);
    } else if (!args.size_known) {
      cuda::publishSize(args.record, 0, n_values * sizeof(T), args.capacity_bytes);
    }
  }
  if (sound) {
    withBits<T>(n_bits, [&]<unsigned kBits>() { unpackBlockPieces<T, kBits>(args, n_values); });
  }
}

}  // namespace

template <class T>
void launchOr(const PackArgs& args, const cuda::Call& call) {
  const unsigned n_thread_blocks = std::min(residentBlocks(cuda::multiprocessorCount()),
                                            cuda::gridFor(args.in_size.n_bytes, kBlockBytes));
  orValues<T><<<n_thread_blocks, kThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("Bitpack orValues");
}

template <class T>
void launchPack(const PackArgs& args, const cuda::Call& call) {
  const unsigned n_thread_blocks = cuda::gridFor(args.in_size.n_bytes, kBlockBytes);
  packValues<T><<<n_thread_blocks, kThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("Bitpack packValues");
}

template <class T>
void launchUnpack(const PackArgs& args, std::size_t n_values, const cuda::Call& call) {
  const unsigned n_thread_blocks = cuda::gridFor(n_values * sizeof(T), kBlockBytes);
  unpackValues<T><<<n_thread_blocks, kThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("Bitpack unpackValues");
}

#define FZ_INSTANTIATE(T)                                          \
  template void launchOr<T>(const PackArgs&, const cuda::Call&);   \
  template void launchPack<T>(const PackArgs&, const cuda::Call&); \
  template void launchUnpack<T>(const PackArgs&, std::size_t, const cuda::Call&)
FZ_INSTANTIATE(std::uint8_t);
FZ_INSTANTIATE(std::uint16_t);
FZ_INSTANTIATE(std::uint32_t);
#undef FZ_INSTANTIATE

}  // namespace fz::bitpack
