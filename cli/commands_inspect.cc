#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <memory>

#include "commands.h"
#include "field_io.h"
#include "fz/bound_kind.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fz/recorded_params.h"
#include "fz/stage_descriptor.h"
#include "hdf5_info.h"
#include "inspect_any.h"
#include "json_report.h"
#include "json_rows.h"
#include "options.h"
#include "pipeline_options.h"
#include "preset_bounds.h"
#include "stage_traits.h"
#include "suggest.h"

namespace fz::cli {

namespace {

struct InspectArguments {
  std::vector<std::string> files;
  std::string name;
  bool json = false;
  bool hdf5 = false;
};

std::string joinTypes(const std::vector<DataType>& types) {
  std::string text;
  for (const DataType type : types) {
    text += fmt::format("{}{}", text.empty() ? "" : "/", dataTypeToString(type));
  }
  return text;
}

std::string joinCombinations(const std::vector<std::vector<DataType>>& combinations) {
  std::string text;
  for (const std::vector<DataType>& types : combinations) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", joinTypes(types));
  }
  return text;
}

std::string boundLine(const FrameInfo& info) {
  const std::optional<BoundInfo>& bound = info.bound;
  if (!bound) {
    return info.lossless ? "none (lossless)" : "none stated (lossy)";
  }
  const std::string text = fmt::format("{}:{}", boundKindName(*bound), bound->requested);
  if (isPointwise(*bound)) {
    return text + ", for each value";
  }
  const bool is_of_largest = bound->mode == ErrorBoundMode::REL;
  return text + fmt::format("{}, absolute {}", is_of_largest ? " of the largest |x|" : "",
                            bound->absolute);
}

void printLine(const char* label, const std::string& text) {
  fmt::print("{:<12}{}\n", label, text);
}

void printStages(const FrameInfo& info) {
  fmt::print("stages:\n");
  for (const FrameStageInfo& stage : info.stages) {
    fmt::print("  {}{}{} (id {}, version {})\n", stage.name, stage.types.empty() ? "" : " ",
               joinTypes(stage.types), stage.id, stage.version);
    for (const auto& [key, value] : recordedParams(stage)) {
      fmt::print("    {} = {}\n", key, toTomlText(value));
    }
  }
}

void printInfo(const std::string& name, const FrameInfo& info) {
  const auto& line = printLine;
  line("archive:", name);
  line("format:", fmt::format("FZM {}.{}", info.version_major, info.version_minor));
  line("type:", std::string(dataTypeToString(info.type)));
  line("dims:",
       fmt::format("{}{}", dimsText(info.extents), info.extents.size() > 1 ? " (x fastest)" : ""));
  line("original:", fmt::format("{} bytes", info.original_bytes));
  line("compressed:", fmt::format("{} bytes (header {}, payload {})", info.frameBytes(),
                                  info.header_bytes, info.payload_bytes));
  line("ratio:", fmt::format("{:.4f}", info.ratio()));
  line("bound:", boundLine(info));
  if (info.isFallback()) {
    line("stored:", "without loss, as with this bound it would have been larger");
  }
  if (info.missing) {
    line("missing:", missingText(info));
  } else if (info.isFallback()) {
    line("missing:", "not recorded, as every value is stored with all its bits");
  }
  line("checksums:", info.has_checksums ? fmt::format("header {:08x}, payload {:08x}",
                                                      info.header_checksum, info.payload_checksum)
                                        : "none");
  printStages(info);
  fmt::print("segments:\n");
  for (const SegmentInfo& segment : info.segments) {
    fmt::print("  {}.{} ({}): {} bytes\n", segment.stage, segment.port,
               dataTypeToString(segment.type), segment.n_bytes);
  }
}

void printArchive(const std::string& name, const FrameInfo& chunk, const ArchiveInfo& archive) {
  printLine("archive:", name);
  printLine("format:", fmt::format("FZM {}.{}, {} chunks", chunk.version_major, chunk.version_minor,
                                   archive.n_chunks));
  printLine("type:", std::string(dataTypeToString(archive.type)));
  printLine("dims:", fmt::format("{}{}", dimsText(archive.extents),
                                 archive.extents.size() > 1 ? " (x fastest)" : ""));
  printLine("chunks:",
            fmt::format("{} of {}{}", archive.n_chunks, dimsText(archive.chunk),
                        archive.n_absent == 0 ? std::string()
                                              : fmt::format(", {} absent", archive.n_absent)));
  printLine("original:", fmt::format("{} bytes", archive.original_bytes));
  printLine("compressed:", fmt::format("{} bytes", archive.archive_bytes));
  printLine("ratio:", fmt::format("{:.4f}", archive.ratio()));
  FrameInfo whole = chunk;
  whole.bound = archive.bound;
  whole.original_bytes = archive.original_bytes;
  printLine("bound:", boundLine(whole));
  if (chunk.missing) {
    printLine("missing:", missingText(whole));
  }
  fmt::print("the first chunk has\n");
  printStages(chunk);
}

ExitCode runInfo(const InspectArguments& arguments) {
  if (arguments.hdf5) {
    return printHdf5Info();
  }
  JsonRows rows("info", arguments.json);
  bool is_first = true;
  return forEachFile(filesOrStandardInput(arguments.files), Task::kDecode, rows,
                     [&](const std::string& file) {
                       const NamedFrame info = inspectAny(file);
                       if (arguments.json) {
                         rows.add(file, frameToJson(info));
                         return;
                       }
                       fmt::print("{}", is_first ? "" : "\n");
                       is_first = false;
                       if (info.archive) {
                         printArchive(inputName(file), info.frame, *info.archive);
                       } else {
                         printInfo(inputName(file), info.frame);
                       }
                     });
}

void printStage(const StageDescriptor& stage) {
  fmt::print("{} (id {}, {}): {}\n", stage.name, stage.id, stage.category, stage.summary);
  const std::string types = joinCombinations(stage.type_combinations);
  std::string keys;
  for (const TypeKey& key : stage.type_keys) {
    keys += fmt::format("{}{}", keys.empty() ? "" : ", ", key.key);
  }
  fmt::print("types: {}\n", types.empty() ? "bytes of any type"
                                          : fmt::format("{} ({}; in a file without them {})", types,
                                                        keys, joinTypes(defaultTypes(stage))));
  fmt::print("ports: {}\n", fmt::join(defaultPorts(stage), ", "));
  const StageTraits traits = traitsOf(stage);
  fmt::print("backends: {}\n", fmt::join(traits.backends, ", "));
  const auto yesNo = [](bool is_so) { return is_so ? "yes" : "no"; };
  fmt::print("graph-safe: compress {}, decompress {}\n", yesNo(traits.is_graph_safe_forward),
             yesNo(traits.is_graph_safe_inverse));
  fmt::print("fusable with these defaults: {} ({}){}\n", yesNo(traits.is_fusable), traits.part,
             traits.fusable_with.empty() ? "" : "; yes with " + traits.fusable_with);
  const std::vector<Param>& rows = stage.params().rows();
  fmt::print("settings:{}\n", rows.empty() ? " none" : "");
  for (const Param& param : rows) {
    const std::string in_file = toTomlText(param.config_default.value_or(param.default_value));
    const std::string in_code = toTomlText(param.default_value);
    fmt::print("  {} = {}{}\n      {}\n", param.key, in_code,
               in_file == in_code ? "" : fmt::format(" (in a file: {})", in_file), param.help);
    std::string choices;
    for (const std::string_view choice : param.choices) {
      choices += fmt::format("{}{}", choices.empty() ? "" : ", ", choice);
    }
    if (!choices.empty()) {
      fmt::print("      one of {}\n", choices);
    } else if (param.kind == ParamKind::kInt || param.kind == ParamKind::kReal) {
      fmt::print("      from {} to {}\n", param.min, param.max);
    }
  }
}

std::string stageTable(const std::vector<const StageDescriptor*>& stages) {
  const auto row = [](std::string_view name, std::string_view category, std::string_view backends,
                      std::string_view graph, std::string_view fusable, std::string_view summary) {
    return fmt::format("{:<17}{:<11}{:<10}{:<12}{:<9}{}\n", name, category, backends, graph,
                       fusable, summary);
  };
  std::string text = row("stage", "category", "backends", "graph-safe", "fusable", "what it does");
  for (const StageDescriptor* stage : stages) {
    const StageTraits traits = traitsOf(*stage);
    const bool is_both = traits.is_graph_safe_forward && traits.is_graph_safe_inverse;
    text += row(stage->name, stage->category, fmt::format("{}", fmt::join(traits.backends, ",")),
                is_both                        ? "yes"
                : traits.is_graph_safe_forward ? "compress"
                : traits.is_graph_safe_inverse ? "decompress"
                                               : "no",
                traits.is_fusable             ? "yes"
                : traits.fusable_with.empty() ? "no"
                                              : "some",
                stage->summary);
  }
  return text;
}

ExitCode runStages(const InspectArguments& arguments) {
  std::vector<const StageDescriptor*> stages(allStages().begin(), allStages().end());
  if (!arguments.name.empty()) {
    const StageDescriptor* found = findStage(std::string_view(arguments.name));
    if (found == nullptr) {
      std::vector<std::string> names;
      names.reserve(stages.size());
      for (const StageDescriptor* stage : stages) {
        names.emplace_back(stage->name);
      }
      const std::string hint = didYouMean(arguments.name, names);
      throw Failure(ExitCode::kUsage,
                    fmt::format("no stage '{}'{}", arguments.name,
                                hint.empty() ? "; 'fz stages' lists them" : hint));
    }
    stages = {found};
  }
  if (arguments.json) {
    JsonRows rows("stages", true);
    for (const StageDescriptor* stage : stages) {
      rows.add("", stageToJson(*stage));
    }
    rows.print();
  } else if (!arguments.name.empty()) {
    printStage(*stages.front());
  } else {
    fmt::print("{}", stageTable(stages));
  }
  return ExitCode::kOk;
}

/// One line of the list; the reader looks for a purpose first.
std::string presetLine(const Preset& preset) {
  const std::vector<std::string> bounds = boundsOf(preset);
  return fmt::format("  {:<27}{:<15}{}\n", preset.name,
                     bounds.empty() ? "lossless" : fmt::format("{}", fmt::join(bounds, " ")),
                     preset.summary);
}

std::string presetList() {
  std::string by_purpose = "by purpose:\n";
  std::string families = "families, for comparison and for archives of theirs:\n";
  for (const std::string& name : presetNames()) {
    (isByPurpose(name) ? by_purpose : families) += presetLine(*findPreset(name));
  }
  return fmt::format(
      "{}\n{}\nratio: mean of 13 fields at range:1e-3; speeds: one thread, a made field of 64 MiB\n"
      "(docs/choosing.md); 'fz suggest FILE -b ...' measures yours. Without -p: {}, for rel: {}.\n",
      by_purpose, families, defaultPreset({}).name, defaultPreset(ErrorBoundMode::REL).name);
}

ExitCode runPresets(const InspectArguments& arguments) {
  JsonRows rows("presets", arguments.json);
  if (!arguments.name.empty()) {
    checkPreset(arguments.name);
  }
  for (const std::string& name :
       arguments.name.empty() ? presetNames() : std::vector<std::string>{arguments.name}) {
    rows.add("", presetToJson(*findPreset(name), isByPurpose(name)));
  }
  rows.print();
  if (!arguments.json) {
    fmt::print("{}", arguments.name.empty() ? presetList()
                                            : std::string(findPreset(arguments.name)->toml));
  }
  return ExitCode::kOk;
}

}  // namespace

