#pragma once

// One tile with outlier lists. The places of the outliers come from a look-back over the tiles'
// counts; codes do not wait for it. Device code only.

#include <cstdint>

#include "backends/cuda/lookback.cuh"
#include "quantizers/quantizer/quantizer_tile.cuh"

namespace fz::quantizer::device {

/// Tiles without outliers need no prefix, but some of them must find theirs, or a later tile would
/// walk back too far.
inline constexpr unsigned kPrefixEvery = 32;

template <class T>
__device__ __forceinline__ void publishLists(const EncodeJob& job, std::uint64_t n_outliers) {
  job.record->value[kSlotOutliers] = n_outliers;
  cuda::publishSize(job.record, 1, n_outliers * sizeof(T), job.outlier_values.capacity_bytes);
  cuda::publishSize(job.record, 2, n_outliers * sizeof(std::uint32_t),
                    job.outlier_indices.capacity_bytes);
}

/// Sixteen bits per piece.
__device__ __forceinline__ unsigned pieceCount(std::uint64_t counts, unsigned j) {
  return static_cast<unsigned>(counts >> (16 * j)) & 0xffffu;
}

/// Values and indices of the thread's outliers. `before` counts, per piece, those of the threads
/// before; `totals` those of the whole tile.
template <class T>
__device__ __forceinline__ void writeOutliers(const EncodeJob& job,
                                              const Vec16<T>* x,
                                              unsigned refused,
                                              std::uint64_t before,
                                              std::uint64_t totals,
                                              std::uint64_t tile_begin,
                                              std::uint64_t lists_begin) {
  using Shape = TileShape<T, kVecs>;
  auto* values = reinterpret_cast<BitsOf<T>*>(job.outlier_values.data);
  auto* indices = reinterpret_cast<std::uint32_t*>(job.outlier_indices.data);
  const std::uint64_t room_values = job.outlier_values.capacity_bytes / sizeof(T);
  const std::uint64_t room_indices = job.outlier_indices.capacity_bytes / sizeof(std::uint32_t);
  const std::uint64_t room = room_values < room_indices ? room_values : room_indices;
#pragma unroll
  for (unsigned j = 0; j < kVecs; ++j) {
    std::uint64_t at = lists_begin + pieceCount(before, j);
#pragma unroll
    for (unsigned e = 0; e < Shape::kCount; ++e) {
      if ((refused >> (j * Shape::kCount + e) & 1u) != 0) {
        if (at < room) {
          values[at] = fp::bits(x[j].v[e]);
          indices[at] = static_cast<std::uint32_t>(tile_begin + Shape::at(j) + e);
        }
        ++at;
      }
    }
    lists_begin += pieceCount(totals, j);
  }
}

/// The work of block b: tile b.
template <class T, class C, class Coder>
__device__ __forceinline__ void encodeListsTile(const EncodeJob& job, const Coder& coder) {
  using Shape = TileShape<T, kVecs>;
  static_assert(kVecs <= 4 && kThreads * Shape::kCount < 0x10000);
  __shared__ std::uint64_t warp_sums[kThreads / cuda::kWarp];
  __shared__ std::uint64_t lists_begin;

  const std::uint64_t n = valuesOf<T>(job);
  const std::uint64_t n_tiles = n == 0 ? 1 : bits::ceilDiv<std::uint64_t>(n, Shape::kValues);
  const std::uint64_t tile = blockIdx.x;
  if (tile >= n_tiles) {
    return;
  }
  const std::uint64_t begin = tile * Shape::kValues;
  const std::uint64_t n_left = n - begin;
  Vec16<T> x[kVecs];
  loadTile<T, kVecs>(reinterpret_cast<const T*>(job.input.data) + begin, n_left, x);
  CodeVec<C, Shape::kCount> codes[kVecs];
  unsigned refused = 0;
#pragma unroll
  for (unsigned j = 0; j < kVecs; ++j) {
    refused |= coder.encode(x[j], codes[j].v) << (j * Shape::kCount);
  }
  refused &= presentValues<T, kVecs>(n_left);

  C* out = reinterpret_cast<C*>(job.codes.data) + begin;
  const cuda::LookBack scan{job.tile_states};
  const bool is_last = tile + 1 == n_tiles;
  if (__syncthreads_or(refused != 0 ? 1 : 0) == 0) {
    if (threadIdx.x == 0) {
      scan.publish(tile, 0);
    }
    storeTile<T, kVecs>(out, n_left, codes);
    if (cuda::warpId() == 0 && (is_last || tile % kPrefixEvery == kPrefixEvery - 1)) {
      const std::uint64_t n_before = scan.prefix(tile, 0);
      if (is_last && cuda::laneId() == 0) {
        publishLists<T>(job, n_before);
      }
    }
    return;
  }

  std::uint64_t counts = 0;
#pragma unroll
  for (unsigned j = 0; j < kVecs; ++j) {
    const unsigned piece = refused >> (j * Shape::kCount) & ((1u << Shape::kCount) - 1u);
    counts |= static_cast<std::uint64_t>(__popc(piece)) << (16 * j);
  }
  std::uint64_t totals = 0;
  const std::uint64_t before = cuda::blockExclusiveSum<kThreads>(counts, warp_sums, &totals);
  std::uint64_t n_refused = 0;
#pragma unroll
  for (unsigned j = 0; j < kVecs; ++j) {
    n_refused += pieceCount(totals, j);
  }
  if (threadIdx.x == 0) {
    scan.publish(tile, n_refused);
  }
  storeTile<T, kVecs>(out, n_left, codes);
  if (cuda::warpId() == 0) {
    const std::uint64_t n_before = scan.prefix(tile, n_refused);
    if (cuda::laneId() == 0) {
      lists_begin = n_before;
      if (is_last) {
        publishLists<T>(job, n_before + n_refused);
      }
    }
  }
  __syncthreads();
  writeOutliers<T>(job, x, refused, before, totals, begin, lists_begin);
}

}  // namespace fz::quantizer::device
