#include "gpu_bench_batch.h"

#include <cmath>
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "bench_common.h"
#include "cuda_check.h"
#include "fz/batch.h"
#include "fz/device_api.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"

namespace fz::bench {

namespace {

constexpr std::size_t kFields = 1024;
constexpr std::size_t kFieldBytes = std::size_t{256} << 10;
constexpr std::size_t kFieldValues = kFieldBytes / sizeof(float);
constexpr std::size_t kAllBytes = kFields * kFieldBytes;

class BatchMemoryOnDevice {
 public:
  explicit BatchMemoryOnDevice(std::size_t n_bytes) { FZ_CUDA_CHECK(cudaMalloc(&data_, n_bytes)); }
  BatchMemoryOnDevice(const BatchMemoryOnDevice&) = delete;
  BatchMemoryOnDevice& operator=(const BatchMemoryOnDevice&) = delete;
  ~BatchMemoryOnDevice() { cudaFree(data_); }
  std::uint8_t* at(std::size_t offset) const { return static_cast<std::uint8_t*>(data_) + offset; }

 private:
  void* data_ = nullptr;
};

/// Waves with a little noise; every field is a piece of 256 x 256 of them.
std::vector<float> makeBatchValues() {
  std::vector<float> values(kFields * kFieldValues);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const double x = static_cast<double>(i % 256) * 0.02;
    const double y = static_cast<double>(i / 256 % 4096) * 0.003;
    values[i] = static_cast<float>(280.0 + 20.0 * std::sin(x) * std::cos(y) +
                                   0.02 * static_cast<double>(state >> 16) / 65536.0);
  }
  return values;
}

CompressOptions batchOptions(const Preset& preset, ErrorBoundMode mode, std::size_t n_fields) {
  CompressOptions options;
  options.preset = preset.name;
  options.error_bound = mode == ErrorBoundMode::NOA ? 1e-3 : 0.05;
  options.mode = mode;
  options.dims = {256, 256 * n_fields, 1};
  options.backend = Backend::CUDA;
  return options;
}

/// What all measurements of one row share.
struct BatchData {
  std::vector<float> values = makeBatchValues();
  BatchMemoryOnDevice fields{kAllBytes};
  BatchMemoryOnDevice slots{2 * kAllBytes};
  BatchMemoryOnDevice back{kAllBytes};
  std::vector<float> host_back = std::vector<float>(values.size());
  cudaStream_t stream = nullptr;
};

BatchRow::Times measureWhole(const BatchData& data, const CompressOptions& options, int runs) {
  Pipeline pipeline;
  configure(pipeline, DataType::FLOAT32, options);
  DeviceCompressor compressor(pipeline, DataType::FLOAT32, options);
  CompressedView frame;
  BatchRow::Times times;
  times.compress_ms = 1e3 * medianSeconds(runs, [&] {
                        frame = compressor.compress(data.fields.at(0), kAllBytes, data.stream);
                      });
  std::size_t n_out = 0;
  times.decompress_ms = 1e3 * medianSeconds(runs, [&] {
                          pipeline.decompress(frame.data, frame.n_bytes, data.back.at(0), kAllBytes,
                                              &n_out, data.stream);
                        });
  return times;
}

BatchRow::Times measureSingly(const BatchData& data, const CompressOptions& options) {
  Pipeline pipeline;
  configure(pipeline, DataType::FLOAT32, options);
  DeviceCompressor compressor(pipeline, DataType::FLOAT32, options);
  CompressedView frame;
  BatchRow::Times times;
  times.compress_ms =
      1e3 * medianSeconds(2, [&] {
        for (std::size_t i = 0; i < kFields; ++i) {
          frame = compressor.compress(data.fields.at(i * kFieldBytes), kFieldBytes, data.stream);
        }
      });
  times.decompress_ms =
      1e3 * medianSeconds(2, [&] {
        for (std::size_t i = 0; i < kFields; ++i) {
          std::size_t n_out = 0;
          pipeline.decompress(frame.data, frame.n_bytes, data.back.at(i * kFieldBytes), kFieldBytes,
                              &n_out, data.stream);
        }
      });
  return times;
}

void measureDeviceBatch(const BatchData& data,
                        const CompressOptions& options,
                        int runs,
                        BatchRow& row) {
  DeviceBatch batch(DataType::FLOAT32, options);
  const std::size_t slot_bytes = (batch.slotBytes(kFieldBytes) + 255) / 256 * 256;
  std::vector<const void*> fields;
  std::vector<DeviceRoom> slots;
  std::vector<DeviceRoom> outputs;
  for (std::size_t i = 0; i < kFields; ++i) {
    fields.push_back(data.fields.at(i * kFieldBytes));
    slots.push_back({data.slots.at(i * slot_bytes), slot_bytes});
    outputs.push_back({data.back.at(i * kFieldBytes), kFieldBytes});
  }
  std::vector<FieldResult> results(kFields);
  row.batch.compress_ms = 1e3 * medianSeconds(runs, [&] {
                            batch.compress(fields, kFieldBytes, slots, results.data(), data.stream);
                          });
  row.n_fused = batch.fusedFields();
  std::vector<DeviceBytes> frames;
  std::size_t n_frame_bytes = 0;
  for (std::size_t i = 0; i < kFields; ++i) {
    frames.push_back({slots[i].data, results[i].n_bytes});
    n_frame_bytes += results[i].n_bytes;
  }
  row.ratio = static_cast<double>(kAllBytes) / static_cast<double>(n_frame_bytes);
  row.batch.decompress_ms = 1e3 * medianSeconds(runs, [&] {
                              batch.decompress(frames, outputs, results.data(), data.stream);
                            });
  row.n_fused_back = batch.fusedFields();
}

BatchRow::Times measureHostBatch(BatchData& data, CompressOptions options, Backend backend) {
  options.backend = backend;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.values.data());
  std::vector<BatchField> fields;
  for (std::size_t i = 0; i < kFields; ++i) {
    fields.push_back({DataType::FLOAT32, {bytes + i * kFieldBytes, kFieldBytes}, std::nullopt});
  }
  BatchRow::Times times;
  std::vector<BatchResult<Frame>> made;
  times.compress_ms = 1e3 * medianSeconds(3, [&] { made = compressBatch(fields, options); });
  std::vector<ByteView> frames;
  frames.reserve(made.size());
  for (const auto& frame : made) {
    frames.push_back(frame.get().bytes());
  }
  const auto memory = [&](std::size_t i, std::size_t) {
    return data.host_back.data() + i * kFieldValues;
  };
  times.decompress_ms =
      1e3 * medianSeconds(3, [&] { decompressBatchInto(frames, memory, {.backend = backend}); });
  return times;
}

}  // namespace

