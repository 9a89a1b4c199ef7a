// Speed of every stage and every preset on a device, beside a device-to-device copy measured in the
// same run. A stage's share is (bytes it must read + bytes it must write) / time, over what the
// copy moves per second. Where an encoder must read its input twice both count; the row says so.
#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include <cuda_runtime_api.h>

#include "bench_common.h"
#include "bench_stage_runs.h"
#include "core/require.h"
#include "cuda_check.h"
#include "fz/error.h"
#include "fz/presets.h"
#include "fz/simple_stage.h"
#include "gpu_bench_batch.h"
#include "gpu_bench_groups.h"
#include "gpu_bench_host.h"
#include "gpu_bench_missing.h"
#include "gpu_bench_small.h"
#include "gpu_bench_stage.h"
#include "log.h"
#include "mem/mempool.h"
#include "pipeline/compressor.h"

namespace fz::bench {

namespace {

struct GpuRow {
  std::string name;
  double ratio = 0;
  double encode_gbs = 0;  // uncompressed bytes
  double decode_gbs = 0;
  double encode_share = 0;  // of the copy's traffic
  double decode_share = 0;
};

/// Median milliseconds of what f enqueues.
template <class F>
double medianMs(int runs, cudaStream_t stream, F f) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  FZ_CUDA_CHECK(cudaEventCreate(&begin));
  FZ_CUDA_CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < runs + 2; ++i) {
    FZ_CUDA_CHECK(cudaEventRecord(begin, stream));
    f();
    FZ_CUDA_CHECK(cudaEventRecord(end, stream));
    FZ_CUDA_CHECK(cudaEventSynchronize(end));
    float ms = 0;
    FZ_CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) {
      times.push_back(ms);
    }
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

struct Bench {
  std::size_t n_bytes = 512u << 20;
  int runs = 20;
  std::string only;
  std::vector<std::size_t> grid;      // extents of all runs in 3-D; empty: a cube
  std::vector<std::string> settings;  // of presets: KEY=VALUE
  std::string bound = "1e-3";         // of presets on such extents, a share of the range
  cudaStream_t stream = nullptr;
  double copy_traffic = 0;  // bytes read and written per second
  std::map<DataType, Bytes> values;

  void measureCopy() {
    DeviceBuffer from;
    DeviceBuffer to;
    from.reserve(n_bytes);
    to.reserve(n_bytes);
    FZ_CUDA_CHECK(cudaMemset(from.data(), 1, n_bytes));
    const double ms = medianMs(runs, stream, [&] {
      FZ_CUDA_CHECK(
          cudaMemcpyAsync(to.data(), from.data(), n_bytes, cudaMemcpyDeviceToDevice, stream));
    });
    copy_traffic = 2.0 * static_cast<double>(n_bytes) / ms * 1e3;
  }

  Data upload(DataType type) {
    if (values.count(type) == 0) {
      values[type] = makeValues(type, std::min(n_bytes, kPieceBytes));
    }
    return uploadPieces(values[type]);
  }
  /// Planes of a field of the extents that were given.
  Data uploadGrid() {
    const std::size_t plane_bytes = grid[0] * grid[1] * sizeof(float);
    const std::size_t n_planes = std::clamp<std::size_t>(kPieceBytes / plane_bytes, 1, grid[2]);
    return uploadPieces(makeField(DataType::FLOAT32, {grid[0], grid[1], n_planes}));
  }
  /// A piece again and again: making half a gigabyte on the host would take longer than the rest.
  Data uploadPieces(const Bytes& pieces) const {
    const std::size_t piece = std::min(n_bytes, pieces.size());
    Data data;
    data.n_bytes = n_bytes;
    std::uint8_t* to = data.buffer.reserve(n_bytes);
    for (std::size_t at = 0; at < n_bytes; at += piece) {
      FZ_CUDA_CHECK(
          cudaMemcpy(to + at, pieces.data(), std::min(piece, n_bytes - at), cudaMemcpyDefault));
    }
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    return data;
  }