Command addInfo(CLI::App& root) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* app = root.add_subcommand("info", "Show what archives say about themselves");
  app->add_option("files", arguments->files, "archives; - or none: stdin")->type_name("FILE");
  app->add_flag("--json", arguments->json, kJsonHelp);
  app->add_flag("--hdf5", arguments->hdf5, "instead: whether HDF5 can load the filter of fz");
  app->footer(
      "Reads the header only; 'fz test' checks the rest.\n"
      "\n"
      "Example:\n"
      "  fz info --json field.fzm | jq '.[0].ratio'");
  return {app, [arguments] { return runInfo(*arguments); }, Task::kDecode};
}

Command addStages(CLI::App& root) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* app = root.add_subcommand("stages", "List the stages, or the settings of one");
  app->add_option("name", arguments->name, "a stage, to see its types and settings")
      ->type_name("NAME");
  app->add_flag("--json", arguments->json, kJsonHelp);
  app->footer("Example:\n  fz stages Huffman");
  return {app, [arguments] { return runStages(*arguments); }, Task::kEncode};
}

Command addPresets(CLI::App& root) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* app = root.add_subcommand("presets", "List the presets, or show one");
  app->add_option("name", arguments->name, "a preset, to see its configuration")->type_name("NAME");
  app->add_option("--show", arguments->name, "the same")->type_name("NAME");
  app->add_flag("--json", arguments->json, kJsonHelp);
  app->footer(
      "The words after the name are the kinds of bound (-b) that the preset takes.\n"
      "\n"
      "Example, a configuration of your own:\n"
      "  fz presets cusz > mine.toml\n"
      "  fz compress -c mine.toml field.f32");
  return {app, [arguments] { return runPresets(*arguments); }, Task::kEncode};
}

}  // namespace fz::cli
