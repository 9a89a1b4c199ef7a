#pragma once

// The decoder of differences in blocks longer than a tile: running sums over many tiles. A tile
// waits in shared memory, not in registers, for the sum over the tiles of the block before it
// (sum_chain.cuh), so that many tiles are under way at a time.

#include "backends/cuda/delta_args.cuh"
#include "backends/cuda/sum_chain.cuh"

namespace fz::delta {

/// Per multiprocessor: what its shared memory holds.
inline constexpr unsigned kTilesAtOnce = 6;

struct ChainArgs {
  CudaValues values;
  std::uint64_t block_tiles;  ///< a power of two
  void* states;               ///< one per tile
  std::uint32_t* mismatch;    ///< floats: set when a value is not what the format asks for
};

/// A tile in shared memory: kRows rows of 16 bytes per lane for every warp. Every lane fetches and
/// takes its own part, so no barrier is needed.
template <class U>
struct ChainTile {
  using P = cuda::Packed<U, true>;
  using Word = typename P::Word;
  using Words = Word[P::kWords];
  /// How fast sums travel along the chain is a matter of tiles, not bytes: large ones.
  static constexpr unsigned kRows = 8;
  static constexpr unsigned kValues = kWarps * kRows * P::kRowValues;

  uint4 lanes[kRows][kThreads];

  /// Place of the lane's first value of row r in the tile.
  static __device__ __forceinline__ unsigned placeOf(unsigned r) {
    return (cuda::warpId() * kRows + r) * P::kRowValues + cuda::laneId() * P::kLaneValues;
  }
  __device__ __forceinline__ void fetch(const U* tile, unsigned n_here) {
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const unsigned at = placeOf(r);
      const unsigned n_left = at < n_here ? (n_here - at) * static_cast<unsigned>(sizeof(U)) : 0;
      const auto to = static_cast<unsigned>(__cvta_generic_to_shared(&lanes[r][threadIdx.x]));
      // What is not copied becomes 0.
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                   "l"(n_left > 0 ? tile + at : tile), "r"(n_left < 16 ? n_left : 16)
                   : "memory");
    }
  }
  __device__ __forceinline__ void wait() const {
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  __device__ __forceinline__ void take(unsigned r, Words& words) const {
    const uint4 lane = lanes[r][threadIdx.x];
    memcpy(words, &lane, sizeof(lane));
  }
};

/// The differences of a lane's codes, as running sums; returns their sum.
template <class U, Code kCode>
__device__ __forceinline__ typename ChainTile<U>::Word sumCodes(
    typename ChainTile<U>::Words& words) {
  using P = typename ChainTile<U>::P;
  if constexpr (std::is_integral_v<U>) {
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      words[w] = fromCodes<kCode, P>(words[w]);
    }
  }
  return P::sumLane(words);
}

/// From the sums of a lane's rows to what stands before them in the warp; returns the warp's sum.
template <class Word, unsigned kRows>
__device__ __forceinline__ Word sumWarp(Word (&rows)[kRows]) {
  Word carry = 0;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    Word inclusive = rows[r];
#pragma unroll
    for (unsigned step = 1; step < cuda::kWarp; step *= 2) {
      const Word other = __shfl_up_sync(cuda::kAllLanes, inclusive, step);
      inclusive = cuda::laneId() >= step ? plus(other, inclusive) : inclusive;
    }
    const Word left = __shfl_up_sync(cuda::kAllLanes, inclusive, 1);
    rows[r] = plus(carry, cuda::laneId() > 0 ? left : Word{0});
    carry = plus(carry, __shfl_sync(cuda::kAllLanes, inclusive, cuda::kWarp - 1));
  }
  return carry;
}

/// The first warp: the sum over the tiles of the block before this one; publishes the tile's own.
template <class Word>
__device__ __forceinline__ Word sumOfTilesBefore(const ChainArgs& args, Word own) {
  using State = cuda::ChainState<Word>;
  auto* states = static_cast<State*>(args.states);
  const std::uint64_t tile = blockIdx.x;
  const std::uint64_t first = tile & ~(args.block_tiles - 1);
  Word before = 0;
  if (tile != first) {
    if (cuda::laneId() == 0) {
      cuda::publishChain(states + tile, cuda::ChainFlag::kSum, own);
    }
    before = cuda::warpChainSum(states, first, tile, [](Word a, Word b) { return plus(a, b); });
  }
  if (cuda::laneId() == 0) {
    cuda::publishChain(states + tile, cuda::ChainFlag::kPrefix, plus(before, own));
  }
  return before;
}

/// Floats only: follows the values of a warp and sees whether each is what summing from left to
/// right gives.
template <class T>
struct StepCheck {
  T line_before = 0;  ///< the last value of the row before
  T first_code = 0;   ///< of the warp; its step is checked when all warps are done
  T first_value = 0;
  bool all_right = true;

