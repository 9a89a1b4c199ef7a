// A warp takes a tile of 4 KiB (8 KiB of 8-byte elements): 32 rows of 32 elements per unit, one row
// for each lane. A row becomes the same word of every plane, so planes are read and written as
// whole lines of 128 bytes; elements pass through shared memory, where a row is read by its lane.

#include <cstddef>
#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "shufflers/bitshuffle/codec.h"
#include "shufflers/bitshuffle/cuda/kernels.h"
#include "shufflers/bitshuffle/cuda/op/rows.cuh"

namespace fz::bitshuffle {

namespace {

using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kWarps = 4;
constexpr unsigned kPieceBytes = 16;
constexpr unsigned kLineWords = 32;  // words of a plane that one unit fills

template <unsigned kBytes>
struct Shape {
  static constexpr unsigned kUnitBytes = kUnitElements * kBytes;
  static constexpr unsigned kUnits = kBytes < 4 ? 4 / kBytes : 1;  // of a tile
  static constexpr unsigned kTileBytes = kUnits * kUnitBytes;
  static constexpr unsigned kTilePieces = kTileBytes / kPieceBytes;
  static constexpr unsigned kUnitPieces = kUnitBytes / kPieceBytes;
  static constexpr unsigned kRowPieces = 2 * kBytes;  // of the 32 elements of a lane
  static constexpr unsigned kPlanes = 8 * kBytes;
  static constexpr unsigned kLoads = kTilePieces / kWarp;
  static constexpr unsigned kBatch = kLoads < 8 ? kLoads : 8;  // loads in flight per lane

