#include "gpu_bench_groups.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "bench_common.h"
#include "core/require.h"
#include "cuda_check.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"
#include "pipeline/dag.h"

namespace fz::bench {

namespace {

struct GroupChain {
  const char* name;
  const char* preset;  ///< or kPredictedPlanes
  int ndim;
  std::size_t width = 0;  ///< values of a row; 0: 8192 in two dimensions, 512 in three
};

/// LorenzoQuant before general byte coders, which no preset has.
constexpr const char* kPredictedPlanes = R"([[stage]]
name = "predict"
type = "LorenzoQuant"
input_type = "float32"
code_type = "uint16"
error_bound = 1e-3
zigzag_codes = true
[[stage]]
name = "shuffle"
type = "Bitshuffle"
element_width = 2
inputs = [{ from = "predict", port = "codes" }]
[[stage]]
name = "coder"
type = "RZE"
inputs = [{ from = "shuffle" }]
)";

constexpr GroupChain kChains[] = {
    {"1-D plain (block 32)", "cuszp", 1},
    {"1-D outlier (block 32)", "cuszp2", 1},
    {"1-D tiles plain", "cuszp3", 1},
    {"2-D plain", "cuszp3", 2},
    {"3-D plain", "cuszp3", 3},
    {"2-D outlier", "cuszp3_outlier", 2},
    {"3-D outlier", "cuszp3_outlier", 3},
    {"fixed (block 64)", "cuszp3_fixed", 1},
    {"PFPL 1-D", "pfpl", 1},
    {"speed 1-D", "speed", 1},
    {"FZ-GPU 1-D", "fzgpu", 1},
    {"FZ-GPU 2-D", "fzgpu", 2},
    {"FZ-GPU 3-D", "fzgpu", 3},
    {"FZ-GPU 2-D, rows of 8200", "fzgpu", 2, 8200},
    {"FZ-GPU 2-D, rows of 8191", "fzgpu", 2, 8191},
    {"FZ-GPU 3-D, rows of 504", "fzgpu", 3, 504},
    {"FZ-GPU 3-D, rows of 501", "fzgpu", 3, 501},
    {"LorenzoQuant, RZE 1-D", kPredictedPlanes, 1},
    {"LorenzoQuant, RZE 2-D", kPredictedPlanes, 2},
    {"LorenzoQuant, RZE 3-D", kPredictedPlanes, 3},
};

double medianOf(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

/// The device's time for all stages of the last call: the group's, where one was formed.
double stagesMs(const PipelinePerfResult& perf) {
  double ms = 0;
  for (const StageTimingResult& row : perf.stages) {
    ms += static_cast<double>(row.elapsed_ms);
  }
  return ms;
}

int ndimOf(const std::vector<std::size_t>& grid) {
  return grid[2] > 1 ? 3 : grid[1] > 1 ? 2 : 1;
}

class GroupBench {
 public:
  GroupBench(std::size_t n_bytes,
             const std::vector<std::size_t>& grid,
             int runs,
             double copy_traffic,
             cudaStream_t stream)
      : n_bytes_(n_bytes), grid_(grid), runs_(runs), copy_traffic_(copy_traffic), stream_(stream) {
    FZ_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&in_), n_bytes));
    FZ_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&out_), n_bytes));
  }
  GroupBench(const GroupBench&) = delete;
  GroupBench& operator=(const GroupBench&) = delete;
  ~GroupBench() {
    cudaFree(in_);
    cudaFree(out_);
  }

  GroupRow measure(const GroupChain& chain, DataType type) {
    upload(type);
    const std::array<std::size_t, 3> dims = dimsOf(chain, type);
    Pipeline pipeline(n_bytes_, MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    ConfigOverrides overrides;
    overrides.input_type = type;
    overrides.dims = dims;
    overrides.params.emplace_back("error_bound", "0.05");
    overrides.params.emplace_back("error_bound_mode", "ABS");
    const Preset* preset = findPreset(chain.preset);
    pipeline.loadConfigText(preset != nullptr ? std::string(preset->toml) : chain.preset,
                            chain.name, overrides);
    pipeline.enableProfiling(true);
    const std::size_t n_bytes = dims[0] * dims[1] * dims[2] * getDataTypeSize(type);
    std::vector<double> times[4];
    CompressedView view;
    std::size_t n_out = 0;
    for (int i = 0; i < runs_ + 2; ++i) {
      view = pipeline.compress(in_, n_bytes, stream_);
      const PipelinePerfResult encoding = pipeline.getLastPerfResult();
      pipeline.decompress(view.data, view.n_bytes, out_, n_bytes, &n_out, stream_);
      const PipelinePerfResult& decoding = pipeline.getLastPerfResult();
      if (i >= 2) {
        times[0].push_back(stagesMs(encoding));
        times[1].push_back(stagesMs(decoding));
        times[2].push_back(static_cast<double>(encoding.host_elapsed_ms));
        times[3].push_back(static_cast<double>(decoding.host_elapsed_ms));
      }
    }
    GroupRow row;
    row.name = fmt::format("{} {}", chain.name, dataTypeToString(type));
    row.preset = preset != nullptr ? chain.preset : "";
    row.is_fused = !pipeline.getFusedGroups().empty();
    row.n_bytes = n_bytes;
    row.ratio = static_cast<double>(n_bytes) / static_cast<double>(view.n_bytes);
    row.compress_ms = medianOf(times[0]);
    row.decompress_ms = medianOf(times[1]);
    row.compress_call_ms = medianOf(times[2]);
    row.decompress_call_ms = medianOf(times[3]);
    const double moved = static_cast<double>(n_bytes) + static_cast<double>(view.n_bytes);
    row.compress_share = 100 * moved / row.compress_ms * 1e3 / copy_traffic_;
    row.decompress_share = 100 * moved / row.decompress_ms * 1e3 / copy_traffic_;
    return row;
  }

 private:
  /// A smooth field with a little noise; one piece of it again and again.
  void upload(DataType type) {
    const std::size_t value_bytes = getDataTypeSize(type);
    if (type != type_) {
      const std::size_t n_piece = std::min<std::size_t>(n_bytes_, 32u << 20);
      const Bytes piece = makeField(
          type, {kSide, kSide, std::max<std::size_t>(1, n_piece / value_bytes / kSide / kSide)});
      for (std::size_t at = 0; at < n_bytes_; at += piece.size()) {
        FZ_CUDA_CHECK(cudaMemcpy(in_ + at, piece.data(), std::min(piece.size(), n_bytes_ - at),
                                 cudaMemcpyDefault));
      }
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      type_ = type;
    }
  }

  std::array<std::size_t, 3> dimsOf(const GroupChain& chain, DataType type) const {
    const std::size_t n = n_bytes_ / getDataTypeSize(type);
    if (chain.ndim == 1) {
      return {n, 1, 1};
    }
    if (!grid_.empty()) {
      FZ_REQUIRE(grid_[0] * grid_[1] * grid_[2] <= n, ErrorCode::kInvalidArgument,
                 "--dims hold more than the {} values of --mib", n);
      return {grid_[0], grid_[1], grid_[2]};
    }
    const std::size_t nx = chain.width != 0 ? chain.width : chain.ndim == 2 ? 16 * kSide : kSide;
    const std::size_t ny = chain.ndim == 2 ? n / nx : kSide;
    return {nx, ny, n / nx / ny};
  }

  static constexpr std::size_t kSide = 512;

  std::size_t n_bytes_;
  std::vector<std::size_t> grid_;  ///< extents of chains that have as many dimensions; or empty
  int runs_;
  double copy_traffic_;
  cudaStream_t stream_;
  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
  DataType type_ = DataType::UNKNOWN;
};

}  // namespace

