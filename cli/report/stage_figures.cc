#include "report/stage_figures.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <thread>

#include "api/host_run.h"
#include "format/frame_header.h"
#include "fz/params.h"
#include "fz/recorded_params.h"
#include "report/part.h"

namespace fz::report {

namespace {

/// Odd, so that the median is a run; the first one, which pays for fresh memory, is rarely it.
constexpr std::size_t kRuns = 3;
constexpr std::size_t kRunsOfSmall = 5;
constexpr std::size_t kSmallBytes = std::size_t{16} << 20;

std::string typesText(const std::vector<DataType>& types) {
  std::string text;
  for (const DataType type : types) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", dataTypeToString(type));
  }
  return text;
}

/// Stages, who feeds whom, and what is stored: as the header says.
void readGraph(const FrameHeader& header, const FrameInfo& info, StageFigures& figures) {
  const auto producerOf = [&](std::uint16_t buffer) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < header.stages.size(); ++i) {
      const FZMStageInfo& stage = header.stages[i];
      const auto end = stage.output_buffer_ids.begin() + stage.num_outputs;
      if (std::find(stage.output_buffer_ids.begin(), end, buffer) != end) {
        return i;
      }
    }
    return std::nullopt;
  };
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    StageRow row;
    row.name = info.stages[i].name;
    row.types = typesText(info.stages[i].types);
    for (const auto& [key, value] : recordedParams(info.stages[i])) {
      row.settings.push_back(fmt::format("{} = {}", key, toTomlText(value)));
    }
    for (std::size_t port = 0; port < header.stages[i].num_inputs; ++port) {
      // Stages stand in the order in which they run, so a source comes before.
      if (const auto from = producerOf(header.stages[i].input_buffer_ids[port]);
          from && *from < i) {
        row.sources.push_back(*from);
        row.level = std::max(row.level, figures.stages[*from].level + 1);
      }
    }
    figures.stages.push_back(std::move(row));
  }
  for (const FZMBufferEntry& entry : header.buffers) {
    const std::string_view name(entry.name.data(),
                                std::find(entry.name.begin(), entry.name.end(), '\0'));
    figures.segments.push_back(
        {std::string(name), entry.data_size, producerOf(entry.dag_buffer_id).value_or(0)});
  }
}

/// "A + B" becomes {A, B}.
std::vector<std::string> partsOf(std::string_view name) {
  constexpr std::string_view kBetween = " + ";
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t next = name.find(kBetween, at);
    parts.emplace_back(name.substr(at, next == std::string_view::npos ? next : next - at));
    at = next == std::string_view::npos ? next : next + kBetween.size();
  }
  return parts;
}

/// Bytes between stages, from a decoding stage by stage: what the inverse of a stage gives is what
/// the stage took.
void takeDecodeRows(const std::vector<StageTimingResult>& rows, StageFigures& figures) {
  std::vector<bool> is_used(rows.size(), false);
  for (std::size_t i = figures.stages.size(); i-- > 0;) {
    StageRow& stage = figures.stages[i];
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (!is_used[k] && rows[k].name == stage.name) {
        is_used[k] = true;
        stage.decompress_ms = static_cast<double>(rows[k].elapsed_ms);
        stage.input_bytes = rows[k].output_bytes;
        break;
      }
    }
  }
  for (std::size_t i = 0; i < figures.stages.size(); ++i) {
    std::uint64_t n_bytes = 0;
    bool is_known = true;
    for (const SegmentRow& segment : figures.segments) {
      n_bytes += segment.stage == i ? segment.n_bytes : 0;
    }
    for (const StageRow& reader : figures.stages) {
      if (std::find(reader.sources.begin(), reader.sources.end(), i) != reader.sources.end()) {
        is_known = is_known && reader.sources.size() == 1 && reader.input_bytes.has_value();
        n_bytes += reader.input_bytes.value_or(0);
      }
    }
    if (is_known) {
      figures.stages[i].output_bytes = n_bytes;
    }
  }
}

/// Chains that a decoding ran as one pass; their names are those of stage types.
void takeDecodeGroups(const std::vector<StageTimingResult>& passes, StageFigures& figures) {
  std::vector<bool> is_used(figures.stages.size(), false);
  for (const StageTimingResult& pass : passes) {
    const std::vector<std::string> parts = partsOf(pass.name);
    std::vector<std::size_t> group;
    for (const std::string& part : parts) {
      for (std::size_t i = 0; i < figures.stages.size(); ++i) {
        if (!is_used[i] && figures.stages[i].name == part) {
          is_used[i] = true;
          group.push_back(i);
          break;
        }
      }
    }
    if (group.size() > 1 && group.size() == parts.size()) {
      figures.groups.push_back(std::move(group));
    }
  }
}

/// A pipeline's own names of its stages, as configurations give them, become those of the types.
void nameByType(Pipeline& pipeline, PipelinePerfResult& perf) {
  for (StageTimingResult& pass : perf.stages) {
    std::string name;
    for (const std::string& part : partsOf(pass.name)) {
      const std::vector<Stage*> stages = pipeline.getStages();
      const auto found = std::find_if(stages.begin(), stages.end(), [&](const Stage* stage) {
        return pipeline.getStageName(stage) == part;
      });
      name += (name.empty() ? "" : " + ") + (found != stages.end() ? (*found)->getName() : part);
    }
    pass.name = name;
  }
}

