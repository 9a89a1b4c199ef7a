// Two passes: the first reads the values, marks where runs begin, finds the number of each run by
// look-back and writes its value; the second turns the marks into lengths, whose place depends on
// the number of all runs. A head ends the run before it, so lengths need to look back only.

#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/rle/cuda/tile.cuh"
#include "fz/cuda_part.h"

namespace fz::rle {

namespace {

using cuda::kAllLanes;
using cuda::kRowsPerWarp;
using cuda::kWarp;
using cuda::laneId;
using cuda::pieceAt;
using cuda::warpId;

template <class U>
constexpr unsigned kTileLength = kTileBytes / sizeof(U);

/// Number of values, or none when the input is refused.
struct Input {
  std::uint64_t n_bytes;
  std::uint64_t n_values;
  std::uint32_t n_tiles;
  bool good;
};

template <class U>
__device__ __forceinline__ Input inputOf(const EncodeArgs& args) {
  const std::uint64_t n_bytes = cuda::load(args.in.size);
  const std::uint64_t n_values = n_bytes / sizeof(U);
  const bool good = n_bytes % sizeof(U) == 0 && n_values <= kMaxValues;
  const std::uint64_t n_tiles = good ? bits::ceilDiv(n_values, std::uint64_t{kTileLength<U>}) : 0;
  return {n_bytes, n_values, static_cast<std::uint32_t>(n_tiles), good};
}

/// Header, padding and size, by one thread that knows the number of runs.
template <class U>
__device__ void finishStream(const EncodeArgs& args, const Input& input, std::uint64_t n_runs) {
  const Layout layout = layoutOf(n_runs, sizeof(U));
  cuda::publishSize(args.record, 0, layout.n_bytes, args.out.capacity_bytes);
  args.record->value[kValuesSlot] = input.n_values;
  args.first_run[input.n_tiles] = static_cast<std::uint32_t>(n_runs);
  if (layout.n_bytes > args.out.capacity_bytes) {
    return;
  }
  *reinterpret_cast<std::uint32_t*>(args.out.data) = static_cast<std::uint32_t>(n_runs);
  for (std::uint64_t i = kValuesAt + n_runs * sizeof(U); i < layout.lengths_at; ++i) {
    args.out.data[i] = 0;
  }
}

/// Marks of the values that differ from the one before; `before` has that of the first value in
/// its highest bits.
template <class U>
__device__ __forceinline__ std::uint32_t changes(uint4 x, std::uint32_t before) {
  if constexpr (sizeof(U) == 4) {
    return valueMarks<U>(make_uint4(x.x ^ before, x.y ^ x.x, x.z ^ x.y, x.w ^ x.z));
  } else {
    constexpr unsigned kBits = 8 * sizeof(U);
    return valueMarks<U>(make_uint4(
        x.x ^ __funnelshift_l(before, x.x, kBits), x.y ^ __funnelshift_l(x.x, x.y, kBits),
        x.z ^ __funnelshift_l(x.y, x.z, kBits), x.w ^ __funnelshift_l(x.z, x.w, kBits)));
  }
}

/// A thread's share of a tile, and the runs of the tile before each piece.
struct Pieces {
  uint4 values[kRowsPerWarp];
  cuda::PieceNumbers marks;
  cuda::PieceNumbers before;
};

struct Work {
  /// Of the runs of this tile and of the one before. One word more, which is only read.
  alignas(16) std::uint32_t values[2][kTileBytes / 4 + 4];
  std::uint32_t n_runs[2];  ///< of the same two tiles
  std::uint32_t index[2];
  std::uint32_t next_index;
  std::uint32_t row_sums[kRows];
  std::uint32_t row_last[kRows];  ///< in rows where a run begins: where the last one does
  std::uint64_t first_run;
};

/// Reads the tile and marks it. A barrier must follow.
template <class U>
__device__ __forceinline__ void readTile(
    const EncodeArgs& args, const Input& input, std::uint32_t tile, Work& work, Pieces& pieces) {
  const std::uint64_t begin = std::uint64_t{tile} * kTileBytes;
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint64_t at = begin + pieceAt(r);
    pieces.values[r] =
        cuda::loadUpTo16(args.in.data + at, at < input.n_bytes ? input.n_bytes - at : 0);
  }
  std::uint32_t left = 0;  // for lane 0: the word before its row
  const std::uint64_t row_begin = begin + pieceAt(0);
  if (laneId() == 0 && row_begin != 0 && row_begin < input.n_bytes) {
    const U last = reinterpret_cast<const U*>(args.in.data + row_begin)[-1];
    left = static_cast<std::uint32_t>(last) << (32 - 8 * sizeof(U));
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const uint4 x = pieces.values[r];
    const std::uint32_t up = __shfl_up_sync(kAllLanes, x.w, 1);
    const std::uint64_t at = begin + pieceAt(r);
    std::uint32_t marks = changes<U>(x, laneId() == 0 ? left : up);
    marks |= at == 0 ? 1u : 0u;  // the first value always begins a run
    marks &= cuda::marksBelow<kPieceValues<U>>(at / sizeof(U), input.n_values);
    left = __shfl_sync(kAllLanes, x.w, kWarp - 1);
    pieces.marks.set(r, marks);
    const std::uint32_t lanes = __ballot_sync(kAllLanes, marks != 0);
    if (lanes != 0 && laneId() == highestMark(lanes)) {
      work.row_last[warpId() * kRowsPerWarp + r] =
          pieceAt(r) / static_cast<std::uint32_t>(sizeof(U)) + highestMark(marks);
    }
  }
  cuda::rankInRows(pieces.marks, pieces.before, work.row_sums);
}

/// Values of the tile's runs to shared memory, its marks to global memory.
template <class U>
__device__ __forceinline__ void collectRuns(const Pieces& pieces,
                                            std::uint8_t* marks_of_tile,
                                            U* values) {
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t marks = pieces.marks[r];
    if (__any_sync(kAllLanes, marks != 0)) {
      std::uint32_t to = pieces.before[r];
#pragma unroll
      for (unsigned i = 0; i < kPieceValues<U>; ++i) {
        if ((marks >> i & 1u) != 0) {
          values[to++] = static_cast<U>(valueOf<U>(pieces.values[r], i));
        }
      }
    }
    const std::uint32_t piece = pieceAt(r) / 16;
    if constexpr (sizeof(U) == 1) {
      reinterpret_cast<std::uint16_t*>(marks_of_tile)[piece] = static_cast<std::uint16_t>(marks);
    } else if constexpr (sizeof(U) == 2) {
      marks_of_tile[piece] = static_cast<std::uint8_t>(marks);
    } else {
      const std::uint32_t next = __shfl_down_sync(kAllLanes, marks, 1);
      if (laneId() % 2 == 0) {
        marks_of_tile[piece / 2] = static_cast<std::uint8_t>(marks | next << 4);
      }
    }
  }
}

