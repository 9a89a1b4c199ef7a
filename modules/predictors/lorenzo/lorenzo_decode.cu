#include "predictors/lorenzo/lorenzo_decode.cuh"

namespace fz::lorenzo {

template <class U>
std::size_t decodeScratchBytes(const CudaGrid& grid, DecodeWay way) {
  if (way == DecodeWay::kWalk) {
    return walkScratchBytes<U>(grid);
  }
  std::size_t n_bytes = 0;
  if (areRowsAligned<U>(grid)) {
    planParts<Tile<U, true>>(gridArgs(grid), nullptr, n_bytes);
  } else {
    planParts<Tile<U, false>>(gridArgs(grid), nullptr, n_bytes);
  }
  return n_bytes;
}

template <class U>
void decodeGrid(const CudaGrid& grid, DecodeWay way, void* scratch) {
  if (way == DecodeWay::kWalk) {
    walkGrid<U>(grid, scratch);
  } else if (areRowsAligned<U>(grid)) {
    launchDecode<Tile<U, true>>(gridArgs(grid), scratch, grid.stream);
  } else {
    launchDecode<Tile<U, false>>(gridArgs(grid), scratch, grid.stream);
  }
}

template std::size_t decodeScratchBytes<std::uint8_t>(const CudaGrid&, DecodeWay);
template std::size_t decodeScratchBytes<std::uint16_t>(const CudaGrid&, DecodeWay);
template std::size_t decodeScratchBytes<std::uint32_t>(const CudaGrid&, DecodeWay);
template std::size_t decodeScratchBytes<std::uint64_t>(const CudaGrid&, DecodeWay);
template void decodeGrid<std::uint8_t>(const CudaGrid&, DecodeWay, void*);
template void decodeGrid<std::uint16_t>(const CudaGrid&, DecodeWay, void*);
template void decodeGrid<std::uint32_t>(const CudaGrid&, DecodeWay, void*);
template void decodeGrid<std::uint64_t>(const CudaGrid&, DecodeWay, void*);

}  // namespace fz::lorenzo
