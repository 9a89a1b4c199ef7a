#pragma once

#include "fz/device_types.h"
#include "predictors/tiled_lorenzo/codec.h"

namespace fz::cuda {
struct Call;
}

/// TiledLorenzo on the device. U is std::uint16_t or std::uint32_t and serves the signed type of
/// its width too. All functions only enqueue, and record DeviceError::kCorrupt, with the number of
/// bytes as its index, when the grid does not hold the input.
namespace fz::tiled_lorenzo {

/// Slot of the record for the extent in x: written by the encoder.
inline constexpr unsigned kExtentSlot = 0;

struct CudaTiles {
  CudaInput input;
  CudaOutput output;
  Grid grid;
  /// nx is only a limit: the encoder takes it from the size of the input, the decoder from the
  /// record.
  bool is_extent_open;
  StageRecord* record;
};

template <class U>
void encodeTiles(const CudaTiles& tiles, const cuda::Call& call);
template <class U>
void decodeTiles(const CudaTiles& tiles, const cuda::Call& call);

/// Divides numbers below 2^31 by multiplication: magic is 2^(31 + shift) / divisor, rounded up, and
/// 2^shift the next power of two, so that what is too much never reaches the next quotient.
struct FastDivisor {
  std::uint32_t divisor;
  std::uint32_t magic;
  std::uint32_t shift;

  static FastDivisor of(std::uint32_t n) {
    const std::uint32_t shift = n <= 1 ? 0 : bits::bitWidth(n - 1);
    const std::uint64_t power = std::uint64_t{1} << (31 + shift);
    return {n, static_cast<std::uint32_t>(n == 0 ? 0 : bits::ceilDiv<std::uint64_t>(power, n)),
            shift};
  }
  FZ_HD static bool isSmall(std::uint64_t n) { return n < std::uint64_t{1} << 31; }
  FZ_HD std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>(std::uint64_t{n} * magic >> (31 + shift));
  }
};

/// In a fused group a warp has this many values, in whole tiles.
inline constexpr std::uint32_t kGroupWarpValues = 1024;

/// Tiles as part of a fused group.
struct alignas(16) TilesArgs {
  StageRecord* record;
  std::uint64_t nx;
  std::uint64_t ny;
  std::uint64_t nz;
  std::uint64_t plane;  ///< nx * ny
  FastDivisor tiles_x;
  FastDivisor tiles_y;
  std::uint64_t n_tiles;
  bool has_whole_tiles;  ///< no value of any tile is padding
  bool publishes;        ///< decoding
  std::uint64_t capacity_bytes;
};

}  // namespace fz::tiled_lorenzo