/// Marks a tile and publishes its number of runs; their values are in shared memory after the next
/// barrier.
template <class U>
__device__ __forceinline__ void encodeTile(
    const EncodeArgs& args, const Input& input, std::uint32_t tile, unsigned side, Work& work) {
  Pieces pieces;
  readTile<U>(args, input, tile, work, pieces);
  __syncthreads();
  const std::uint32_t n_runs = cuda::addRowsBefore<kRows>(pieces.before, work.row_sums);
  if (warpId() == 0) {
    const std::uint32_t rows = __ballot_sync(kAllLanes, work.row_sums[laneId()] != 0);
    if (laneId() == 0) {
      cuda::LookBack{args.states}.publish(tile, n_runs);
      work.n_runs[side] = n_runs;
      work.index[side] = tile;
      if (rows != 0) {
        args.last_head[tile] = work.row_last[highestMark(rows)];
      }
    }
    __syncwarp();
  }
  if (n_runs != 0) {
    collectRuns<U>(pieces, args.marks + std::uint64_t{tile} * (kTileLength<U> / 8),
                   reinterpret_cast<U*>(work.values[side]));
  }
}

/// Finds the place of the runs on `side` and writes their values. Has a barrier.
template <class U>
__device__ __forceinline__ void writeTile(const EncodeArgs& args,
                                          const Input& input,
                                          unsigned side,
                                          Work& work) {
  const std::uint32_t tile = work.index[side];
  const std::uint32_t n_runs = work.n_runs[side];
  if (warpId() == 0) {
    const std::uint64_t before = cuda::LookBack{args.states}.prefix(tile, n_runs);
    if (laneId() == 0) {
      work.first_run = before;
      args.first_run[tile] = static_cast<std::uint32_t>(before);
    }
  }
  __syncthreads();
  const std::uint64_t at = kValuesAt + work.first_run * sizeof(U);
  const auto n_bytes = n_runs * static_cast<std::uint32_t>(sizeof(U));
  if (at + n_bytes <= args.out.capacity_bytes) {
    cuda::copyFromStaging({threadIdx.x, kThreads}, work.values[side], n_bytes, args.out.data + at);
  }
  if (tile == input.n_tiles - 1 && threadIdx.x == 0) {
    finishStream<U>(args, input, work.first_run + n_runs);
  }
}

