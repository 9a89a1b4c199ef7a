#include "pipeline_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

#include "failure.h"
#include "field_io.h"
#include "fz/bound_kind.h"
#include "fz/presets.h"
#include "setting_check.h"
#include "stage_spec.h"
#include "suggest.h"

namespace fz::cli {

namespace {

bool isBoundKey(std::string_view key) {
  return key == "error_bound" || key == "error_bound_mode";
}

void takeSettings(PipelineChoice& choice, const std::vector<std::string>& settings) {
  for (const std::string& text : settings) {
    const auto setting = parseSetting(text);
    if (choice.bound && isBoundKey(setting.first.substr(setting.first.rfind('.') + 1))) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("--set {} and -b both give the bound; leave one out", text));
    }
    choice.settings.push_back(setting);
  }
}

void takeStages(PipelineChoice& choice, const std::string& text) {
  for (const StageSpec& stage : parseStages(text)) {
    for (const StageArgument& argument : stage.arguments) {
      if (choice.bound && isBoundKey(argument.key)) {
        throw Failure(ExitCode::kUsage,
                      fmt::format("--stages '{}': character {}: {} and -b both give the bound; "
                                  "leave one out",
                                  text, argument.place, argument.key));
      }
    }
  }
  choice.stages = text;
  choice.name = "--stages";
}

void requireOne(const PipelineArguments& arguments) {
  std::string first;
  for (const auto& [option, is_given] :
       {std::pair("-c", !arguments.config.empty()),
        std::pair("--preset", !arguments.preset.empty()),
        std::pair("--stages", !arguments.stages.empty()), std::pair("--fast", arguments.fast),
        std::pair("--best", arguments.best)}) {
    if (!is_given) {
      continue;
    }
    if (!first.empty()) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("{} and {} both name a pipeline; leave one out", first, option));
    }
    first = option;
  }
}

/// The preset that the arguments come to; empty where another pipeline is named.
std::string chosenPreset(const PipelineArguments& arguments, const PipelineChoice& choice) {
  if (!arguments.config.empty() || !arguments.stages.empty()) {
    return {};
  }
  if (!arguments.preset.empty()) {
    return arguments.preset;
  }
  if (arguments.fast || arguments.best) {
    return arguments.fast ? "fast" : "best";
  }
  if (choice.is_lossless || (!choice.bound && !choice.target && choice.settings.empty())) {
    return std::string(kLossless);
  }
  return std::string(
      defaultPreset(choice.bound ? std::optional(choice.bound->mode) : std::nullopt).name);
}

bool setsBound(const PipelineChoice& choice) {
  return std::any_of(choice.settings.begin(), choice.settings.end(), [](const auto& setting) {
    return setting.first == "error_bound" || setting.first.ends_with(".error_bound");
  });
}

/// A chain with loss needs a bound as a preset does: by -b, by --set or in its brackets.
void requireStatedBound(const PipelineChoice& choice, const std::vector<BuiltStage>& stages) {
  if (choice.bound || choice.target || setsBound(choice)) {
    return;
  }
  for (const BuiltStage& stage : stages) {
    if (std::find(stage.chosen.begin(), stage.chosen.end(), "error_bound") != stage.chosen.end()) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("--stages: {} needs to know how much may be lost; give -b abs:E, "
                                "-b rel:E or -b range:E, or error_bound=E in its brackets",
                                stage.name));
    }
  }
}

/// What may be lost is for the user to say; a preset's own bound would be a guess.
void takePreset(const PipelineArguments& arguments, PipelineChoice& choice) {
  choice.name = chosenPreset(arguments, choice);
  checkPreset(choice.name);
  const bool has_bound = choice.bound || choice.target || setsBound(choice);
  if (choice.name == kLossless) {
    if (has_bound) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("-p lossless keeps every bit, and -b {} allows loss; leave one out",
                                arguments.bound));
    }
    choice.is_lossless_by_default = !choice.is_lossless && arguments.preset.empty();
    choice.is_lossless = true;
    return;
  }
  if (choice.is_lossless) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-b lossless keeps every bit, and '{}' is a preset with loss; leave "
                              "one out",
                              choice.name));
  }
  if (!has_bound) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("'{}' needs to know how much may be lost: -b abs:E in the unit of the "
                    "data, -b range:1e-3 of their range, -b rel:1e-3 of each value; or "
                    "-p lossless, which keeps every bit",
                    choice.name));
  }
}

}  // namespace

