#include <algorithm>
#include <fmt/format.h>

#include "bench_common.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"

namespace fz::bench {

namespace {

std::size_t fusedStages(Pipeline& pipeline) {
  std::size_t n = 0;
  for (const FusedGroup& group : pipeline.getFusedGroups()) {
    n += group.stages.size();
  }
  return n;
}

Row measure(const Preset& preset, DataType type, Fusion fusion, const Options& options) {
  const std::size_t n_values = options.n_bytes / getDataTypeSize(type);
  std::size_t edge = 1;
  while (edge * edge * edge < n_values) {
    edge *= 2;
  }
  const std::array<std::size_t, 3> dims = {edge, edge,
                                           std::max<std::size_t>(1, n_values / (edge * edge))};
  const Bytes field = makeField(type, dims);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.setThreads(options.threads);
  pipeline.setFusion(fusion);
  ConfigOverrides overrides;
  overrides.input_type = type;
  overrides.dims = options.in_1d ? std::array<std::size_t, 3>{n_values, 1, 1} : dims;
  overrides.params = {{"error_bound", "0.1"}, {"error_bound_mode", "ABS"}};
  pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name), overrides);
  Row row{.name = fmt::format(
              "{} {} {}, fusion {}, {} of {} stages in groups", preset.name, dataTypeToString(type),
              options.in_1d ? std::to_string(n_values)
                            : fmt::format("{}x{}x{}", dims[0], dims[1], dims[2]),
              fusionName(fusion), fusedStages(pipeline), pipeline.getStages().size())};
  row.memcpy_gbs = memcpyRate(field.size(), options.runs);
  void* frame = nullptr;
  std::size_t n_frame = 0;
  const double compress_s = medianSeconds(
      options.runs, [&] { pipeline.compress(field.data(), field.size(), &frame, &n_frame); });
  void* out = nullptr;
  std::size_t n_out = 0;
  const double decompress_s =
      medianSeconds(options.runs, [&] { pipeline.decompress(frame, n_frame, &out, &n_out); });
  row.ratio = static_cast<double>(field.size()) / static_cast<double>(n_frame);
  row.encode_gbs = static_cast<double>(field.size()) / compress_s * 1e-9;
  row.decode_gbs = static_cast<double>(field.size()) / decompress_s * 1e-9;
  return row;
}

}  // namespace

std::vector<Row> benchPresets(const Options& options) {
  std::vector<Row> rows;
  for (const Preset& preset : allPresets()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      if (std::string(preset.name).find(options.only) != std::string::npos) {
        for (const Fusion fusion : options.fusions) {
          rows.push_back(measure(preset, type, fusion, options));
        }
      }
    }
  }
  return rows;
}

}  // namespace fz::bench