  std::array<std::size_t, 3> dimsFor(const StageRun& run, DataType type) const {
    const std::size_t n = n_bytes / getDataTypeSize(type);
    if (run.dims[2] > 1 && !grid.empty()) {
      FZ_REQUIRE(grid[0] * grid[1] * grid[2] <= n, ErrorCode::kInvalidArgument,
                 "--dims hold more than the {} values of --mib", n);
      return {grid[0], grid[1], grid[2]};
    }
    if (run.dims[2] > 1) {
      const auto side = static_cast<std::size_t>(std::lround(std::cbrt(static_cast<double>(n))));
      return {side, side, n / side / side};
    }
    return {8192, n / 8192, 1};
  }

  GpuRow measure(const StageRun& run) {
    MemoryPoolConfig config;
    config.backend = Backend::CUDA;
    MemoryPool pool(config);
    const DataType first = run.before.empty() ? run.types[0] : parseTypes(run.before[0]).at(0);
    std::vector<Data> data;
    data.push_back(upload(first));
    for (const std::string& name : run.before) {
      const auto stage = makeStage(name.substr(0, name.find(':')), parseTypes(name));
      auto& simple = dynamic_cast<SimpleStage&>(*stage);
      StageRunner before(simple, pool, stream);
      before.settle(data);
      before.takeSizes();
      std::vector<Data> next;
      next.push_back(std::move(before.out()[0]));
      data = std::move(next);
    }
    const auto stage = makeStage(run.stage, run.types);
    auto& simple = dynamic_cast<SimpleStage&>(*stage);
    for (const auto& [key, text] : run.params) {
      setParamFromText(*stage, key, text);
    }
    GpuRow row{.name = labelOf(run) + (run.n_encode_reads == 2 ? " (reads twice)" : "")};
    if (run.dims[0] > 0) {
      const auto dims = dimsFor(run, run.types[0]);
      stage->setDims(dims);
      data[0].n_bytes = dims[0] * dims[1] * dims[2] * getDataTypeSize(run.types[0]);
    }
    const auto in_bytes = static_cast<double>(data[0].n_bytes);
    StageRunner encoder(simple, pool, stream);
    encoder.settle(data);
    const auto out_bytes = static_cast<double>(encoder.outBytes());
    encoder.takeSizes();
    const double encode_ms = medianMs(runs, stream, [&] { encoder.enqueue(); });
    simple.setInverse(true);
    StageRunner decoder(simple, pool, stream);
    decoder.settle(encoder.out());
    const double decode_ms = medianMs(runs, stream, [&] { decoder.enqueue(); });
    row.ratio = in_bytes / out_bytes;
    row.encode_gbs = in_bytes / encode_ms * 1e-6;
    row.decode_gbs = in_bytes / decode_ms * 1e-6;
    const double encode_traffic = run.n_encode_reads * in_bytes + out_bytes;
    row.encode_share = 100 * encode_traffic / encode_ms * 1e3 / copy_traffic;
    row.decode_share = 100 * (in_bytes + out_bytes) / decode_ms * 1e3 / copy_traffic;
    return row;
  }