  template <unsigned kWords>
  __device__ __forceinline__ void row(unsigned r,
                                      const T (&codes)[kWords],
                                      const T (&values)[kWords],
                                      unsigned n_left) {
    const T lane_before = __shfl_up_sync(cuda::kAllLanes, values[kWords - 1], 1);
    T left = cuda::laneId() == 0 ? line_before : lane_before;
    line_before = __shfl_sync(cuda::kAllLanes, values[kWords - 1], cuda::kWarp - 1);
#pragma unroll
    for (unsigned w = 0; w < kWords; ++w) {
      const bool is_first = r == 0 && w == 0 && cuda::laneId() == 0;
      all_right = all_right && (is_first || w >= n_left || isRestored(left, codes[w], values[w]));
      left = values[w];
    }
    if (r == 0) {
      first_code = codes[0];
      first_value = values[0];
    }
  }
};

template <class U, Code kCode>
__global__ __launch_bounds__(kThreads, kTilesAtOnce) void decodeChained(ChainArgs args) {
  using Tile = ChainTile<U>;
  using P = typename Tile::P;
  using Word = typename Tile::Word;
  __shared__ Tile codes;
  __shared__ Word warp_sums[kWarps];
  __shared__ Word tiles_before;
  const std::uint64_t n = valueCount<U>(args.values);
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * Tile::kValues;
  if (tile >= n) {
    return;  // the whole block
  }
  const unsigned n_here =
      n - tile < Tile::kValues ? static_cast<unsigned>(n - tile) : Tile::kValues;
  codes.fetch(static_cast<const U*>(args.values.in) + tile, n_here);
  codes.wait();
  Word before[Tile::kRows];
#pragma unroll
  for (unsigned r = 0; r < Tile::kRows; ++r) {
    typename Tile::Words words;
    codes.take(r, words);
    before[r] = sumCodes<U, kCode>(words);
  }
  const Word own = sumWarp(before);
  if (cuda::laneId() == 0) {
    warp_sums[cuda::warpId()] = own;
  }
  __syncthreads();
  Word sum = 0;
  Word all = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    sum = w == cuda::warpId() ? all : sum;
    all = plus(all, warp_sums[w]);
  }
  if (cuda::warpId() == 0) {
    const Word result = sumOfTilesBefore(args, all);
    if (cuda::laneId() == 0) {
      tiles_before = result;
    }
  }
  __syncthreads();
  sum = plus(tiles_before, sum);
  // What starts a block keeps its bits: 0 added to -0.0 would not.
  const bool starts = (blockIdx.x & (args.block_tiles - 1)) == 0 && threadIdx.x == 0;
  [[maybe_unused]] StepCheck<Word> check;
  auto* out = static_cast<U*>(args.values.out) + tile;
#pragma unroll
  for (unsigned r = 0; r < Tile::kRows; ++r) {
    typename Tile::Words words;
    codes.take(r, words);
    [[maybe_unused]] typename Tile::Words own_codes;
    memcpy(own_codes, words, sizeof(words));
    sumCodes<U, kCode>(words);
    const Word row_before = P::splat(plus(sum, before[r]));
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      const bool is_start = std::is_floating_point_v<U> && starts && r == 0;
      words[w] = is_start ? words[w] : P::add(words[w], row_before);
    }
    const unsigned at = Tile::placeOf(r);
    if constexpr (std::is_floating_point_v<U>) {
      check.row(r, own_codes, words, at < n_here ? n_here - at : 0);
    }
    P::template store<false, true>(out, at - cuda::laneId() * P::kLaneValues, n_here, words);
  }
  if constexpr (std::is_floating_point_v<U>) {
    if (cuda::laneId() == cuda::kWarp - 1) {
      warp_sums[cuda::warpId()] = check.line_before;
    }
    __syncthreads();
    // The first value of a tile is left to a second kernel, unless it begins a block.
    if (cuda::laneId() == 0 && cuda::warpId() > 0 && Tile::placeOf(0) < n_here) {
      check.all_right = check.all_right && isRestored(warp_sums[cuda::warpId() - 1],
                                                      check.first_code, check.first_value);
    }
    if (!check.all_right) {
      *args.mismatch = 1;
    }
  }
}

/// One chain per block of values. Clears the states.
template <class U, Code kCode>
void launchChained(const CudaBlocks& run, void* states, std::uint32_t* mismatch) {
  using Tile = ChainTile<U>;
  using State = cuda::ChainState<typename Tile::Word>;
  const std::size_t n = run.input.size.n_bytes / sizeof(U);
  const unsigned n_blocks = cuda::gridFor(n, Tile::kValues);
  FZ_CUDA_CHECK(cudaMemsetAsync(states, 0, n_blocks * sizeof(State), run.stream));
  const ChainArgs args = {cudaValues(run), blockLength(run.block) / Tile::kValues, states,
                          mismatch};
  decodeChained<U, kCode><<<n_blocks, kThreads, 0, run.stream>>>(args);
  cuda::checkLaunch("delta decodeChained");
}

}  // namespace fz::delta
