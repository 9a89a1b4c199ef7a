#pragma once

#include <string>
#include <vector>

namespace fz::bench {

/// Arrays of the host through a device and on the CPU, beside copies of pinned memory of the same
/// size; medians in milliseconds.
struct HostRow {
  std::string preset;
  double mib;
  double ratio;
  double pinned_in_ms;   ///< the array to the device, from pinned memory
  double pinned_out_ms;  ///< and back
  struct Times {
    double compress_ms = 0;
    double decompress_ms = 0;  ///< into memory that the caller has used before
    double fresh_ms = 0;       ///< fz::decompress(), which takes memory for its result
  };
  Times cuda = {};
  Times pinned = {};  ///< the same with the caller's arrays in pinned memory; fresh_ms is unused
  Times cpu = {};
  Times any = {};  ///< Backend::Auto
};

/// Presets whose name has `only` in it: 1 to 512 MiB.
std::vector<HostRow> measureHostCalls(const std::string& only, int runs);
void print(const std::vector<HostRow>& rows);

}  // namespace fz::bench
