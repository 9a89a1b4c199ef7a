#pragma once

// What a decode is, from the stored config and the sizes of its parts, and where its marks stand.
// Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "fused/lorenzo_quant/cuda/args.h"

namespace fz::lorenzo_quant::device {

/// The stored config and the sizes of the parts, all untrusted; false: they contradict each other.
template <class T>
__device__ bool planOf(const DecodeRun& run, unsigned code_bytes, DecodePlan<T>& plan) {
  const std::uint64_t n = run.record->value[kCountSlot] & kMaxValues;
  const std::uint64_t n_range = run.record->value[kRangeSlot] & kMaxValues;
  const std::uint64_t version = run.record->value[kVersionSlot];
  const bool has_exact_values = version >= kVersionWithExactValues;
  const auto bound = fp::bitCast<float>(static_cast<std::uint32_t>(run.record->value[kBoundSlot]));
  const std::uint64_t values_bytes = cuda::load(run.values_size);
  const std::uint64_t indices_bytes = cuda::load(run.indices_size);
  const std::uint64_t n_listed = values_bytes / sizeof(T);
  const std::uint64_t n_indices = indices_bytes / sizeof(std::uint32_t);
  bool holds = version <= kVersionWithExactValues && cuda::load(run.codes_size) == n * code_bytes &&
               n_range <= n_listed && n_range <= n_indices && bound >= 0.0f &&
               static_cast<double>(bound) <= kLargestBound;
  if (has_exact_values) {
    holds = holds && n_listed == n_indices && values_bytes % sizeof(T) == 0 &&
            indices_bytes % sizeof(std::uint32_t) == 0;
  }
  Grid grid{n, 1, 1, 1};
  if (run.dims.ndim > 1) {
    const std::uint64_t row_limit = n / (run.dims.y * run.dims.z);  // both below 2^32
    const std::uint64_t nx = run.dims.x == 0 ? row_limit : run.dims.x;
    holds = holds && nx <= row_limit;
    grid = {nx, run.dims.y, run.dims.z, run.dims.ndim};
  }
  if (!holds) {
    return false;
  }
  plan.layout = makeLayout<T>(grid);
  plan.n_values = n;
  plan.n_range = n_range;
  plan.n_entries = has_exact_values ? n_indices : n_range;
  plan.step = makeStep<T>(bound, run.dims.ndim).step;
  return true;
}

/// The plan, an empty one where there is nothing to decode. The one thread that `records` leaves
/// findings and size in the record.
template <class T>
__device__ void planDecode(const DecodeRun& run,
                           unsigned code_bytes,
                           bool records,
                           DecodePlan<T>& plan) {
  plan = {};
  const bool holds = planOf(run, code_bytes, plan);
  const std::uint64_t n_bytes = plan.n_values * sizeof(T);
  if (records && !holds) {
    cuda::recordError(run.record, DeviceError::kCorrupt, ~std::uint64_t{0});
  }
  if (records && run.publishes_out) {
    cuda::publishSize(run.record, 0, n_bytes, run.out_capacity);
  }
  if (n_bytes > run.out_capacity) {
    plan = {};
  }
}

/// Word of the marks and bit in it of value `index`.
struct MarkPlace {
  std::uint64_t word;
  unsigned bit;
};

template <class T>
FZ_HD MarkPlace markPlace(const Layout& layout, std::uint64_t index) {
  if (index >= layout.n_values) {
    const std::uint64_t beyond = index - layout.n_values;
    return {layout.n_segments * kLaneValues<T> + beyond / 32, static_cast<unsigned>(beyond % 32)};
  }
  // A field has fewer than 2^32 values, so 32-bit divisions do.
  const auto nx = static_cast<std::uint32_t>(layout.grid.nx);
  const std::uint32_t row = static_cast<std::uint32_t>(index) / nx;
  const std::uint32_t x = static_cast<std::uint32_t>(index) - row * nx;
  const std::uint64_t segment = row * layout.row_segments + x / kSegment<T>;
  return {segment * kLaneValues<T> + x % kSegment<T> / 32, static_cast<unsigned>(x % 32)};
}

}  // namespace fz::lorenzo_quant::device
