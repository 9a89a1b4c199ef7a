#include "predictors/tiled_lorenzo/cuda/tile.cuh"

namespace fz::tiled_lorenzo {

namespace {

/// Heads are the first differences of the rows of a tile; one more place per tile keeps the tiles
/// in different banks.
__device__ __forceinline__ unsigned headOf(const StripShape& shape, unsigned tile, unsigned row) {
  return tile * (shape.tileRows() + 1) + row;
}

/// Turns the heads of each tile into the first values of its rows: sums along z, then along y.
template <class U>
__device__ __forceinline__ void sumHeads(const StripShape& shape, unsigned n_tiles, U* heads) {
  for (unsigned tile = threadIdx.x; tile < n_tiles; tile += kThreads) {
    U along_z = 0;
    U along_y = 0;
#pragma unroll 4
    for (unsigned row = 0; row < shape.tileRows(); ++row) {
      U& head = heads[headOf(shape, tile, row)];
      if ((row & ((1u << shape.log_ty) - 1)) == 0) {
        along_z = delta::plus(along_z, head);
        along_y = along_z;
      } else {
        along_y = delta::plus(along_y, head);
      }
      head = along_y;
    }
  }
}

/// The strip's rows from shared memory to the field.
template <class U>
__device__ __forceinline__ void storeRows(
    const Grid& grid, const StripShape& shape, const Strip& strip, const U* rows, U* out) {
  constexpr unsigned kVec = 16 / sizeof(U);
  const std::uint64_t n_left = grid.nx - strip.x0;
  const unsigned n_strip = strip.n_tiles << shape.log_tx;
  const unsigned n_x = n_left < n_strip ? static_cast<unsigned>(n_left) : n_strip;
  if (grid.nx % kVec == 0) {
    const unsigned log_vecs = shape.log_row_values - (sizeof(U) == 4 ? 2 : 3);
#pragma unroll
    for (unsigned i = 0; i < kVecsPerThread; ++i) {
      const unsigned vec = i * kThreads + threadIdx.x;
      const unsigned r = vec >> log_vecs;
      const unsigned x = (vec & ((1u << log_vecs) - 1)) * kVec;
      std::uint64_t first = 0;
      if (rowOf(grid, shape, strip, r, first) && x < n_x) {
        *reinterpret_cast<uint4*>(out + first + x) =
            *reinterpret_cast<const uint4*>(rows + r * shape.pitch + x);
      }
    }
  } else {
#pragma unroll 8
    for (unsigned i = 0; i < kStripBytes / sizeof(U) / kThreads; ++i) {
      const unsigned value = i * kThreads + threadIdx.x;
      const unsigned r = value >> shape.log_row_values;
      const unsigned x = value & ((1u << shape.log_row_values) - 1);
      std::uint64_t first = 0;
      if (rowOf(grid, shape, strip, r, first) && x < n_x) {
        out[first + x] = rows[r * shape.pitch + x];
      }
    }
  }
}

/// The strip's part of the stream; 0 behind it.
template <class U, unsigned kPiece>
__device__ __forceinline__ void loadStream(const U* in,
                                           bool is_aligned,
                                           unsigned n_values,
                                           Vec<U, kPiece> (&vecs)[kVecsPerThread]) {
  constexpr unsigned kVec = 16 / sizeof(U);
#pragma unroll
  for (unsigned i = 0; i < kVecsPerThread; ++i) {
    const unsigned first = (i * kThreads + threadIdx.x) * kVec;
    vecs[i].raw = {};
    if (is_aligned && first + kVec <= n_values) {
      vecs[i].raw = __ldg(reinterpret_cast<const uint4*>(in + first));
    } else {
#pragma unroll
      for (unsigned k = 0; k < kVec; ++k) {
        vecs[i].v[k] = first + k < n_values ? in[first + k] : U{0};
      }
    }
  }
}

/// Running sums along the rows: inside the pieces, and over those of a row, which lie in
/// neighbouring lanes.
template <class U, unsigned kPiece>
__device__ __forceinline__ void sumPieces(const StripShape& shape,
                                          unsigned x,
                                          Vec<U, kPiece>& vec) {
  constexpr unsigned kVec = 16 / sizeof(U);
#pragma unroll
  for (unsigned k = 0; k < kVec; ++k) {
    vec.v[k] = k % kPiece == 0 ? vec.v[k] : delta::plus(vec.v[k], vec.v[k - 1]);
  }
  if constexpr (kPiece == kVec) {
    std::uint32_t sum = vec.v[kVec - 1];
    const std::uint32_t own = sum;
    for (unsigned step = 1; step * kPiece < 1u << shape.log_tx; step *= 2) {
      const std::uint32_t other = __shfl_up_sync(cuda::kAllLanes, sum, step);
      sum += x >= step * kPiece ? other : 0;
    }
#pragma unroll
    for (unsigned k = 0; k < kVec; ++k) {
      vec.v[k] = delta::plus(vec.v[k], static_cast<U>(sum - own));
    }
  }
}

template <class U, unsigned kPiece>
__global__ __launch_bounds__(kThreads) void decodeStrips(TileArgs args, StripShape shape) {
  constexpr unsigned kVec = 16 / sizeof(U);
  extern __shared__ __align__(16) unsigned char memory[];
  auto* shared = reinterpret_cast<U*>(memory);  // heads, then rows
  Strip strip;
  if (!resolveGrid<U, false>(args, shape.log_tiles) || !stripOfBlock(args, shape, strip)) {
    return;  // the whole block
  }
  const Grid& grid = args.grid;
  Vec<U, kPiece> vecs[kVecsPerThread];
  loadStream(static_cast<const U*>(args.in) + strip.first_value, strip.first_value % kVec == 0,
             strip.n_tiles << shape.logTileValues(), vecs);
  const auto forPieces = [&](auto f) {
#pragma unroll
    for (unsigned i = 0; i < kVecsPerThread; ++i) {
#pragma unroll
      for (unsigned p = 0; p < kVec / kPiece; ++p) {
        f(piecePlace(shape, (i * kThreads + threadIdx.x) * kVec + p * kPiece), vecs[i].piece[p]);
      }
    }
  };
  if (shape.log_rows > 0) {
    forPieces([&](const PiecePlace& at, const Piece<U, kPiece>& piece) {
      if (at.x == 0) {
        shared[headOf(shape, at.tile, at.row)] = piece.v[0];
      }
    });
    __syncthreads();
    sumHeads(shape, strip.n_tiles, shared);
    __syncthreads();
    forPieces([&](const PiecePlace& at, Piece<U, kPiece>& piece) {
      if (at.x == 0) {
        piece.v[0] = shared[headOf(shape, at.tile, at.row)];
      }
    });
    __syncthreads();
  }
#pragma unroll
  for (unsigned i = 0; i < kVecsPerThread; ++i) {
    const unsigned x = (i * kThreads + threadIdx.x) * kVec & ((1u << shape.log_tx) - 1);
    sumPieces<U, kPiece>(shape, x, vecs[i]);
  }
  forPieces([&](const PiecePlace& at, const Piece<U, kPiece>& piece) {
    *reinterpret_cast<Piece<U, kPiece>*>(shared + at.index) = piece;
  });
  __syncthreads();
  storeRows(grid, shape, strip, shared, static_cast<U*>(args.out));
}

template <class U>
__global__ __launch_bounds__(kThreads) void decodeAnyTiles(TileArgs args) {
  __shared__ U values[kWarps][kMaxTileValues];
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * kWarps + cuda::warpId();
  if (!resolveGrid<U, false>(args, 0) || tile >= args.counts.n_tiles) {
    return;
  }
  const Grid& grid = args.grid;
  const U* in = static_cast<const U*>(args.in) + tile * grid.tile.values();
  U* own = values[cuda::warpId()];
  const WarpTeam team;
  team.each(grid.tile.values(), [&](std::uint32_t i) { own[i] = in[i]; });
  team.sync();
  decodeTile(team, grid, tile, own, static_cast<U*>(args.out));
}

}  // namespace

template <class U>
void decodeTiles(const CudaTiles& tiles, const cuda::Call& call) {
  if (!arePowersOfTwo(tiles.grid.tile)) {
    const TileArgs args = tileArgs(tiles, 0);
    const unsigned n_blocks = cuda::gridFor(tiles.grid.tileCount(), kWarps);
    decodeAnyTiles<U><<<n_blocks, kThreads, 0, call.stream>>>(args);
    cuda::checkLaunch("TiledLorenzo decode");
    return;
  }
  const StripShape shape = stripShape<U>(tiles.grid.tile);
  const TileArgs args = tileArgs(tiles, shape.log_tiles);
  const std::size_t n_rows = std::size_t{shape.pitch} * shape.tileRows();
  const std::size_t n_heads = std::size_t{shape.tileRows() + 1} << shape.log_tiles;
  const std::size_t shared_bytes = std::max(n_rows, n_heads) * sizeof(U);
  withPiece<U>(tiles.grid.tile, [&]<unsigned kPiece>() {
    decodeStrips<U, kPiece>
        <<<stripBlocks(args), kThreads, shared_bytes, call.stream>>>(args, shape);
  });
  cuda::checkLaunch("TiledLorenzo decode");
}

template void decodeTiles<std::uint16_t>(const CudaTiles&, const cuda::Call&);
template void decodeTiles<std::uint32_t>(const CudaTiles&, const cuda::Call&);

}  // namespace fz::tiled_lorenzo
