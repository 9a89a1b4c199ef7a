#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "archive/chunk_grid.h"
#include "bench_report.h"
#include "commands.h"
#include "compress_job.h"
#include "field_io.h"
#include "fz/bound_kind.h"
#include "options.h"
#include "pipeline_options.h"
#include "progress.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

constexpr const char* kBenchFooter =
    "Runs each pipeline with each bound: N runs after the warm-up, in memory, no files. Speeds are\n"
    "bytes of the field per second of the median run (1 GB = 1e9 bytes), with the 5th and 95th\n"
    "percentile of the runs beside. 'of copy' compares with copying the field in the same memory,\n"
    "measured between the runs. 'moved' includes the way from host memory and back, which only a\n"
    "device has to make. Every result is checked against its bound (exit code 4).\n"
    "Without FILE a smooth f32 field of 512 x 512 x 64 is made, or of -d.\n"
    "\n"
    "Examples:\n"
    "  fz bench -p pfpl,cusz -b range:1e-3,range:1e-5 -d 3600x1800 temperature.f32\n"
    "  fz bench --per-stage -p cuszp2 wind.npy\n"
    "  fz bench --json -p all > presets.json";

struct BenchArguments {
  CommonOptions common;
  std::vector<std::string> bounds;
  std::vector<std::string> presets;
  PipelineArguments pipeline;
  std::string type;
  std::string dims;
  std::vector<std::string> fill;
  BenchPlan plan;
  bool json = false;
  bool per_stage = false;
};

/// Waves of several lengths and a little noise, the same on every machine for the same dims.
Field madeField(const std::array<std::size_t, 3>& dims) {
  Field field;
  field.name = "made field";
  field.type = DataType::FLOAT32;
  field.dims = dims;
  field.extents.assign(dims.begin(), dims.begin() + (dims[2] > 1 ? 3 : dims[1] > 1 ? 2 : 1));
  field.has_shape = true;
  field.how = "made";
  const std::size_t n_values = *countOf(dims);
  std::vector<std::uint8_t> bytes(n_values * sizeof(float));
  auto* values = reinterpret_cast<float*>(bytes.data());
  std::uint32_t noise = 1;
  std::size_t i = 0;
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      const double row = 3.0 * std::sin(0.013 * static_cast<double>(y)) +
                         2.0 * std::cos(0.11 * static_cast<double>(z));
      for (std::size_t x = 0; x < dims[0]; ++x) {
        constexpr std::uint32_t kFactor = 1664525;
        constexpr std::uint32_t kTerm = 1013904223;
        noise = noise * kFactor + kTerm;
        const double grain = static_cast<double>(noise >> 8) * 0x1p-24 - 0.5;
        values[i++] = static_cast<float>(row + 5.0 * std::sin(0.021 * static_cast<double>(x)) +
                                         0.002 * grain);
      }
    }
  }
  field.bytes = InputBytes(std::move(bytes));
  return field;
}

std::vector<std::string> orOne(const std::vector<std::string>& words, const std::string& one) {
  return words.empty() ? std::vector<std::string>{one} : words;
}

/// The word "all" stands for every preset.
std::vector<std::string> presetsToBench(const BenchArguments& arguments) {
  std::vector<std::string> names;
  for (const std::string& name : arguments.presets) {
    if (name == "all") {
      const std::vector<std::string> all = presetNames();
      names.insert(names.end(), all.begin(), all.end());
    } else {
      names.push_back(name);
    }
  }
  return names;
}

/// Every pipeline with every bound.
std::vector<PipelineChoice> choices(const BenchArguments& arguments) {
  std::vector<PipelineChoice> all;
  // A configuration has its own bound; with any other the field would be another one's measure.
  const bool has_own = !arguments.pipeline.config.empty();
  for (const std::string& preset : orOne(presetsToBench(arguments), "")) {
    for (const std::string& bound : orOne(arguments.bounds, has_own ? "" : "range:1e-3")) {
      PipelineArguments one = arguments.pipeline;
      one.preset = preset;
      one.bound = preset == kLossless ? "" : bound;
      all.push_back(choosePipeline(one));
      if (all.back().target) {
        static_cast<void>(parseBound(bound));  // says why not
      }
    }
  }
  return all;
}

