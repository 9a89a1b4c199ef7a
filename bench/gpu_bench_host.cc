#include "gpu_bench_host.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "bench_common.h"
#include "cuda_check.h"
#include "fz/host_api.h"
#include "fz/presets.h"

namespace fz::bench {

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kSizes[] = {kMib / 16, kMib / 4,  kMib,      4 * kMib,
                                  16 * kMib, 64 * kMib, 512 * kMib};
constexpr std::size_t kLongBytes = 64 * kMib;  // fewer runs from here on

/// Waves with a little noise, as far as the rows go.
std::vector<float> makeHostField(std::size_t n_values) {
  constexpr std::size_t kRow = 4096;
  std::vector<float> values(n_values);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < n_values; ++i) {
    state = state * 1664525u + 1013904223u;
    const double x = static_cast<double>(i % kRow) * 0.004;
    const std::size_t row = i / kRow;
    const double y = static_cast<double>(row) * 0.003;
    values[i] = static_cast<float>(280.0 + 20.0 * std::sin(x) * std::cos(y) +
                                   0.02 * static_cast<double>(state >> 16) / 65536.0);
  }
  return values;
}

class PinnedFloats {
 public:
  explicit PinnedFloats(const std::vector<float>& values) : n_(values.size()) {
    FZ_CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), n_ * sizeof(float)));
    std::copy(values.begin(), values.end(), data_);
  }
  PinnedFloats(const PinnedFloats&) = delete;
  PinnedFloats& operator=(const PinnedFloats&) = delete;
  ~PinnedFloats() { cudaFreeHost(data_); }
  std::span<float> values() const { return {data_, n_}; }

 private:
  std::size_t n_;
  float* data_ = nullptr;
};

/// Both ways, from and to pinned memory.
std::pair<double, double> measureBus(std::span<float> values, int runs) {
  const std::size_t n_bytes = values.size_bytes();
  void* const pinned = values.data();
  void* device = nullptr;
  FZ_CUDA_CHECK(cudaMalloc(&device, n_bytes));
  const double in = medianSeconds(
      runs, [&] { FZ_CUDA_CHECK(cudaMemcpy(device, pinned, n_bytes, cudaMemcpyDefault)); });
  const double out = medianSeconds(
      runs, [&] { FZ_CUDA_CHECK(cudaMemcpy(pinned, device, n_bytes, cudaMemcpyDefault)); });
  cudaFree(device);
  return {1e3 * in, 1e3 * out};
}

HostRow::Times measureOn(Backend backend,
                         CompressOptions options,
                         std::span<const float> values,
                         std::span<float> result,
                         int runs) {
  options.backend = backend;
  DecompressOptions back;
  back.backend = backend;
  const Frame frame = compress(values, options);
  return {1e3 * medianSeconds(runs, [&] { compress(values, options); }),
          1e3 * medianSeconds(runs,
                              [&] {
                                decompressInto(
                                    frame.bytes(), [&](std::size_t) { return result.data(); },
                                    back);
                              }),
          1e3 * medianSeconds(runs, [&] { decompress(frame, back); })};
}

}  // namespace

std::vector<HostRow> measureHostCalls(const std::string& only, int runs) {
  std::vector<HostRow> rows;
  for (const std::size_t n_bytes : kSizes) {
    const int n_runs = n_bytes >= kLongBytes ? runs : 5 * runs;
    const std::vector<float> values = makeHostField(n_bytes / sizeof(float));
    std::vector<float> result(values.size());
    const PinnedFloats pinned_values(values);
    const PinnedFloats pinned_result(result);
    const auto [pinned_in_ms, pinned_out_ms] = measureBus(pinned_values.values(), n_runs);
    for (const Preset& preset : allPresets()) {
      if (std::string_view(preset.name).find(only) == std::string_view::npos) {
        continue;
      }
      CompressOptions options;
      options.preset = preset.name;
      options.error_bound = 0.05;
      options.mode = ErrorBoundMode::ABS;
      options.dims = {4096, values.size() / 4096, 1};
      options.backend = Backend::CUDA;
      HostRow row{
          std::string(preset.name), static_cast<double>(n_bytes) / static_cast<double>(kMib),
          static_cast<double>(n_bytes) / static_cast<double>(compress(values, options).size()),
          pinned_in_ms, pinned_out_ms};
      row.cuda = measureOn(Backend::CUDA, options, values, result, n_runs);
      row.pinned =
          measureOn(Backend::CUDA, options, pinned_values.values(), pinned_result.values(), n_runs);
      row.cpu = measureOn(Backend::CPU, options, values, result, n_runs);
      row.any = measureOn(Backend::Auto, options, values, result, n_runs);
      rows.push_back(row);
    }
  }
  return rows;
}

void print(const std::vector<HostRow>& rows) {
  fmt::print("host arrays, ms; % of a copy of pinned memory\n{:<20} {:>8} {:>6} {:>10}", "preset",
             "MiB", "ratio", "direction");
  for (const char* column :
       {"CUDA", "%", "pinned", "%", "CPU", "Auto", "fresh: CUDA", "CPU", "Auto"}) {
    fmt::print(" {:>11}", column);
  }
  fmt::print("\n");
  for (const HostRow& row : rows) {
    fmt::print(
        "{:<20} {:>8.3f} {:>6.2f} {:>10} {:>11.3f} {:>11.0f} {:>11.3f} {:>11.0f} {:>11.3f} {:>11.3f}\n",
        row.preset, row.mib, row.ratio, "compress", row.cuda.compress_ms,
        100 * row.pinned_in_ms / row.cuda.compress_ms, row.pinned.compress_ms,
        100 * row.pinned_in_ms / row.pinned.compress_ms, row.cpu.compress_ms, row.any.compress_ms);
    fmt::print(
        "{:<20} {:>8} {:>6} {:>10} {:>11.3f} {:>11.0f} {:>11.3f} {:>11.0f} {:>11.3f} {:>11.3f} {:>11.3f} "
        "{:>11.3f} {:>11.3f}\n",
        "", "", "", "decompress", row.cuda.decompress_ms,
        100 * row.pinned_out_ms / row.cuda.decompress_ms, row.pinned.decompress_ms,
        100 * row.pinned_out_ms / row.pinned.decompress_ms, row.cpu.decompress_ms,
        row.any.decompress_ms, row.cuda.fresh_ms, row.cpu.fresh_ms, row.any.fresh_ms);
  }
}

}  // namespace fz::bench
