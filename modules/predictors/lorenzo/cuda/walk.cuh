#pragma once

// Decoding grids of many layers in one pass. A block has a strip in x and a band of rows and walks
// through all layers, a few at a time: it reads every value once and keeps the sum over the layers
// so far in registers. What it must know of the other tiles it gets from two neighbours, the band
// above and the strip on its left. Both have lower block indices, which the hardware starts first.
// One more warp sends and receives, so that nobody else waits while letters are under way.

#include "predictors/lorenzo/cuda/walk_rows.cuh"

namespace fz::lorenzo {

inline constexpr unsigned kClerk = kWarps;  // index of the warp
inline constexpr unsigned kWalkThreads = kThreads + cuda::kWarp;

template <class T>
__device__ __forceinline__ void putColumns(const typename T::Words& words, WalkMemory<T>& memory) {
#pragma unroll
  for (unsigned l = 0; l < T::kLayers; ++l) {
#pragma unroll
    for (unsigned w = 0; w < T::P::kWords; ++w) {
      memory.columns[l][cuda::warpId()][T::P::wordPlace(w)] = words[l][T::kRows - 1][w];
    }
  }
}

/// Turns the column sums of the warps into those of all rows before, the bands above included. A
/// thread has some columns.
template <class T>
__device__ __forceinline__ void sumColumns(bool has_above, WalkMemory<T>& memory) {
  using Word = typename T::Word;
  const unsigned column = threadIdx.x % T::kColumns;
#pragma unroll
  for (unsigned k = 0; k < T::kDown / kThreads; ++k) {
    const unsigned i = k * kThreads + threadIdx.x;
    auto& warps = memory.columns[i / T::kColumns];
    Word own[kWarps];
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      own[w] = warps[w][column];
    }
    Word sum = has_above ? memory.above.words[i] : Word{0};
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      warps[w][column] = sum;
      sum = T::P::add(sum, own[w]);
    }
    memory.below.words[i] = sum;
  }
}

template <class T>
__device__ __forceinline__ void addColumns(const WalkMemory<T>& memory, typename T::Words& words) {
#pragma unroll
  for (unsigned l = 0; l < T::kLayers; ++l) {
#pragma unroll
    for (unsigned w = 0; w < T::P::kWords; ++w) {
      const typename T::Word above = memory.columns[l][cuda::warpId()][T::P::wordPlace(w)];
#pragma unroll
      for (unsigned r = 0; r < T::kRows; ++r) {
        words[l][r][w] = T::P::add(words[l][r][w], above);
      }
    }
  }
}

/// Running sums along the rows, those of the strips before included. The sums of the lanes go
/// through shared memory, where a few lanes have a row: shuffles would take five steps for each.
/// The warp's own part of the columns is not needed any more and serves for that.
template <class T>
__device__ __forceinline__ void sumRows(const WalkMail<typename T::Word>& mail,
                                        const WalkPlace& at,
                                        std::uint64_t step,
                                        WalkMemory<T>& memory,
                                        typename T::Words& words) {
  using P = typename T::P;
  using Word = typename T::Word;
  constexpr unsigned kLanes = cuda::kWarp / T::kWarpRight;  // per row
  constexpr unsigned kEach = cuda::kWarp / kLanes;
  const unsigned lane = cuda::laneId();
  const unsigned own_row = lane / kLanes;
  WalkEdge<T> edge(mail, at, step, own_row);
  // Lanes that are at the same place of different rows meet different banks.
  const auto spot = [&](unsigned row, unsigned place) -> Word& {
    return memory
        .columns[row / T::kRows][cuda::warpId()][row % T::kRows * cuda::kWarp + (place ^ row)];
  };
  __syncwarp();
#pragma unroll
  for (unsigned i = 0; i < T::kWarpRight; ++i) {
    spot(i, lane) = P::sumLane(words[i / T::kRows][i % T::kRows]);
  }
  __syncwarp();
  const unsigned first = lane % kLanes * kEach;
  Word sums[kEach];
  Word sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kEach; ++i) {
    sums[i] = sum;
    sum += spot(own_row, first + i);
  }
  Word so_far = sum;  // over the lanes of the row up to this one
