#include "pipeline/perf.h"

#include <fmt/format.h>
#include <ostream>

namespace fz {

namespace {

float gigabytesPerSecond(std::size_t n_bytes, float elapsed_ms) {
  return elapsed_ms > 0 ? static_cast<float>(n_bytes) / elapsed_ms * 1e-6f : 0.0f;
}

}  // namespace

float StageTimingResult::throughput_gbs() const noexcept {
  return gigabytesPerSecond(input_bytes, elapsed_ms);
}
float PipelinePerfResult::throughput_gbs() const noexcept {
  return gigabytesPerSecond(is_compress ? input_bytes : output_bytes, dag_elapsed_ms);
}
float PipelinePerfResult::pipeline_throughput_gbs() const noexcept {
  return gigabytesPerSecond(is_compress ? input_bytes : output_bytes, host_elapsed_ms);
}

void PipelinePerfResult::print(std::ostream& out) const {
  out << fmt::format("{:<18} {:>5} {:>10} {:>14} {:>14} {:>8}\n",
                     is_compress ? "compress" : "decompress", "level", "ms", "bytes in",
                     "bytes out", "GB/s");
  for (const StageTimingResult& row : stages) {
    out << fmt::format("{:<18} {:>5} {:>10.3f} {:>14} {:>14} {:>8.2f}\n", row.name, row.level,
                       row.elapsed_ms, row.input_bytes, row.output_bytes, row.throughput_gbs());
  }
  out << fmt::format("{:<18} {:>5} {:>10.3f} {:>14} {:>14} {:>8.2f}\n", "stages", "",
                     dag_elapsed_ms, input_bytes, output_bytes, throughput_gbs());
  if (device_elapsed_ms > 0.0f) {
    out << fmt::format(
        "{:<18} {:>5} {:>10.3f} {:>14} {:>14} {:>8.2f}\n", "whole, on device", "",
        device_elapsed_ms, input_bytes, output_bytes,
        gigabytesPerSecond(is_compress ? input_bytes : output_bytes, device_elapsed_ms));
  }
  out << fmt::format("{:<18} {:>5} {:>10.3f} {:>14} {:>14} {:>8.2f}\n", "whole call", "",
                     host_elapsed_ms, input_bytes, output_bytes, pipeline_throughput_gbs());
}

}  // namespace fz