void addPipeline(CLI::App& app, PipelineArguments& arguments) {
  app.add_option("-b,--bound", arguments.bound,
                 "what may be lost: abs:E, rel:E or range:E, or a result to look for: psnr:DB, "
                 "ratio:R; or the word lossless, which is also what happens without -b")
      ->type_name("KIND:E");
  app.add_option("-p,--preset", arguments.preset,
                 fmt::format("fast, balanced, best, auto or lossless, or a family ('fz presets'); "
                             "else {}, for rel:E {}",
                             defaultPreset({}).name, defaultPreset(ErrorBoundMode::REL).name))
      ->type_name("NAME");
  addPurpose(app, arguments);
  addOwnPipeline(app, arguments);
}

void addPurpose(CLI::App& app, PipelineArguments& arguments) {
  app.add_flag("--fast", arguments.fast, "-p fast: near the speed of memory");
  app.add_flag("--best", arguments.best, "-p best: the smallest archives");
}

void addOwnPipeline(CLI::App& app, PipelineArguments& arguments) {
  app.add_option("-c,--config", arguments.config, "a pipeline of your own from a file")
      ->type_name("TOML");
  app.add_option("--stages", arguments.stages,
                 "a pipeline of your own in one line: stage(key=value)->stage")
      ->type_name("CHAIN");
  app.add_option("--set", arguments.settings,
                 "a setting of a stage: stage.key=value; may be repeated, see 'fz stages'")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--no-fallback", arguments.no_fallback,
               "keep what the stages make even where it is larger than the data stored without "
               "loss; else the smaller of the two is kept");
}

std::vector<std::string> presetNames() {
  constexpr std::size_t kByPurpose = 4;  // before lossless; the families follow
  std::vector<std::string> names;
  for (const Preset& preset : allPresets()) {
    names.emplace_back(preset.name);
  }
  names.insert(names.begin() + kByPurpose, std::string(losslessPreset().name));
  return names;
}

bool isByPurpose(std::string_view preset) {
  return preset == "fast" || preset == "balanced" || preset == "best" || preset == "auto" ||
         preset == kLossless;
}

void checkPreset(const std::string& name) {
  if (findPreset(name) != nullptr) {
    return;
  }
  const std::string hint = didYouMean(name, presetNames());
  throw Failure(ExitCode::kUsage, fmt::format("no preset '{}'{}", name,
                                              hint.empty() ? "; 'fz presets' lists them" : hint));
}

PipelineChoice choosePipeline(const PipelineArguments& arguments) {
  PipelineChoice choice;
  choice.has_fallback = !arguments.no_fallback;
  if (arguments.bound == kLossless) {
    choice.is_lossless = true;
  } else if (!arguments.bound.empty()) {
    choice.target = parseTarget(arguments.bound);
    if (!choice.target) {
      choice.bound = parseBound(arguments.bound);
    }
  }
  takeSettings(choice, arguments.settings);
  requireOne(arguments);
  if (!arguments.config.empty()) {
    const InputBytes bytes = readBytes(arguments.config);
    choice.name = arguments.config;
    choice.has_config = true;
    // The line break keeps an empty file from looking like no file.
    choice.config_toml = std::string(bytes.data(), bytes.data() + bytes.size()) + "\n";
  } else if (!arguments.stages.empty()) {
    takeStages(choice, arguments.stages);
  } else {
    takePreset(arguments, choice);
    return choice;
  }
  if (choice.is_lossless) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-b lossless is a pipeline of its own, and so is {}; leave one out",
                              choice.name));
  }
  return choice;
}

CompressOptions compressOptions(const PipelineChoice& choice, DataType type) {
  CompressOptions options;
  options.preset = choice.name;
  options.config_toml = choice.config_toml;
  if (!choice.stages.empty()) {
    const std::vector<BuiltStage> stages = buildStages(choice.stages, type);
    requireStatedBound(choice, stages);
    options.config_toml = stagesToToml(stages);
  }
  if (choice.bound) {
    options.error_bound = choice.bound->value;
    options.mode = choice.bound->mode;
  }
  options.params = choice.settings;
  options.lossless_fallback = choice.has_fallback;
  resolveSettings(options, type);
  return options;
}

void checkBoundKind(const PipelineChoice& choice, const FrameInfo& info) {
  if (choice.bound && choice.bound->mode == ErrorBoundMode::REL && info.bound &&
      !isPointwise(*info.bound)) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("-b rel bounds each value by its own size, but '{}' would bound all by {}, "
                    "from the largest; use -p pfpl, or -b abs or -b range",
                    choice.name, info.bound->absolute));
  }
}

}  // namespace fz::cli
