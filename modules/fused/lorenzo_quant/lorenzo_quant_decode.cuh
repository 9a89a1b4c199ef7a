#pragma once

#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

/// The steps of a decode around the pass over the codes; all only enqueue.
namespace fz::lorenzo_quant::device {

/// Checks the config and the sizes of the parts, and makes the plan.
template <class T>
void launchDecodeSetup(const DecodeRun& run, std::size_t code_bytes, cudaStream_t stream);

/// Marks the values with range entries and puts the entries where the values will be.
template <class T>
void launchRangeEntries(const DecodeRun& run,
                        const Layout& limit,
                        std::uint64_t entry_limit,
                        cudaStream_t stream);

/// Writes the exact values over the decoded ones.
template <class T>
void launchExactEntries(const DecodeRun& run, std::uint64_t entry_limit, cudaStream_t stream);

/// Does the work of the pass over the codes where sums must be in double, and clears the values
/// beyond the layout.
template <class T, class TCode>
void launchOldStreams(const DecodeRun& run, cudaStream_t stream);

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
  const std::uint64_t row = index / layout.grid.nx;
  const std::uint64_t x = index % layout.grid.nx;
  const std::uint64_t segment = row * layout.row_segments + x / kSegment<T>;
  return {segment * kLaneValues<T> + x % kSegment<T> / 32, static_cast<unsigned>(x % 32)};
}

}  // namespace fz::lorenzo_quant::device
