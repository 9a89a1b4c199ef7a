#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "bench_report.h"
#include "bench_run.h"
#include "commands.h"
#include "compress_job.h"
#include "field_io.h"
#include "fz/bound_kind.h"
#include "fz/presets.h"
#include "json_rows.h"
#include "options.h"
#include "pipeline/bound_check.h"
#include "pipeline/fill_check.h"
#include "pipeline_options.h"
#include "preset_bounds.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kCropValues = std::uint64_t{1} << 20;
constexpr std::size_t kMaxCrops = 3;
constexpr std::size_t kMaxRuns = 5;

constexpr const char* kSuggestFooter =
    "Runs every preset that takes the bound on up to three crops of 2^20 values, from the beginning,\n"
    "the middle and the end of the field, and ranks them by ratio. A range: bound is that of the\n"
    "whole field. Every value is checked. Speeds are those of the best of a few runs in memory and\n"
    "only good for comparing presets; 'fz bench' measures whole fields.\n"
    "\n"
    "Examples:\n"
    "  fz suggest -b range:1e-3 -d 3600x1800 temperature.f32\n"
    "  fz suggest --json -b abs:0.01 wind.npy | jq -r '.[0].preset'";

struct SuggestArguments {
  CommonOptions common;
  std::string bound;
  std::string type;
  std::string dims;
  std::vector<std::string> fill;
  double seconds = 20.0;
  bool json = false;
};

struct Crop {
  AxisValues extents;
  std::vector<std::uint8_t> bytes;
};

struct Suggestion {
  std::string preset;
  std::uint64_t n_original = 0;
  std::uint64_t n_archive = 0;
  double compress_seconds = 0.0;
  double decompress_seconds = 0.0;

  double ratio() const {
    return static_cast<double>(n_original) /
           static_cast<double>(std::max<std::uint64_t>(1, n_archive));
  }
  double compressSpeed() const { return static_cast<double>(n_original) / compress_seconds * 1e-9; }
  double decompressSpeed() const {
    return static_cast<double>(n_original) / decompress_seconds * 1e-9;
  }
};

/// Parts of the field with its own number of axes, so that predictors see what they would.
std::vector<Crop> cropsOf(const Field& field) {
  const AxisValues& whole = field.extents;
  AxisValues extents = whole;
  while (valueCount(extents) > kCropValues) {
    auto longest = std::max_element(extents.begin(), extents.end());
    *longest = (*longest + 1) / 2;
  }
  const std::size_t value_bytes = getDataTypeSize(field.type);
  const std::size_t n_crops = extents == whole ? 1 : kMaxCrops;
  std::vector<Crop> crops;
  for (std::size_t i = 0; i < n_crops; ++i) {
    Box box{AxisValues(whole.size(), 0), extents};
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
      box.origin[axis] = n_crops == 1 ? 0 : (whole[axis] - extents[axis]) * i / (n_crops - 1);
    }
    Crop crop{extents, std::vector<std::uint8_t>(valueCount(extents) * value_bytes)};
    forRuns({AxisValues(whole.size(), 0), whole}, box, value_bytes,
            [&](std::uint64_t offset, std::size_t n_done, std::size_t n) {
              std::copy_n(field.bytes.data() + offset, n, crop.bytes.data() + n_done);
            });
    crops.push_back(std::move(crop));
  }
  return crops;
}

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Adds one crop; the best of a few runs, as long as they are short.
void measure(DataType type,
             const Crop& crop,
             const BoundRule& rule,
             CompressOptions options,
             Suggestion& found) {
  options.extents = crop.extents;
  constexpr double kEnoughSeconds = 0.1;
  double best_in = 0.0;
  double best_out = 0.0;
  const auto begin = Clock::now();
  for (std::size_t run = 0; run < kMaxRuns && (run == 0 || secondsSince(begin) < kEnoughSeconds);
       ++run) {
    const auto start = Clock::now();
    const Frame frame = compress(type, crop.bytes, options);
    const double in = secondsSince(start);
    const auto middle = Clock::now();
    const Array array = decompress(frame, {.backend = options.backend, .threads = options.threads});
    const double out = secondsSince(middle);
    best_in = run == 0 ? in : std::min(best_in, in);
    best_out = run == 0 ? out : std::min(best_out, out);
    if (run > 0) {
      continue;
    }
    found.n_archive += frame.size();
    found.n_original += crop.bytes.size();
    const CheckReport report = checkValues(type, crop.bytes, array.bytes(), rule);
    if (!report.passed()) {
      throw Failure(ExitCode::kBound, violationText(report));
    }
  }
  found.compress_seconds += best_in;
  found.decompress_seconds += best_out;
}

/// A bound relative to the range of the whole would mean less in a crop.
BoundRequest boundInCrops(const BoundRequest& bound, const BoundRule& rule) {
  if (bound.mode != ErrorBoundMode::NOA) {
    return bound;
  }
  return {ErrorBoundMode::ABS, rule.value};
}

