// The first layer of a mask: bricks, their groups, and where these go, in one pass.
#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/lane_encoder.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kWarps = kBrickThreads / kWarp;
static_assert(kBrickThreads == kGroupBricks, "a thread for each brick of a group");

/// What a block codes. kPlanes: bricks of three dimensions.
template <bool kPlanes>
struct BlockShape {
  static constexpr unsigned kGroups = kPlanes ? 1 : 2;
  static constexpr unsigned kBricks = kGroups * kGroupBricks;
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
  std::uint16_t brick_bytes[Shape::kBricks];
  std::uint8_t kinds[Shape::kBricks];
  std::uint8_t to_code[Shape::kBricks + kBrickThreads];  ///< bricks of the block
  std::uint32_t warp_sums[2][kWarps];
  std::uint32_t n_ones;
  std::uint64_t before;  ///< bytes of the blocks before
};

/// One thread: f(row, its place in the brick, n_bits) for the rows of a brick, several under way.
template <class F>
__device__ __forceinline__ void forLoadedRows(const std::uint32_t* words,
                                              const Grid& grid,
                                              const Brick& brick,
                                              F f) {
  constexpr unsigned kAhead = 8;  // a plane of a brick, or half of it
  std::uint32_t first_row = 0;
  for (std::uint32_t z = 0; z < brick.n_z; ++z, first_row += brick.n_y) {
    std::uint64_t start = brick.rowStart(grid, first_row);
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
  std::uint64_t first;  ///< brick
  std::uint32_t n;      ///< bricks

  __device__ __forceinline__ BlockCoder(const EncodeArgs& a, const Grid& g, BlockState<kPlanes>& s)
      : args(a), grid(g), shared(s), first(std::uint64_t{blockIdx.x} * Shape::kBricks), n(0) {
    const std::uint64_t n_bricks = grid.bricks();
    if (first < n_bricks) {
      n = static_cast<std::uint32_t>(min(n_bricks - first, std::uint64_t{Shape::kBricks}));
    }
  }

  /// All threads: what kind of bricks there are. Returns how many are to be coded.
  __device__ __forceinline__ std::uint32_t look() const {
    std::uint32_t n_to_code = 0;
    std::uint32_t n_ones = 0;
#pragma unroll
    for (unsigned g = 0; g < Shape::kGroups; ++g) {
      const unsigned b = g * kGroupBricks + threadIdx.x;
      BrickKind kind = kNone;
      if (b < n) {
        std::uint32_t ones = 0;
        std::uint32_t zeros = 0;
        forLoadedRows(args.words, grid, brickAt(grid, first + b),
                      [&](std::uint32_t row, std::uint32_t, std::uint32_t n_bits) {
                        ones |= row;
                        zeros |= row ^ lowRow(n_bits);
                        n_ones += static_cast<std::uint32_t>(__popc(row));
                      });
        kind = ones == 0 ? kNone : zeros == 0 ? kAll : kCoded;
      }
      shared.kinds[b] = kind;
      shared.brick_bytes[b] = 0;
      std::uint32_t n_here = 0;
      const std::uint32_t rank = cuda::blockExclusiveSum<kBrickThreads>(
          kind == kCoded ? 1u : 0u, shared.warp_sums[g % 2], &n_here);
      if (kind == kCoded) {
        shared.to_code[n_to_code + rank] = static_cast<std::uint8_t>(b);
      }
      n_to_code += n_here;
    }
    n_ones = cuda::warpSum(n_ones);
    if (laneId() == 0 && n_ones != 0) {
      atomicAdd(&shared.n_ones, n_ones);  // order-free: only sums
    }
    __syncthreads();
    return n_to_code;
  }

  /// All threads: a batch from place `at` of those to be coded on; returns how many of them have
  /// found no room and stand at the end of it now.
  __device__ __forceinline__ std::uint32_t codeBatch(std::uint32_t at,
                                                     std::uint32_t n_batch) const {
    const unsigned place = threadOfBatch();
    const bool is_mine = place < n_batch;
    const std::uint32_t b = is_mine ? shared.to_code[at + place] : 0;
    std::uint32_t* const rows = shared.rows + place * Shape::kStride;
    Brick brick{};
    if (is_mine) {
      brick = brickAt(grid, first + b);
      forLoadedRows(
          args.words, grid, brick,
          [&](std::uint32_t row, std::uint32_t place, std::uint32_t) { rows[place] = row; });
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
      codeBrick(place, b, brick, rows);
    }
    std::uint32_t n_waiting = 0;
    const std::uint32_t rank =
        cuda::blockExclusiveSum<kBrickThreads>(waits ? 1u : 0u, shared.warp_sums[0], &n_waiting);
    if (waits) {  // all have read which they were
      shared.to_code[at + n_batch - n_waiting + rank] = static_cast<std::uint8_t>(b);
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
                                            std::uint32_t b,
                                            const Brick& brick,
                                            const std::uint32_t* rows) const {
    std::uint8_t* const slot = args.slots + (first + b) * slotBytes(grid);
    const std::uint32_t raw_bytes = brick.rawBytes(grid);
    LaneEncoder encoder(slot, raw_bytes);
    encoder.template codeList<kPlanes>(shared.chances, shared.pool + shared.list_at[place],
                                       shared.list_n[place]);
    const std::uint32_t n_bytes = encoder.finish();
    const bool is_coded = isWorthCoding(n_bytes, raw_bytes);
    if (!is_coded) {
      packLane(grid, brick, rows, slot);
    }
    shared.kinds[b] = is_coded ? kCoded : kRaw;
    shared.brick_bytes[b] = static_cast<std::uint16_t>(is_coded ? n_bytes : raw_bytes);
  }

  /// All threads: the records of the block's groups, which begin behind the front of the layer.
  __device__ __forceinline__ void write(std::uint64_t layer_at, std::uint32_t front_bytes) const {
    GroupRecord record[Shape::kGroups];
    std::uint32_t n_bytes = 0;
#pragma unroll
    for (unsigned g = 0; g < Shape::kGroups; ++g) {
      const unsigned b = g * kGroupBricks + threadIdx.x;
      const std::uint32_t n_here =
          n > g * kGroupBricks ? min(n - g * kGroupBricks, kGroupBricks) : 0;
      record[g] = planRecord<kBrickThreads>(n_here, static_cast<BrickKind>(shared.kinds[b]),
                                            shared.brick_bytes[b], shared.warp_sums);
      n_bytes += record[g].n_bytes;
    }
    const cuda::LookBack look_back{args.block_states};
    if (warpId() == 0) {
      if (laneId() == 0) {
        look_back.publish(blockIdx.x, n_bytes);
      }
      __syncwarp();
      const std::uint64_t before = look_back.prefix(blockIdx.x, n_bytes);
      if (laneId() == 0) {
        shared.before = before;
      }
    }
    __syncthreads();
    const std::uint64_t n_groups = grid.groups();
    std::uint64_t end = shared.before;
#pragma unroll
    for (unsigned g = 0; g < Shape::kGroups; ++g) {
      const std::uint64_t group = std::uint64_t{blockIdx.x} * Shape::kGroups + g;
      if (group >= n_groups) {
        break;
      }
      const std::uint64_t begin = end;
      end += record[g].n_bytes;
      const std::uint64_t ends_at = layer_at + front_bytes;
      const std::uint64_t to = ends_at + n_groups * kEndBytes + begin;
      if (to + record[g].n_bytes > args.mask.capacity_bytes) {
        continue;  // the size says so
      }
      if (threadIdx.x < kEndBytes) {
        args.mask.data[ends_at + group * kEndBytes + threadIdx.x] =
            static_cast<std::uint8_t>(end >> (8 * threadIdx.x));
      }
      const unsigned b = g * kGroupBricks + threadIdx.x;
      record[g].write(args.mask.data + to, args.slots + (first + b) * slotBytes(grid));
    }
    if (threadIdx.x == 0 && n != 0 && first + n == grid.bricks()) {
      args.found->layer_bytes[0] = front_bytes + n_groups * kEndBytes + end;
    }
  }
};

/// All threads of a block: patterns in order.
__device__ void findPatterns(const EncodeArgs& args) {
  __shared__ std::uint64_t keys[kMaxKeys];
  __shared__ std::uint32_t n_taken;
  Findings& found = *args.found;
  if (threadIdx.x == 0) {
    n_taken = 0;
  }
  __syncthreads();
  const std::uint32_t n = patternsOf(found);
  for (std::uint32_t i = threadIdx.x; n != 0 && i < kKeySlots; i += kBrickThreads) {
    const std::uint64_t key = found.keys[i];
    if (key != 0) {
      keys[atomicAdd(&n_taken, 1u)] = key ^ args.marker;  // order-free: they are sorted
    }
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.x; k < n; k += kBrickThreads) {
    const std::uint64_t pattern = keys[k];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      rank += keys[i] < pattern ? 1u : 0u;
    }
    found.patterns[rank] = pattern;
  }
  __syncthreads();
}

/// The last block, when all bricks are coded: the front of the mask, and its size where there is
/// nothing behind the first layer.
template <class T>
__device__ __forceinline__ void finishMask(const EncodeArgs& args, Field field, Grid grid) {
  findPatterns(args);
  Findings& found = *args.found;
  const std::uint64_t n_ones = *static_cast<volatile std::uint64_t*>(&found.n_ones[0]);
  if (threadIdx.x == 0) {
    if (n_ones == field.n_values) {
      found.layer_bytes[0] = 1;
    }
    args.record->value[kMissingSlot] = n_ones;
    args.record->value[kFilledSlot] = found.n_filled;
  }
  __syncthreads();
  const std::uint64_t n_bytes =
      headBytes<T>(found) + *static_cast<volatile std::uint64_t*>(&found.layer_bytes[0]);
  if (threadIdx.x == 0 && !hasOthers(found)) {
    cuda::publishSize(args.record, 1, n_bytes, args.mask.capacity_bytes);
  }
  if (n_bytes <= args.mask.capacity_bytes) {
    writeHead<T>(args, field, grid, n_ones);
  }
}

/// A block for some groups of bricks of the first layer.
template <class T, bool kPlanes>
__global__ void __launch_bounds__(kBrickThreads, BlockShape<kPlanes>::kBlocks)
    brickKernel(EncodeArgs args) {
  __shared__ BlockState<kPlanes> shared;
  const Findings& found = *args.found;
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  if (kPlanes != grid.rows_z > 1) {
    return;  // the other kernel's
  }
  if (blockIdx.x == 0 && threadIdx.x < 3 && field.is_good) {
    args.record->value[kExtentSlot + threadIdx.x] = field.extents[threadIdx.x];
  }
  if (!hasMissing(found)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      cuda::publishSize(args.record, 1, 0, args.mask.capacity_bytes);
    }
    return;
  }
  if (found.has_too_many != 0) {
    const std::uint64_t n_tiles = (field.n_values + kTileValues - 1) / kTileValues;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * kBrickThreads + threadIdx.x; i < n_tiles;
         i += std::uint64_t{gridDim.x} * kBrickThreads) {
      args.ranks[i] = 0;
    }
  }
  using Shape = BlockShape<kPlanes>;
  shared.chances.fill(found.chances);
  if (threadIdx.x == 0) {
    shared.n_ones = 0;
  }
  __syncthreads();
  const BlockCoder<kPlanes> coder(args, grid, shared);
  const std::uint32_t n_to_code = coder.look();
  if (threadIdx.x == 0 && shared.n_ones != 0) {
    addTo(&args.found->n_ones[0], shared.n_ones);
  }
  for (std::uint32_t at = 0; at < n_to_code;) {
    const std::uint32_t n_batch = min(n_to_code - at, Shape::kBatch);
    at += n_batch - coder.codeBatch(at, n_batch);
  }
  const LayerForm form = found.has_own_chances != 0 ? kBricksOfChances : kBricks;
  coder.write(headBytes<T>(found), frontBytes(grid, form));
  if (cuda::isLastBlock(&args.found->n_coded)) {
    finishMask<T>(args, field, grid);
  }
}

}  // namespace

template <class T>
void launchBricks(const EncodeArgs& args, const cuda::Call& call) {
  if (args.may_be_flat) {
    call.launch("mask: bricks", brickKernel<T, false>,
                cuda::gridFor(args.max_groups, BlockShape<false>::kGroups), kBrickThreads, 0, args);
  }
  if (args.may_have_planes) {
    call.launch("mask: bricks", brickKernel<T, true>,
                cuda::gridFor(args.max_groups, BlockShape<true>::kGroups), kBrickThreads, 0, args);
  }
}

template void launchBricks<float>(const EncodeArgs&, const cuda::Call&);
template void launchBricks<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