std::vector<BatchRow> measureBatches(const std::string& only, int runs) {
  BatchData data;
  FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&data.stream, cudaStreamNonBlocking));
  FZ_CUDA_CHECK(
      cudaMemcpy(data.fields.at(0), data.values.data(), kAllBytes, cudaMemcpyHostToDevice));
  FZ_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<BatchRow> rows;
  for (const Preset& preset : allPresets()) {
    if (std::string_view(preset.name).find(only) == std::string_view::npos) {
      continue;
    }
    for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
      BatchRow row;
      row.name = fmt::format("{} {}", preset.name, mode == ErrorBoundMode::ABS ? "abs" : "range");
      row.whole = measureWhole(data, batchOptions(preset, mode, kFields), runs);
      const CompressOptions options = batchOptions(preset, mode, 1);
      row.singly = measureSingly(data, options);
      measureDeviceBatch(data, options, runs, row);
      if (mode == ErrorBoundMode::ABS) {
        row.host_cuda = measureHostBatch(data, options, Backend::CUDA);
        row.host_cpu = measureHostBatch(data, options, Backend::CPU);
      }
      rows.push_back(row);
    }
  }
  FZ_CUDA_CHECK(cudaStreamDestroy(data.stream));
  return rows;
}

void print(const std::vector<BatchRow>& rows) {
  fmt::print("1,024 fields of 256 KiB, ms; % of one field of 256 MiB\n");
  fmt::print("{:<22} {:>6} {:>10} {:>8} {:>8} {:>4} {:>6} {:>9} {:>10} {:>9}\n", "preset", "ratio",
             "direction", "whole", "batch", "%", "fused", "singly", "host CUDA", "host CPU");
  const auto line = [](const char* name, double ratio, const char* direction, std::size_t n_fused,
                       const BatchRow& row, double BatchRow::Times::*ms) {
    fmt::print(
        "{:<22} {:>6.2f} {:>10} {:>8.3f} {:>8.3f} {:>4.0f} {:>6} {:>9.2f} {:>10.2f} {:>9.2f}\n",
        name, ratio, direction, row.whole.*ms, row.batch.*ms, 100 * row.whole.*ms / row.batch.*ms,
        n_fused, row.singly.*ms, row.host_cuda.*ms, row.host_cpu.*ms);
  };
  for (const BatchRow& row : rows) {
    line(row.name.c_str(), row.ratio, "compress", row.n_fused, row, &BatchRow::Times::compress_ms);
    line("", row.ratio, "decompress", row.n_fused_back, row, &BatchRow::Times::decompress_ms);
  }
}

}  // namespace fz::bench
