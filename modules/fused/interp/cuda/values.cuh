#pragma once

// Values and lattices as kernels see them. Device code only.

#include <type_traits>

#include "backends/cuda/device.cuh"
#include "fused/interp/cuda/kernels.h"

namespace fz::interp::device {

__device__ __forceinline__ std::uint64_t threadIndex() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::uint64_t threadCount() {
  return std::uint64_t{gridDim.x} * blockDim.x;
}

/// A number of a field or a lattice as fixed point; kNoValue where it has none.
template <class T>
__device__ __forceinline__ std::int32_t fixedOf(T x, bool has_gaps, const Scale& scale) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return x;
  } else {
    const double s = scaled(x, scale);
    return !has_gaps || isCodable(s) ? toFixed(s) : kNoValue;
  }
}

template <class T>
__device__ __forceinline__ T resultOf(std::int32_t r, const Scale& scale) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return r;
  } else {
    return fromFixed<T>(r, scale);
  }
}

__device__ __forceinline__ std::int32_t fixedAt(const Grid& grid,
                                                std::int64_t place,
                                                const Setup& setup) {
  const bool has_gaps = setup.has_gaps != 0;
  switch (grid.type) {
    case DataType::FLOAT32:
      return fixedOf(static_cast<const float*>(grid.data)[place], has_gaps, setup.scale);
    case DataType::FLOAT64:
      return fixedOf(static_cast<const double*>(grid.data)[place], has_gaps, setup.scale);
    default:
      return static_cast<const std::int32_t*>(grid.data)[place];
  }
}

__device__ __forceinline__ void storeAt(const Grid& grid,
                                        std::int64_t place,
                                        std::int32_t r,
                                        const Scale& scale) {
  switch (grid.type) {
    case DataType::FLOAT32:
      static_cast<float*>(grid.data)[place] = fromFixed<float>(r, scale);
      break;
    case DataType::FLOAT64:
      static_cast<double*>(grid.data)[place] = fromFixed<double>(r, scale);
      break;
    default:
      static_cast<std::int32_t*>(grid.data)[place] = r;
  }
}

__device__ __forceinline__ std::int64_t placeIn(const Grid& grid,
                                                std::int64_t x,
                                                std::int64_t y,
                                                std::int64_t z) {
  return z * grid.step[2] + y * grid.step[1] + x;
}

__device__ __forceinline__ void markOutlier(std::uint32_t* words, std::uint64_t place) {
  atomicOr(words + place / 32, 1u << (place % 32));
}

__device__ __forceinline__ std::uint64_t fieldPlace(const PlaceMap& places,
                                                    std::uint64_t x,
                                                    std::uint64_t y,
                                                    std::uint64_t z) {
  return places.first + x * places.step[0] + y * places.step[1] + z * places.step[2];
}

/// Whether what is reconstructed misses the value of the field.
__device__ __forceinline__ bool missesBound(const Marks& marks,
                                            std::uint64_t place,
                                            std::int32_t r,
                                            const Setup& setup) {
  if (marks.type == DataType::FLOAT32) {
    return !fp::withinBound(static_cast<double>(static_cast<const float*>(marks.field)[place]),
                            static_cast<double>(fromFixed<float>(r, setup.scale)), setup.bound);
  }
  return !fp::withinBound(static_cast<const double*>(marks.field)[place],
                          fromFixed<double>(r, setup.scale), setup.bound);
}

__device__ __forceinline__ std::uint64_t codePlace(const CodePlaces& array,
                                                   std::uint32_t x,
                                                   std::uint32_t y,
                                                   std::uint32_t z) {
  const std::uint32_t at[3] = {x, y, z};
  std::uint64_t block = 0;
  std::uint32_t inside = 0;
#pragma unroll
  for (unsigned axis = 0; axis < 3; ++axis) {
    block += std::uint64_t{at[axis] >> array.log2[axis]} * array.block_step[axis];
    inside += (at[axis] & ((1u << array.log2[axis]) - 1)) << array.shift[axis];
  }
  return array.start + block * 64 + inside;
}

