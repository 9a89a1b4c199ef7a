#include "gpu_bench_small.h"

#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "bench_common.h"
#include "cuda_check.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"

namespace fz::bench {

namespace {

constexpr std::size_t kWidth = 3600;
constexpr std::size_t kHeight = 1800;
constexpr std::size_t kBytes = kWidth * kHeight * sizeof(float);

class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t n_bytes) { FZ_CUDA_CHECK(cudaMalloc(&memory_, n_bytes)); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(memory_); }
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

SmallCallRow measure(const Preset& preset, bool graph, int runs, cudaStream_t stream) {
  const Bytes field = makeField(DataType::FLOAT32, {kWidth, kHeight, 1});
  const DeviceBytes in(kBytes);
  const DeviceBytes out(kBytes);
  FZ_CUDA_CHECK(cudaMemcpy(in.get(), field.data(), kBytes, cudaMemcpyHostToDevice));
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  pipeline.enableGraphMode(graph);
  ConfigOverrides overrides;
  overrides.dims = {kWidth, kHeight, 1};
  overrides.params = {{"error_bound", "0.001"}, {"error_bound_mode", "ABS"}};
  pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name), overrides);
  if (graph) {
    pipeline.captureGraph(stream);
  }
  CompressedView frame;
  const double compress_s =
      medianSeconds(runs, [&] { frame = pipeline.compress(in.get(), kBytes, stream); });
  std::size_t n_out = 0;
  const double decompress_s = medianSeconds(runs, [&] {
    pipeline.decompress(frame.data, frame.n_bytes, out.get(), kBytes, &n_out, stream);
  });
  SmallCallRow row;
  row.name = std::string(preset.name) + (graph ? ", graph" : "");
  row.ratio = static_cast<double>(kBytes) / static_cast<double>(frame.n_bytes);
  row.compress_us = 1e6 * compress_s;
  row.decompress_us = 1e6 * decompress_s;
  row.compress_gbs = 1e-9 * kBytes / compress_s;
  row.decompress_gbs = 1e-9 * kBytes / decompress_s;
  return row;
}

}  // namespace

std::vector<SmallCallRow> measureSmallCalls(const std::string& only, int runs) {
  cudaStream_t stream = nullptr;
  FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<SmallCallRow> rows;
  for (const char* name : {"cuszp", "cuszp2", "cuszp3", "fzgpu", "pfpl"}) {
    if (std::string(name).find(only) == std::string::npos) {
      continue;
    }
    for (const bool graph : {false, true}) {
      rows.push_back(measure(*findPreset(name), graph, runs, stream));
    }
  }
  FZ_CUDA_CHECK(cudaStreamDestroy(stream));
  return rows;
}

void printSmallCalls(const std::vector<SmallCallRow>& rows) {
  fmt::print("{:<40} {:>7} {:>9} {:>9} {:>9} {:>9}\n", "whole call, 26 MB, wall clock", "ratio",
             "comp us", "decomp us", "comp GB/s", "dec GB/s");
  for (const SmallCallRow& row : rows) {
    fmt::print("{:<40} {:>7.2f} {:>9.1f} {:>9.1f} {:>9.0f} {:>9.0f}\n", row.name, row.ratio,
               row.compress_us, row.decompress_us, row.compress_gbs, row.decompress_gbs);
  }
}

}  // namespace fz::bench
