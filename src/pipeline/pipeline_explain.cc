#include <new>
#include <sstream>

#include "core/require.h"
#include "log.h"
#include "pipeline/compressor.h"
#include "pipeline/decode_plan.h"
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

std::string explainGroups(const CompressionDAG& dag, Fusion fusion) {
  if (fusion == Fusion::Off) {
    return "fusion is off: stages run one after the other\n";
  }
  std::string text;
  for (const FusedGroup& group : dag.getGroups()) {
    text += fmt::format("fused, one pass over memory: {}\n", group.name);
  }
  if (text.empty()) {
    text = "fused groups: none; stages run one after the other\n";
  }
  for (const std::string& note : dag.getFusionNotes()) {
    text += fmt::format("  not fused: {}\n", note);
  }
  return text;
}

}  // namespace

std::string Pipeline::explain() const try {
  const Impl& p = *impl_;
  std::string text =
      fmt::format("pipeline of {} stages, {} backend, {} threads, {}{}\n", p.entries.size(),
                  backendName(p.backend), getThreads() == 0 ? "all" : std::to_string(getThreads()),
                  p.strategy == MemoryStrategy::MINIMAL ? "MINIMAL" : "PREALLOCATE",
                  p.hint_bytes > 0 ? fmt::format(", inputs up to {} bytes", p.hint_bytes) : "");
  if (!p.finalized) {
    text += "not finalized\n";
    for (const Impl::Entry& entry : p.entries) {
      text += fmt::format("  {}{}\n", entry.name, describeStage(*entry.stage));
    }
    return text;
  }
  for (const DAGNode* node : p.dag->getOrder()) {
    text += fmt::format("  level {}: {}{}\n", node->level, node->name, describeStage(*node->stage));
    for (const int id : node->input_buffer_ids) {
      text += fmt::format("    reads {}\n", p.dag->getBufferInfo(id).tag);
    }
  }
  text += "stored in the frame, in this order:\n";
  for (const int id : p.sinks) {
    text += fmt::format("  {}\n", p.dag->getBufferInfo(id).tag);
  }
  text += fmt::format("header of {} bytes; {} buffers share {} regions\n", p.header_bytes,
                      p.dag->getBufferCount(), p.dag->getColorRegionCount());
  text += fmt::format(
      "runs {}{}\n",
      p.backend == Backend::CUDA ? "on one stream" : "stage after stage, each over all threads",
      p.n_streams > 1 ? fmt::format(" ({} streams were asked for)", p.n_streams) : std::string());
  text += explainGroups(*p.dag, p.context.fusion);
  if (p.decoder != nullptr && p.decoder->plan() != nullptr) {
    text += "the frame decoded last:\n" + explainGroups(p.decoder->plan()->dag, p.context.fusion);
  }
  return text;
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
