#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>

#include "bound_check.h"
#include "commands.h"
#include "field_io.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "options.h"
#include "report/hook.h"
#include "suggest.h"
#include "warnings.h"

namespace fz::cli {

namespace {

constexpr std::string_view kArchiveSuffix = ".fzm";

constexpr const char* kFooter =
    "Bounds (-b), for every finite value x and its decoded x':\n"
    "  abs:E    |x - x'| <= E, in the unit of the data\n"
    "  rel:E    |x - x'| <= E * |x|, so small values keep their digits\n"
    "  range:E  |x - x'| <= E * (max - min) of the field\n"
    "NaN and infinities come back bit for bit.\n"
    "\n"
    "Examples:\n"
    "  fz compress -b range:1e-4 -d 3600x1800 temperature.f32    writes temperature.f32.fzm\n"
    "  fz compress -p cusz -b abs:0.01 --verify wind.npy\n"
    "  generate | fz compress -t f64 -b rel:1e-3 - > field.fzm";

struct CompressArguments {
  CommonOptions common;
  std::string bound;
  std::string preset;
  std::string config;
  std::vector<std::string> settings;
  std::string type;
  std::string dims;
  ReportOptions report;
  bool verify = false;
};

/// The arguments after parsing, the same for every file.
struct CompressJob {
  CommonOptions common;
  CompressOptions options;
  FieldRequest request;
  std::optional<BoundRequest> bound;
  ReportOptions report;
  bool verify = false;
};

void readConfig(CompressOptions& options, const std::string& path) {
  const std::vector<std::uint8_t> bytes = readBytes(path);
  options.preset = path;
  // The line break keeps an empty file from looking like no file.
  options.config_toml = std::string(bytes.begin(), bytes.end()) + "\n";
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

void addSettings(CompressJob& job, const std::vector<std::string>& settings) {
  for (const std::string& text : settings) {
    const auto setting = parseSetting(text);
    const std::string key = setting.first.substr(setting.first.rfind('.') + 1);
    if (job.bound && (key == "error_bound" || key == "error_bound_mode")) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("--set {} and -b both give the bound; leave one out", text));
    }
    job.options.params.push_back(setting);
  }
}

CompressJob makeJob(const CompressArguments& arguments) {
  CompressJob job;
  job.common = arguments.common;
  job.common.files = filesOrStandardInput(arguments.common.files);
  job.verify = arguments.verify;
  if (!arguments.bound.empty()) {
    job.bound = parseBound(arguments.bound);
    job.options.error_bound = job.bound->value;
    job.options.mode = job.bound->mode;
  }
  if (!arguments.type.empty()) {
    job.request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    job.request.dims = parseDims(arguments.dims);
  }
  checkCommon(arguments.common);
  job.options.backend = parseBackend(arguments.common.backend);
  job.options.threads = arguments.common.threads;
  addSettings(job, arguments.settings);
  checkOutputCount(job.common);
  job.report = arguments.report;
  checkReport(job.report, job.common);
  if (!arguments.config.empty() && !arguments.preset.empty()) {
    throw Failure(ExitCode::kUsage, "-c and --preset both name a pipeline; leave one out");
  }
  if (!arguments.config.empty()) {
    readConfig(job.options, arguments.config);
  } else if (!arguments.preset.empty()) {
    checkPreset(arguments.preset);
    job.options.preset = arguments.preset;
  }
  return job;
}

/// -b rel promises a bound for each value; a stage that takes REL of the largest value does less.
void checkBoundKind(const CompressJob& job, const FrameInfo& info) {
  if (job.bound && job.bound->mode == ErrorBoundMode::REL && info.bound &&
      info.bound->absolute != 0.0) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("-b rel bounds each value by its own size, but '{}' would bound all by {}, "
                    "from the largest; use -p pfpl, or -b abs or -b range",
                    job.options.preset, info.bound->absolute));
  }
}