std::vector<Suggestion> rank(const SuggestArguments& arguments,
                             const Field& field,
                             const BoundRequest& bound,
                             std::vector<std::string>& left_out) {
  CompressOptions base;
  applyFill(parseFill(arguments.fill), field.fill, base);
  BoundRule rule = ruleOfRequest(bound, field.type, field.bytes, base.fill);
  rule.fill = base.fill;
  if (base.suspect_fill) {
    checkRangeBound({bound.mode, bound.value, rule.value}, field.type, field.bytes, base.fill,
                    CpuExecutor::serial());
  }
  const BoundRequest in_crops = boundInCrops(bound, rule);
  base.error_bound = in_crops.value;
  base.mode = in_crops.mode;
  base.backend = parseBackend(arguments.common.backend);
  base.threads = arguments.common.threads;
  const std::vector<Crop> crops = cropsOf(field);
  const auto start = Clock::now();
  std::vector<Suggestion> all;
  for (const std::string& name : presetNames()) {
    if (!takesBound(*findPreset(name), bound.mode)) {
      continue;
    }
    if (secondsSince(start) > arguments.seconds) {
      left_out.push_back(name);
      continue;
    }
    base.preset = name;
    Suggestion found{.preset = name};
    for (const Crop& crop : crops) {
      measure(field.type, crop, rule, base, found);
    }
    all.push_back(found);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.ratio() > b.ratio(); });
  return all;
}

void printTable(const std::vector<Suggestion>& all, const std::string& bound) {
  fmt::print("{:>4}  {:<27}{:>9}{:>16}{:>17}\n", "rank", "preset", "ratio", "compress GB/s",
             "decompress GB/s");
  const auto fastest =
      std::max_element(all.begin(), all.end(), [](const Suggestion& a, const Suggestion& b) {
        return a.compressSpeed() < b.compressSpeed();
      });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Suggestion& one = all[i];
    fmt::print("{:>4}  {:<27}{:>9.2f}{:>16}{:>17}{}\n", i + 1, one.preset, one.ratio(),
               speedNumber(one.compressSpeed()), speedNumber(one.decompressSpeed()),
               i == 0              ? "  smallest"
               : &one == &*fastest ? "  fastest"
                                   : "");
  }
  fmt::print("fz compress -p {} -b {} ...\n", all.front().preset, bound);
}

void suggestFor(const SuggestArguments& arguments, const std::string& file, JsonRows& rows) {
  FieldRequest request;
  if (!arguments.type.empty()) {
    request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    request.extents = parseExtents(arguments.dims);
  }
  const BoundRequest bound = parseBound(arguments.bound);
  const Field field = readField(file, request);
  if (field.valueCount() == 0) {
    throw Failure(ExitCode::kUsage, "it has no values, so every preset does as well");
  }
  if (!arguments.common.quiet) {
    say("{}: {}\n", field.name, describeField(field, ""));
  }
  std::vector<std::string> left_out;
  const std::vector<Suggestion> all = rank(arguments, field, bound, left_out);
  if (all.empty()) {
    throw Failure(ExitCode::kUsage, fmt::format("no preset takes -b {}", arguments.bound));
  }
  for (const std::string& name : left_out) {
    printWarning(field.name, fmt::format("no time was left for '{}'; raise --seconds", name));
  }
  if (!arguments.json) {
    printTable(all, arguments.bound);
    return;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Suggestion& one = all[i];
    rows.add(file, nlohmann::ordered_json{{"preset", one.preset},
                                          {"rank", i + 1},
                                          {"bound", arguments.bound},
                                          {"ratio", one.ratio()},
                                          {"sample_bytes", one.n_original},
                                          {"original_bytes", field.bytes.size()},
                                          {"compress_gb_per_s", one.compressSpeed()},
                                          {"decompress_gb_per_s", one.decompressSpeed()}}
                       .dump());
  }
}

}  // namespace

Command addSuggest(CLI::App& root) {
  auto arguments = std::make_shared<SuggestArguments>();
  CLI::App* app = root.add_subcommand("suggest", "Rank the presets on a sample of your data");
  addFiles(*app, arguments->common, "as for compress");
  app->add_option("-b,--bound", arguments->bound, "abs:E, rel:E or range:E, as for compress")
      ->type_name("KIND:E")
      ->required();
  app->add_option("-t,--type", arguments->type, "f32 or f64, as for compress")->type_name("TYPE");
  app->add_option("-d,--dims", arguments->dims, "extents, the fastest (x) first: 3600x1800")
      ->type_name("XxYxZ");
  addFill(*app, arguments->fill);
  app->add_option("--seconds", arguments->seconds,
                  "no further preset is tried after this time; those by purpose come first")
      ->type_name("S")
      ->capture_default_str();
  app->add_flag("--json", arguments->json, kJsonHelp);
  app->add_flag("-q,--quiet", arguments->common.quiet, "say nothing but the table and errors");
  addRunning(*app, arguments->common);
  app->footer(kSuggestFooter);
  return {app,
          [arguments] {
            checkCommon(arguments->common);
            static_cast<void>(parseBound(arguments->bound));
            JsonRows rows("suggest", arguments->json);
            return forEachFile(
                filesOrStandardInput(arguments->common.files), Task::kEncode, rows,
                [&](const std::string& file) { suggestFor(*arguments, file, rows); });
          },
          Task::kEncode};
}

}  // namespace fz::cli
