#pragma once

// The decoder of grids that takes whole chunks: a block walks through the chunks of a unit, down
// the rows of tiles in two dimensions, through the planes of a tile in three. Device code only;
// must compile with NVRTC.

#include "fused/lorenzo_quant/lorenzo_quant_chunk_walk.cuh"

namespace fz::lorenzo_quant::device {

/// Shared memory for what columns have summed up to: 32 bits for each code of a chunk. Where sums
/// are wider, that is for some strips of columns, and chunks are decoded once more for the others.
inline constexpr unsigned kKeptBytes = 4 * kChunkCodes;

template <class T, int kDim, class Inner, class Reader>
struct ChunkDecoder {
  using Word = typename Number<T>::Word;
  template <RowCut kCut>
  using Walk = ChunkWalk<T, kDim, kCut, Inner>;
  static constexpr unsigned kEdge = kDim == 2 ? 32 : 8;
  static_assert(Reader::kThreads == kChunkThreads);

  const DecodeRun& decode;
  const DecodePlan<T>& plan;
  const Inner& inner;
  Reader reader;

  /// By all threads of the block.
  __device__ __forceinline__ void run() {
    __shared__ ChunkNotes notes;
    __shared__ ChunkJobs<T, kDim> jobs;
    const Layout& layout = plan.layout;
    if (layout.n_values < plan.n_values) {
      clearBeyond(reader, inner, layout.n_values, plan.n_values);
    }
    if (layout.n_values == 0) {
      return;
    }
    if (threadIdx.x == 0) {
      prepare(jobs);
      jobs.begin();
    }
    __syncthreads();
    while (jobs.next().chunk != ChunkJob::kNone) {
      takeChunk(jobs, notes);
    }
  }

 private:
  using Jobs = ChunkJobs<T, kDim>;

  static __device__ __forceinline__ RowCut cutOf(std::uint32_t nx) {
    return kDim == 3 || nx % kEdge == 0 ? RowCut::kWholeTiles : RowCut::kWholePieces;
  }

  __device__ __forceinline__ void prepare(Jobs& jobs) const {
    const Grid& grid = plan.layout.grid;
    const auto nx = static_cast<std::uint32_t>(grid.nx);
    constexpr unsigned strip_sums = Walk<RowCut::kWholeTiles>::kStripSums;
    const std::uint32_t n_sums = kDim == 3 || nx > kMostColumns ? kChunkCodes : nx;
    jobs.grid = grid;
    jobs.nx = nx;
    jobs.step = plan.step;
    jobs.has_entries = plan.n_range != 0;
    jobs.is_wide = plan.is_wide != 0;
    jobs.n_units = static_cast<std::uint32_t>(unitCount(grid, kDim));
    jobs.n_strips = (n_sums + strip_sums - 1) / strip_sums;
    jobs.has_long_sums = jobs.is_wide || (sizeof(Word) == 8 && plan.is_long != 0);
    jobs.most_strips = kKeptBytes / ((jobs.has_long_sums ? 8u : 4u) * strip_sums);
  }

  __device__ __forceinline__ void takeChunk(Jobs& jobs, ChunkNotes& notes) {
    std::uint32_t marks = 0;
    if (jobs.has_entries) {
      const std::uint32_t at = jobs.next().chunk * kChunkCodes + threadIdx.x * kPieceCodes;
      marks = marksFrom<T>(decode, plan.layout, at);
    }
    std::uint32_t words[group::kChunkThreadWords];
    reader.read(jobs.next().chunk, jobs.afterNext().chunk, words);
    const std::uint32_t nx = jobs.nx;
    const ChunkSums sums{reader.staging()};
    if (threadIdx.x == 0) {
      jobs.advance();
    }
    const bool has_special =
        sumChunk<kEdge>(decode.zigzag, cutOf(nx) == RowCut::kWholeTiles, marks, words, sums, notes);
    if (cutOf(nx) == RowCut::kWholeTiles) {
      walkBy<RowCut::kWholeTiles>(jobs, has_special, sums, notes);
    } else if constexpr (kDim == 2) {
      walkBy<RowCut::kWholePieces>(jobs, has_special, sums, notes);
    }
  }

  template <RowCut kCut>
  __device__ __forceinline__ void walkBy(const Jobs& jobs,
                                         bool has_special,
                                         const ChunkSums& sums,
                                         const ChunkNotes& notes) const {
    const ChunkJob& job = jobs.begun();
    const Walk<kCut> walk{
        inner,      {decode, sums, notes, job.chunk * kChunkCodes, job.number & 1u},
        job.unit,   jobs.nx,
        jobs.step,  job.number == 0,
        has_special};
    if (jobs.is_wide) {
      walkWide<kCut>(walk, job.first_strip, job.end_strip, reader.memory());
      return;
    }
    if constexpr (sizeof(Word) == 8) {
      if (jobs.has_long_sums) {
        walk.template run<Word>(job.first_strip, job.end_strip, reader.memory());
        return;
      }
    }
    walk.template run<std::uint32_t>(job.first_strip, job.end_strip, reader.memory());
  }

  /// By value: nothing that the other ways use should need an address.
  template <RowCut kCut>
  static __device__ __noinline__ void walkWide(Walk<kCut> walk,
                                               unsigned first,
                                               unsigned end,
                                               void* kept) {
    walk.template run<double>(first, end, kept);
  }

  /// Values beyond the layout, which only streams of the original system have. Their codes are
  /// read, so that damage is found.
  static __device__ __noinline__ void clearBeyond(Reader reader,
                                                  Inner inner,
                                                  std::uint64_t begin,
                                                  std::uint64_t n) {
    for (std::uint64_t chunk = begin / kChunkCodes + blockIdx.x; chunk * kChunkCodes < n;
         chunk += gridDim.x) {
      std::uint32_t words[group::kChunkThreadWords];
      reader.read(static_cast<std::uint32_t>(chunk), ChunkJob::kNone, words);
      for (unsigned i = 0; i < kPieceCodes; ++i) {
        const std::uint64_t at = chunk * kChunkCodes + i * kChunkThreads + threadIdx.x;
        if (at >= begin && at < n) {
          const T zero[1] = {T{0}};
          inner.putPiece(at, 1, zero);
        }
      }
    }
  }
};

}  // namespace fz::lorenzo_quant::device
