#pragma once

#include <string>
#include <vector>

namespace fz::bench {

/// Whole calls on one small field (3600 x 1800 float32, 26 MB): wall clock from the call to its
/// return, when the size is known on the host.
struct SmallCallRow {
  std::string name;
  double ratio = 0;
  double compress_us = 0;
  double decompress_us = 0;
  double compress_gbs = 0;
  double decompress_gbs = 0;
};

/// Presets of the fused families whose name has `only` in it, with ordinary calls and with a graph.
std::vector<SmallCallRow> measureSmallCalls(const std::string& only, int runs);
void printSmallCalls(const std::vector<SmallCallRow>& rows);

}  // namespace fz::bench
