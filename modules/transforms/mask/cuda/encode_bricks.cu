// Coding the bricks of the first layer of a mask that are not of one kind.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/lane_encoder.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kWarps = kBrickThreads / kWarp;

/// What a block codes at a time. kPlanes: bricks of three dimensions.
template <bool kPlanes>
struct BlockShape {
  static constexpr unsigned kRows = kPlanes ? kBrickRows : 16;  ///< of a brick
  /// Bricks whose rows are in shared memory at a time.
  static constexpr unsigned kBatch = kPlanes ? 32 : 64;
  static constexpr unsigned kStride = kRows + 1;  ///< of their rows: threads meet in no bank
  /// Rows that a warp looks at together, of kTogether bricks.
  static constexpr unsigned kSpan = kRows < kWarp ? kRows : kWarp;
  static constexpr unsigned kTogether = kWarp / kSpan;
  /// Bytes for the decisions of a batch. Most bricks have fewer than 100; those that find no room
  /// wait for the next batch, so there is some for any one.
  static constexpr unsigned kPoolBytes = kPlanes ? 16384 : 3584;
  static_assert(kPoolBytes >= kRows * kMaxRowDecisions + 4);
  /// That fit a multiprocessor: another round of blocks would take as long again.
  static constexpr unsigned kBlocks = kPlanes ? 5 : 16;
};

constexpr std::uint32_t kMaxKeptDecisions = 24;  ///< of a row; more are found once more
constexpr std::uint16_t kNoRoom = 0xffff;

template <bool kPlanes>
struct BlockState {
  using Shape = BlockShape<kPlanes>;
  ChanceTable chances;
  std::uint32_t rows[Shape::kBatch * Shape::kStride];
  std::uint32_t pool[Shape::kPoolBytes / 4];
  std::uint8_t row_decisions[kMaxKeptDecisions * kBrickThreads];
  std::uint32_t taken;  ///< bytes of the pool
  BrickRowsShape shapes[Shape::kBatch];
  std::uint16_t list_at[Shape::kBatch];  ///< in words
  std::uint16_t list_n[Shape::kBatch];   ///< decisions; kNoRoom
  std::uint32_t to_code[Shape::kBatch];  ///< bricks
  std::uint32_t warp_sums[kWarps];
};

/// One thread: rows back to back.
__device__ __forceinline__ void packLane(const Grid& grid,
                                         const Brick& brick,
                                         const std::uint32_t* rows,
                                         std::uint8_t* out) {
  std::uint64_t held = 0;
  std::uint32_t n_held = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    held |= std::uint64_t{rows[row]} << n_held;
    n_held += brick.rowBits(grid, row);
    for (; n_held >= 8; n_held -= 8, held >>= 8) {
      *out++ = static_cast<std::uint8_t>(held);
    }
  }
  if (n_held != 0) {
    *out = static_cast<std::uint8_t>(held);
  }
}

/// A block's view of its work.
template <bool kPlanes>
struct BlockCoder {
  using Shape = BlockShape<kPlanes>;
  const EncodeArgs& args;
  const Grid grid;  // by value, as everywhere here: what has an address stays in memory
  BlockState<kPlanes>& shared;

  /// All threads: the bricks from place `begin` to `end` of the list.
  __device__ __forceinline__ void code(std::uint64_t begin, std::uint64_t end) const {
    std::uint32_t n_batch = 0;  // those that wait
    while (true) {
      const std::uint64_t left = end - begin;
      const std::uint32_t n_more = left < Shape::kBatch - n_batch ? static_cast<std::uint32_t>(left)
                                                                  : Shape::kBatch - n_batch;
      if (threadIdx.x < n_more) {
        shared.to_code[n_batch + threadIdx.x] = args.listed[begin + threadIdx.x];
      }
      begin += n_more;
      n_batch += n_more;
      if (n_batch == 0) {
        return;
      }
      __syncthreads();
      n_batch = codeBatch(n_batch);
    }
  }

