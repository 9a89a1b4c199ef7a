#pragma once

// Bricks in shared memory, which a warp loads and packs; one lane codes. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/kernels.h"
#include "transforms/mask/cuda/policy.h"

namespace fz::mask {

/// f(row) by the lanes of a warp.
template <class F>
__device__ __forceinline__ void forLaneRows(const Brick& brick, F f) {
  for (std::uint32_t row = cuda::laneId(); row < brick.rows(); row += cuda::kWarp) {
    f(row);
  }
  __syncwarp();
}

/// Bytes of memory for each brick of a grid as it is; the first one is the largest.
FZ_HD std::uint32_t slotBytes(const Grid& grid) {
  return bits::roundUp(brickAt(grid, 0).rawBytes(grid), 4u);
}

/// A row from anywhere, and zeros behind its n_bits.
__device__ __forceinline__ std::uint32_t loadRow(const std::uint32_t* words,
                                                 std::uint64_t start,
                                                 std::uint32_t n_bits) {
  const auto shift = static_cast<std::uint32_t>(start % 32);
  const std::uint32_t low = words[start / 32];
  const std::uint32_t high = shift + n_bits > 32 ? words[start / 32 + 1] : 0;
  return __funnelshift_r(low, high, shift) & lowRow(n_bits);
}

/// What a block has to do of a list of bricks; nothing where it begins behind the end.
struct Share {
  std::uint32_t begin;
  std::uint32_t end;
};

/// Blocks that have something to do are spread over the grid: those that follow each other often
/// come to the same multiprocessor. They get `least` bricks or more.
__device__ __forceinline__ Share shareOf(std::uint32_t n_listed, unsigned least) {
  const std::uint32_t even = (n_listed + gridDim.x - 1) / gridDim.x;
  const std::uint32_t size = even < least ? least : even;
  const std::uint32_t n_busy = (n_listed + size - 1) / size;  // no more than there are blocks
  const std::uint32_t before = blockIdx.x * n_busy / gridDim.x;
  if ((blockIdx.x + 1) * n_busy / gridDim.x == before) {
    return {n_listed, n_listed};
  }
  const std::uint32_t end = (before + 1) * size;
  return {before * size, end < n_listed ? end : n_listed};
}

/// The place in a batch of bricks that a thread of a block of two warps takes. Most batches keep
/// one warp busy, and warps with the same number would share half of the schedulers: it changes
/// after as many blocks as give each multiprocessor about two.
__device__ __forceinline__ unsigned threadOfBatch() {
  return threadIdx.x ^ (blockIdx.x / 256 % 2 * cuda::kWarp);
}

/// Bits of the row of a brick that begins there.
__device__ __forceinline__ std::uint32_t bitsOfRow(const Grid& grid,
                                                   const Brick& brick,
                                                   std::uint64_t start) {
  const std::uint64_t left = grid.n_bits - start;
  return grid.is_line && left < kRowBits ? static_cast<std::uint32_t>(left) : brick.n_x;
}

/// One thread: f(row, its place in the brick, n_bits) for the rows of a brick, several under way.
template <class F>
__device__ __forceinline__ void forLoadedRows(const std::uint32_t* words,
                                              const Grid& grid,
                                              const Brick& brick,
                                              F f) {
  constexpr unsigned kAhead = 8;  // a plane of a brick, or half of it
  std::uint32_t first_row = 0;
  for (std::uint32_t z = 0; z < brick.n_z; ++z, first_row += brick.n_y) {
    std::uint64_t start = brick.planeStart(grid, z);
#pragma unroll 1
    for (std::uint32_t begin = 0; begin < brick.n_y; begin += kAhead, start += kAhead * grid.nx) {
      const std::uint32_t n_here = min(brick.n_y - begin, kAhead);
      std::uint32_t rows[kAhead];
      if (hasWordRows(grid)) {
        const std::uint32_t* const from = words + start / kRowBits;
        const std::uint64_t step = grid.nx / kRowBits;
#pragma unroll
        for (unsigned y = 0; y < kAhead; ++y) {
          rows[y] = y < n_here ? from[y * step] : 0;
        }
      } else {
#pragma unroll
        for (unsigned y = 0; y < kAhead; ++y) {
          rows[y] = y < n_here ? loadRow(words, start + y * grid.nx, brick.n_x) : 0;
        }
      }
#pragma unroll
      for (unsigned y = 0; y < kAhead; ++y) {
        if (y < n_here) {
          f(rows[y], first_row + begin + y, bitsOfRow(grid, brick, start + y * grid.nx));
        }
      }
    }
  }
}

/// One thread: the bytes of a brick, several under way.
__device__ __forceinline__ void copyBrick(const std::uint8_t* from,
                                          std::uint32_t n_bytes,
                                          std::uint8_t* to) {
  constexpr unsigned kAhead = 8;
  for (std::uint32_t i = 0; i < n_bytes; i += kAhead) {
    std::uint8_t held[kAhead];
#pragma unroll
    for (unsigned k = 0; k < kAhead; ++k) {
      held[k] = i + k < n_bytes ? from[i + k] : std::uint8_t{0};
    }
#pragma unroll
    for (unsigned k = 0; k < kAhead; ++k) {
      if (i + k < n_bytes) {
        to[i + k] = held[k];
      }
    }
  }
}

/// What kind of brick rows make, from any ones and any zeros that the lanes have met.
__device__ __forceinline__ BrickKind kindOf(std::uint32_t ones, std::uint32_t zeros) {
  const bool has_ones = __any_sync(cuda::kAllLanes, ones != 0) != 0;
  const bool has_zeros = __any_sync(cuda::kAllLanes, zeros != 0) != 0;
  return !has_ones ? kNone : !has_zeros ? kAll : kCoded;
}

/// The warp: the rows back to back.
__device__ __forceinline__ void packRaw(const Grid& grid,
                                        const Brick& brick,
                                        const std::uint32_t* rows,
                                        std::uint8_t* out) {
  const auto n_bits = static_cast<std::uint32_t>(brick.bits(grid));
  const std::uint32_t n_x = grid.is_line ? kRowBits : brick.n_x;
  for (std::uint32_t byte = cuda::laneId(); byte < (n_bits + 7) / 8; byte += cuda::kWarp) {
    unsigned packed = 0;
    for (std::uint32_t k = 0; k < 8 && 8 * byte + k < n_bits; ++k) {
      const std::uint32_t at = 8 * byte + k;
      packed |= (rows[at / n_x] >> (at % n_x) & 1) << k;
    }
    out[byte] = static_cast<std::uint8_t>(packed);
  }
  __syncwarp();
}

/// The warp: the counterpart, from bytes at any address.
__device__ __forceinline__ void unpackRaw(const Grid& grid,
                                          const Brick& brick,
                                          const std::uint8_t* in,
                                          std::uint32_t* rows) {
  const std::uint32_t n_x = grid.is_line ? kRowBits : brick.n_x;
  forLaneRows(brick, [&](std::uint32_t row) {
    const std::uint32_t n = brick.rowBits(grid, row);
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < n;) {
      const std::uint32_t at = row * n_x + i;
      bits |= static_cast<std::uint32_t>(in[at / 8] >> (at % 8)) << i;
      i += 8 - at % 8;
    }
    rows[row] = bits & lowRow(n);
  });
}

