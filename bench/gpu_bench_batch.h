#pragma once

#include <string>
#include <vector>

namespace fz::bench {

/// Many small fields in one call, beside one field of their bytes; medians of wall clock in
/// milliseconds.
struct BatchRow {
  std::string name;  ///< preset and kind of bound
  double ratio = 0;
  struct Times {
    double compress_ms = 0;
    double decompress_ms = 0;
  };
  Times whole = {};      ///< one field in device memory
  Times batch = {};      ///< DeviceBatch
  Times singly = {};     ///< call by call
  Times host_cuda = {};  ///< compressBatch(), decompressBatchInto()
  Times host_cpu = {};
  std::size_t n_fused = 0;       ///< fields of a batch that were compressed at once
  std::size_t n_fused_back = 0;  ///< and decompressed
};

/// 1,024 fields of 256 KiB, for presets whose name has `only` in it.
std::vector<BatchRow> measureBatches(const std::string& only, int runs);
void print(const std::vector<BatchRow>& rows);

}  // namespace fz::bench
