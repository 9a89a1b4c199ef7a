// Coding the bricks of the first layer of a mask that are not of one kind.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/encode_lanes.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

/// What a block codes at a time. kPlanes: bricks of three dimensions.
template <bool kPlanes>
struct BlockShape {
  static constexpr unsigned kRows = kPlanes ? kBrickRows : kFlatRows;  ///< of a brick
  static constexpr unsigned kBatch = 32;                               ///< bricks at a time
  static constexpr unsigned kStride = kRows + 1;  ///< of their rows: threads meet in no bank
  /// Threads that list the decisions of a brick, and the rows of each.
  static constexpr unsigned kParts = 2;
  static constexpr unsigned kPartRows = kRows / kParts;
  /// Decisions that a part has room for, and words for them, an odd number. Most have fewer than
  /// 50, or 200 in three dimensions.
  static constexpr unsigned kMostListed = kPlanes ? 384 : kMaxRowDecisions;
  static constexpr unsigned kListWords = kMostListed / 4 + 1;
  static_assert(kMostListed >= kMaxRowDecisions && kBrickThreads == kParts * kBatch);
  /// That fit a multiprocessor: another round of blocks would take as long again.
  static constexpr unsigned kBlocks = kPlanes ? 5 : 16;
};

template <bool kPlanes>
struct BlockState {
  using Shape = BlockShape<kPlanes>;
  ChanceTable chances;
  std::uint32_t rows[Shape::kBatch * Shape::kStride];
  std::uint32_t lists[kBrickThreads * Shape::kListWords];
  std::uint16_t n_listed[kBrickThreads];
  BrickRowsShape shapes[Shape::kBatch];
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

/// One thread: a brick that has more decisions than there is room for, row by row in memory for a
/// list. Returns its bytes.
template <bool kPlanes>
__device__ __noinline__ std::uint32_t codeRows(const ChanceTable& chances,
                                               const BrickRowsShape& shape,
                                               const std::uint32_t* rows,
                                               std::uint32_t* list_words,
                                               std::uint8_t* slot,
                                               std::uint32_t raw_bytes) {
  LaneEncoder encoder(slot, raw_bytes);
  for (std::uint32_t row = 0; row < shape.n_rows; ++row) {
    DecisionList list{reinterpret_cast<std::uint8_t*>(list_words), kMaxRowDecisions};
    listDecisions(shape, rows, row, row % shape.n_y, list);
    encoder.template codeLists<kPlanes>(chances, list_words, list.n, nullptr, 0);
  }
  return encoder.finish();
}

/// A block's view of its work.
template <bool kPlanes>
struct BlockCoder {
  using Shape = BlockShape<kPlanes>;
  const EncodeArgs& args;
  const Grid grid;  // by value, as everywhere here: what has an address stays in memory
  BlockState<kPlanes>& shared;

  /// All threads: n bricks of the list, a batch at most.
  __device__ __forceinline__ void code(const std::uint32_t* listed, std::uint32_t n) const {
    const unsigned place = threadOfBatch();
    const bool is_mine = place < n;
    const std::uint32_t index = is_mine ? listed[place] : 0;
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
    __syncthreads();
    if (threadIdx.x % Shape::kBatch < n) {
      listPart(threadIdx.x % Shape::kBatch, threadIdx.x / Shape::kBatch);
    }
    __syncthreads();
    if (is_mine) {
      codeBrick(place, index, brick, rows);
    }
    __syncthreads();
  }

  static __device__ __forceinline__ unsigned listOf(unsigned place, unsigned part) {
    return part * Shape::kBatch + place;
  }
  /// One thread: the decisions of a part of a brick's rows.
  __device__ __forceinline__ void listPart(unsigned place, unsigned part) const {
    const BrickRowsShape& shape = shared.shapes[place];
    const std::uint32_t* const rows = shared.rows + place * Shape::kStride;
    auto* const to =
        reinterpret_cast<std::uint8_t*>(shared.lists + listOf(place, part) * Shape::kListWords);
    DecisionList list{to, Shape::kMostListed};
    const std::uint32_t end = min((part + 1) * Shape::kPartRows, std::uint32_t{shape.n_rows});
    std::uint32_t y = part * Shape::kPartRows % shape.n_y;
#pragma unroll 1
    for (std::uint32_t row = part * Shape::kPartRows; row < end; ++row) {
      listDecisions(shape, rows, row, y, list);
      y = y + 1 == shape.n_y ? 0 : y + 1;
    }
    shared.n_listed[listOf(place, part)] = static_cast<std::uint16_t>(list.n);
  }

  /// One thread: codes a brick to its slot.
  __device__ __forceinline__ void codeBrick(unsigned place,
                                            std::uint32_t index,
                                            const Brick& brick,
                                            const std::uint32_t* rows) const {
    std::uint8_t* const slot = args.slots + std::uint64_t{index} * slotBytes(grid);
    const std::uint32_t raw_bytes = brick.rawBytes(grid);
    const unsigned first = listOf(place, 0);
    const unsigned second = listOf(place, 1);
    const std::uint32_t n_first = shared.n_listed[first];
    const std::uint32_t n_second = shared.n_listed[second];
    std::uint32_t n_bytes = 0;
    if (n_first <= Shape::kMostListed && n_second <= Shape::kMostListed) {
      LaneEncoder encoder(slot, raw_bytes);
      encoder.template codeLists<kPlanes>(shared.chances, shared.lists + first * Shape::kListWords,
                                          n_first, shared.lists + second * Shape::kListWords,
                                          n_second);
      n_bytes = encoder.finish();
    } else {
      n_bytes = codeRows<kPlanes>(shared.chances, shared.shapes[place], rows,
                                  shared.lists + first * Shape::kListWords, slot, raw_bytes);
    }
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
  const auto n_listed = static_cast<std::uint32_t>(args.found->n_listed);
  const Share share = shareOf(n_listed, kLeastCoded);
  if (share.begin >= share.end) {
    return;
  }
  const Field field = fieldOf(args.shape, value_bytes);
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  if (kPlanes != grid.has_planes) {
    return;  // the other kernel's
  }
  shared.chances.fill(args.found->chances);
  __syncthreads();
  const BlockCoder<kPlanes> coder{args, grid, shared};
  constexpr unsigned kBatch = BlockShape<kPlanes>::kBatch;
  for (std::uint32_t at = share.begin; at < share.end; at += kBatch) {
    coder.code(args.listed + at, share.end - at < kBatch ? share.end - at : kBatch);
  }
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
