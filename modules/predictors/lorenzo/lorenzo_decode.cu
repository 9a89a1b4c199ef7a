#include "predictors/lorenzo/lorenzo_decode.cuh"

namespace fz::lorenzo {

namespace {

// 64 registers of values per thread at most; more layers mean fewer steps from slab to slab.
template <class U, bool kVector>
using PlaneTile = DecodeTile<U, kVector, 8, 1>;
template <class U, bool kVector>
using SpaceTile = DecodeTile<U, kVector, 4, 4>;

/// f.template operator()<Tile>() with the tile that suits the grid.
template <class U, class F>
auto withTile(const CudaGrid& grid, F f) {
  const bool has_layers = grid.dims[1] > 1 && grid.dims[2] > 1;
  if (areRowsAligned<U>(grid)) {
    return has_layers ? f.template operator()<SpaceTile<U, true>>()
                      : f.template operator()<PlaneTile<U, true>>();
  }
  return has_layers ? f.template operator()<SpaceTile<U, false>>()
                    : f.template operator()<PlaneTile<U, false>>();
}

}  // namespace

template <class U>
std::size_t decodeScratchBytes(const CudaGrid& grid) {
  return withTile<U>(grid,
                     [&]<class Tile>() { return decodeScratch<Tile>(gridArgs(grid)).total(); });
}

template <class U>
void decodeGrid(const CudaGrid& grid, void* scratch) {
  withTile<U>(grid,
              [&]<class Tile>() { launchDecode<U, Tile>(gridArgs(grid), scratch, grid.stream); });
}

template std::size_t decodeScratchBytes<std::uint8_t>(const CudaGrid&);
template std::size_t decodeScratchBytes<std::uint16_t>(const CudaGrid&);
template std::size_t decodeScratchBytes<std::uint32_t>(const CudaGrid&);
template std::size_t decodeScratchBytes<std::uint64_t>(const CudaGrid&);
template void decodeGrid<std::uint8_t>(const CudaGrid&, void*);
template void decodeGrid<std::uint16_t>(const CudaGrid&, void*);
template void decodeGrid<std::uint32_t>(const CudaGrid&, void*);
template void decodeGrid<std::uint64_t>(const CudaGrid&, void*);

}  // namespace fz::lorenzo
