#include "backends/cuda/bit_transpose.cuh"
#include "backends/cuda/launch.h"
#include "coders/adaptive_bitpack/adaptive_bitpack_groups.cuh"

namespace fz::adaptive_bitpack {

namespace {

constexpr unsigned kGroupWarps = kCudaThreads / cuda::kWarp;

/// Thread blocks per multiprocessor that the registers must allow.
template <class T>
inline constexpr unsigned kThreadBlocks = sizeof(T) == 4 ? 5 : 7;

/// Bytes of shared memory per warp: its payload, later its values. A stream that no encoder wrote
/// may have the outlier form at the full rate.
template <class T, bool kOutlier>
inline constexpr unsigned kDecodeSlotBytes = cuda::stagingBytes(
    cuda::kWarp*(4 * (kValueBits<T> + 1) + (kOutlier ? static_cast<unsigned>(sizeof(T)) : 0u)));

/// The word at any byte of staged memory; reads the word behind it too.
__device__ __forceinline__ std::uint32_t wordAt(const std::uint32_t* staged, std::uint32_t byte) {
  return __funnelshift_r(staged[byte / 4], staged[byte / 4 + 1], 8 * (byte & 3u));
}

/// Signs and planes of the thread's group; `begin` is the byte where the block's signs begin. Rows
/// at the rate and behind it become 0.
template <unsigned kPlanes, bool kOneGroup>
__device__ __forceinline__ std::uint32_t readRows(const std::uint32_t* staged,
                                                  std::uint32_t begin,
                                                  std::uint32_t rate,
                                                  Lanes<kOneGroup> lanes,
                                                  std::uint32_t (&row)[kGroupValues]) {
  if constexpr (kOneGroup) {  // the rows are one run of words: read each word once
    const std::uint32_t* words = staged + begin / 4;
    const std::uint32_t shift = 8 * (begin & 3u);
    std::uint32_t low = words[1];
    const std::uint32_t signs = __funnelshift_r(words[0], low, shift);
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      row[p] = 0;
      if (p < rate) {
        const std::uint32_t high = words[p + 2];
        row[p] = __funnelshift_r(low, high, shift);
        low = high;
      }
    }
    return signs;
  } else {
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      row[p] = p < rate ? wordAt(staged, begin + 4 * ((1 + p) * lanes.count() + lanes.group())) : 0;
    }
    return wordAt(staged, begin + 4 * lanes.group());
  }
}

/// Applies the signs and puts the values where storeWarpValues looks for them.
__device__ __forceinline__ void putGroup(const std::uint32_t (&row)[kGroupValues],
                                         std::uint32_t signs,
                                         uint4* pieces,
                                         std::int32_t /*type*/) {
#pragma unroll
  for (unsigned c = 0; c < kPieces<std::int32_t>; ++c) {
    cuda::Vec16<std::int32_t> piece;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned i = 4 * c + k;
      piece.v[k] = applySign<std::int32_t>(row[i], (signs >> i & 1u) != 0);
    }
    pieces[pieceAt<std::int32_t>(cuda::laneId(), c)] = piece.raw;
  }
}

/// Minus where the sign bits 0 and 16 are set, each half modulo 2^16; minus zero must not carry.
__device__ __forceinline__ std::uint32_t applyHalfSigns(std::uint32_t pair, std::uint32_t signs) {
  const std::uint32_t flipped = pair ^ signs * 0xFFFFu;
  return ((flipped & 0x7FFF7FFFu) + signs) ^ (flipped & 0x80008000u);
}

/// The same for 16-bit values; row i has values i and i + 16.
__device__ __forceinline__ void putGroup(const std::uint32_t (&row)[kGroupValues],
                                         std::uint32_t signs,
                                         uint4* pieces,
                                         std::int16_t /*type*/) {
#pragma unroll
  for (unsigned c = 0; c < 2; ++c) {
    cuda::Vec16<std::uint32_t> low;
    cuda::Vec16<std::uint32_t> high;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned i = 8 * c + 2 * k;
      const std::uint32_t x = applyHalfSigns(row[i], signs >> i & 0x00010001u);
      const std::uint32_t y = applyHalfSigns(row[i + 1], signs >> (i + 1) & 0x00010001u);
      low.v[k] = __byte_perm(x, y, 0x5410);
      high.v[k] = __byte_perm(x, y, 0x7632);
    }
    pieces[pieceAt<std::int16_t>(cuda::laneId(), c)] = low.raw;
    pieces[pieceAt<std::int16_t>(cuda::laneId(), c + 2)] = high.raw;
  }
}