  /// All threads: codes a batch; returns how many of it have found no room and stand at its
  /// beginning now.
  __device__ __forceinline__ std::uint32_t codeBatch(std::uint32_t n_batch) const {
    const unsigned place = threadOfBatch();
    const bool is_mine = place < n_batch;
    const std::uint32_t index = is_mine ? shared.to_code[place] : 0;
    std::uint32_t* const rows = shared.rows + place * Shape::kStride;
    Brick brick{};
    if (is_mine) {
      brick = brickAt(grid, index);
      forLoadedRows(args.words, grid, brick,
                    [&](std::uint32_t row, std::uint32_t at, std::uint32_t) { rows[at] = row; });
      shared.shapes[place] = {static_cast<std::uint8_t>(brick.n_x),
                              static_cast<std::uint8_t>(brick.n_y),
                              static_cast<std::uint8_t>(brick.rows()), grid.is_line,
                              static_cast<std::uint16_t>(brick.bits(grid))};
    }
    if (threadIdx.x == 0) {
      shared.taken = 0;
    }
    __syncthreads();
    for (unsigned i = warpId() * Shape::kTogether; i < n_batch; i += kWarps * Shape::kTogether) {
      listBricks(i, n_batch);
    }
    __syncthreads();
    const bool waits = is_mine && shared.list_n[place] == kNoRoom;
    if (is_mine && !waits) {
      codeBrick(place, index, brick, rows);
    }
    std::uint32_t n_waiting = 0;
    const std::uint32_t rank =
        cuda::blockExclusiveSum<kBrickThreads>(waits ? 1u : 0u, shared.warp_sums, &n_waiting);
    if (waits) {  // all have read which they were
      shared.to_code[rank] = index;
    }
    __syncthreads();
    return n_waiting;
  }

  /// The warp: decisions of kTogether bricks from place i of the batch on, a row for each lane.
  __device__ __forceinline__ void listBricks(std::uint32_t i, std::uint32_t n_batch) const {
    const unsigned place = min(i + laneId() / Shape::kSpan, n_batch - 1);
    const BrickRowsShape& brick = shared.shapes[place];
    const std::uint32_t* const rows = shared.rows + place * Shape::kStride;
    const unsigned n_rows = i + laneId() / Shape::kSpan < n_batch ? brick.n_rows : 0;
    std::uint32_t n_all = 0;
    RowPlace row_place;
    for (unsigned row = laneId() % Shape::kSpan; row < Shape::kRows; row += Shape::kSpan) {
      row_place = placeOf(row < n_rows ? keepRow(brick, rows, row) : 0);
      n_all += row_place.n_span;
    }
    std::uint32_t to = 0;
    if (n_rows != 0 && laneId() % Shape::kSpan == 0) {
      to = atomicAdd(&shared.taken, (n_all + 3) & ~3u);  // order-free: a place to read from
      shared.list_at[place] = static_cast<std::uint16_t>(to / 4);
      shared.list_n[place] =
          to + n_all <= Shape::kPoolBytes ? static_cast<std::uint16_t>(n_all) : kNoRoom;
    }
    to = __shfl_sync(cuda::kAllLanes, to, 0, Shape::kSpan);
    const bool is_kept = to + n_all <= Shape::kPoolBytes;
    auto* const list = reinterpret_cast<std::uint8_t*>(shared.pool) + to;
    std::uint32_t n_listed = 0;
    for (unsigned row = laneId() % Shape::kSpan; row < Shape::kRows; row += Shape::kSpan) {
      if constexpr (Shape::kRows != Shape::kSpan) {  // else it is the only one, and still there
        row_place = placeOf(row < n_rows ? keepRow(brick, rows, row) : 0);
      }
      if (row < n_rows && is_kept) {
        copyRow(brick, rows, row, row_place.n, list + n_listed + row_place.n_before);
      }
      n_listed += row_place.n_span;
    }
  }
  /// Decisions of a row, of those before it in the span of rows that lanes look at, and of all.
  struct RowPlace {
    std::uint32_t n;
    std::uint32_t n_before;
    std::uint32_t n_span;
  };
  static __device__ __forceinline__ RowPlace placeOf(std::uint32_t n) {
    std::uint32_t end = n;
#pragma unroll
    for (unsigned step = 1; step < Shape::kSpan; step *= 2) {
      const std::uint32_t other = __shfl_up_sync(cuda::kAllLanes, end, step, Shape::kSpan);
      end += laneId() % Shape::kSpan >= step ? other : 0;
    }
    return {n, end - n, __shfl_sync(cuda::kAllLanes, end, Shape::kSpan - 1, Shape::kSpan)};
  }
  /// One thread: how many decisions a row has; the first ones are kept.
  __device__ __forceinline__ std::uint32_t keepRow(const BrickRowsShape& brick,
                                                   const std::uint32_t* rows,
                                                   std::uint32_t row) const {
    DecisionList list{shared.row_decisions + threadIdx.x, kMaxKeptDecisions, kBrickThreads};
    listDecisions(brick, rows, row, list);
    return list.n;
  }
  /// One thread: the decisions of the row that was kept last.
  __device__ __forceinline__ void copyRow(const BrickRowsShape& brick,
                                          const std::uint32_t* rows,
                                          std::uint32_t row,
                                          std::uint32_t n,
                                          std::uint8_t* to) const {
    if (n > kMaxKeptDecisions) {
      DecisionList list{to, n, 1};
      listDecisions(brick, rows, row, list);
      return;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      to[i] = shared.row_decisions[i * kBrickThreads + threadIdx.x];
    }
  }

