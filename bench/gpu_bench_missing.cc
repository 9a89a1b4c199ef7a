#include "gpu_bench_missing.h"

#include <algorithm>
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "api/missing_values.h"
#include "bench_common.h"
#include "cuda_check.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"
#include "pipeline/dag.h"

namespace fz::bench {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 20;

double medianOf(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Field and result on the device.
class DeviceArrays {
 public:
  explicit DeviceArrays(std::size_t n_bytes) : n_bytes_(n_bytes) {
    FZ_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&in_), n_bytes));
    FZ_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&out_), n_bytes));
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;
  ~DeviceArrays() {
    cudaFree(in_);
    cudaFree(out_);
  }
  /// The piece, again and again.
  void upload(const Bytes& piece) {
    for (std::size_t at = 0; at < n_bytes_; at += piece.size()) {
      FZ_CUDA_CHECK(cudaMemcpy(in_ + at, piece.data(), std::min(piece.size(), n_bytes_ - at),
                               cudaMemcpyDefault));
    }
  }
  std::size_t size() const { return n_bytes_; }
  std::uint8_t* in() { return in_; }
  std::uint8_t* out() { return out_; }

 private:
  std::size_t n_bytes_;
  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
};

struct Calls {
  double compress_ms = 0;
  double decompress_ms = 0;
  double ratio = 0;
  std::string stages;
};

std::string textOf(const PipelinePerfResult& perf) {
  std::string text;
  for (const StageTimingResult& row : perf.stages) {
    text += fmt::format(" {} {:.0f}", row.name, 1e3 * static_cast<double>(row.elapsed_ms));
  }
  return text;
}

Calls measure(const Preset& preset,
              const std::array<std::size_t, 3>& dims,
              bool masked,
              DeviceArrays& arrays,
              int runs,
              cudaStream_t stream) {
  Pipeline pipeline(arrays.size(), MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  ConfigOverrides overrides;
  overrides.input_type = DataType::FLOAT32;
  overrides.dims = dims;
  overrides.params.emplace_back("error_bound", "0.05");
  overrides.params.emplace_back("error_bound_mode", "ABS");
  pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name), overrides, false);
  if (masked) {
    addMask(pipeline, DataType::FLOAT32, {}, maskSettingsFor(pipeline, DataType::FLOAT32, {}, {}));
  }
  pipeline.finalize();
  std::vector<double> compressing;
  std::vector<double> decompressing;
  Calls calls;
  for (int i = 0; i < runs + 4; ++i) {
    pipeline.enableProfiling(i < 4 || i >= runs + 2);  // stages at last, by events of their own
    auto start = std::chrono::steady_clock::now();
    const CompressedView view = pipeline.compress(arrays.in(), arrays.size(), stream);
    const auto milliseconds = [&] {
      return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const double compress_ms = milliseconds();
    calls.stages = i >= runs + 2 ? " c:" + textOf(pipeline.getLastPerfResult()) : "";
    std::size_t n_out = 0;
    start = std::chrono::steady_clock::now();
    pipeline.decompress(view.data, view.n_bytes, arrays.out(), arrays.size(), &n_out, stream);
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    if (i >= 4 && i < runs + 2) {
      compressing.push_back(compress_ms);
      decompressing.push_back(milliseconds());
    }
    calls.stages += i >= runs + 2 ? "; d:" + textOf(pipeline.getLastPerfResult()) : "";
    calls.ratio = static_cast<double>(arrays.size()) / static_cast<double>(view.n_bytes);
  }
  calls.compress_ms = medianOf(compressing);
  calls.decompress_ms = medianOf(decompressing);
  return calls;
}

}  // namespace

void measureMissing(std::size_t n_bytes, int runs, const std::string& only, cudaStream_t stream) {
  const CoastFields fields = makeCoasts(std::min(n_bytes, kPieceBytes));
  const std::size_t n_pieces = std::max<std::size_t>(1, n_bytes / fields.filled.size());
  const std::array<std::size_t, 3> dims = {fields.dims[0], n_pieces * fields.dims[1], 1};
  DeviceArrays arrays(n_pieces * fields.filled.size());
  fmt::print("35 % NaN, {} x {}: compress us filled, NaN, % of the speed; the same decoding\n",
             dims[0], dims[1]);
  for (const Preset& preset : allPresets()) {
    if (std::string_view(preset.name).find(only) == std::string_view::npos) {
      continue;
    }
    try {
      arrays.upload(fields.filled);
      const Calls filled = measure(preset, dims, false, arrays, runs, stream);
      arrays.upload(fields.missing);
      const Calls missing = measure(preset, dims, true, arrays, runs, stream);
      fmt::print(
          "{:<20} {:>6.2f} {:>6.2f} | {:>7.0f} {:>7.0f} {:>5.1f} | {:>7.0f} {:>7.0f} {:>5.1f}\n   {}\n   {}\n",
          preset.name, filled.ratio, missing.ratio, 1e3 * filled.compress_ms,
          1e3 * missing.compress_ms, 100 * filled.compress_ms / missing.compress_ms,
          1e3 * filled.decompress_ms, 1e3 * missing.decompress_ms,
          100 * filled.decompress_ms / missing.decompress_ms, filled.stages, missing.stages);
    } catch (const std::exception& e) {
      fmt::print("{}: {}\n", preset.name, e.what());
    }
    std::fflush(stdout);
  }
}

}  // namespace fz::bench
