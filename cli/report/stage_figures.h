#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/perf.h"
#include "report/report.h"

namespace fz::report {

/// One stage, each by itself in turn.
struct StageRow {
  std::string name;
  std::string types;
  std::vector<std::string> settings;  ///< "key = value"
  std::vector<std::size_t> sources;   ///< stages before it; empty: it reads the field
  std::size_t level = 0;
  std::optional<double> compress_ms;
  std::optional<double> decompress_ms;
  std::optional<std::uint64_t> input_bytes;
  /// What it hands on and what it stores, where every part is known.
  std::optional<std::uint64_t> output_bytes;
};

/// What the archive stores.
struct SegmentRow {
  std::string port;
  std::uint64_t n_bytes = 0;
  std::size_t stage = 0;
};

/// The whole call as it normally runs: chains of stages as one pass where they allow it.
struct CallFigures {
  double whole_ms = 0.0;
  std::vector<StageTimingResult> passes;
};

struct StageFigures {
  std::string backend;
  std::string threads;
  // Of what was run: all of the field, or the middle part of a large one.
  std::size_t n_values = 0;
  std::size_t field_bytes = 0;
  std::size_t archive_bytes = 0;
  std::vector<StageRow> stages;
  std::vector<SegmentRow> segments;
  std::vector<std::vector<std::size_t>> groups;  ///< stages that run as one pass
  std::optional<CallFigures> compress;
  CallFigures decompress;
};

/// Runs the archive's pipeline forwards (when it is known how it was made) and backwards, as it is
/// and stage by stage.
StageFigures measureStages(const Input& input);

}  // namespace fz::report
