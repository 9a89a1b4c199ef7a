#include <new>

#include "core/require.h"
#include "format/file_io.h"
#include "fz/stage_descriptor.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

std::string Pipeline::saveConfigText() const try {
  const Impl& p = *impl_;
  p.requireFinalized("saveConfig");
  std::string text = "[pipeline]\n";
  text += fmt::format("input_size = {}\n", p.hint_bytes);
  text += fmt::format("dims = [{}, {}, {}]\n", p.frame_settings.dims[0], p.frame_settings.dims[1],
                      p.frame_settings.dims[2]);
  text += fmt::format("memory_strategy = \"{}\"\n",
                      getMemoryStrategy() == MemoryStrategy::MINIMAL ? "MINIMAL" : "PREALLOCATE");
  text += fmt::format("pool_multiplier = {}\n", toTomlText(static_cast<double>(p.pool_multiplier)));
  text += fmt::format("num_streams = {}\n", getNumStreams());
  for (const Impl::Entry& entry : p.entries) {
    const StageDescriptor* descriptor = findStage(entry.stage->getStageTypeId());
    FZ_REQUIRE(
        descriptor != nullptr, ErrorCode::kUnsupported,
        "saveConfig: stage {} (id {}) has no registered name; register it with registerStage()",
        entry.name, entry.stage->getStageTypeId());
    text += fmt::format("\n[[stage]]\nname = {}\ntype = \"{}\"\n", toTomlText(entry.name),
                        descriptor->name);
    const std::vector<DataType> types = entry.stage->elementTypes();
    for (std::size_t i = 0; i < types.size() && i < descriptor->type_keys.size(); ++i) {
      text +=
          fmt::format("{} = \"{}\"\n", descriptor->type_keys[i].key, dataTypeToString(types[i]));
    }
    for (const Param& param : entry.stage->paramTable().rows()) {
      if (param.saved) {
        text += fmt::format("{} = {}\n", param.key, toTomlText(param.get(*entry.stage)));
      }
    }
    std::string inputs;
    for (const int id : entry.node->input_buffer_ids) {
      const BufferInfo& buffer = p.dag->getBufferInfo(id);
      if (buffer.producer_stage_id < 0) {
        continue;
      }
      const Impl::Entry& from = p.entries[static_cast<std::size_t>(buffer.producer_stage_id)];
      const std::string port =
          from.stage->getOutputNames()[static_cast<std::size_t>(buffer.producer_output_index)];
      inputs +=
          fmt::format("{}{{ from = {}{} }}", inputs.empty() ? "" : ", ", toTomlText(from.name),
                      port == "output" ? "" : ", port = " + toTomlText(port));
    }
    if (!inputs.empty()) {
      text += fmt::format("inputs = [{}]\n", inputs);
    }
  }
  return text;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::saveConfig(const std::string& path) const try {
  const std::string text = saveConfigText();
  writeFileAtomically(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