  GpuRow measurePreset(const Preset& preset, DataType type) {
    Data data = grid.empty() ? upload(type) : uploadGrid();
    Pipeline pipeline(n_bytes, MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    ConfigOverrides overrides;
    overrides.input_type = type;
    overrides.dims = {n_bytes / getDataTypeSize(type), 1, 1};
    overrides.params.emplace_back("error_bound", grid.empty() ? "0.01" : bound);
    overrides.params.emplace_back("error_bound_mode", grid.empty() ? "ABS" : "NOA");
    if (!grid.empty()) {
      overrides.dims = {grid[0], grid[1], grid[2]};
    }
    for (const std::string& setting : settings) {
      const std::size_t at = setting.find('=');
      FZ_REQUIRE(at != std::string::npos, ErrorCode::kInvalidArgument, "not KEY=VALUE: {}",
                 setting);
      overrides.params.emplace_back(setting.substr(0, at), setting.substr(at + 1));
    }
    pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name), overrides);
    CompressedView view = pipeline.compress(data.buffer.data(), n_bytes, stream);
    const double encode_ms = medianMs(
        runs, stream, [&] { view = pipeline.compress(data.buffer.data(), n_bytes, stream); });
    DeviceBuffer out;
    out.reserve(n_bytes);
    std::size_t n_out = 0;
    const double decode_ms = medianMs(runs, stream, [&] {
      pipeline.decompress(view.data, view.n_bytes, out.data(), n_bytes, &n_out, stream);
    });
    const auto in_bytes = static_cast<double>(n_bytes);
    const auto moved = in_bytes + static_cast<double>(view.n_bytes);
    return {fmt::format("{} {}", preset.name, dataTypeToString(type)),
            in_bytes / static_cast<double>(view.n_bytes),
            in_bytes / encode_ms * 1e-6,
            in_bytes / decode_ms * 1e-6,
            100 * moved / encode_ms * 1e3 / copy_traffic,
            100 * moved / decode_ms * 1e3 / copy_traffic};
  }
};

void printHead(const std::string& title) {
  fmt::print("{:<72} {:>7} {:>9} {:>9} {:>6} {:>6}\n", title, "ratio", "enc GB/s", "dec GB/s",
             "enc %", "dec %");
}

void print(const GpuRow& row) {
  fmt::print("{:<72} {:>7.2f} {:>9.0f} {:>9.0f} {:>6.1f} {:>6.1f}\n", row.name, row.ratio,
             row.encode_gbs, row.decode_gbs, row.encode_share, row.decode_share);
  std::fflush(stdout);
}

/// Prints the rows as they come; `failed` is set where a stage throws.
std::vector<GpuRow> measureStages(Bench& bench, bool& failed) {
  printHead("stage");
  std::vector<GpuRow> rows;
  for (const StageRun& stage_run : stageRuns()) {
    if (labelOf(stage_run).find(bench.only) == std::string::npos) {
      continue;
    }
    try {
      rows.push_back(bench.measure(stage_run));
      print(rows.back());
    } catch (const std::exception& e) {
      fmt::print("{}: {}\n", labelOf(stage_run), e.what());
      failed = true;
    }
  }
  return rows;
}

std::vector<GpuRow> measurePresets(Bench& bench) {
  printHead("preset, whole call (frame, checksums, readback)");
  std::vector<GpuRow> rows;
  for (const Preset& preset : allPresets()) {
    if (std::string(preset.name).find(bench.only) != std::string::npos) {
      rows.push_back(bench.measurePreset(preset, DataType::FLOAT32));
      print(rows.back());
    }
  }
  return rows;
}

nlohmann::json toJson(const std::vector<GpuRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const GpuRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"ratio", row.ratio},
                    {"encode_gbs", row.encode_gbs},
                    {"decode_gbs", row.decode_gbs},
                    {"encode_percent_of_copy", row.encode_share},
                    {"decode_percent_of_copy", row.decode_share}});
  }
  return list;
}

nlohmann::json toJson(const std::vector<GroupRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const GroupRow& row : rows) {
    const auto gbs = [&](double ms) { return static_cast<double>(row.n_bytes) / ms * 1e-6; };
    list.push_back({{"name", row.name},
                    {"preset", row.preset},
                    {"is_fused", row.is_fused},
                    {"ratio", row.ratio},
                    {"compress_gbs", gbs(row.compress_ms)},
                    {"decompress_gbs", gbs(row.decompress_ms)},
                    {"compress_percent_of_copy", row.compress_share},
                    {"decompress_percent_of_copy", row.decompress_share},
                    {"compress_call_gbs", gbs(row.compress_call_ms)},
                    {"decompress_call_gbs", gbs(row.decompress_call_ms)}});
  }
  return list;
}