BenchRow runOne(const BenchArguments& arguments, const PipelineChoice& choice, const Field& field) {
  CompressOptions options = compressOptions(choice, field.type);
  options.backend = parseBackend(arguments.common.backend);
  options.threads = arguments.common.threads;
  options.dims = field.dims;
  applyFill(parseFill(arguments.fill), field.fill, options);
  Progress progress(progressMode(arguments.common), fmt::format("{} {}", field.name, choice.name));
  BenchRow row{field.name, choice.name, "", {}, ""};
  try {
    row.result = runBench(field.type, field.bytes, options, arguments.plan, progress);
    checkBoundKind(choice, row.result.frame);
    row.bound = boundOption(row.result.frame);
    row.result.decoded = {};
  } catch (...) {
    // One pipeline that does not take these data must not cost the others their figures.
    const Failure failure = currentFailure(Task::kEncode);
    row.error = failure.what();
    row.error_code = failure.code();
    row.bound = choice.bound
                    ? fmt::format("{}:{}", boundKindName(choice.bound->mode), choice.bound->value)
                    : "own";
  }
  return row;
}

ExitCode runBenchCommand(const BenchArguments& arguments) {
  checkCommon(arguments.common);
  const std::vector<PipelineChoice> pipelines = choices(arguments);
  FieldRequest request;
  if (!arguments.type.empty()) {
    request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    request.extents = parseExtents(arguments.dims);
  }
  JsonRows json("bench", arguments.json);
  std::vector<BenchRow> rows;
  ExitCode code = ExitCode::kOk;
  const auto bench = [&](const Field& field) {
    if (!arguments.common.quiet) {
      say("{}: {}\n", field.name, describeField(field, ""));
    }
    for (const PipelineChoice& choice : pipelines) {
      rows.push_back(runOne(arguments, choice, field));
    }
  };
  if (arguments.common.files.empty()) {
    constexpr std::array<std::size_t, 3> kMadeDims = {512, 512, 64};
    bench(madeField(request.extents ? foldedDims(*request.extents) : kMadeDims));
  } else {
    code = forEachFile(arguments.common.files, Task::kEncode, [&](const std::string& file) {
      try {
        bench(readField(file, request));
      } catch (...) {
        const Failure failure = currentFailure(Task::kEncode);
        json.addFailure(file, failure);
        throw failure;
      }
    });
  }
  const bool per_stage = arguments.per_stage || rows.size() == 1;
  addBenchRows(rows, arguments.plan, json);
  json.print();
  if (!arguments.json) {
    fmt::print("{}", benchTable(rows, arguments.plan, per_stage));
  }
  // Into one file or pipe, the errors come after the table that points to them.
  std::fflush(stdout);
  for (const BenchRow& row : rows) {
    if (!row.error.empty()) {
      printFailure(fmt::format("{} {}", row.file, row.pipeline), row.error);
      code = code == ExitCode::kOk ? row.error_code : code;
    } else if (!row.result.check.passed()) {
      printFailure(fmt::format("{} {}", row.file, row.pipeline), violationText(row.result.check));
      code = code == ExitCode::kOk ? ExitCode::kBound : code;
    }
  }
  return code;
}

}  // namespace

Command addBench(CLI::App& root) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* app =
      root.add_subcommand("bench", "Measure pipelines on data: speed, ratio, the copy beside it");
  addFiles(*app, arguments->common, "as for compress; none: a made field");
  app->add_option("-p,--preset", arguments->presets,
                  "presets; several with commas or repeated; all for every one")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("-b,--bound", arguments->bounds,
                  "bounds as for compress; several as for -p; else range:1e-3")
      ->type_name("KINDS:E")
      ->delimiter(',')
      ->allow_extra_args(false);
  addPurpose(*app, arguments->pipeline);
  addOwnPipeline(*app, arguments->pipeline);
  app->add_option("-t,--type", arguments->type, "f32 or f64, as for compress")->type_name("TYPE");
  app->add_option("-d,--dims", arguments->dims, "extents, the fastest (x) first: 3600x1800")
      ->type_name("XxYxZ");
  addFill(*app, arguments->fill);
  app->add_option("-n,--runs", arguments->plan.n_runs, "measured runs")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100000}).description(""))
      ->capture_default_str();
  app->add_option("--warmup", arguments->plan.n_warmups, "runs before that")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, std::size_t{100000}).description(""))
      ->capture_default_str();
  app->add_flag("--per-stage", arguments->per_stage,
                "rows for the stages, also with several pipelines");
  app->add_flag("--json", arguments->json, kJsonHelp);
  app->add_flag("-q,--quiet", arguments->common.quiet, "say nothing but the table and errors");
  addRunning(*app, arguments->common);
  addProgress(*app, arguments->common);
  app->footer(kBenchFooter);
  return {app, [arguments] { return runBenchCommand(*arguments); }, Task::kEncode};
}

}  // namespace fz::cli
