#pragma once

#include <cstddef>
#include <cstdint>

#include "coders/adaptive_bitpack/codec.h"
#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

/// The stage's kernels. Launchers only enqueue; memory comes from the caller.
namespace fz::adaptive_bitpack {

inline constexpr std::uint32_t kGroupValues = 32;  ///< one thread's share in the register kernels
inline constexpr std::uint32_t kCudaThreads = 256;
inline constexpr std::uint32_t kWarpValues = 32 * kGroupValues;
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

/// What the thread blocks of an encoder tell each other. All zero before the kernel starts; the
/// kernel leaves it so.
struct EncodeControl {
  std::uint64_t next_ticket;
  std::uint32_t n_blocks_done;
};
inline constexpr std::uint32_t kControlBytes = 64;

/// Block sizes that are powers of two from 32 on, alone or as the end of a fused group.
struct alignas(16) GroupsArgs {
  StageRecord* record;
  DeviceSize in_size;  ///< of the values when encoding, of the stream when decoding
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  std::uint32_t block_values;
  // Encoding.
  EncodeControl* control;
  std::uint64_t* sums;   ///< one per tile: its bytes of payload
  std::uint64_t* bases;  ///< one per tile: the bytes before it
  // Decoding.
  const std::uint64_t* offsets;  ///< one per 1024 values: where its payload begins
};

/// As many blocks as fit into kWarpValues, a power of two of them, are a tile: what one warp
/// decodes, with one offset into the payload. The encoder for any block size has the same tiles.
inline std::uint32_t tileBlocksLog2(BlockLayout layout) {
  return bits::bitWidth(kWarpValues / layout.block_values) - 1;
}
inline std::size_t tileCount(std::size_t n_values, BlockLayout layout) {
  const std::size_t n_blocks = bits::ceilDiv(n_values, std::size_t{layout.block_values});
  return bits::ceilDiv(n_blocks, std::size_t{1} << tileBlocksLog2(layout));
}

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
                        const cuda::Call& call);
template <class T>
void launchDecodeGroups(const GroupsArgs& args,
                        bool outlier_selection,
                        std::size_t n_values,
                        const cuda::Call& call);

/// Any block size, with the text of the codec.
template <class T>
void launchEncodeAny(const CudaEncode& args, std::size_t n_tiles, const cuda::Call& call);
template <class T>
void launchDecodeAny(const CudaDecode& args, std::size_t n_tiles, const cuda::Call& call);

/// Checks the stream and finds the offsets of the tiles.
template <class T>
void launchMeasure(const CudaDecode& args, std::size_t n_measure_tiles, const cuda::Call& call);

}  // namespace fz::adaptive_bitpack
