// From the header of a frame back to the configuration that its pipeline had.
#include <algorithm>

#include "c_api/handles.h"
#include "core/require.h"
#include "format/frame_header.h"
#include "fz/stage_descriptor.h"
#include "stage/stage_factory.h"

namespace fz::c_api {

namespace {

constexpr std::size_t kNone = SIZE_MAX;

/// `from = "s0", port = "codes"` for every input that another stage makes, but for stage `without`.
std::string inputsOf(const FrameHeader& header, const FZMStageInfo& record, std::size_t without) {
  std::string inputs;
  for (std::size_t i = 0; i < record.num_inputs; ++i) {
    for (std::size_t from = 0; from < header.stages.size(); ++from) {
      const FZMStageInfo& producer = header.stages[from];
      if (from == without) {
        continue;
      }
      const auto end = producer.output_buffer_ids.begin() + producer.num_outputs;
      const auto found =
          std::find(producer.output_buffer_ids.begin(), end, record.input_buffer_ids[i]);
      if (found == end) {
        continue;
      }
      const auto stage = makeStage(producer.stage_type, producer.stage_config.data(),
                                   producer.config_size, producer.stage_version);
      const auto port = static_cast<std::size_t>(found - producer.output_buffer_ids.begin());
      const std::vector<std::string> names = stage->getOutputNames();
      FZ_REQUIRE(port < names.size(), ErrorCode::kCorrupt, "frame: {} has {} outputs, not {}",
                 stage->getName(), names.size(), port + 1);
      inputs += fmt::format("{}{{ from = \"s{}\", port = {} }}", inputs.empty() ? "" : ", ", from,
                            toTomlText(names[port]));
    }
  }
  return inputs;
}

/// Inputs of all stages that this output is.
std::ptrdiff_t usesOf(const FrameHeader& header, std::uint16_t output_id) {
  std::ptrdiff_t n_uses = 0;
  for (const FZMStageInfo& record : header.stages) {
    const auto begin = record.input_buffer_ids.begin();
    n_uses += std::count(begin, begin + record.num_inputs, output_id);
  }
  return n_uses;
}

/// A Mask before the first stage, as front ends put it there: its field goes to one stage, its mask
/// to none. kNone: there is no such Mask.
std::size_t firstMask(const FrameHeader& header, const FrameInfo& info) {
  for (std::size_t i = 0; i < info.stages.size(); ++i) {
    const FZMStageInfo& record = header.stages[i];
    if (info.stages[i].name == "Mask" && record.num_outputs == 2 &&
        inputsOf(header, record, kNone).empty() &&
        usesOf(header, record.output_buffer_ids[0]) == 1 &&
        usesOf(header, record.output_buffer_ids[1]) == 0) {
      return i;
    }
  }
  return kNone;
}

/// What the frame says about a setting of a stage. Its description has the bound as the user gave
/// it. How a linear quantiser treats values that miss is not written down, but whether the frame
/// promises a bound is: Guarantee keeps the promise and writes the bytes of Throw where Throw
/// writes any.
ParamValue valueOf(const FrameInfo& info, const std::string& key, const ParamValue& stored) {
  if (info.bound && key == "error_bound") {
    return info.bound->requested;
  }
  if (info.bound && key == "error_bound_mode") {
    return std::string(errorBoundModeName(info.bound->mode));
  }
  if (key == "linear_policy") {
    return std::string(linearPolicyName(info.bound ? LinearPolicy::Guarantee : LinearPolicy::Wrap));
  }
  return stored;
}

}  // namespace

std::string configOfFrame(ByteView frame, bool with_mask) {
  const FrameHeader header = readHeader(frame, frame.size());
  const FrameInfo info = inspect(frame);
  const std::size_t without = with_mask ? kNone : firstMask(header, info);
  std::string text;
  if (info.ndim > 1) {
    text =
        fmt::format("[pipeline]\ndims = [{}, {}, {}]\n", info.dims[0], info.dims[1], info.dims[2]);
  }
  for (std::size_t i = 0; i < info.stages.size(); ++i) {
    if (i == without) {
      continue;
    }
    const FrameStageInfo& stage = info.stages[i];
    const StageDescriptor* descriptor = findStage(stage.id);
    FZ_REQUIRE(descriptor != nullptr, ErrorCode::kUnsupported, "frame: unknown stage {}", stage.id);
    text += fmt::format("\n[[stage]]\nname = \"s{}\"\ntype = \"{}\"\n", i, descriptor->name);
    for (std::size_t k = 0; k < stage.types.size() && k < descriptor->type_keys.size(); ++k) {
      text += fmt::format("{} = \"{}\"\n", descriptor->type_keys[k].key,
                          dataTypeToString(stage.types[k]));
    }
    for (const auto& [key, value] : stage.params) {
      const Param* param = descriptor->params().find(key);
      if (param != nullptr && param->saved) {
        text += fmt::format("{} = {}\n", key, toTomlText(valueOf(info, key, value)));
      }
    }
    if (const std::string inputs = inputsOf(header, header.stages[i], without); !inputs.empty()) {
      text += fmt::format("inputs = [{}]\n", inputs);
    }
  }
  return text;
}

}  // namespace fz::c_api
