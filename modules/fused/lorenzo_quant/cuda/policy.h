#pragma once

// What depends on a device: shapes of launches, and where a fused group is faster than the stages.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/launch.h"

namespace fz::lorenzo_quant::device {

// The passes over a field, a warp for each stripe.
inline constexpr unsigned kStripeWarps = 4;
inline constexpr unsigned kStripeThreads = kStripeWarps * 32;
/// Blocks that a multiprocessor should hold: what the registers allow without spilling.
template <int kDim>
inline constexpr unsigned kStripeBlocks = kDim == 3 ? 5 : 7;

inline constexpr unsigned kRangeThreads = 256;
inline constexpr unsigned kRangeLoads = 4;  ///< in flight per thread
inline unsigned rangeBlocks(std::uint64_t n_bytes) {
  return std::min(8 * cuda::multiprocessorCount(),
                  cuda::gridFor(n_bytes, kRangeThreads * kRangeLoads * 16));
}

inline constexpr unsigned kSetupThreads = 256;
inline unsigned setupBlocks(std::uint64_t n_stores) {
  return std::min(8 * cuda::multiprocessorCount(), cuda::gridFor(n_stores, 4 * kSetupThreads));
}

inline constexpr unsigned kPlaceThreads = 256;
inline unsigned placeBlocks(std::uint64_t n_entries) {
  return std::min(16 * cuda::multiprocessorCount(), cuda::gridFor(n_entries, kPlaceThreads));
}

/// Up to so many chunks, blocks that write entries add up the counts before them; beyond, a scan
/// over the chunks comes first.
inline constexpr std::uint64_t kMaxAddedChunks = 4096;
/// Up to so many chunks, a run leaves its plan and zeros for the next one, which needs no setup
/// then. Blocks that leave zeros count themselves, which takes more of them as long as the setup
/// (H200, fzgpu f32 of 26 MB and of 512 MiB, 2026-11).
inline constexpr std::uint64_t kMaxKeptChunks = 1024;
static_assert(kMaxKeptChunks <= kMaxAddedChunks);

/// Why the encoder of a grid is faster stage by stage than in a fused group; null where the group
/// is. Every grid gives the same bytes in a group: a lane quantises the rows above and behind its
/// values again, which pays where rows allow whole loads. H200, 512 MiB, fzgpu, stages vs group in
/// us, 2026-11.
inline const char* fusedEncodeObstacle(std::size_t value_bytes, int ndim, std::size_t nx) {
  if (ndim == 1) {
    return nullptr;  // f32 409 vs 236, f64 278 vs 228
  }
  if (ndim == 2) {  // f32, rows of 8192 / 8191: 427 / 550 vs 273 / 426; f64: 294 / 325 vs 220 / 388
    return value_bytes == 4 || nx % 2 == 0
               ? nullptr
               : "reads the rows above again, which for doubles in rows of odd length takes longer "
                 "than stage by stage";
  }
  if (value_bytes == 4) {  // rows of 512 / 504 / 501: 444 / 468 / 512 vs 310 / 365 / 695
    return nx % 8 == 0 ? nullptr
                       : "reads the rows above and behind again, which takes longer than stage by "
                         "stage where rows are not a multiple of 8 values";
  }
  // Several whole rows in what a warp has. Rows of 512 / 504 / 501: 317 / 318 / 335 vs
  // 271 / 404 / 495.
  return std::has_single_bit(nx) && nx >= 128 && nx <= 1024
             ? nullptr
             : "reads the rows above and behind again, which for doubles takes longer than stage "
               "by stage unless rows have 128, 256, 512 or 1024 values";
}

}  // namespace fz::lorenzo_quant::device