__device__ __forceinline__ std::int32_t loadCode(const void* codes,
                                                 std::uint32_t code_bytes,
                                                 std::uint64_t place) {
  return code_bytes == 2 ? static_cast<const std::int16_t*>(codes)[place]
                         : static_cast<const std::int32_t*>(codes)[place];
}
__device__ __forceinline__ void storeCode(void* codes,
                                          std::uint32_t code_bytes,
                                          std::uint64_t place,
                                          std::int32_t code) {
  if (code_bytes == 2) {
    static_cast<std::int16_t*>(codes)[place] = static_cast<std::int16_t>(code);
  } else {
    static_cast<std::int32_t*>(codes)[place] = code;
  }
}
__device__ __forceinline__ std::int32_t fittingCode(std::int32_t code, std::uint32_t code_bytes) {
  return code_bytes == 2 ? clampCode<std::int16_t>(code) : code;
}

/// The kernels of between(), by one formula.
struct Bend {
  std::int32_t weight;
  std::uint32_t shift;
};
__device__ __forceinline__ Bend bendOf(Kernel kernel) {
  return kernel == Kernel::kLinear  ? Bend{0, 0}
         : kernel == Kernel::kCubic ? Bend{1, 3}
                                    : Bend{5, 5};
}
__device__ __forceinline__ std::int32_t between(
    const Bend& bend, std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  const std::int32_t t = bits::wrapAdd(bits::wrapAdd(b, c), 1);
  const std::int32_t rest = bits::wrapSub(bits::wrapSub(t, a), d);
  return bits::wrapAdd(t, wrapMul(rest, bend.weight) >> bend.shift) >> 1;
}

__device__ __forceinline__ const Bin& binOf(const Setup& setup, std::uint32_t halvings) {
  return setup.bins[halvings < kMaxHalvings ? halvings : kMaxHalvings];
}

/// Place i of an array of n, x fastest.
__device__ __forceinline__ Points pointOf(std::uint64_t i, const Points& n) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  if (i >> 32 == 0) {
    const std::uint32_t row = low(i) / n[0];
    return {{low(i) - row * n[0], row % n[1], row / n[1]}};
  }
  const std::uint64_t row = i / n[0];
  return {{low(i - row * n[0]), low(row % n[1]), low(row / n[1])}};
}

/// store(p, load(p)) for all points of a lattice, by the whole grid; several loads before the first
/// store. Long rows are cut into pieces of a warp, which spares divisions.
template <class Load, class Store>
__device__ __forceinline__ void forPoints(const Points& n, Load load, Store store) {
  constexpr std::uint32_t kRun = 4;
  constexpr std::uint32_t kPiece = kRun * cuda::kWarp;
  if (n[0] < kPiece / 2) {
    const std::uint64_t n_points = std::uint64_t{n[0]} * n[1] * n[2];
    for (std::uint64_t i = threadIndex(); i < n_points; i += threadCount()) {
      const Points p = pointOf(i, n);
      store(p, load(p));
    }
    return;
  }
  const Points n_pieces = {{bits::ceilDiv(n[0], kPiece), n[1], n[2]}};
  const std::uint64_t n_items = std::uint64_t{n_pieces[0]} * n[1] * n[2];
  for (std::uint64_t item = threadIndex() / cuda::kWarp; item < n_items;
       item += threadCount() / cuda::kWarp) {
    Points p = pointOf(item, n_pieces);
    const std::uint32_t first = p[0] * kPiece + cuda::laneId();
    decltype(load(p)) values[kRun];
#pragma unroll
    for (std::uint32_t r = 0; r < kRun; ++r) {
      p[0] = min(first + r * cuda::kWarp, n[0] - 1);
      values[r] = load(p);
    }
#pragma unroll
    for (std::uint32_t r = 0; r < kRun; ++r) {
      p[0] = first + r * cuda::kWarp;
      if (p[0] < n[0]) {
        store(p, values[r]);
      }
    }
  }
}

}  // namespace fz::interp::device
