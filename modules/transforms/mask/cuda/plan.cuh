#pragma once

// What stands where in the mask that is read. Device code only.

#include "backends/cuda/device.cuh"
#include "backends/cuda/unaligned_load.cuh"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/decode.cuh"

namespace fz::mask {

/// The bytes of the mask that are looked at one after the other.
struct Cursor {
  const std::uint8_t* bytes;
  std::uint64_t n_bytes;
  std::uint64_t at;

  __device__ __forceinline__ bool has(std::uint64_t n) const {
    return at <= n_bytes && n <= n_bytes - at;
  }
};

/// Where a group ends among those of its layer.
__device__ __forceinline__ std::uint32_t endOf(const std::uint8_t* mask,
                                               const LayerPlan& layer,
                                               std::uint64_t group) {
  return cuda::loadUnaligned<std::uint32_t>(mask + layer.ends_at, group);
}

/// One thread: the parts of the layer that begins there; moves the cursor behind it. False: there
/// is no such layer.
__device__ __forceinline__ bool findLayer(const Grid& grid, Cursor& cursor, LayerPlan& layer) {
  layer = {};
  if (!cursor.has(1)) {
    return false;
  }
  layer.form = cursor.bytes[cursor.at];
  cursor.at += 1;
  if (layer.form < LayerForm::kBricks) {
    return true;
  }
  const std::uint32_t n_chances = layer.form == LayerForm::kBricksOfChances ? contextsOf(grid) : 0;
  const std::uint64_t n_groups = grid.groups();
  layer.chances_at = cursor.at;
  layer.ends_at = cursor.at + n_chances;
  layer.groups_at = layer.ends_at + n_groups * kEndBytes;
  if (layer.form > LayerForm::kBricksOfChances || n_groups == 0 || grid.n_bits > kMaxBits ||
      !cursor.has(n_chances + n_groups * kEndBytes)) {
    return false;
  }
  cursor.at = layer.groups_at;
  const std::uint32_t n_bytes = endOf(cursor.bytes, layer, n_groups - 1);
  const bool is_there = cursor.has(n_bytes);
  cursor.at += n_bytes;
  return is_there;
}

/// The bytes of a brick.
struct BrickBytes {
  BrickKind kind;
  std::uint32_t n_bytes;
  const std::uint8_t* bytes;
};

/// The record of a group.
struct GroupBytes {
  std::uint32_t n;        ///< bricks
  bool is_good;           ///< false: nothing of it can be read
  std::uint32_t n_bytes;  ///< 0: all bits are zero
  std::uint32_t n_kind_bytes;
  const std::uint8_t* bytes;

  __device__ __forceinline__ BrickKind kindOf(std::uint32_t i) const {
    if (n_bytes == 0 || !is_good) {
      return kNone;
    }
    return static_cast<BrickKind>(bytes[n_kind_bytes == 1 ? 0 : i / 4] >> (2 * (i % 4)) & 3u);
  }
  __device__ __forceinline__ bool hasSizes(std::uint32_t n_coded) const {
    return n_kind_bytes + n_coded <= n_bytes;
  }
  /// Units of the coded bricks; behind them the bricks.
  __device__ __forceinline__ const std::uint8_t* sizes() const { return bytes + n_kind_bytes; }
};

/// A group of a layer in bricks that findLayer() has found.
__device__ __forceinline__ GroupBytes groupBytes(const DecodeArgs& args,
                                                 const Grid& grid,
                                                 const LayerPlan& layer,
                                                 std::uint64_t group) {
  const std::uint32_t begin = group == 0 ? 0 : endOf(args.mask, layer, group - 1);
  const std::uint32_t end = endOf(args.mask, layer, group);
  const std::uint32_t last = endOf(args.mask, layer, grid.groups() - 1);
  GroupBytes found{grid.bricksOf(group), begin <= end && end <= last, 0, 0, nullptr};
  if (!found.is_good || begin == end) {
    return found;
  }
  found.n_bytes = end - begin;
  found.bytes = args.mask + layer.groups_at + begin;
  found.n_kind_bytes = found.n_bytes == 1 ? 1 : kindBytes(found.n);
  found.is_good = found.n_kind_bytes <= found.n_bytes &&
                  (found.n_kind_bytes == kindBytes(found.n) || found.bytes[0] == kFourOnes);
  return found;
}

}  // namespace fz::mask