/// Magnitudes of the thread's group, in pairs for 16 bits; returns the signs.
template <class T, bool kOutlier, bool kOneGroup>
__device__ __forceinline__ std::uint32_t readGroup(const std::uint32_t* staged,
                                                   std::uint32_t block_begin,
                                                   BlockForm form,
                                                   Lanes<kOneGroup> lanes,
                                                   std::uint32_t (&row)[kGroupValues]) {
  std::uint32_t signs = 0;
  withPlanes<T>(__reduce_max_sync(cuda::kAllLanes, form.rate), [&]<unsigned kPlanes>() {
    signs = readRows<kPlanes>(staged, block_begin + form.outlier_bytes, form.rate, lanes, row);
    if constexpr (sizeof(T) == 4) {
      cuda::fromPlanes<kPlanes>(row);
    } else {
      cuda::planesToPairs<kPlanes>(row);
    }
  });
  if (kOutlier && form.outlier_bytes != 0 && lanes.group() == 0) {
    const std::uint32_t first =
        wordAt(staged, block_begin) & (~0u >> (32 - 8 * form.outlier_bytes));
    row[0] = sizeof(T) == 4 ? first : (row[0] & 0xFFFF0000u) | first;
  }
  return form.rate == 0 && form.outlier_bytes == 0 ? 0u : signs;
}

/// One warp per tile of 1024 values; warps do not wait for each other.
template <class T, bool kOutlier, bool kOneGroup>
__global__ void __launch_bounds__(kCudaThreads, kThreadBlocks<T> - (kOutlier ? 1 : 0))
    decodeGroups(const CudaDecode args) {
  __shared__ __align__(16) std::uint8_t slots[kGroupWarps][kDecodeSlotBytes<T, kOutlier>];
  static_assert(kDecodeSlotBytes<T, kOutlier> % 16 == 0);
  static_assert(kDecodeSlotBytes<T, kOutlier> >= kWarpValues * sizeof(T));
  const DecodeShape shape = decodeShape<T>(args);
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * kGroupWarps + cuda::warpId();
  if (!shape.sound || tile * kWarpValues >= shape.n_values) {
    return;
  }
  const Lanes<kOneGroup> lanes(args.layout.block_values);
  const BlockLayout layout{args.layout.block_values, kOutlier};
  const std::uint64_t block = (tile * cuda::kWarp + cuda::laneId()) >> lanes.count_log2;
  BlockForm form;
  if (block < shape.n_blocks) {
    form = soundForm<T>(args.in + block * layout.metaBytes(), layout);
  }
  const std::uint64_t tile_begin = shape.meta_bytes + args.offsets[tile];
  const std::uint32_t cost = blockCost(form, 4 * lanes.count());
  const std::uint32_t end = cuda::warpInclusiveSum(lanes.group() == 0 ? cost : 0u);
  const std::uint32_t tile_bytes = __shfl_sync(cuda::kAllLanes, end, cuda::kWarp - 1);
  if (tile_begin + tile_bytes > shape.stream_bytes) {
    return;  // reported by measureBlocks
  }
  std::uint8_t* slot = slots[cuda::warpId()];
  const cuda::StagedRange range{args.in, shape.stream_bytes, tile_begin, tile_bytes};
  cuda::copyToStaging({cuda::laneId(), cuda::kWarp}, range, slot);
  __syncwarp();
  std::uint32_t row[kGroupValues];
  const std::uint32_t signs = readGroup<T, kOutlier>(reinterpret_cast<const std::uint32_t*>(slot),
                                                     range.skew() + end - cost, form, lanes, row);
  __syncwarp();
  auto* pieces = reinterpret_cast<uint4*>(slot);
  putGroup(row, signs, pieces, T{});
  __syncwarp();
  storeWarpValues(pieces, tile * kWarpValues, args.record->value[kCountSlot],
                  reinterpret_cast<T*>(args.out));
}

template <class T, bool kOutlier>
void launch(const CudaDecode& args, unsigned n_thread_blocks, cudaStream_t stream) {
  if (args.layout.block_values == kGroupValues) {
    decodeGroups<T, kOutlier, true><<<n_thread_blocks, kCudaThreads, 0, stream>>>(args);
  } else {
    decodeGroups<T, kOutlier, false><<<n_thread_blocks, kCudaThreads, 0, stream>>>(args);
  }
  cuda::checkLaunch("AdaptiveBitpack decodeGroups");
}

}  // namespace

template <class T>
void launchDecodeGroups(const CudaDecode& args, std::size_t n_tiles, cudaStream_t stream) {
  const unsigned n_thread_blocks = cuda::gridFor(n_tiles, kGroupWarps);
  if (args.layout.outlier_selection) {
    launch<T, true>(args, n_thread_blocks, stream);
  } else {
    launch<T, false>(args, n_thread_blocks, stream);
  }
}

template void launchDecodeGroups<std::int16_t>(const CudaDecode&, std::size_t, cudaStream_t);
template void launchDecodeGroups<std::int32_t>(const CudaDecode&, std::size_t, cudaStream_t);

}  // namespace fz::adaptive_bitpack
