#include "setting_check.h"

#include <algorithm>
#include <fmt/format.h>

#include "config/toml_read.h"
#include "failure.h"
#include "fz/presets.h"
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

bool isCalled(const LoadedStage& stage, const std::string& name) {
  return name.empty() || stage.name == name || stage.stage->getName() == name;
}

bool hasKey(const LoadedStage& stage, const std::string& key) {
  return stage.stage->paramTable().find(key) != nullptr;
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

}  // namespace

void checkSettings(const CompressOptions& options, DataType type) {
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
  for (const auto& [text, value] : options.params) {
    const Target target = targetOf(text);
    const bool is_known =
        std::any_of(config.stages.begin(), config.stages.end(), [&](const LoadedStage& stage) {
          return isCalled(stage, target.stage) && hasKey(stage, target.key);
        });
    if (!is_known) {
      const std::string hint = hintFor(config, text, target);
      throw Failure(
          ExitCode::kUsage,
          fmt::format("--set {}={}: no stage{} has a setting '{}'{}{} the settings of '{}' are {}",
                      text, value, target.stage.empty() ? "" : " '" + target.stage + "'",
                      target.key, hint, hint.empty() ? ";" : "", options.preset,
                      stagesText(config)));
    }
  }
}

}  // namespace fz::cli
