#include "predictors/tiled_lorenzo/cuda/tile.cuh"

namespace fz::tiled_lorenzo {

namespace {

/// The strip's rows to shared memory; what lies outside the field is left as it is.
template <class U>
__device__ __forceinline__ void loadRows(
    const U* in, const Grid& grid, const StripShape& shape, const Strip& strip, U* rows) {
  constexpr unsigned kVec = 16 / sizeof(U);
  const std::uint64_t n_x = grid.nx - strip.x0;  // may be more than the strip has
  if (grid.nx % kVec == 0) {
    const unsigned log_vecs = shape.log_row_values - (sizeof(U) == 4 ? 2 : 3);
#pragma unroll
    for (unsigned i = 0; i < kVecsPerThread; ++i) {
      const unsigned vec = i * kThreads + threadIdx.x;
      const unsigned r = vec >> log_vecs;
      const unsigned x = (vec & ((1u << log_vecs) - 1)) * kVec;
      std::uint64_t first = 0;
      if (rowOf(grid, shape, strip, r, first) && x < n_x) {
        *reinterpret_cast<uint4*>(rows + r * shape.pitch + x) =
            __ldg(reinterpret_cast<const uint4*>(in + first + x));
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
        rows[r * shape.pitch + x] = __ldg(in + first + x);
      }
    }
  }
}

/// What predicts the first value of a piece.
template <class U>
__device__ __forceinline__ U predictorOf(const StripShape& shape,
                                         const PiecePlace& at,
                                         const U* rows) {
  if (at.x > 0) {
    return rows[at.index - 1];
  }
  if ((at.row & ((1u << shape.log_ty) - 1)) != 0) {
    return rows[at.index - shape.pitch];
  }
  return at.row != 0 ? rows[at.index - (shape.pitch << shape.log_ty)] : U{0};
}

template <class U, unsigned kPiece>
__global__ __launch_bounds__(kThreads) void encodeStrips(TileArgs args, StripShape shape) {
  constexpr unsigned kVec = 16 / sizeof(U);
  extern __shared__ __align__(16) unsigned char memory[];
  auto* rows = reinterpret_cast<U*>(memory);
  Strip strip;
  if (!resolveGrid<U, true>(args, shape.log_tiles) || !stripOfBlock(args, shape, strip)) {
    return;  // the whole block
  }
  const Grid& grid = args.grid;
  loadRows(static_cast<const U*>(args.in), grid, shape, strip, rows);
  __syncthreads();
  const std::uint64_t n_x = grid.nx - strip.x0;
  const unsigned n_values = strip.n_tiles << shape.logTileValues();
  U* out = static_cast<U*>(args.out) + strip.first_value;
  const bool is_aligned = strip.first_value % kVec == 0;
#pragma unroll
  for (unsigned i = 0; i < kVecsPerThread; ++i) {
    const unsigned first = (i * kThreads + threadIdx.x) * kVec;
    if (first >= n_values) {
      break;
    }
    Vec<U, kPiece> vec;
#pragma unroll
    for (unsigned p = 0; p < kVec / kPiece; ++p) {
      const PiecePlace at = piecePlace(shape, first + p * kPiece);
      std::uint64_t unused = 0;
      const bool is_inside = rowOf(grid, shape, strip, at.row, unused);
      const unsigned x = (at.tile << shape.log_tx) + at.x;
      const auto piece = *reinterpret_cast<const Piece<U, kPiece>*>(rows + at.index);
      U before = predictorOf(shape, at, rows);
#pragma unroll
      for (unsigned k = 0; k < kPiece; ++k) {
        vec.v[p * kPiece + k] = is_inside && x + k < n_x ? delta::minus(piece.v[k], before) : U{0};
        before = piece.v[k];
      }
    }
    if (is_aligned && first + kVec <= n_values) {
      *reinterpret_cast<uint4*>(out + first) = vec.raw;
    } else {
#pragma unroll
      for (unsigned k = 0; k < kVec; ++k) {
        if (first + k < n_values) {
          out[first + k] = vec.v[k];
        }
      }
    }
  }
}

template <class U>
__global__ __launch_bounds__(kThreads) void encodeAnyTiles(TileArgs args) {
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * kWarps + cuda::warpId();
  if (!resolveGrid<U, true>(args, 0) || tile >= args.counts.n_tiles) {
    return;
  }
  const Grid& grid = args.grid;
  encodeTile(WarpTeam{}, grid, tile, static_cast<const U*>(args.in),
             static_cast<U*>(args.out) + tile * grid.tile.values());
}

}  // namespace

template <class U>
void encodeTiles(const CudaTiles& tiles, const cuda::Call& call) {
  if (!arePowersOfTwo(tiles.grid.tile)) {
    const TileArgs args = tileArgs(tiles, 0);
    const unsigned n_blocks = cuda::gridFor(tiles.grid.tileCount(), kWarps);
    encodeAnyTiles<U><<<n_blocks, kThreads, 0, call.stream>>>(args);
    cuda::checkLaunch("TiledLorenzo encode");
    return;
  }
  const StripShape shape = stripShape<U>(tiles.grid.tile);
  const TileArgs args = tileArgs(tiles, shape.log_tiles);
  const std::size_t shared_bytes = std::size_t{shape.pitch} * shape.tileRows() * sizeof(U);
  withPiece<U>(tiles.grid.tile, [&]<unsigned kPiece>() {
    encodeStrips<U, kPiece>
        <<<stripBlocks(args), kThreads, shared_bytes, call.stream>>>(args, shape);
  });
  cuda::checkLaunch("TiledLorenzo encode");
}

template void encodeTiles<std::uint16_t>(const CudaTiles&, const cuda::Call&);
template void encodeTiles<std::uint32_t>(const CudaTiles&, const cuda::Call&);

}  // namespace fz::tiled_lorenzo