void printGroupHead() {
  fmt::print("{:<34} {:>5} {:>6} | {:>8} {:>6} {:>8} {:>6} | {:>8} {:>8}\n",
             "chain: stages alone | whole call", "fused", "ratio", "comp us", "%", "decomp us", "%",
             "comp GB/s", "dec GB/s");
}

void print(const GroupRow& row) {
  const auto gbs = [&](double ms) { return static_cast<double>(row.n_bytes) / ms * 1e-6; };
  fmt::print("{:<34} {:>5} {:>6.2f} | {:>8.1f} {:>6.1f} {:>8.1f} {:>6.1f} | {:>8.0f} {:>8.0f}\n",
             row.name, row.is_fused ? "yes" : "no", row.ratio, 1e3 * row.compress_ms,
             row.compress_share, 1e3 * row.decompress_ms, row.decompress_share,
             gbs(row.compress_call_ms), gbs(row.decompress_call_ms));
  std::fflush(stdout);
}

std::vector<GroupRow> measureGroups(std::size_t n_bytes,
                                    const std::vector<std::size_t>& grid,
                                    int runs,
                                    const std::string& only,
                                    double copy_traffic,
                                    cudaStream_t stream) {
  GroupBench bench(n_bytes, grid, runs, copy_traffic, stream);
  std::vector<GroupRow> rows;
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    for (const GroupChain& chain : kChains) {
      const std::string name = fmt::format("{} {}", chain.name, dataTypeToString(type));
      const bool has_grid = grid.empty() || (chain.width == 0 && chain.ndim == ndimOf(grid));
      if (has_grid && name.find(only) != std::string::npos) {
        rows.push_back(bench.measure(chain, type));
        print(rows.back());
      }
    }
  }
  return rows;
}

}  // namespace fz::bench
