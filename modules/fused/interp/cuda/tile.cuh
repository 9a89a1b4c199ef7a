#pragma once

// A level along all axes by tiles of cells whose rows, planes and blocks are copied to shared
// memory ahead of their use: what encoding and decoding share. Device code only.

#include "backends/cuda/async_copy.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/shared_memory.h"
#include "fused/interp/cuda/level.cuh"
#include "fused/interp/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::interp::device {

inline __device__ void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until but so many of the last groups of copies have arrived.
template <int kLeft>
__device__ __forceinline__ void waitForAllBut() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

inline constexpr std::uint32_t kTileX = 32;  // cells
// Of rows in shared memory, in words. 12 mod 32: a lane per row of a column has its own bank.
inline constexpr std::uint32_t kPitch = 44;
inline constexpr std::uint32_t kBasePieces = 10;  // of 16 bytes: columns -4 to 35
inline constexpr std::uint32_t kBlocksAcross = kTileX / 4;

/// The piece of a plane of the base that a thread copies.
struct BaseCopy {
  const LevelJob& job;
  const std::int32_t* from;
  std::uint32_t to;
  bool is_any;

  __device__ __forceinline__
  BaseCopy(const LevelJob& level, std::uint32_t x, std::uint32_t y, std::uint32_t n_rows)
      : job(level) {
    const std::uint32_t row = threadIdx.x / kBasePieces;
    const std::uint32_t piece = threadIdx.x % kBasePieces;
    // Ghosts are one before and two behind.
    const std::int64_t last_x = (job.cells[0] + 1) / 4 * 4;
    const std::int64_t last_y = job.cells[1] + 1;
    const std::int64_t column = std::int64_t{x} + 4 * piece - 4;
    const std::int64_t line = std::int64_t{y} + row - 1;
    from = static_cast<const std::int32_t*>(job.base.data) +
           placeIn(job.base, column < last_x ? column : last_x, line < last_y ? line : last_y, 0);
    to = row * kPitch + 4 * piece;
    is_any = row < n_rows;
  }
  __device__ __forceinline__ void operator()(std::int64_t k, std::int32_t* plane) const {
    if (is_any) {
      const std::int64_t last = std::int64_t{job.cells[2]} + 1;
      cuda::copyAsync<16>(plane + to, from + (k < last ? k : last) * job.base.step[2], true);
    }
  }
};

/// Predictions from a plane of the base at cell (i, j) of the tile.
__device__ __forceinline__ PlanePart partOf(const std::int32_t* plane,
                                            const Bend (&bends)[3],
                                            std::uint32_t i,
                                            std::uint32_t j) {
  std::int32_t b[4];
  std::int32_t along_x[4];
#pragma unroll
  for (unsigned r = 0; r < 4; ++r) {
    const std::int32_t* const p = plane + (j + r) * kPitch + i + 4;
    b[r] = p[0];
    along_x[r] = between(bends[0], p[-1], p[0], p[1], p[2]);
  }
  return {b[1], along_x[1], between(bends[1], b[0], b[1], b[2], b[3]),
          between(bends[1], along_x[0], along_x[1], along_x[2], along_x[3])};
}

/// A prediction with its correction, for a class of two axes: sums of codes of the class of the
/// second one and of the first.
__device__ __forceinline__ std::int32_t pairCorrected(const LevelJob& job,
                                                      std::uint32_t odd,
                                                      std::int32_t p,
                                                      std::int32_t second,
                                                      std::int32_t first,
                                                      std::int32_t units) {
  const std::int32_t sum = bits::wrapAdd(wrapMul(job.pair_weights[odd][0], second),
                                         wrapMul(job.pair_weights[odd][1], first));
  return bits::wrapAdd(p, correction(sum, units));
}
__device__ __forceinline__ std::int32_t cubeCorrected(const LevelJob& job,
                                                      std::int32_t p,
                                                      const std::int32_t (&sums)[6],
                                                      std::int32_t units) {
  std::int32_t sum = 0;
#pragma unroll
  for (unsigned s = 0; s < 6; ++s) {
    sum = bits::wrapAdd(sum, wrapMul(job.cube_weights[s], sums[s]));
  }
  return bits::wrapAdd(p, correction(sum, units));
}

/// Whether blocks of codes are 4 x 4 x 4, and lattices such that rows can be copied in pieces.
inline bool isAligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}
inline bool hasAlignedRows(const Grid& grid) {
  return isAligned(grid.data) && grid.step[1] % 4 == 0 && grid.step[2] % 4 == 0;
}
inline bool isForTiles(const LevelJob& job) {
  const CodePlaces& array = job.classes[kXyz];
  return job.axes == kXyz && job.is_regular && array.log2[0] == 2 && array.log2[1] == 2 &&
         array.log2[2] == 2 && job.cells[0] >= kMinTileCells && job.cells[1] >= 8 &&
         isAligned(job.codes) && hasAlignedRows(job.base);
}
/// Cuts a level into tiles of kTileX by tile_y cells; gives the number of thread blocks.
inline unsigned cutIntoTiles(LevelJob& job, std::uint32_t tile_y) {
  job.n_tiles = {{bits::ceilDiv(job.cells[0], kTileX), bits::ceilDiv(job.cells[1], tile_y), 1}};
  job.chunk = levelChunk(job.cells[2], std::uint64_t{job.n_tiles[0]} * job.n_tiles[1],
                         cuda::multiprocessorCount());
  job.n_tiles[2] = bits::ceilDiv(job.cells[2], job.chunk);
  return job.n_tiles[0] * job.n_tiles[1] * job.n_tiles[2];
}

}  // namespace fz::interp::device