std::string boundText(const FrameInfo& info) {
  if (!info.bound) {
    return info.lossless ? "none (lossless)" : "none (values may miss it)";
  }
  std::string text = fmt::format("{}:{}", boundModeOption(info.bound->mode), info.bound->requested);
  if (info.bound->mode != ErrorBoundMode::ABS && info.bound->absolute != 0.0 &&
      info.original_bytes > 0) {
    text += fmt::format(" = {} absolute", info.bound->absolute);
  }
  return text;
}

/// What --verify holds an archive to: all that it promises, and no less than was asked for.
BoundRule ruleToVerify(const CompressJob& job, const Field& field, const FrameInfo& info) {
  const std::optional<BoundRule> promised = ruleOfFrame(info);
  if (!job.bound || (promised && promised->kind == BoundRule::Kind::kBits)) {
    if (!promised) {
      throw Failure(ExitCode::kUsage,
                    "verify: this pipeline promises no bound (linear_policy Wrap); give the one to "
                    "check with -b");
    }
    return *promised;
  }
  BoundRule rule = ruleOfRequest(*job.bound, field.type, field.bytes);
  if (promised) {
    // A range that was given (value_base) counts, not the one of these data.
    const bool has_range = job.bound->mode == ErrorBoundMode::NOA;
    rule.value = has_range ? promised->value : std::min(rule.value, promised->value);
  }
  return rule;
}

/// A report shows a failed check as well; without one the check throws.
struct Decoded {
  Array values;
  CheckReport check;
};

Decoded verifyFrame(const CompressJob& job,
                    const Field& field,
                    const Frame& frame,
                    const FrameInfo& info) {
  Array decoded =
      decompress(frame, {.backend = job.options.backend, .threads = job.options.threads});
  if (decoded.bytes().size() != field.bytes.size()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("verify: {} bytes decoded to {}; nothing was written, please report "
                              "this",
                              field.bytes.size(), decoded.bytes().size()));
  }
  CheckReport check =
      checkValues(field.type, field.bytes, decoded.bytes(), ruleToVerify(job, field, info));
  return {std::move(decoded), std::move(check)};
}

void requirePassed(const CheckReport& check) {
  if (!check.passed()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("verify: {}; no archive was written, use another preset or bound",
                              violationText(check)));
  }
}

/// What is known after a compression, for its report.
report::Input reportInput(const Field& field,
                          const Frame& frame,
                          const Decoded& decoded,
                          const CompressOptions& options) {
  report::Input input;
  input.original_name = field.name;
  input.info = inspect(frame);
  input.original = {field.type, input.info.dims, field.bytes};
  input.decoded = decoded.values.bytes();
  input.frame = frame.bytes();
  input.check = decoded.check;
  input.options = options;
  input.decode = {.backend = options.backend, .threads = options.threads};
  return input;
}

void report(const CompressJob& job,
            const std::string& input,
            const std::string& output,
            const FrameInfo& info,
            double seconds) {
  fmt::print(stderr, "{} -> {}: {} -> {} bytes, ratio {:.2f}, bound {}\n", inputName(input),
             output == kStandardStream ? "standard output" : output, info.original_bytes,
             info.frameBytes(), info.ratio(), boundText(info));
  if (!job.common.verbose) {
    return;
  }
  std::string stages;
  for (const FrameStageInfo& stage : info.stages) {
    stages += fmt::format("{}{}", stages.empty() ? "" : ", ", stage.name);
  }
  fmt::print(stderr, "  pipeline '{}': {}\n  {:.3f} s, {:.3f} GB/s\n", job.options.preset, stages,
             seconds, static_cast<double>(info.original_bytes) / seconds * 1e-9);
}

