#include "pipeline_options.h"

#include <CLI/CLI.hpp>
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
  for (const auto& [option, value] :
       {std::pair("-c", &arguments.config), std::pair("--preset", &arguments.preset),
        std::pair("--stages", &arguments.stages)}) {
    if (value->empty()) {
      continue;
    }
    if (!first.empty()) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("{} and {} both name a pipeline; leave one out", first, option));
    }
    first = option;
  }
}

}  // namespace

void addPipeline(CLI::App& app, PipelineArguments& arguments) {
  app.add_option(
         "-b,--bound", arguments.bound,
         "abs:E, rel:E or range:E, or a result to look for: psnr:DB, ratio:R; without it the "
         "pipeline's own (rel:1e-3 of pfpl)")
      ->type_name("KIND:E");
  app.add_option(
         "-p,--preset", arguments.preset,
         fmt::format("see 'fz presets'; {} if no pipeline is named", CompressOptions().preset))
      ->type_name("NAME");
  addOwnPipeline(app, arguments);
}

void addOwnPipeline(CLI::App& app, PipelineArguments& arguments) {
  app.add_option("-c,--config", arguments.config, "a pipeline of your own from a file")
      ->type_name("TOML");
  app.add_option("--stages", arguments.stages,
                 "a pipeline of your own in one line: stage(key=value)->stage; range:1e-3 without "
                 "-b")
      ->type_name("CHAIN");
  app.add_option("--set", arguments.settings,
                 "a setting of a stage: stage.key=value; may be repeated, see 'fz stages'")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--no-fallback", arguments.no_fallback,
               "keep what the stages make even where it is larger than the data stored without "
               "loss; else the smaller of the two is kept");
}

void checkPreset(const std::string& name) {
  if (findPreset(name) != nullptr) {
    return;
  }
  std::vector<std::string> names;
  for (const Preset& preset : allPresets()) {
    names.emplace_back(preset.name);
  }
  const std::string hint = didYouMean(name, names);
  throw Failure(ExitCode::kUsage, fmt::format("no preset '{}'{}", name,
                                              hint.empty() ? "; 'fz presets' lists them" : hint));
}

PipelineChoice choosePipeline(const PipelineArguments& arguments) {
  PipelineChoice choice;
  choice.name = CompressOptions().preset;
  choice.has_fallback = !arguments.no_fallback;
  if (!arguments.bound.empty()) {
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
  } else if (!arguments.preset.empty()) {
    checkPreset(arguments.preset);
    choice.name = arguments.preset;
  } else if (!arguments.stages.empty()) {
    takeStages(choice, arguments.stages);
  }
  return choice;
}

CompressOptions compressOptions(const PipelineChoice& choice, DataType type) {
  CompressOptions options;
  options.preset = choice.name;
  options.config_toml = choice.config_toml;
  if (!choice.stages.empty()) {
    options.config_toml = stagesToToml(buildStages(choice.stages, type));
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
