#pragma once

#include "shared/host_device.h"

/// Launch shapes of the register kernels. Known when a kernel is compiled, so they go by what a
/// multiprocessor has since compute capability 8.0: 64 K registers, four schedulers, and shared
/// memory for about 20 warps with 4 KiB of staged values each.
namespace fz::adaptive_bitpack {

/// Coding warps of an encoder's thread block; the queue warp makes it a whole number for each
/// scheduler. H200, 512 MiB, 2-D f32, 2026-11: 20 warps 81 % of a copy; 24 spill and are slower.
FZ_HD constexpr unsigned encodeWarps(unsigned staging_bytes) {
  return staging_bytes <= 4096 ? 19 : 8;
}
/// Thread blocks of an encoder per multiprocessor.
FZ_HD constexpr unsigned encodeBlocks(unsigned staging_bytes) {
  return staging_bytes <= 4096 ? 1 : 2;
}

inline constexpr unsigned kDecodeWarps = 8;
/// Thread blocks of a decoder per multiprocessor. H200, 512 MiB, 2-D f32, 2026-11: 83 % of a copy
/// plain, 81 % with outliers.
FZ_HD constexpr unsigned decodeBlocks(unsigned slot_bytes, bool has_outliers) {
  return slot_bytes > 6144 ? 3 : has_outliers ? 4 : 5;
}

}  // namespace fz::adaptive_bitpack