void compressFile(const CompressJob& job, const std::string& input) {
  if (input.ends_with(kArchiveSuffix) && !job.common.force) {
    throw Failure(
        ExitCode::kUsage,
        "its name says that it is an archive already; use -f to compress it all the same");
  }
  const std::string output = outputPath(job.common, input, input + std::string(kArchiveSuffix));
  checkOutput(output, input, job.common.force);
  const std::string page = reportPath(job.report, job.common, input);
  const Field field = readField(input, job.request);
  if (!job.common.quiet) {
    const bool has_config = !job.options.config_toml.empty();
    fmt::print(stderr, "{}: {}\n", field.name,
               describeField(field, has_config ? job.options.preset : ""));
  }
  CompressOptions options = job.options;
  options.dims = field.dims;
  if (!field.has_shape && !options.config_toml.empty()) {
    options.dims = {0, 0, 0};  // as the configuration says
  }
  const auto start = std::chrono::steady_clock::now();
  const Frame frame = compress(field.type, field.bytes, options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const FrameInfo info = inspect(frame);
  checkBoundKind(job, info);
  std::optional<Decoded> decoded;
  if (job.verify || !page.empty()) {
    decoded = verifyFrame(job, field, frame, info);
  }
  if (!decoded || decoded->check.passed()) {
    writeOutput(output, {}, frame.bytes());
  }
  if (!page.empty()) {
    report::Input about = reportInput(field, frame, *decoded, options);
    about.archive_name = output;
    writeReport(page, job.report, std::move(about));
  }
  if (decoded) {
    requirePassed(decoded->check);
  }
  if (job.common.quiet) {
    return;
  }
  report(job, input, output, info, seconds);
  if (!field.has_shape && info.ndim > 1) {
    fmt::print(stderr, "  shape {} ({})\n", dimsText(info.dims), job.options.preset);
  }
  if (decoded) {
    fmt::print(stderr, "  verified: all {} values meet {}, largest error {}\n",
               decoded->check.n_values, ruleText(decoded->check.rule),
               decoded->check.stats.max_error);
  }
  if (!page.empty()) {
    fmt::print(stderr, "  report: {}\n", page);
  }
  for (const std::string& warning : warningsFor(field, info)) {
    printWarning(field.name, warning);
  }
}

}  // namespace

Command addCompress(CLI::App& root) {
  auto arguments = std::make_shared<CompressArguments>();
  CLI::App* app = root.add_subcommand(
      "compress", "Compress arrays of f32 or f64: FILE becomes FILE.fzm and stays");
  addFiles(*app, arguments->common, "raw little-endian fields or .npy files; - or none: stdin");
  addOutput(*app, arguments->common, "result; a folder for several files, - for stdout");
  app->add_option("-b,--bound", arguments->bound,
                  "abs:E, rel:E or range:E, see below; without it the preset's own")
      ->type_name("KIND:E");
  app->add_option("-p,--preset", arguments->preset,
                  fmt::format("see 'fz presets'; {} if neither -p nor -c is given",
                              CompressOptions().preset))
      ->type_name("NAME");
  app->add_option("-c,--config", arguments->config, "a pipeline of your own instead of a preset")
      ->type_name("TOML");
  app->add_option("--set", arguments->settings,
                  "a setting of a stage: stage.key=value; may be repeated, see 'fz stages'")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("-t,--type", arguments->type,
                  "f32 or f64; else by the name (.f32, .f64, .npy), else f32")
      ->type_name("TYPE");
  app->add_option("-d,--dims", arguments->dims, "extents, the fastest (x) first: 3600x1800")
      ->type_name("XxYxZ");
  app->add_flag("--verify", arguments->verify,
                "decode and check every value before the file gets its name");
  addReport(*app, arguments->report);
  addSweep(*app, arguments->report);
  addQuietAndVerbose(*app, arguments->common);
  addRunning(*app, arguments->common);
  app->footer(kFooter);
  return {app,
          [arguments] {
            const CompressJob job = makeJob(*arguments);
            return forEachFile(job.common.files, Task::kEncode,
                               [&](const std::string& file) { compressFile(job, file); });
          },
          Task::kEncode};
}

}  // namespace fz::cli
