#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "compress_job.h"
#include "field_io.h"
#include "fz/tune.h"
#include "json_rows.h"
#include "options.h"
#include "pipeline_options.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

constexpr const char* kTuneFooter =
    "The presets best, auto and balanced look for a plan of prediction, which takes a large part of\n"
    "their time. The words that are printed give it to 'fz compress' for fields of the same kind: the\n"
    "next time step, another member of an ensemble. -v adds what else came into question. The words\n"
    "are quoted for a shell, so that a script takes them with eval.\n"
    "\n"
    "Examples:\n"
    "  fz tune -p best -b range:1e-3 -d 3600x1800 t_0001.f32\n"
    "  fz compress -p best -b range:1e-3 -d 3600x1800 --set predict.plan='...' t_*.f32\n"
    "  how='-p best -b range:1e-3 -d 3600x1800'\n"
    "  eval \"fz compress $how $(fz tune -q $how t_0001.f32) t_*.f32\"";

struct TuneArguments {
  CompressArguments compress;
  bool json = false;
};

void printFound(const CompressJob& job, const Field& field, const FoundSettings& found) {
  if (found.params.empty()) {
    say("{}: '{}' looks for no settings; best, auto and balanced do\n", field.name,
        job.pipeline.name);
  }
  for (const auto& [key, value] : found.params) {
    fmt::print("--set {}='{}'\n", key, value);
  }
  if (job.common.verbose && !found.reason.empty()) {
    say("  {}\n", found.reason);
  }
}

void tune(const CompressJob& job, const std::string& file, JsonRows& rows) {
  if (job.pipeline.target) {
    throw Failure(
        ExitCode::kUsage,
        "settings are found for a bound; give abs:E or range:E instead of psnr: or ratio:");
  }
  if (job.pipeline.is_lossless_by_default) {
    throw Failure(ExitCode::kUsage,
                  "settings are found for a bound; give one, such as -b range:1e-3");
  }
  const Field field = readField(file, job.request);
  if (!job.common.quiet) {
    say("{}: {}\n", field.name, describeField(field, ""));
  }
  const FoundSettings found = findSettings(field.type, field.bytes, optionsFor(job, field));
  if (!rows.isOn()) {
    printFound(job, field, found);
    return;
  }
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const auto& [key, value] : found.params) {
    settings[key] = value;
  }
  rows.add(file,
           nlohmann::ordered_json{
               {"pipeline", job.pipeline.name}, {"settings", settings}, {"reason", found.reason}}
               .dump());
}

}  // namespace

Command addTune(CLI::App& root) {
  auto arguments = std::make_shared<TuneArguments>();
  CompressArguments& how = arguments->compress;
  CLI::App* app = root.add_subcommand(
      "tune", "Find the settings that a preset looks for, to give them to fields of the same kind");
  addFiles(*app, how.common, "as for compress");
  addPipeline(*app, how.pipeline);
  app->add_option("-t,--type", how.type, "f32 or f64, as for compress")->type_name("TYPE");
  app->add_option("-d,--dims", how.dims, "extents, the fastest (x) first: 3600x1800")
      ->type_name("XxYxZ");
  addFill(*app, how.fill);
  app->add_flag("--json", arguments->json, kJsonHelp);
  addQuietAndVerbose(*app, how.common, "say nothing but the settings and errors");
  addRunning(*app, how.common);
  addMemoryLimit(*app, how.common,
                 "refuse work that needs more memory than this besides the mapped input");
  app->footer(kTuneFooter);
  return {app,
          [arguments] {
            const CompressJob job = makeJob(arguments->compress);
            JsonRows rows("tune", arguments->json);
            return forEachFile(job.common.files, Task::kEncode, rows,
                               [&](const std::string& file) { tune(job, file, rows); });
          },
          Task::kEncode};
}

}  // namespace fz::cli
