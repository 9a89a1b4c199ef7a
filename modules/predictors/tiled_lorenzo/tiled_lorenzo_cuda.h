#pragma once

#include "fz/device_types.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_codec.h"

/// TiledLorenzo on the device. U is std::uint16_t or std::uint32_t and serves the signed type of
/// its width too. All functions only enqueue, and note DeviceError::kCorrupt, with the number of
/// bytes as its index, when the grid does not hold the input.
namespace fz::tiled_lorenzo {

/// Slot of the record for the extent in x: written by the encoder.
inline constexpr unsigned kExtentSlot = 0;

struct CudaTiles {
  CudaInput input;
  CudaOutput output;
  Grid grid;
  /// nx is only a limit: the encoder takes it from the size of the input, the decoder from the
  /// record.
  bool is_extent_open;
  StageRecord* record;
  cudaStream_t stream;
};

template <class U>
void encodeTiles(const CudaTiles& tiles);
template <class U>
void decodeTiles(const CudaTiles& tiles);

}  // namespace fz::tiled_lorenzo
