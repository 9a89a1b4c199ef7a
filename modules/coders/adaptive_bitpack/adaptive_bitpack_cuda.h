#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "coders/adaptive_bitpack/adaptive_bitpack_codec.h"
#include "coders/adaptive_bitpack/adaptive_bitpack_op.h"
#include "fz/device_types.h"

/// The stage's kernels. Launchers only enqueue; memory comes from the caller.
namespace fz::adaptive_bitpack {

inline constexpr std::uint32_t kGroupValues = 32;  ///< one thread's share in the register kernels
inline constexpr std::uint32_t kCudaThreads = 256;
inline constexpr std::uint32_t kWarpValues = 32 * kGroupValues;
/// Values and blocks that a tile of the kernels for any block size has at most; they fix its shared
/// memory.
inline constexpr std::uint32_t kAnyTileValues = 4096;
inline constexpr std::uint32_t kAnyTileBlocks = 512;
/// Blocks whose metadata a thread of the measuring kernel adds up.
inline constexpr std::uint32_t kMeasureBlocks = 16;

// What the record's values are.
inline constexpr std::uint32_t kCountSlot = 0;   ///< number of values; a device field
inline constexpr std::uint32_t kNeededSlot = 1;  ///< with an error: bytes that were needed
inline constexpr std::uint32_t kCameSlot = 2;    ///< with an error: bytes that came

// Indices of errors that are about the whole stream; those of a block are smaller and win.
inline constexpr std::uint64_t kCountError = ~std::uint64_t{0} - 2;
inline constexpr std::uint64_t kPayloadError = ~std::uint64_t{0} - 1;

/// Index of the error of a block, so that the metadata come along and the first block wins.
FZ_HD std::uint64_t blockError(std::uint64_t block, std::uint32_t rate, std::uint32_t sel) {
  return block << 16 | sel << 8 | rate;
}

/// Whether blocks are made of whole groups and a warp has a whole number of them, so that the
/// register kernels apply.
FZ_HD bool isGroupLayout(BlockLayout layout) {
  const std::uint32_t b = layout.block_values;
  return b >= kGroupValues && (b & (b - 1)) == 0;
}

/// Groups of a block where the register kernels know them beforehand, else 0.
FZ_HD std::uint32_t groupsOf(std::uint32_t block_values) {
  return block_values <= 2 * kGroupValues ? block_values / kGroupValues : 0;
}

/// How blocks are dealt out: 2^tile_blocks_log2 blocks share one offset.
struct CudaTiling {
  std::uint32_t tile_blocks_log2;

  /// Tiles of the encoder for any block size, one thread block each.
  static CudaTiling ofAnyEncoder(BlockLayout layout) { return ofAny(layout); }
  /// Tiles of the decoder: one warp each in the register kernels, one thread block in the others.
  static CudaTiling ofDecoder(BlockLayout layout) {
    return isGroupLayout(layout) ? ofValues(layout, kWarpValues) : ofAny(layout);
  }
  std::size_t tilesOf(std::size_t n_values, BlockLayout layout) const {
    const std::size_t n_blocks = bits::ceilDiv(n_values, std::size_t{layout.block_values});
    return bits::ceilDiv(n_blocks, std::size_t{1} << tile_blocks_log2);
  }

 private:
  /// As many blocks as fit into this many values.
  static CudaTiling ofValues(BlockLayout layout, std::uint32_t tile_values) {
    return {bits::bitWidth(tile_values / layout.block_values) - 1};
  }
  static CudaTiling ofAny(BlockLayout layout) {
    return {std::min(ofValues(layout, kAnyTileValues).tile_blocks_log2,
                     bits::bitWidth(kAnyTileBlocks) - 1)};
  }
};

struct CudaEncode {
  const std::uint8_t* in;
  DeviceSize in_size;
  BlockLayout layout;
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  StageRecord* record;
  std::uint64_t* states;  ///< one per tile, zero
  std::uint32_t tile_blocks_log2;
};

struct CudaDecode {
  const std::uint8_t* in;
  DeviceSize in_size;
  BlockLayout layout;
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  bool size_known;
  StageRecord* record;
  std::uint64_t* states;   ///< one per thread block of the measuring kernel and one more, zero
  std::uint64_t* offsets;  ///< one per tile: where its payload begins behind the metadata
  std::uint32_t tile_blocks_log2;
};

/// The same for the register kernels.
inline GroupsArgs groupsArgs(const CudaDecode& args) {
  GroupsArgs own = {};
  own.record = args.record;
  own.in_size = args.in_size;
  own.in = args.in;
  own.out = args.out;
  own.capacity_bytes = args.capacity_bytes;
  own.block_values = args.layout.block_values;
  own.offsets = args.offsets;
  return own;
}

/// Block sizes that are powers of two from 32 on: the kernels of a group that has only this stage.
template <class T>
GroupShape groupsEncoderShape(bool outlier_selection);
template <class T>
void launchEncodeGroups(const GroupsArgs& args,
                        bool outlier_selection,
                        std::size_t n_values,
                        cudaStream_t stream);
template <class T>
void launchDecodeGroups(const GroupsArgs& args,
                        bool outlier_selection,
                        std::size_t n_values,
                        cudaStream_t stream);

/// Any block size.
template <class T>
void launchEncodeAny(const CudaEncode& args, std::size_t n_tiles, cudaStream_t stream);
template <class T>
void launchDecodeAny(const CudaDecode& args, std::size_t n_tiles, cudaStream_t stream);

/// Checks the stream and finds the offsets of the tiles.
template <class T>
void launchMeasure(const CudaDecode& args, std::size_t n_measure_tiles, cudaStream_t stream);

}  // namespace fz::adaptive_bitpack
