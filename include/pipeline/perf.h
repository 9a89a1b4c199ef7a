#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace fz {

/// Time and bytes of one stage in the last profiled call.
struct StageTimingResult {
  std::string name;
  int level = 0;
  float elapsed_ms = 0.0f;
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;

  /// Input bytes per second in GB/s (1e9); 0 when nothing was measured.
  float throughput_gbs() const noexcept;  // NOLINT(readability-identifier-naming)
};

/// Slowest stage of each level.
struct LevelTimingResult {
  int level = 0;
  int parallelism = 0;
  float elapsed_ms = 0.0f;
};

/// One profiled compress() or decompress(). All times are of finished work.
struct PipelinePerfResult {
  bool is_compress = true;
  /// Wall clock of the whole call, frame assembly and checksums included.
  float host_elapsed_ms = 0.0f;
  /// On a device: from the first to the last work that the call gave its stream, by device events,
  /// waits between them included; 0 on the CPU.
  float device_elapsed_ms = 0.0f;
  /// Time in the stages alone.
  float dag_elapsed_ms = 0.0f;
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
  std::vector<StageTimingResult> stages;
  std::vector<LevelTimingResult> levels;

  /// Uncompressed bytes over dag_elapsed_ms and over host_elapsed_ms, in GB/s.
  float throughput_gbs() const noexcept;           // NOLINT(readability-identifier-naming)
  float pipeline_throughput_gbs() const noexcept;  // NOLINT(readability-identifier-naming)
  /// A table of the stages and the totals.
  void print(std::ostream& out) const;
};

}  // namespace fz
