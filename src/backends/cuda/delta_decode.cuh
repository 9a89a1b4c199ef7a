#pragma once

// The decoder of block-local differences: running sums that start anew with every block.
//
// A lane's consecutive values are a unit (16 bytes, or one value where blocks do not hold whole
// units), 32 units are a line, and a warp has some lines one after the other. Sums go up from units
// to lines (shuffles that stop at the start of a block), to warps (in order), to the tile (shared
// memory). Tiles hold whole blocks; longer blocks are left to delta_chain.cuh.

#include "backends/cuda/delta_args.cuh"
#include "backends/cuda/delta_chain.cuh"

namespace fz::delta {

struct DecodeArgs {
  CudaValues values;
  std::uint64_t tile_values;
  std::uint32_t block_units;
  std::uint32_t* mismatch;  ///< floats: set when a value is not what the format asks for
};

/// What a thread block works on: kWarpCount warps with kRowCount rows of 16 bytes per lane.
template <class U, bool kVectorUnits, unsigned kRowCount, unsigned kWarpCount>
struct DecodeShape {
  using P = cuda::Packed<U, kVectorUnits>;
  static constexpr bool kVector = kVectorUnits;
  static constexpr unsigned kRows = kRowCount;
  static constexpr unsigned kWarps = kWarpCount;
  static constexpr unsigned kThreads = kWarps * cuda::kWarp;
  static constexpr unsigned kUnitWords = kVector ? P::kWords : 1;
  static constexpr unsigned kUnitValues = kVector ? P::kLaneValues : 1;
  static constexpr unsigned kLines = kRows * (P::kWords / kUnitWords);
  static constexpr unsigned kWarpUnits = kLines * cuda::kWarp;
  static constexpr unsigned kTileValues = kWarps * kWarpUnits * kUnitValues;
};

/// The sums that stand before the units of one lane.
template <class Word, unsigned kLines>
struct UnitSums {
  Word before[kLines];       ///< from the block's or the warp's start, whichever is nearer
  std::uint32_t joins = 0;   ///< bit per line: the block began before the warp
  std::uint32_t starts = 0;  ///< bit per line: the unit is the first of its block
};

/// From the sums of the units to what stands before them in the warp; returns the sum at the end of
/// the warp, for every lane. `first_place` is the place of the warp's first unit in its block.
template <class Word, unsigned kLines>
__device__ __forceinline__ Word sumUnits(const Word (&totals)[kLines],
                                         std::uint32_t first_place,
                                         std::uint32_t block_units,
                                         UnitSums<Word, kLines>& sums) {
  using cuda::kAllLanes;
  const unsigned lane = cuda::laneId();
  Word carry = 0;
#pragma unroll
  for (unsigned l = 0; l < kLines; ++l) {
    const unsigned unit = l * cuda::kWarp + lane;
    const std::uint32_t place = (first_place + unit) % block_units;
    const unsigned reach = place < lane ? place : lane;
    Word inclusive = totals[l];
#pragma unroll
    for (unsigned step = 1; step < cuda::kWarp; step *= 2) {
      const Word other = __shfl_up_sync(kAllLanes, inclusive, step);
      inclusive = reach >= step ? plus(other, inclusive) : inclusive;
    }
    const Word left = __shfl_up_sync(kAllLanes, inclusive, 1);
    const Word exclusive = reach > 0 ? left : Word{0};
    const bool continues = place > lane;
    sums.before[l] = continues ? plus(carry, exclusive) : exclusive;
    sums.joins |= place > unit ? 1u << l : 0u;
    sums.starts |= place == 0 ? 1u << l : 0u;
    carry = __shfl_sync(kAllLanes, continues ? plus(carry, inclusive) : inclusive, cuda::kWarp - 1);
  }
  return carry;
}

/// The sum over the warps before this one, back to the start of the block.
template <unsigned kWarpUnits, class Word>
__device__ __forceinline__ Word sumOfWarpsBefore(const Word* warp_sums, std::uint32_t place) {
  Word before = 0;
  for (unsigned w = cuda::warpId(); w > 0 && place > 0; --w) {
    before = plus(warp_sums[w - 1], before);
    place -= place < kWarpUnits ? place : kWarpUnits;
  }
  return before;
}

/// Words of line l of a lane: whole rows, or single words of them.
template <bool kVector, class Word, unsigned kRows, unsigned kWords>
__device__ __forceinline__ Word& wordOf(Word (&rows)[kRows][kWords], unsigned l, unsigned w) {
  return kVector ? rows[l][w] : rows[l / kWords][l % kWords];
}

/// Floats only: whether every value of this lane is what summing from left to right gives.
template <class Shape, class Word, unsigned kRows, unsigned kWords, unsigned kLines>
__device__ __forceinline__ bool areSequential(Word (&codes)[kRows][kWords],
                                              Word (&rows)[kRows][kWords],
                                              const UnitSums<Word, kLines>& sums,
                                              std::uint64_t begin,
                                              std::uint64_t end,
                                              Word* warp_lasts) {
  constexpr bool kVector = Shape::kVector;
  constexpr unsigned kLineWords = Shape::kUnitWords;
  const unsigned lane = cuda::laneId();
  if (lane == cuda::kWarp - 1) {
    warp_lasts[cuda::warpId()] = wordOf<kVector>(rows, kLines - 1, kLineWords - 1);
  }
  __syncthreads();
  Word line_before = cuda::warpId() == 0 ? Word{0} : warp_lasts[cuda::warpId() - 1];
  bool all = true;
#pragma unroll
  for (unsigned l = 0; l < kLines; ++l) {
    const Word last = wordOf<kVector>(rows, l, kLineWords - 1);
    const Word lane_before = __shfl_up_sync(cuda::kAllLanes, last, 1);
    Word left = lane == 0 ? line_before : lane_before;
    line_before = __shfl_sync(cuda::kAllLanes, last, cuda::kWarp - 1);
    const std::uint64_t at = begin + (l * cuda::kWarp + lane) * Shape::kUnitValues;
#pragma unroll
    for (unsigned w = 0; w < kLineWords; ++w) {
      const Word code = wordOf<kVector>(codes, l, w);
      const Word value = wordOf<kVector>(rows, l, w);
      const bool starts = w == 0 && (sums.starts >> l & 1u) != 0;
      const bool is_right =
          starts ? fp::bits(code) == fp::bits(value) : isRestored(left, code, value);
      all = all && (is_right || at + w >= end);
      left = value;
    }
  }
  return all;
}

template <class U, Code kCode, class Shape>
__global__ __launch_bounds__(Shape::kThreads) void decodeKernel(DecodeArgs args) {
  using P = typename Shape::P;
  using Word = typename P::Word;
  constexpr unsigned kLines = Shape::kLines;
  __shared__ Word warp_sums[Shape::kWarps];
  const std::uint64_t n = valueCount<U>(args.values);
  const std::uint64_t tile = blockIdx.x * args.tile_values;
  if (tile >= n) {
    return;  // the whole block
  }
  const std::uint64_t end = n - tile < args.tile_values ? n : tile + args.tile_values;
  const unsigned warp_units = cuda::warpId() * Shape::kWarpUnits;
  const std::uint64_t begin = tile + warp_units * Shape::kUnitValues;

  Word rows[Shape::kRows][P::kWords];
  P::loadRows(static_cast<const U*>(args.values.in), begin, end, rows);
  [[maybe_unused]] Word codes[Shape::kRows][P::kWords];
  Word totals[kLines];
#pragma unroll
  for (unsigned r = 0; r < Shape::kRows; ++r) {
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      codes[r][w] = rows[r][w];
      if constexpr (std::is_integral_v<U>) {
        rows[r][w] = fromCodes<kCode, P>(rows[r][w]);
      }
      if constexpr (!Shape::kVector) {
        totals[r * P::kWords + w] = rows[r][w];
      }
    }
    if constexpr (Shape::kVector) {
      totals[r] = P::sumLane(rows[r]);
    }
  }
  UnitSums<Word, kLines> sums;
  const std::uint32_t place = warp_units % args.block_units;
  const Word own = sumUnits(totals, place, args.block_units, sums);
  Word before = 0;
  // Blocks that divide a warp's part need nothing from other warps.
  if (Shape::kWarpUnits % args.block_units != 0) {
    if (cuda::laneId() == 0) {
      warp_sums[cuda::warpId()] = own;
    }
    __syncthreads();
    before = sumOfWarpsBefore<Shape::kWarpUnits>(warp_sums, place);
  }
#pragma unroll
  for (unsigned l = 0; l < kLines; ++l) {
    const Word sum = (sums.joins >> l & 1u) != 0 ? plus(before, sums.before[l]) : sums.before[l];
    // What starts a block keeps its bits: 0 added to -0.0 would not.
    const bool is_start = std::is_floating_point_v<U> && (sums.starts >> l & 1u) != 0;
    const Word all = P::splat(sum);
#pragma unroll
    for (unsigned w = 0; w < Shape::kUnitWords; ++w) {
      Word& word = wordOf<Shape::kVector>(rows, l, w);
      word = is_start ? word : P::add(word, all);
    }
  }
  if constexpr (std::is_floating_point_v<U>) {
    __syncthreads();  // warp_sums is used again
    if (!areSequential<Shape>(codes, rows, sums, begin, end, warp_sums)) {
      *args.mismatch = 1;
    }
  }
  P::storeRows(static_cast<U*>(args.values.out), begin, end, rows);
}

