#pragma once

// What a thread block that decodes grids by the chunk does next: a list of chunks, some of them
// more than once. One thread works it out, ahead of the others, into shared memory: what all
// threads share would take registers that they need to decode. Device code only; must compile with
// NVRTC.

#include "fused/lorenzo_quant/lorenzo_quant_chunk_op.h"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"

namespace fz::lorenzo_quant::device {

/// The chunks that a block takes one after the other, and what of them it decodes.
struct ChunkUnit {
  std::uint32_t first_chunk;
  std::uint32_t stride;
  std::uint32_t n_chunks;
  // Two dimensions:
  std::uint32_t first_row;
  std::uint32_t end_row;
  std::uint32_t x;

  template <int kDim>
  static __device__ __forceinline__ ChunkUnit of(const Grid& grid, std::uint32_t number) {
    const auto nx = static_cast<std::uint32_t>(grid.nx);
    const auto ny = static_cast<std::uint32_t>(grid.ny);
    if constexpr (kDim == 3) {
      const std::uint32_t plane_chunks = nx * ny / kChunkCodes;
      const std::uint32_t z = number / plane_chunks * 8;
      const std::uint64_t n_left = grid.nz - z;
      return {z * plane_chunks + number % plane_chunks,
              plane_chunks,
              n_left < 8 ? static_cast<std::uint32_t>(n_left) : 8u,
              0,
              0,
              0};
    } else {
      const std::uint32_t columns = nx > kMostColumns ? nx / kChunkCodes : 1;
      const auto n_rows = static_cast<std::uint32_t>(unitRows(nx));
      const std::uint32_t first = number / columns * n_rows;
      const std::uint32_t end = ny - first < n_rows ? ny : first + n_rows;
      const std::uint32_t column = number % columns;
      const std::uint32_t first_chunk = first * nx / kChunkCodes;
      const std::uint32_t n_chunks =
          columns > 1 ? end - first : (end * nx - 1) / kChunkCodes - first_chunk + 1;
      return {first_chunk + column, columns, n_chunks, first, end, column * kChunkCodes};
    }
  }
};

/// A chunk, and what is to be done with it.
struct ChunkJob {
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  std::uint32_t chunk;   ///< kNone behind the last job
  std::uint32_t number;  ///< of the chunk in its unit
  std::uint32_t first_strip, end_strip;
  std::uint32_t unit_number;
  ChunkUnit unit;
};

/// Of a block, in shared memory.
template <class T, int kDim>
struct ChunkJobs {
  static constexpr unsigned kAhead = 4;

  Grid grid;
  std::uint32_t nx;
  T step;
  bool has_entries;    ///< that are added to codes
  bool is_wide;        ///< with entries that no integer holds
  bool has_long_sums;  ///< of 64 bits
  std::uint32_t n_units;
  std::uint32_t n_strips;
  std::uint32_t most_strips;  ///< whose sums a block keeps at a time
  std::uint32_t n_begun;      ///< jobs
  ChunkJob jobs[kAhead];

  /// The job to begin, the one after it, and from advance() on the one that was begun. Threads see
  /// what advance() did behind a barrier.
  __device__ __forceinline__ const ChunkJob& next() const { return jobs[n_begun % kAhead]; }
  __device__ __forceinline__ const ChunkJob& afterNext() const {
    return jobs[(n_begun + 1) % kAhead];
  }
  __device__ __forceinline__ const ChunkJob& begun() const { return jobs[(n_begun - 1) % kAhead]; }
  /// By one thread, when a job has been begun: works out one more.
  __device__ __forceinline__ void advance() {
    n_begun += 1;
    const ChunkJob& from = jobs[n_begun % kAhead];
    ChunkJob& to = jobs[(n_begun + 1) % kAhead];
    to = from;
    if (from.chunk == ChunkJob::kNone) {
      return;
    }
    if (from.number + 1 < from.unit.n_chunks) {
      to.chunk = from.chunk + from.unit.stride;
      to.number = from.number + 1;
      return;
    }
    if (from.end_strip < n_strips) {
      startAt(from.end_strip, to);
      return;
    }
    to.unit_number = from.unit_number + gridDim.x;
    start(to);
  }
  /// By one thread, when all else is set: the first two jobs.
  __device__ __forceinline__ void begin() {
    jobs[0].unit_number = blockIdx.x;
    start(jobs[0]);
    n_begun = 0xFFFFFFFFu;
    advance();
  }

 private:
  __device__ __forceinline__ void startAt(std::uint32_t first_strip, ChunkJob& job) const {
    job.chunk = job.unit.first_chunk;
    job.number = 0;
    job.first_strip = first_strip;
    job.end_strip = n_strips - first_strip < most_strips ? n_strips : first_strip + most_strips;
  }
  __device__ __forceinline__ void start(ChunkJob& job) const {
    if (job.unit_number >= n_units) {
      job.chunk = ChunkJob::kNone;
      return;
    }
    job.unit = ChunkUnit::of<kDim>(grid, job.unit_number);
    startAt(0, job);
  }
};

}  // namespace fz::lorenzo_quant::device