#pragma unroll
  for (unsigned distance = 1; distance < kLanes; distance *= 2) {
    const Word other = __shfl_up_sync(cuda::kAllLanes, so_far, distance, kLanes);
    so_far += lane % kLanes >= distance ? other : Word{0};
  }
  so_far += edge.left();
  if (lane % kLanes == kLanes - 1) {
    edge.publish(so_far);
  }
#pragma unroll
  for (unsigned i = 0; i < kEach; ++i) {
    spot(own_row, first + i) = so_far - sum + sums[i];
  }
  __syncwarp();
#pragma unroll
  for (unsigned i = 0; i < T::kWarpRight; ++i) {
    const Word before = P::splat(spot(i, lane));
#pragma unroll
    for (unsigned w = 0; w < P::kWords; ++w) {
      Word& word = words[i / T::kRows][i % T::kRows][w];
      word = P::add(word, before);
    }
  }
  __syncwarp();  // the memory is used again
}

/// The sums of the columns of this warp, with all layers so far; and the next step is fetched.
template <class T>
__device__ __forceinline__ void beginStep(const GridArgs& args,
                                          const Grid& grid,
                                          const WalkPlace& at,
                                          std::uint64_t next_layer0,
                                          typename T::Word (&all)[T::kRows][T::P::kWords],
                                          WalkMemory<T>& memory,
                                          typename T::Words& words) {
  using P = typename T::P;
  memory.ahead.wait();
#pragma unroll
  for (unsigned l = 0; l < T::kLayers; ++l) {
#pragma unroll
    for (unsigned r = 0; r < T::kRows; ++r) {
      typename T::Word row[P::kWords];
      memory.ahead.take(l, r, row);
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        all[r][w] = P::add(all[r][w], row[w]);
        words[l][r][w] = r == 0 ? all[r][w] : P::add(all[r][w], words[l][r - 1][w]);
      }
    }
  }
  if constexpr (!T::kIsAligned) {
    __syncwarp();  // others have taken what is overwritten now
  }
  if (next_layer0 < args.n_layers) {
    memory.ahead.fetch(args, grid, at, next_layer0);
  }
  putColumns<T>(words, memory);
}

template <class T>
__global__ __launch_bounds__(kWalkThreads, 1) void walkKernel(GridArgs args,
                                                              WalkMail<typename T::Word> mail) {
  extern __shared__ uint4 walk_memory[];
  auto& memory = *reinterpret_cast<WalkMemory<T>*>(walk_memory);
  const Grid grid = resolveGrid<typename T::Value>(args);
  if (grid.nx == 0) {
    return;
  }
  // With an extent that only the device knows there may be fewer strips than the host has.
  mail.n_strips = bits::ceilDiv<std::uint64_t>(grid.nx, T::P::kRowValues);
  const TilePlace tile = tilePlace(blockIdx.x, mail.n_strips, mail.n_bands);
  if (tile.slab > 0) {
    return;  // the whole block
  }
  const bool is_clerk = cuda::warpId() == kClerk;
  const WalkPlace at = {tile.strip, tile.band,
                        tile.band * T::kBandRows + cuda::warpId() * T::kRows};
  typename T::Word all[T::kRows][T::P::kWords] = {};  // over the layers so far
  typename T::Words words;
  if (!is_clerk) {
    memory.ahead.fetch(args, grid, at, 0);
  }
  for (std::uint64_t step = 0; step < mail.n_steps; ++step) {
    const std::uint64_t layer0 = step * T::kLayers;
    if (!is_clerk) {
      beginStep<T>(args, grid, at, layer0 + T::kLayers, all, memory, words);
    } else if (at.band > 0) {
      receive<T>(mail, at, step, memory.above);
    }
    __syncthreads();
    if (!is_clerk) {
      sumColumns<T>(at.band > 0, memory);
    }
    __syncthreads();
    if (!is_clerk) {
      addColumns<T>(memory, words);
      sumRows<T>(mail, at, step, memory, words);
      if constexpr (T::kIsAligned) {
        storeStep<T>(args, grid, at, layer0, words);
      } else {
        storeScattered<T>(args, grid, at, layer0, memory, words);
      }
    } else if (at.band + 1 < mail.n_bands) {
      send<T>(mail, at, step, memory.below);
    }
  }
}

}  // namespace fz::lorenzo
