#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fz/stream.h"

namespace fz::bench {

/// A fused chain: the group alone, by device events, and the whole call.
struct GroupRow {
  std::string name;
  std::string preset;  // empty: a chain that no preset has
  bool is_fused = false;
  std::size_t n_bytes = 0;  // of the field
  double ratio = 0;
  double compress_ms = 0;
  double decompress_ms = 0;
  double compress_share = 0;  // of the copy's traffic, for bytes in and out
  double decompress_share = 0;
  double compress_call_ms = 0;
  double decompress_call_ms = 0;
};

/// Every chain whose name has `only` in it, on a smooth field of n_bytes; f32 and f64. A grid, if
/// not empty, is the extents, of the chains that have as many dimensions only.
std::vector<GroupRow> measureGroups(std::size_t n_bytes,
                                    const std::vector<std::size_t>& grid,
                                    int runs,
                                    const std::string& only,
                                    double copy_traffic,
                                    cudaStream_t stream);
void printGroupHead();
void print(const GroupRow& row);

}  // namespace fz::bench
