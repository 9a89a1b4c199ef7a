#pragma once

#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

/// The steps of a decode around the pass over the codes; all only enqueue.
namespace fz::lorenzo_quant::device {

/// Checks the config and the sizes of the parts, makes the plan, clears the marks.
template <class T>
void launchDecodeSetup(const DecodeRun& run, std::size_t code_bytes, cudaStream_t stream);

/// Marks the values with range entries and puts the entries where the values will be.
template <class T>
void launchRangeEntries(const DecodeRun& run, std::uint64_t entry_limit, cudaStream_t stream);

/// Writes the exact values over the decoded ones.
template <class T>
void launchExactEntries(const DecodeRun& run, std::uint64_t entry_limit, cudaStream_t stream);

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