/// Blocks take tiles in turn, and write the values of each one only after they have marked the
/// next: by then the runs of the tiles before it are counted, and nobody waits for a neighbour that
/// is still busy. A block that has taken a tile runs, so the tile's count is published without
/// waiting for others.
template <class U>
__global__ void __launch_bounds__(kThreads, kEncodeBlocks) valuesKernel(EncodeArgs args) {
  __shared__ Work work;
  const Input input = inputOf<U>(args);
  if (input.n_tiles == 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      finishStream<U>(args, {input.n_bytes, 0, 0, true}, 0);
      if (!input.good) {
        cuda::recordError(args.record, DeviceError::kDoesNotFit, input.n_bytes);
      }
    }
    return;
  }
  const cuda::TileTicket tickets{args.states + args.n_tiles};
  if (threadIdx.x == 0) {
    work.next_index = tickets.take();
  }
  bool has_last = false;
  for (unsigned side = 0;; side ^= 1u) {
    __syncthreads();
    const std::uint32_t tile = work.next_index;
    std::uint32_t next = 0;
    if (tile < input.n_tiles) {
      if (threadIdx.x == 0) {
        next = tickets.take();
      }
      encodeTile<U>(args, input, tile, side, work);
    }
    if (has_last) {
      writeTile<U>(args, input, side ^ 1u, work);
    }
    if (tile >= input.n_tiles) {
      return;
    }
    has_last = true;
    if (threadIdx.x == 0) {
      work.next_index = next;
    }
  }
}

/// Where the last run before this tile begins. By a full warp; the tile is not the first.
template <class U>
__device__ __forceinline__ std::uint64_t headBefore(const EncodeArgs& args,
                                                    std::uint32_t first_run) {
  // Tiles in which no run begins share the number of the next; mostly the one before has some.
  const std::uint32_t tile = blockIdx.x;
  const auto isBefore = [&](std::uint64_t i) { return args.first_run[i] < first_run; };
  const std::uint64_t from = isBefore(tile - 1) ? tile - 1 : lastWhere(tile - 1, isBefore);
  return from * kTileLength<U> + args.last_head[from];
}

template <class U>
__global__ void __launch_bounds__(kThreads) lengthsKernel(EncodeArgs args) {
  constexpr unsigned kWords = kTileLength<U> / 32;
  constexpr unsigned kWordsPerThread = (kWords + kThreads - 1) / kThreads;
  __shared__ std::uint16_t heads[kTileLength<U>];
  __shared__ std::uint32_t warp_sums[kThreads / kWarp];
  __shared__ std::uint64_t head_before;
  const Input input = inputOf<U>(args);
  const std::uint32_t tile = blockIdx.x;
  if (tile >= input.n_tiles) {
    return;
  }
  const std::uint32_t n_all = args.first_run[input.n_tiles];
  const std::uint32_t first = args.first_run[tile];
  const std::uint32_t n_runs = args.first_run[tile + 1] - first;
  const Layout layout = layoutOf(n_all, sizeof(U));
  if (n_runs == 0 || layout.n_bytes > args.out.capacity_bytes) {
    return;
  }
  if (warpId() == 0 && tile != 0) {
    const std::uint64_t before = headBefore<U>(args, first);
    if (laneId() == 0) {
      head_before = before;
    }
  }
  const auto* marks =
      reinterpret_cast<const std::uint32_t*>(args.marks) + std::uint64_t{tile} * kWords;
  std::uint32_t words[kWordsPerThread];
  std::uint32_t n_own = 0;
#pragma unroll
  for (unsigned i = 0; i < kWordsPerThread; ++i) {
    const unsigned word = threadIdx.x * kWordsPerThread + i;
    words[i] = word < kWords ? marks[word] : 0u;
    n_own += __popc(words[i]);
  }
  std::uint32_t total;
  std::uint32_t to = cuda::blockExclusiveSum<kThreads>(n_own, warp_sums, &total);
#pragma unroll
  for (unsigned i = 0; i < kWordsPerThread; ++i) {
    const unsigned base = 32 * (threadIdx.x * kWordsPerThread + i);
    for (std::uint32_t left = words[i]; left != 0; left &= left - 1) {
      heads[to++] = static_cast<std::uint16_t>(base + __ffs(static_cast<int>(left)) - 1);
    }
  }
  __syncthreads();
  auto* lengths = reinterpret_cast<std::uint32_t*>(args.out.data + layout.lengths_at);
  const std::uint64_t tile_begin = std::uint64_t{tile} * kTileLength<U>;
  for (std::uint32_t i = threadIdx.x; i < n_runs; i += kThreads) {
    const std::uint64_t run = std::uint64_t{first} + i;
    const std::uint64_t head = tile_begin + heads[i];
    if (run != 0) {
      const std::uint64_t before = i == 0 ? head_before : tile_begin + heads[i - 1];
      lengths[run - 1] = static_cast<std::uint32_t>(head - before);
    }
    if (run + 1 == n_all) {
      lengths[run] = static_cast<std::uint32_t>(input.n_values - head);
    }
  }
}

template <class U>
void launch(const EncodeArgs& args, const cuda::Call& call) {
  const unsigned n_blocks = encodeBlocks(args.n_tiles, cuda::multiprocessorCount());
  valuesKernel<U><<<n_blocks, kThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("rle values");
  lengthsKernel<U><<<args.n_tiles, kThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("rle lengths");
}

}  // namespace

void launchEncode(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  cuda::withUnsigned(value_bytes, [&]<class U>(U) { launch<U>(args, call); });
}

}  // namespace fz::rle