  /// Where piece `at` of a tile lies in shared memory: eight lanes that read the same piece of
  /// eight rows, or eight pieces in a row, meet all banks.
  static __device__ __forceinline__ unsigned place(unsigned at) {
    constexpr unsigned kLineRows = kRowPieces < 8 ? 8 / kRowPieces : 1;
    constexpr unsigned kMask = kRowPieces < 8 ? kRowPieces - 1 : 7;
    return at ^ (at / kRowPieces / kLineRows & kMask);
  }
  /// The row whose bits lie in word `lane` of a plane. Of a 64-bit word the first 32 elements are
  /// the high half.
  static __device__ __forceinline__ unsigned rowOf(unsigned lane) {
    return kBytes == 8 ? lane ^ 1u : lane;
  }
};

/// The units of a warp.
struct Tile {
  std::uint64_t n_bytes;       ///< of the whole input
  std::uint64_t begin;         ///< first byte
  std::uint64_t shuffled_end;  ///< end of the whole blocks, all of the input
  unsigned first_unit;
  unsigned n_units;  ///< to shuffle
};

template <unsigned kBytes>
__device__ __forceinline__ Tile tileOf(const DeviceJob& job) {
  using S = Shape<kBytes>;
  Tile tile{};
  tile.n_bytes = cuda::load(job.size);
  if (job.publishes && blockIdx.x == 0 && threadIdx.x == 0) {
    cuda::publishSize(job.record, 0, tile.n_bytes, job.capacity_bytes);
  }
  if (tile.n_bytes > job.capacity_bytes) {
    tile.n_bytes = 0;
  }
  const std::uint64_t index = std::uint64_t{blockIdx.x} * kWarps + warpId();
  tile.begin = index * S::kTileBytes;
  tile.shuffled_end = tile.n_bytes / job.block_bytes * job.block_bytes;
  tile.first_unit = static_cast<unsigned>(index * S::kUnits);
  const std::uint64_t left =
      tile.begin < tile.shuffled_end ? (tile.shuffled_end - tile.begin) / S::kUnitBytes : 0;
  tile.n_units = static_cast<unsigned>(left < S::kUnits ? left : S::kUnits);
  return tile;
}

/// First word of a unit's part of plane 0, for this lane.
template <unsigned kBytes>
__device__ __forceinline__ std::uint64_t planeWord(const DeviceJob& job, unsigned unit) {
  const unsigned block_units = job.block_bytes / Shape<kBytes>::kUnitBytes;
  const unsigned block = unit / block_units;
  return std::uint64_t{block} * (job.block_bytes / 4) + (unit - block * block_units) * kLineWords +
         laneId();
}

/// The part of a tile behind the last whole block is copied.
template <unsigned kBytes>
__device__ __forceinline__ void copyTail(const DeviceJob& job, const Tile& tile) {
  const std::uint64_t tile_end = tile.begin + Shape<kBytes>::kTileBytes;
  const std::uint64_t begin = tile.begin < tile.shuffled_end ? tile.shuffled_end : tile.begin;
  const std::uint64_t end = tile_end < tile.n_bytes ? tile_end : tile.n_bytes;
  if (begin >= end) {
    return;
  }
  for (std::uint64_t at = begin + kPieceBytes * laneId(); at + kPieceBytes <= end;
       at += kPieceBytes * kWarp) {
    cuda::storeStream(job.out + at, cuda::loadStream(job.in + at));
  }
  const unsigned rest = static_cast<unsigned>(end % kPieceBytes);
  if (laneId() < rest) {
    job.out[end - rest + laneId()] = job.in[end - rest + laneId()];
  }
}

/// Words of the row of this lane, four for each piece: word w of element l is words[...] as `slot`
/// places it.
template <unsigned kBytes, class F>
__device__ __forceinline__ void readRow(const uint4* pieces, unsigned row, F slot) {
  using S = Shape<kBytes>;
#pragma unroll
  for (unsigned i = 0; i < S::kRowPieces; ++i) {
    const uint4 piece = pieces[S::place(row * S::kRowPieces + i)];
    slot(4 * i, piece.x);
    slot(4 * i + 1, piece.y);
    slot(4 * i + 2, piece.z);
    slot(4 * i + 3, piece.w);
  }
}

/// Planes of a row, the highest bit first: store(plane, word).
template <unsigned kBytes, class Store>
__device__ __forceinline__ void encodeRow(const uint4* pieces, unsigned row, Store store) {
  if constexpr (kBytes == 1) {
    std::uint32_t words[8];
    std::uint32_t planes[8];
    readRow<1>(pieces, row, [&](unsigned i, std::uint32_t w) { words[i] = w; });
    planesOf8(words, planes);
#pragma unroll
    for (unsigned p = 0; p < 8; ++p) {
      store(p, planes[7 - p]);
    }
  } else if constexpr (kBytes == 2) {
    std::uint32_t words[16];
    std::uint32_t planes[16];
    readRow<2>(pieces, row, [&](unsigned i, std::uint32_t w) { words[i] = w; });
    planesOf16(words, planes);
#pragma unroll
    for (unsigned p = 0; p < 16; ++p) {
      store(p, planes[15 - p]);
    }
  } else {
    // Element 0 goes to the highest bit: rows and planes are only renamed.
    constexpr unsigned kWords = kBytes / 4;
#pragma unroll
    for (unsigned part = 0; part < kWords; ++part) {  // the high words first
      std::uint32_t a[32];
      readRow<kBytes>(pieces, row, [&](unsigned i, std::uint32_t w) {
        if (i % kWords == kWords - 1 - part) {
          a[31 - i / kWords] = w;
        }
      });
      transpose32(a);
#pragma unroll
      for (unsigned p = 0; p < 32; ++p) {
        store(32 * part + p, a[31 - p]);
      }
    }
  }
}

/// Inverse of encodeRow: writes the pieces of the row. `planes` are in the order of the stream.
template <unsigned kBytes>
__device__ __forceinline__ void decodeRow(const std::uint32_t (&planes)[8 * kBytes],
                                          unsigned row,
                                          uint4* pieces) {
  using S = Shape<kBytes>;
  std::uint32_t words[8 * kBytes];
  if constexpr (kBytes == 1) {
    std::uint32_t a[8];
#pragma unroll
    for (unsigned p = 0; p < 8; ++p) {
      a[7 - p] = planes[p];
    }
    elementsOf8(a, words);
  } else if constexpr (kBytes == 2) {
    std::uint32_t a[16];
#pragma unroll
    for (unsigned p = 0; p < 16; ++p) {
      a[15 - p] = planes[p];
    }
    elementsOf16(a, words);
  } else {
    constexpr unsigned kWords = kBytes / 4;
#pragma unroll
    for (unsigned part = 0; part < kWords; ++part) {
      std::uint32_t a[32];
#pragma unroll
      for (unsigned p = 0; p < 32; ++p) {
        a[31 - p] = planes[32 * part + p];
      }
      transpose32(a);
#pragma unroll
      for (unsigned l = 0; l < 32; ++l) {
        words[l * kWords + kWords - 1 - part] = a[31 - l];
      }
    }
  }
#pragma unroll
  for (unsigned i = 0; i < S::kRowPieces; ++i) {
    pieces[S::place(row * S::kRowPieces + i)] =
        make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
  }
}

template <unsigned kBytes>
__global__ void __launch_bounds__(kWarps* kWarp) encodeTiles(const DeviceJob job) {
  using S = Shape<kBytes>;
  __shared__ uint4 shared[kWarps][S::kTilePieces];
  const Tile tile = tileOf<kBytes>(job);
  uint4* pieces = shared[warpId()];
  const std::uint8_t* in = job.in + tile.begin + kPieceBytes * laneId();
#pragma unroll
  for (unsigned batch = 0; batch < S::kLoads; batch += S::kBatch) {
    uint4 loaded[S::kBatch];
#pragma unroll
    for (unsigned i = 0; i < S::kBatch; ++i) {
      if ((batch + i) * kWarp / S::kUnitPieces < tile.n_units) {
        loaded[i] = cuda::loadStream(in + (batch + i) * kWarp * kPieceBytes);
      }
    }
#pragma unroll
    for (unsigned i = 0; i < S::kBatch; ++i) {
      if ((batch + i) * kWarp / S::kUnitPieces < tile.n_units) {
        pieces[S::place((batch + i) * kWarp + laneId())] = loaded[i];
      }
    }
  }
  __syncwarp();
  const unsigned plane_words = job.block_bytes / (32 * kBytes);
#pragma unroll
  for (unsigned u = 0; u < S::kUnits; ++u) {
    if (u < tile.n_units) {
      auto* out =
          reinterpret_cast<std::uint32_t*>(job.out) + planeWord<kBytes>(job, tile.first_unit + u);
      encodeRow<kBytes>(
          pieces, u * kWarp + S::rowOf(laneId()),
          [&](unsigned plane, std::uint32_t word) { __stcs(out + plane * plane_words, word); });
    }
  }
  copyTail<kBytes>(job, tile);
}

template <unsigned kBytes>
__global__ void __launch_bounds__(kWarps* kWarp) decodeTiles(const DeviceJob job) {
  using S = Shape<kBytes>;
  __shared__ uint4 shared[kWarps][S::kTilePieces];
  const Tile tile = tileOf<kBytes>(job);
  uint4* pieces = shared[warpId()];
  const unsigned plane_words = job.block_bytes / (32 * kBytes);
  std::uint32_t planes[S::kUnits][S::kPlanes];
#pragma unroll
  for (unsigned u = 0; u < S::kUnits; ++u) {
    if (u < tile.n_units) {
      const auto* in = reinterpret_cast<const std::uint32_t*>(job.in) +
                       planeWord<kBytes>(job, tile.first_unit + u);
#pragma unroll
      for (unsigned p = 0; p < S::kPlanes; ++p) {
        planes[u][p] = __ldcs(in + p * plane_words);
      }
    }
  }
#pragma unroll
  for (unsigned u = 0; u < S::kUnits; ++u) {
    if (u < tile.n_units) {
      decodeRow<kBytes>(planes[u], u * kWarp + S::rowOf(laneId()), pieces);
    }
  }
  __syncwarp();
  std::uint8_t* out = job.out + tile.begin + kPieceBytes * laneId();
#pragma unroll
  for (unsigned i = 0; i < S::kLoads; ++i) {
    if (i * kWarp / S::kUnitPieces < tile.n_units) {
      cuda::storeStream(out + i * kWarp * kPieceBytes, pieces[S::place(i * kWarp + laneId())]);
    }
  }
  copyTail<kBytes>(job, tile);
}

template <unsigned kBytes>
unsigned gridOf(const DeviceJob& job) {
  return cuda::gridFor(job.size.n_bytes, std::size_t{kWarps} * Shape<kBytes>::kTileBytes);
}

}  // namespace

void launchEncode(const DeviceJob& job, const cuda::Call& call) {
  constexpr unsigned kThreads = kWarps * kWarp;
  switch (job.element_bytes) {
    case 1:
      encodeTiles<1><<<gridOf<1>(job), kThreads, 0, call.stream>>>(job);
      break;
    case 2:
      encodeTiles<2><<<gridOf<2>(job), kThreads, 0, call.stream>>>(job);
      break;
    case 4:
      encodeTiles<4><<<gridOf<4>(job), kThreads, 0, call.stream>>>(job);
      break;
    default:
      encodeTiles<8><<<gridOf<8>(job), kThreads, 0, call.stream>>>(job);
  }
  cuda::checkLaunch("bitshuffle encode");
}

void launchDecode(const DeviceJob& job, const cuda::Call& call) {
  constexpr unsigned kThreads = kWarps * kWarp;
  switch (job.element_bytes) {
    case 1:
      decodeTiles<1><<<gridOf<1>(job), kThreads, 0, call.stream>>>(job);
      break;
    case 2:
      decodeTiles<2><<<gridOf<2>(job), kThreads, 0, call.stream>>>(job);
      break;
    case 4:
      decodeTiles<4><<<gridOf<4>(job), kThreads, 0, call.stream>>>(job);
      break;
    default:
      decodeTiles<8><<<gridOf<8>(job), kThreads, 0, call.stream>>>(job);
  }
  cuda::checkLaunch("bitshuffle decode");
}

}  // namespace fz::bitshuffle