/// The warp: rows of a brick of a layer in bricks, from the bytes of coded and raw ones. False for
/// all lanes: they are not such a brick.
__device__ __forceinline__ bool readRows(const Grid& grid,
                                         const Brick& brick,
                                         BrickKind kind,
                                         const std::uint8_t* bytes,
                                         std::uint32_t n_bytes,
                                         const Chances& chances,
                                         std::uint32_t* rows) {
  bool is_good = true;
  if (kind == kNone || kind == kAll) {
    forLaneRows(brick, [&](std::uint32_t row) {
      rows[row] = kind == kAll ? lowRow(brick.rowBits(grid, row)) : 0;
    });
    return true;
  }
  if (kind == kRaw) {
    unpackRaw(grid, brick, bytes, rows);
  } else {
    if (cuda::laneId() == 0) {
      BitDecoder decoder(chances, bytes, n_bytes);
      codeBrick(decoder, grid, brick, rows);
      is_good = decoder.isAtEnd();
    }
    __syncwarp();
    is_good = __all_sync(cuda::kAllLanes, is_good ? 1 : 0) != 0;
  }
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  forLaneRows(brick, [&](std::uint32_t row) {
    ones |= rows[row];
    zeros |= rows[row] ^ lowRow(brick.rowBits(grid, row));
  });
  return kindOf(ones, zeros) == kCoded && is_good;
}

}  // namespace fz::mask
