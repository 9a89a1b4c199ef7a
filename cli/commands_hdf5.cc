#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "fz/bound_kind.h"
#include "fz/hdf5.h"
#include "hdf5/cd_values.h"
#include "hdf5_info.h"
#include "json_rows.h"
#include "options.h"
#include "pipeline_options.h"
#include "preset_bounds.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

constexpr const char* kHdf5Footer =
    "The words are what the filter's parameters (cd_values) hold; docs/hdf5.md has their layout. A\n"
    "range: bound is that of each chunk. NCO takes the words of one dataset as a filter of its own.\n"
    "\n"
    "Examples:\n"
    "  fz hdf5 words -b abs:1e-3 -p best\n"
    "  h5repack -f $(fz hdf5 words --for h5repack -b abs:1e-3) in.h5 out.h5\n"
    "  fz hdf5 info";

struct WordsArguments {
  std::string bound;
  std::string preset;
  std::string tool;
  bool strict = false;
  bool json = false;
};

/// The same rules as for compress: what may be lost is said, or nothing is.
std::vector<unsigned> wordsOf(const WordsArguments& arguments) {
  PipelineArguments pipeline;
  pipeline.bound = arguments.bound;
  pipeline.preset = arguments.preset;
  const PipelineChoice choice = choosePipeline(pipeline);
  if (choice.target) {
    static_cast<void>(parseBound(arguments.bound));  // says why not
  }
  const std::string bound =
      choice.bound ? fmt::format("{}:{}", boundKindName(choice.bound->mode), choice.bound->value)
                   : "";
  if (choice.bound && !takesBound(*findPreset(choice.name), choice.bound->mode)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' takes no {}:E; it takes {}", choice.name,
                              boundKindName(choice.bound->mode),
                              fmt::join(boundsOf(*findPreset(choice.name)), ", ")));
  }
  return hdf5::toValues(
      hdf5::settingsFromText(choice.name, bound, arguments.strict ? unsigned{FZ_HDF5_STRICT} : 0U));
}

/// A line that the tool takes as it stands.
std::string lineFor(std::string_view tool, const std::vector<unsigned>& words) {
  const std::string list = fmt::format("{}", fmt::join(words, ","));
  if (tool == "h5repack") {  // mandatory, and how many words
    return fmt::format("UD={},0,{},{}", FZ_HDF5_FILTER_ID, words.size(), list);
  }
  return fmt::format("{},{}", FZ_HDF5_FILTER_ID, list);
}

ExitCode runWords(const WordsArguments& arguments) {
  const std::vector<unsigned> words = wordsOf(arguments);
  JsonRows rows("hdf5 words", arguments.json);
  rows.add("", nlohmann::ordered_json{{"filter", FZ_HDF5_FILTER_ID},
                                      {"words", words},
                                      {"h5repack", lineFor("h5repack", words)},
                                      {"nccopy", lineFor("nccopy", words)},
                                      {"nco", lineFor("nco", words)}}
                   .dump());
  rows.print();
  if (lacksHdf5Filter()) {
    // h5repack copies without the filter then, and calls it success.
    say("fz: warning: HDF5 does not see the filter, and h5repack would copy without it; set "
        "HDF5_PLUGIN_PATH to {}\n",
        pluginFolderAdvice());
  }
  if (arguments.json) {
    return ExitCode::kOk;
  }
  if (!arguments.tool.empty()) {
    fmt::print("{}\n", lineFor(arguments.tool, words));
    return ExitCode::kOk;
  }
  fmt::print("filter:    {}\nwords:     {}\n", FZ_HDF5_FILTER_ID, fmt::join(words, " "));
  fmt::print("h5repack:  h5repack -f {} in.h5 out.h5\n", lineFor("h5repack", words));
  fmt::print("nccopy:    nccopy -F '*,{}' in.nc out.nc\n", lineFor("nccopy", words));
  fmt::print("nco:       --cmp='{}' (as netCDF writes filters; not tried with NCO)\n",
             lineFor("nco", words));
  return ExitCode::kOk;
}

}  // namespace

Command addHdf5(CLI::App& root) {
  auto arguments = std::make_shared<WordsArguments>();
  auto what = std::make_shared<std::string>();
  CLI::App* app =
      root.add_subcommand("hdf5", "The numbers that HDF5 tools need for the filter of fz");
  app->add_option("what", *what, "words, or info: whether HDF5 can load the filter")
      ->type_name("WHAT")
      ->required();
  app->add_option("-b,--bound", arguments->bound, "abs:E, rel:E or range:E; else lossless")
      ->type_name("KIND:E");
  app->add_option("-p,--preset", arguments->preset, "as for compress")->type_name("NAME");
  app->add_option("--for", arguments->tool, "only the argument of h5repack, nccopy or nco")
      ->type_name("TOOL")
      ->check(CLI::IsMember({"h5repack", "nccopy", "nco"}).description(""));
  app->add_flag("--strict", arguments->strict,
                "a chunk that cannot be kept within the bound is an error, not stored bit for bit");
  app->add_flag("--json", arguments->json, kJsonHelp);
  app->footer(kHdf5Footer);
  return {app,
          [arguments, what] {
            if (*what == "info") {
              return printHdf5Info();
            }
            if (*what != "words") {
              throw Failure(ExitCode::kUsage, fmt::format("'{}' is neither words nor info", *what));
            }
            return runWords(*arguments);
          },
          Task::kEncode};
}

}  // namespace fz::cli
