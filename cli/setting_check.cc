#include "setting_check.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "config/toml_read.h"
#include "failure.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"
#include "stage_spec.h"
#include "suggest.h"

namespace fz::cli {

namespace {

/// "stage.key" taken apart as the library does it; the stage is empty for a key alone.
struct Target {
  std::string stage;
  std::string key;
};

Target targetOf(const std::string& text) {
  const std::size_t dot = text.rfind('.');
  return dot == std::string::npos ? Target{"", text}
                                  : Target{text.substr(0, dot), text.substr(dot + 1)};
}

/// By its name in the configuration, or by its type as --stages takes it: rze, Adaptive-Bitpack.
bool isCalled(const LoadedStage& stage, const std::string& name) {
  const StageDescriptor* const type = findStageLoosely(name);
  return name.empty() || stage.name == name ||
         (type != nullptr && stage.stage->getName() == type->name);
}

/// The stages that a setting may mean. A name of the configuration goes before one of a type.
std::vector<const LoadedStage*> stagesFor(const LoadedConfig& config, const Target& target) {
  std::vector<const LoadedStage*> found;
  for (const LoadedStage& stage : config.stages) {
    if (!isCalled(stage, target.stage) || stage.stage->paramTable().find(target.key) == nullptr) {
      continue;
    }
    if (stage.name == target.stage) {
      return {&stage};
    }
    found.push_back(&stage);
  }
  return found;
}

std::string hintFor(const LoadedConfig& config, const std::string& text, const Target& target) {
  // A right key with a wrong stage is closer than any spelling.
  std::vector<std::string> same_key;
  std::vector<std::string> of_stage;
  std::vector<std::string> all;
  for (const LoadedStage& stage : config.stages) {
    for (const Param& param : stage.stage->paramTable().rows()) {
      const std::string key(param.key);
      const std::string by_type = fmt::format("{}.{}", stage.stage->getName(), key);
      const std::string by_name = target.stage.empty() ? key : stage.name + "." + key;
      all.push_back(by_name);
      if (!target.stage.empty()) {
        all.push_back(by_type);
        if (isCalled(stage, target.stage)) {
          of_stage.push_back(target.stage + "." + key);
        }
        if (key == target.key) {
          same_key.insert(same_key.end(), {by_type, by_name});
        }
      }
    }
  }
  if (!same_key.empty()) {
    const std::string best = closest(text, same_key);
    return fmt::format("; did you mean '{}'?", best.empty() ? same_key.back() : best);
  }
  return didYouMean(text, of_stage.empty() ? all : of_stage);
}

/// "predict (LorenzoQuant): error_bound, quant_radius; coder (Huffman): bklen"
std::string stagesText(const LoadedConfig& config) {
  std::string text;
  for (const LoadedStage& stage : config.stages) {
    std::string keys;
    for (const Param& param : stage.stage->paramTable().rows()) {
      keys += fmt::format("{}{}", keys.empty() ? "" : ", ", param.key);
    }
    text += fmt::format("{}{} ({}): {}", text.empty() ? "" : "; ", stage.name,
                        stage.stage->getName(), keys.empty() ? "none" : keys);
  }
  return text;
}

using Setting = std::pair<std::string, std::string>;

[[noreturn]] void failUnknown(const LoadedConfig& config,
                              const std::string& pipeline,
                              const Setting& setting) {
  const auto& [text, value] = setting;
  const Target target = targetOf(text);
  const std::string hint = hintFor(config, text, target);
  throw Failure(
      ExitCode::kUsage,
      fmt::format("--set {}={}: no stage{} has a setting '{}'{}{} the settings of '{}' are {}",
                  text, value, target.stage.empty() ? "" : " '" + target.stage + "'", target.key,
                  hint, afterHint(hint), pipeline, stagesText(config)));
}

[[noreturn]] void failAmbiguous(const std::vector<const LoadedStage*>& stages,
                                const std::string& key,
                                const Setting& setting) {
  std::string choices;
  for (const LoadedStage* stage : stages) {
    choices += fmt::format("{}{}.{}", choices.empty() ? "" : " or ", stage->name, key);
  }
  throw Failure(ExitCode::kUsage,
                fmt::format("--set {}={}: {} stages have this setting; write {}", setting.first,
                            setting.second, stages.size(), choices));
}

}  // namespace

void resolveSettings(CompressOptions& options, DataType type) {
  if (options.params.empty()) {
    return;
  }
  const Preset* preset = findPreset(options.preset);
  if (options.config_toml.empty() && preset == nullptr) {
    return;
  }
  ConfigOverrides overrides;
  overrides.input_type = type;
  LoadedConfig config;
  try {
    config =
        readConfig(options.config_toml.empty() ? std::string(preset->toml) : options.config_toml,
                   options.preset, overrides);
  } catch (const Error&) {
    return;
  }
  for (auto& [text, value] : options.params) {
    const Target target = targetOf(text);
    const std::vector<const LoadedStage*> found = stagesFor(config, target);
    if (found.empty()) {
      failUnknown(config, options.preset, {text, value});
    }
    if (found.size() > 1) {
      failAmbiguous(found, target.key, {text, value});
    }
    text = fmt::format("{}.{}", found.front()->name, target.key);
  }
}

}  // namespace fz::cli