template <class U, Code kCode, class Shape>
void launchShape(const DecodeArgs& args, const CudaBlocks& run) {
  const unsigned n_blocks =
      cuda::gridFor(run.input.size.n_bytes / sizeof(U), static_cast<std::size_t>(args.tile_values));
  decodeKernel<U, kCode, Shape><<<n_blocks, Shape::kThreads, 0, run.stream>>>(args);
  cuda::checkLaunch("delta decode");
}

/// Launches the kernel that suits the length of the blocks; returns the values per tile when it is
/// the chained one, else 0.
template <class U, Code kCode>
std::uint64_t launchDecode(const CudaBlocks& run, void* states, std::uint32_t* mismatch) {
  using Units = DecodeShape<U, true, kRows, kWarps>;
  using Values = DecodeShape<U, false, kRows, kWarps>;
  const std::uint64_t length = blockLength(run.block);
  if (length > Units::kTileValues) {  // a power of two, and so whole chained tiles
    launchChained<U, kCode>(run, states, mismatch);
    return ChainTile<U>::kValues;
  }
  DecodeArgs args = {cudaValues(run), 0, 0, mismatch};
  if (length % Units::kUnitValues == 0) {
    args.tile_values = Units::kTileValues / length * length;
    args.block_units = static_cast<std::uint32_t>(length / Units::kUnitValues);
    launchShape<U, kCode, Units>(args, run);
  } else {
    args.tile_values = Values::kTileValues / length * length;
    args.block_units = static_cast<std::uint32_t>(length);
    launchShape<U, kCode, Values>(args, run);
  }
  return 0;
}

}  // namespace fz::delta