  /// One thread: codes a brick to its slot.
  __device__ __forceinline__ void codeBrick(unsigned place,
                                            std::uint32_t index,
                                            const Brick& brick,
                                            const std::uint32_t* rows) const {
    std::uint8_t* const slot = args.slots + std::uint64_t{index} * slotBytes(grid);
    const std::uint32_t raw_bytes = brick.rawBytes(grid);
    LaneEncoder encoder(slot, raw_bytes);
    encoder.template codeList<kPlanes>(shared.chances, shared.pool + shared.list_at[place],
                                       shared.list_n[place]);
    const std::uint32_t n_bytes = encoder.finish();
    const bool is_coded = isWorthCoding(n_bytes, raw_bytes);
    if (!is_coded) {
      packLane(grid, brick, rows, slot);
      args.first_kinds[index] = kRaw;
    }
    args.first_bytes[index] = static_cast<std::uint16_t>(is_coded ? n_bytes : raw_bytes);
  }
};

/// A block for some of the bricks that are listed.
template <bool kPlanes>
__global__ void __launch_bounds__(kBrickThreads, BlockShape<kPlanes>::kBlocks)
    brickKernel(EncodeArgs args, std::uint32_t value_bytes) {
  __shared__ BlockState<kPlanes> shared;
  const std::uint64_t n_listed = args.found->n_listed;
  const Share share = shareOf(n_listed, kLeastCoded);
  if (share.begin >= share.end) {
    return;
  }
  const Field field = fieldOf(args.shape, value_bytes);
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  if (kPlanes != grid.rows_z > 1) {
    return;  // the other kernel's
  }
  shared.chances.fill(args.found->chances);
  __syncthreads();
  const BlockCoder<kPlanes> coder{args, grid, shared};
  coder.code(share.begin, share.end);
}

template <bool kPlanes>
void launchCoder(const EncodeArgs& args, std::uint32_t value_bytes, const cuda::Call& call) {
  const unsigned most = BlockShape<kPlanes>::kBlocks * cuda::multiprocessorCount();
  call.launch("mask: bricks", brickKernel<kPlanes>,
              std::min(most, cuda::gridFor(args.max_bricks, kLeastCoded)), kBrickThreads, 0, args,
              value_bytes);
}

}  // namespace

template <class T>
void launchBricks(const EncodeArgs& args, const cuda::Call& call) {
  if (args.may_be_flat) {
    launchCoder<false>(args, sizeof(T), call);
  }
  if (args.may_have_planes) {
    launchCoder<true>(args, sizeof(T), call);
  }
}

template void launchBricks<float>(const EncodeArgs&, const cuda::Call&);
template void launchBricks<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
