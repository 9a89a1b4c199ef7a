// Any block size: one warp per tile, with the text of the codec. For correctness, not for speed.

#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/adaptive_bitpack/cuda/op/blocks.cuh"
#include "fz/cuda_part.h"

namespace fz::adaptive_bitpack {

namespace {

constexpr unsigned kWarps = kCudaThreads / cuda::kWarp;

/// The blocks of the calling warp.
struct WarpTile {
  std::uint64_t index;
  std::uint64_t begin;  ///< not below n_blocks: none
  std::uint64_t end;

  __device__ __forceinline__ WarpTile(std::uint32_t tile_blocks_log2, std::uint64_t n_blocks)
      : index(std::uint64_t{blockIdx.x} * kWarps + cuda::warpId()),
        begin(index << tile_blocks_log2),
        end(begin + (std::uint64_t{1} << tile_blocks_log2)) {
    end = end < n_blocks ? end : n_blocks;
  }
};

/// Values of a block; the last one may have fewer.
__device__ __forceinline__ std::uint32_t valuesOf(std::uint64_t block,
                                                  std::uint64_t n_values,
                                                  BlockLayout layout) {
  const std::uint64_t left = n_values - block * layout.block_values;
  return left < layout.block_values ? static_cast<std::uint32_t>(left) : layout.block_values;
}

template <class T>
__global__ void __launch_bounds__(kCudaThreads) encodeTiles(const CudaEncode args) {
  const BlockLayout layout = args.layout;
  const EncodeShape shape = encodeShape<T>(args);
  const WarpTile tile(args.tile_blocks_log2, shape.n_blocks);
  if (tile.begin >= shape.n_blocks) {
    if (tile.index == 0 && cuda::laneId() == 0) {
      finishEncode<T>(args, shape, 0);
    }
    return;
  }
  const auto* values = reinterpret_cast<const T*>(args.in);
  const auto formOf = [&](std::uint64_t b) {
    return blockForm(WarpTeam{}, values + b * layout.block_values,
                     valuesOf(b, shape.n_values, layout), layout);
  };
  const bool has_room = shape.meta_bytes <= args.capacity_bytes;
  std::uint64_t tile_bytes = 0;
  for (std::uint64_t b = tile.begin; b < tile.end; ++b) {
    const BlockForm form = formOf(b);
    tile_bytes += blockCost(form, layout.planeBytes());
    if (has_room && cuda::laneId() == 0) {
      putForm(form, layout, args.out + b * layout.metaBytes());
    }
  }
  const cuda::LookBack look_back{args.states};
  if (cuda::laneId() == 0) {
    look_back.publish(tile.index, tile_bytes);
  }
  const std::uint64_t before = look_back.prefix(tile.index, tile_bytes);
  if (tile.end == shape.n_blocks && cuda::laneId() == 0) {
    finishEncode<T>(args, shape, before + tile_bytes);
  }
  std::uint64_t at = shape.meta_bytes + before;
  if (at + tile_bytes > args.capacity_bytes) {
    return;
  }
  for (std::uint64_t b = tile.begin; b < tile.end; ++b) {
    const BlockForm form = formOf(b);
    encodeBlock(WarpTeam{}, values + b * layout.block_values, valuesOf(b, shape.n_values, layout),
                layout, form, args.out + at);
    at += blockCost(form, layout.planeBytes());
  }
}

template <class T>
__global__ void __launch_bounds__(kCudaThreads) decodeTiles(const CudaDecode args) {
  const BlockLayout layout = args.layout;
  const DecodeShape shape = decodeShape<T>(args);
  const WarpTile tile(args.tile_blocks_log2, shape.n_blocks);
  if (!shape.sound || tile.begin >= shape.n_blocks) {
    return;
  }
  auto* values = reinterpret_cast<T*>(args.out);
  std::uint64_t at = shape.meta_bytes + args.offsets[tile.index];
  for (std::uint64_t b = tile.begin; b < tile.end; ++b) {
    const BlockForm form = soundForm<T>(args.in + b * layout.metaBytes(), layout);
    const std::uint32_t cost = blockCost(form, layout.planeBytes());
    if (at + cost > shape.stream_bytes) {
      return;  // reported by measureBlocks
    }
    decodeBlock(WarpTeam{}, args.in + at, form, layout, valuesOf(b, shape.n_values, layout),
                values + b * layout.block_values);
    at += cost;
  }
}

}  // namespace

template <class T>
void launchEncodeAny(const CudaEncode& args, std::size_t n_tiles, const cuda::Call& call) {
  encodeTiles<T><<<cuda::gridFor(n_tiles, kWarps), kCudaThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("AdaptiveBitpack encodeTiles");
}

template <class T>
void launchDecodeAny(const CudaDecode& args, std::size_t n_tiles, const cuda::Call& call) {
  decodeTiles<T><<<cuda::gridFor(n_tiles, kWarps), kCudaThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("AdaptiveBitpack decodeTiles");
}

template void launchEncodeAny<std::int16_t>(const CudaEncode&, std::size_t, const cuda::Call&);
template void launchEncodeAny<std::int32_t>(const CudaEncode&, std::size_t, const cuda::Call&);
template void launchDecodeAny<std::int16_t>(const CudaDecode&, std::size_t, const cuda::Call&);
template void launchDecodeAny<std::int32_t>(const CudaDecode&, std::size_t, const cuda::Call&);

}  // namespace fz::adaptive_bitpack
