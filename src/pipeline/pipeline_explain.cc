#include <new>
#include <sstream>

#include "core/require.h"
#include "log.h"
#include "pipeline/compressor.h"
#include "pipeline/frame/decode_plan.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

std::string describeStage(const Stage& stage) {
  std::string text;
  for (const DataType type : stage.elementTypes()) {
    text += fmt::format("{}{}", text.empty() ? " <" : ", ", dataTypeToString(type));
  }
  text += text.empty() ? "" : ">";
  std::string settings;
  for (const Param& param : stage.paramTable().rows()) {
    settings += fmt::format("{}{} = {}", settings.empty() ? "" : ", ", param.key,
                            toTomlText(param.get(stage)));
  }
  return text + (settings.empty() ? "" : " (" + settings + ")");
}

std::string explainFusion(const Plan& plan, Fusion fusion) {
  if (fusion == Fusion::Off) {
    return "fusion is off: stages run one after the other\n";
  }
  std::string text;
  for (const Step* step : plan.fusedSteps()) {
    text += fmt::format("fused, one pass over memory: {}\n", step->name);
  }
  if (text.empty()) {
    text = "fused groups: none; stages run one after the other\n";
  }
  for (const std::string& obstacle : plan.obstacles()) {
    text += fmt::format("  not fused: {}\n", obstacle);
  }
  return text;
}

}  // namespace

std::string Pipeline::explain() const try {
  const Impl& p = *impl_;
  std::string text =
      fmt::format("pipeline of {} stages, {} backend, {} threads, {}{}\n", p.entries.size(),
                  backendName(p.backend), getThreads() == 0 ? "all" : std::to_string(getThreads()),
                  getMemoryStrategy() == MemoryStrategy::MINIMAL ? "MINIMAL" : "PREALLOCATE",
                  p.hint_bytes > 0 ? fmt::format(", inputs up to {} bytes", p.hint_bytes) : "");
  if (!p.finalized) {
    text += "not finalized\n";
    for (const Impl::Entry& entry : p.entries) {
      text += fmt::format("  {}{}\n", entry.name, describeStage(*entry.stage));
    }
    return text;
  }
  for (const DAGNode* node : p.engine->graph.order()) {
    text += fmt::format("  level {}: {}{}\n", node->level, node->name, describeStage(*node->stage));
    for (const int id : node->input_buffer_ids) {
      text += fmt::format("    reads {}\n", p.engine->graph.edge(id).tag);
    }
    if (const std::string note = node->stage->runNote(); !note.empty()) {
      text += fmt::format("    last run: {}\n", note);
    }
  }
  text += "stored in the frame, in this order:\n";
  for (const int id : p.writer->sinks()) {
    text += fmt::format("  {}\n", p.engine->graph.edge(id).tag);
  }
  text += fmt::format("header of {} bytes; {} buffers share {} regions\n", p.writer->headerBytes(),
                      p.engine->graph.edges().size(), p.engine->buffers.regionCount());
  text += fmt::format(
      "runs {}{}\n",
      p.backend == Backend::CUDA ? "on one stream" : "stage after stage, each over all threads",
      getNumStreams() > 1 ? fmt::format(" ({} streams were asked for)", getNumStreams())
                          : std::string());
  text += explainFusion(p.engine->plan, p.context.fusion);
  if (p.decoder != nullptr && p.decoder->plan() != nullptr) {
    text += "the frame decoded last:\n" +
            explainFusion(p.decoder->plan()->engine.plan, p.context.fusion);
  }
  return text;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::vector<FusedGroup> Pipeline::getFusedGroups() const try {
  std::vector<FusedGroup> groups;
  for (const Step* step : impl_->engine->plan.fusedSteps()) {
    FusedGroup& group = groups.emplace_back();
    group.name = step->name;
    for (const DAGNode* node : step->chain) {
      group.stages.push_back(node->name);
    }
  }
  return groups;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::printPipeline() const {
  // Line by line: the log has a limit per message.
  std::istringstream lines(explain());
  for (std::string line; std::getline(lines, line);) {
    FZ_PRINT("%s", line.c_str());
  }
}

}  // namespace fz