nlohmann::json toJson(const std::vector<SmallCallRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const SmallCallRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"ratio", row.ratio},
                    {"compress_us", row.compress_us},
                    {"decompress_us", row.decompress_us},
                    {"compress_gbs", row.compress_gbs},
                    {"decompress_gbs", row.decompress_gbs}});
  }
  return list;
}

void addVerbose(CLI::App& app) {
  app.add_flag_callback(
      "--verbose", [] { Logger::enableStderr(); }, "what the library has to say");
}

int run(int argc, char** argv) {
  CLI::App app{"Speed on a device; % is of a device-to-device copy in the same run."};
  Bench bench;
  std::size_t megabytes = 512;
  std::string json_path;
  app.add_option("--mib", megabytes, "size of the data in MiB")->capture_default_str();
  app.add_option("--runs", bench.runs, "runs per figure; the median counts")->capture_default_str();
  app.add_option("--only", bench.only, "part of a name");
  app.add_option(
         "--dims", bench.grid,
         "extents X,Y,Z of the stages in 3-D, else a cube of --mib; and of --groups. Presets "
         "get a field of all --mib with them, else a line")
      ->expected(3)
      ->delimiter(',');
  app.add_option("--bound", bench.bound, "of presets with --dims, a share of the range")
      ->capture_default_str();
  app.add_option("--set", bench.settings, "of presets: KEY=VALUE, such as plan=iso");
  bool groups_only = false;
  app.add_flag("--groups", groups_only, "fused chains only: the group alone and the whole call");
  bool small_only = false;
  app.add_flag("--small", small_only, "whole calls on a field of 26 MB only");
  bool missing_only = false;
  app.add_flag("--missing", missing_only,
               "what missing values cost presets: whole calls, beside the same field filled");
  addVerbose(app);
  bool batch_only = false;
  app.add_flag("--batch", batch_only, "1,024 fields of 256 KiB beside one of 256 MiB");
  bool host_only = false;
  app.add_flag("--host", host_only, "arrays of the host: CUDA, CPU and what Auto takes");
  app.add_option("--json", json_path, "write the figures to this file as well");
  CLI11_PARSE(app, argc, argv);
  bench.n_bytes = megabytes << 20;
  FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
  bench.measureCopy();
  bool failed = false;
  fmt::print("copy: {:.0f} GB/s of traffic, {} MiB\n", bench.copy_traffic * 1e-9, megabytes);
  nlohmann::json json = {{"copy_gbs", bench.copy_traffic * 1e-9}, {"mib", megabytes}};
  const auto measureGroupsAndCalls = [&] {
    if (!small_only) {
      printGroupHead();
      json["groups"] = toJson(measureGroups(bench.n_bytes, bench.grid, bench.runs, bench.only,
                                            bench.copy_traffic, bench.stream));
    }
    if (!groups_only) {
      constexpr int kRunsPerRun = 5;  // such a call takes microseconds
      const auto small = measureSmallCalls(bench.only, kRunsPerRun * bench.runs);
      printSmallCalls(small);
      json["small"] = toJson(small);
    }
  };
  const auto writeJson = [&] {
    if (!json_path.empty()) {
      std::ofstream(json_path) << json.dump(2) << '\n';
    }
  };
  if (batch_only) {
    print(measureBatches(bench.only, bench.runs));
    return 0;
  }
  if (host_only) {
    print(measureHostCalls(bench.only, bench.runs));
    return 0;
  }
  if (missing_only) {
    measureMissing(bench.n_bytes, bench.runs, bench.only, bench.stream);
    return 0;
  }
  if (groups_only || small_only) {
    measureGroupsAndCalls();
    writeJson();
    return 0;
  }
  const std::vector<GpuRow> stages = measureStages(bench, failed);
  const std::vector<GpuRow> presets = measurePresets(bench);
  measureGroupsAndCalls();
  json["stages"] = toJson(stages);
  json["presets"] = toJson(presets);
  writeJson();
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace fz::bench

int main(int argc, char** argv) {
  try {
    return fz::bench::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "fz_gpu_bench: {}\n", e.what());
    return 1;
  }
}
