#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"

/// Lorenzo in two and three dimensions on the device. U is one of the unsigned integers and serves
/// the signed type of its width too. All functions only enqueue.
namespace fz::lorenzo {

/// Where a kernel has the extent in x from.
enum class ExtentFrom : std::uint8_t {
  kHost,    ///< it is dims[0]
  kSize,    ///< it follows from the size of the input; dims[0] is the most that can come
  kRecord,  ///< it stands in value[kExtentSlot]; dims[0] is the most that can come
};

/// Slot of the record for the extent in x; an encoder writes it, a decoder may read it.
inline constexpr unsigned kExtentSlot = 0;

struct CudaGrid {
  CudaInput input;
  CudaOutput output;
  std::uint64_t dims[3];  ///< x fastest; dims[1] * dims[2] > 1
  ExtentFrom extent_from;
  StageRecord* record;
  cudaStream_t stream;
};

/// Both record DeviceError::kCorrupt, with the number of bytes as its index, when the dims do not
/// hold the input.
template <class U>
void encodeGrid(const CudaGrid& grid);

/// Bytes of working memory for decodeGrid.
template <class U>
std::size_t decodeScratchBytes(const CudaGrid& grid);
template <class U>
void decodeGrid(const CudaGrid& grid, void* scratch);

/// Axes along which differences are taken.
struct AxisSet {
  bool x;
  bool y;
  bool z;
};
/// The same for some axes only, or none, and any number of dimensions.
template <class U>
void encodeAlong(const CudaGrid& grid, const AxisSet& along);
template <class U>
void decodeAlong(const CudaGrid& grid, const AxisSet& along);

/// Differences inside blocks, as part of a fused group.
struct alignas(16) BlockArgs {
  std::uint32_t block_values;  ///< a power of two up to 1024
};

}  // namespace fz::lorenzo