/// Runs a pipeline a few times; the figures of the run with the median time.
template <class F>
PipelinePerfResult runMeasured(Pipeline& pipeline, const Input& input, const F& run) {
  pipeline.enableProfiling(true);
  const std::size_t n_runs = input.original.bytes.size() <= kSmallBytes ? kRunsOfSmall : kRuns;
  std::vector<PipelinePerfResult> results;
  for (std::size_t i = 0; i < n_runs; ++i) {
    run();
    results.push_back(pipeline.getLastPerfResult());
  }
  std::sort(results.begin(), results.end(),
            [](const auto& a, const auto& b) { return a.host_elapsed_ms < b.host_elapsed_ms; });
  return results[n_runs / 2];
}

/// Nothing where the frame has other stages than the options: what they made was larger than what
/// another pipeline made without loss.
std::optional<PipelinePerfResult> runForwards(const Input& input,
                                              bool staged,
                                              StageFigures& figures) {
  HostCompression compression(input.original.type, input.original.bytes, *input.options,
                              staged ? Fusion::Off : Fusion::Auto);
  compression.keepPipeline();
  Pipeline& pipeline = compression.pipeline();
  PipelinePerfResult perf = runMeasured(pipeline, input, [&] { compression.run(); });
  if (pipeline.getStages().size() != figures.stages.size()) {
    return std::nullopt;
  }
  if (!staged) {
    for (const FusedGroup& group : pipeline.getFusedGroups()) {
      std::vector<std::size_t> stages;
      for (const auto& node : pipeline.getDAG()->getNodes()) {
        if (std::find(group.stages.begin(), group.stages.end(), node->name) != group.stages.end()) {
          stages.push_back(static_cast<std::size_t>(node->execution_order));
        }
      }
      std::sort(stages.begin(), stages.end());
      figures.groups.push_back(std::move(stages));
    }
  }
  nameByType(pipeline, perf);
  return perf;
}

PipelinePerfResult runBackwards(const Input& input, bool staged, StageFigures& figures) {
  Pipeline pipeline;
  if (staged) {
    pipeline.setFusion(Fusion::Off);
  }
  PipelinePerfResult perf = runMeasured(
      pipeline, input, [&] { HostDecompression(input.frame).on(pipeline, input.decode); });
  figures.backend = backendName(pipeline.getBackend());
  const std::size_t n_threads = pipeline.getThreads();
  figures.threads = fmt::format(
      "{}", n_threads == 0 ? std::max(1u, std::thread::hardware_concurrency()) : n_threads);
  return perf;
}

CallFigures callOf(const PipelinePerfResult& perf) {
  return {static_cast<double>(perf.host_elapsed_ms), perf.stages};
}

/// What stages are measured on: the field, or a part where stage by stage everything between stages
/// would take more memory than a large field may leave. Only whoever made the archive can make one
/// of a part; `part_frame` gets it. An archive of chunks has one already.
Input inputToMeasure(const Input& whole, Frame& part_frame) {
  Input input = whole;
  if (whole.chunk) {
    input.original = whole.chunk->original;
    input.frame = whole.chunk->frame.bytes();
    input.info = whole.chunk->info;
    if (whole.options && whole.info.bound) {
      input.options = optionsForPart(whole, input.original, whole.info.bound->requested);
    } else {
      input.options.reset();
    }
    return input;
  }
  if (whole.options && whole.info.bound) {
    input.original = middlePart(whole.original);
  }
  if (input.original.bytes.size() != whole.original.bytes.size()) {
    input.options = optionsForPart(whole, input.original, whole.info.bound->requested);
    part_frame = compress(input.original.type, input.original.bytes, *input.options);
    input.frame = part_frame.bytes();
    input.info = inspect(part_frame);
  }
  return input;
}

}  // namespace

StageFigures measureStages(const Input& whole) {
  Frame part_frame;
  Input input = inputToMeasure(whole, part_frame);
  if (input.info.isFallback()) {
    // Its stages are not those of the options, whose frame was dropped.
    input.options.reset();
  }
  StageFigures figures;
  figures.n_values = input.original.count();
  figures.field_bytes = input.original.bytes.size();
  figures.archive_bytes = input.frame.size();
  readGraph(readHeader(input.frame, input.frame.size()), input.info, figures);
  const PipelinePerfResult decoded = runBackwards(input, false, figures);
  figures.decompress = callOf(decoded);
  takeDecodeRows(runBackwards(input, true, figures).stages, figures);
  const auto whole_call = input.options ? runForwards(input, false, figures) : std::nullopt;
  if (!whole_call) {
    takeDecodeGroups(decoded.stages, figures);
    return figures;
  }
  figures.compress = callOf(*whole_call);
  const auto staged = runForwards(input, true, figures);
  if (staged && staged->stages.size() == figures.stages.size()) {
    for (std::size_t i = 0; i < figures.stages.size(); ++i) {
      figures.stages[i].compress_ms = static_cast<double>(staged->stages[i].elapsed_ms);
    }
  }
  return figures;
}

}  // namespace fz::report
