#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fz/data_type.h"

/// Shared parts of the benchmark: timing, data, rows.
namespace fz::bench {

struct Options {
  std::size_t n_bytes = 64u << 20;
  std::size_t threads = 1;
  int runs = 9;
  std::string only;  ///< part of a name; empty: everything
};

/// One measured unit. Rates are of uncompressed bytes.
struct Row {
  std::string name;
  double ratio = 0;
  double encode_gbs = 0;
  double decode_gbs = 0;
  double memcpy_gbs = 0;  ///< one thread, measured right beside this row

  double encodeShare() const { return 100 * encode_gbs / memcpy_gbs; }
  double decodeShare() const { return 100 * decode_gbs / memcpy_gbs; }
};

/// Median time of `runs` calls after one warm-up.
template <class F>
double medianSeconds(int runs, F f) {
  f();
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

/// GB/s of a single-threaded memcpy of n_bytes between two buffers.
double memcpyRate(std::size_t n_bytes, int runs);

/// Data like those a stage meets in a pipeline: quantiser codes of a random walk for integers, the
/// walk itself for floats.
std::vector<std::uint8_t> makeValues(DataType type, std::size_t n_bytes);
/// A smooth 3-D field.
std::vector<std::uint8_t> makeField(DataType type, const std::array<std::size_t, 3>& dims);

std::vector<Row> benchStages(const Options& options);
std::vector<Row> benchPresets(const Options& options);

}  // namespace fz::bench
