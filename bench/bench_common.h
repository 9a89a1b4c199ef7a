#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "fz/data_type.h"
#include "fz/fusion.h"

/// Shared parts of the benchmark: timing, data, rows.
namespace fz::bench {

/// Memory as a pipeline hands it to stages: on a cache line.
template <class T>
struct LineAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming)
  LineAllocator() = default;
  template <class U>
  explicit LineAllocator(const LineAllocator<U>& /*other*/) {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, std::size_t /*n*/) {
    ::operator delete (memory, std::align_val_t{64});
  }
  bool operator==(const LineAllocator&) const { return true; }
};
using Bytes = std::vector<std::uint8_t, LineAllocator<std::uint8_t>>;

struct Options {
  std::size_t n_bytes = 64u << 20;
  std::size_t threads = 1;
  int runs = 9;
  std::string only;                                           ///< part of a name; empty: everything
  std::vector<Fusion> fusions = {Fusion::Off, Fusion::Auto};  ///< of the presets
  bool in_1d = false;                                         ///< presets get data without dims
};

/// One measured unit. Rates are of uncompressed bytes.
struct Row {
  std::string name;
  double ratio = 0;
  double encode_gbs = 0;
  double decode_gbs = 0;
  double memcpy_gbs = 0;  ///< one thread, measured right beside this row

  /// Of what memcpy moves, in percent: bytes in and bytes out, over the time.
  double encodeShare() const { return shareOf(encode_gbs); }
  double decodeShare() const { return shareOf(decode_gbs); }

 private:
  double shareOf(double gbs) const { return 100 * gbs * (1 + 1 / ratio) / (2 * memcpy_gbs); }
};

/// A field of which 35 % are NaN, in the shape of coasts, and the same with its gaps filled
/// smoothly (noise is on the sea only).
struct CoastFields {
  std::array<std::size_t, 3> dims;
  Bytes filled;
  Bytes missing;
};
/// A square of up to n_bytes.
CoastFields makeCoasts(std::size_t n_bytes);

/// A preset on a field with missing values, and on the same field with its gaps filled. Best times
/// of whole calls.
struct MissingRow {
  struct Times {
    double compress_ms = 0;
    double decompress_ms = 0;
  };
  std::string name;
  Times filled = {};
  Times missing = {};
  double filled_ratio = 0;
  double missing_ratio = 0;
  double declared_ms =
      0;              ///< compressing the filled field, with a fill value that it does not have
  double ask_ms = 0;  ///< hasMissing() of the filled field, part of compress_ms

  /// Speed with missing values, in percent of that without.
  double compressShare() const { return 100 * filled.compress_ms / missing.compress_ms; }
  double decompressShare() const { return 100 * filled.decompress_ms / missing.decompress_ms; }
  /// What a field without missing values pays, in percent.
  double askCost() const { return 100 * ask_ms / (filled.compress_ms - ask_ms); }
  double declaredCost() const { return 100 * (declared_ms / filled.compress_ms - 1); }
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
Bytes makeValues(DataType type, std::size_t n_bytes);
/// A smooth 3-D field.
Bytes makeField(DataType type, const std::array<std::size_t, 3>& dims);

std::vector<Row> benchStages(const Options& options);
std::vector<Row> benchPresets(const Options& options);
std::vector<MissingRow> benchMissing(const Options& options);

}  // namespace fz::bench
