#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>

#include "bound_check.h"
#include "commands.h"
#include "field_io.h"
#include "fz/host_api.h"
#include "hdf5_io.h"
#include "memory_check.h"
#include "options.h"
#include "output_io.h"
#include "pipeline_options.h"
#include "progress.h"
#include "report/hook.h"
#include "stage_spec.h"
#include "warnings.h"

namespace fz::cli {

namespace {

constexpr std::string_view kArchiveSuffix = ".fzm";

constexpr const char* kFooter =
    "Bounds (-b), for every finite value x and its decoded x':\n"
    "  abs:E    |x - x'| <= E, in the unit of the data\n"
    "  rel:E    |x - x'| <= E * |x|, so small values keep their digits\n"
    "  range:E  |x - x'| <= E * (max - min) of the field; of a constant field: E itself\n"
    "NaN and infinities come back bit for bit.\n"
    "\n"
    "Pipelines: a preset (-p), a file (-c), or one line (--stages): stages joined by '->', settings\n"
    "in brackets as key=value, switches and choices by their word: quantizer(rel), huffman(fine).\n"
    "Element types, element_width and bklen follow from the stages around; -v shows them.\n"
    "\n"
    "Examples:\n"
    "  fz compress -b range:1e-4 -d 3600x1800 temperature.f32    writes temperature.f32.fzm\n"
    "  fz compress -p cusz -b abs:0.01 --verify wind.npy\n"
    "  fz compress -b range:1e-3 climate.nc:/temperature\n"
    "  fz compress --stages 'quantizer(linear)->lorenzo(block_size=32)->adaptive_bitpack' a.f32\n"
    "  generate | fz compress -t f64 -b rel:1e-3 - > field.fzm";

struct CompressArguments {
  CommonOptions common;
  PipelineArguments pipeline;
  std::string type;
  std::string dims;
  ReportOptions report;
  bool verify = false;
};

/// The arguments after parsing, the same for every file.
struct CompressJob {
  CommonOptions common;
  PipelineChoice pipeline;
  FieldRequest request;
  ReportOptions report;
  bool verify = false;
};

/// What the archive of an input is called when nothing is said.
std::string ownName(const std::string& input) {
  const std::optional<Hdf5Name> dataset = hdf5Name(input);
  return (dataset ? flatName(*dataset) : input) + std::string(kArchiveSuffix);
}

/// No archive and no page may replace another of the same run.
void checkDistinct(const CompressJob& job) {
  DistinctOutputs outputs;
  for (const std::string& input : job.common.files) {
    outputs.add(outputPath(job.common, input, ownName(input)), input);
    outputs.add(pagePath(job.report, job.common, input), input);
  }
}

CompressJob makeJob(const CompressArguments& arguments) {
  CompressJob job;
  job.common = arguments.common;
  job.common.files = filesOrStandardInput(arguments.common.files);
  job.verify = arguments.verify;
  job.pipeline = choosePipeline(arguments.pipeline);
  if (!arguments.type.empty()) {
    job.request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    job.request.dims = parseDims(arguments.dims);
  }
  checkCommon(arguments.common);
  checkOutputCount(job.common);
  job.report = arguments.report;
  checkReport(job.report, job.common);
  checkDistinct(job);
  return job;
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
  if (!job.pipeline.bound || (promised && promised->kind == BoundRule::Kind::kBits)) {
    if (!promised) {
      throw Failure(ExitCode::kUsage,
                    "verify: this pipeline promises no bound (linear_policy Wrap); give the one to "
                    "check with -b");
    }
    return *promised;
  }
  BoundRule rule = ruleOfRequest(*job.pipeline.bound, field.type, field.bytes);
  if (promised) {
    // A range that was given (value_base) counts, not the one of these data.
    const bool has_range = job.pipeline.bound->mode == ErrorBoundMode::NOA;
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
                    const FrameInfo& info,
                    Progress& progress) {
  progress.beginRun("decoding", field.bytes.size());
  Array decoded = decompress(frame, {.backend = parseBackend(job.common.backend),
                                     .threads = job.common.threads,
                                     .progress = progress.pipeline()});
  if (decoded.bytes().size() != field.bytes.size()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("verify: {} bytes decoded to {}; nothing was written, please report "
                              "this",
                              field.bytes.size(), decoded.bytes().size()));
  }
  progress.beginBytes("checking", field.bytes.size());
  CheckReport check = checkValues(field.type, field.bytes, decoded.bytes(),
                                  ruleToVerify(job, field, info), &progress);
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

/// An archive is one frame, so the whole field passes the pipeline at once; what that takes is
/// known before any of it is read.
void checkMemoryFor(const CompressJob& job, const Field& field, const CompressOptions& options) {
  std::uint64_t n_bytes = fz::estimateMemory(field.type, field.bytes.size(), options);
  n_bytes += field.bytes.isMapped() ? 0 : field.bytes.size();
  // A report needs the decoded values too, and about as much again for its figures.
  const unsigned n_fields = !job.report.path.empty() ? 2 : job.verify ? 1 : 0;
  n_bytes += n_fields * field.bytes.size();
  checkMemory({n_bytes, fmt::format("compressing {} bytes with {}{}", field.bytes.size(),
                                    job.pipeline.name, job.verify ? " and --verify" : "")},
              job.common.limits.max_memory_bytes);
}

void report(const CompressJob& job,
            const std::string& input,
            const std::string& output,
            const FrameInfo& info,
            double seconds) {
  fmt::print(stderr, "{} -> {}: {} -> {} bytes, ratio {:.2f}, bound {}\n", inputName(input),
             output == kStandardStream ? "standard output" : output, info.original_bytes,
             info.frameBytes(), info.ratio(), boundText(info));
  if (info.isFallback() && info.original_bytes > 0) {
    fmt::print(stderr,
               "  stored without loss: with this bound '{}' would have made more bytes than the "
               "data have\n",
               job.pipeline.name);
  }
  if (!job.common.verbose) {
    return;
  }
  std::string stages;
  for (const FrameStageInfo& stage : info.stages) {
    stages += fmt::format("{}{}", stages.empty() ? "" : ", ", stage.name);
  }
  fmt::print(stderr, "  pipeline '{}': {}\n  {:.3f} s, {:.3f} GB/s\n", job.pipeline.name, stages,
             seconds, static_cast<double>(info.original_bytes) / seconds * 1e-9);
}

CompressOptions optionsFor(const CompressJob& job, const Field& field) {
  CompressOptions options = compressOptions(job.pipeline, field.type);
  options.backend = parseBackend(job.common.backend);
  options.threads = job.common.threads;
  options.max_memory_bytes = job.common.limits.max_memory_bytes;
  options.dims = field.dims;
  if (!field.has_shape && job.pipeline.has_config) {
    options.dims = {0, 0, 0};  // as the configuration says
  }
  return options;
}

void sayField(const CompressJob& job, const Field& field) {
  if (job.common.quiet) {
    return;
  }
  fmt::print(stderr, "{}: {}\n", field.name,
             describeField(field, job.pipeline.has_config ? job.pipeline.name : ""));
  if (!field.note.empty()) {
    fmt::print(stderr, "  {}\n", field.note);
  }
  if (job.common.verbose && !job.pipeline.stages.empty()) {
    fmt::print(stderr, "  --stages builds:\n{}",
               describeStages(buildStages(job.pipeline.stages, field.type),
                              job.pipeline.bound.has_value()));
  }
}

void compressFile(const CompressJob& job, const std::string& input) {
  if (input.ends_with(kArchiveSuffix) && !job.common.force) {
    throw Failure(
        ExitCode::kUsage,
        "its name says that it is an archive already; use -f to compress it all the same");
  }
  const std::string output = outputPath(job.common, input, ownName(input));
  checkOutput(output, input, job.common.force);
  const std::string page = reportPath(job.report, job.common, input);
  if (const std::optional<Hdf5Name> dataset = hdf5Name(input)) {
    checkMemory({hdf5DatasetBytes(*dataset), "holding the dataset"},
                job.common.limits.max_memory_bytes);
  }
  Progress progress(progressMode(job.common), inputName(input));
  const Field field = readField(input, job.request, &progress);
  progress.pause();
  sayField(job, field);
  CompressOptions options = optionsFor(job, field);
  checkMemoryFor(job, field, options);
  options.progress = progress.pipeline();
  progress.beginRun("compressing", field.bytes.size());
  const auto start = std::chrono::steady_clock::now();
  const Frame frame = compress(field.type, field.bytes, options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const FrameInfo info = inspect(frame);
  checkBoundKind(job.pipeline, info);
  std::optional<Decoded> decoded;
  if (job.verify || !page.empty()) {
    decoded = verifyFrame(job, field, frame, info, progress);
  }
  if (!decoded || decoded->check.passed()) {
    progress.beginBytes("writing", frame.size());
    writeOutput(output, {}, frame.bytes(), &progress);
  }
  progress.end();
  if (!page.empty()) {
    report::Input about = reportInput(field, frame, *decoded, options);
    about.archive_name = output;
    about.options->progress = nullptr;
    writeReportBeside(page, job.report, std::move(about), decoded->check.passed());
  }
  if (decoded) {
    requirePassed(decoded->check);
  }
  if (job.common.quiet) {
    printWarnings(field, info, job.pipeline.name, true);
    return;
  }
  report(job, input, output, info, seconds);
  if (!field.has_shape && info.ndim > 1) {
    fmt::print(stderr, "  shape {} ({})\n", dimsText(info.dims), job.pipeline.name);
  }
  if (decoded) {
    fmt::print(stderr, "  verified: all {} values meet {}, largest error {}\n",
               decoded->check.n_values, ruleText(decoded->check.rule),
               largestErrorText(decoded->check));
  }
  if (!page.empty()) {
    fmt::print(stderr, "  report: {}\n", page);
  }
  printWarnings(field, info, job.pipeline.name, false);
}

}  // namespace

Command addCompress(CLI::App& root) {
  auto arguments = std::make_shared<CompressArguments>();
  CLI::App* app = root.add_subcommand(
      "compress", "Compress arrays of f32 or f64: FILE becomes FILE.fzm and stays");
  addFiles(*app, arguments->common,
           "raw little-endian fields, .npy, or datasets as file.h5:/name; - or none: stdin");
  addOutput(*app, arguments->common, "result; a folder for several files, - for stdout");
  addPipeline(*app, arguments->pipeline);
  app->add_option("-t,--type", arguments->type,
                  "f32 or f64; else by the name (.f32, .f64, .npy), else f32")
      ->type_name("TYPE");
  app->add_option("-d,--dims", arguments->dims, "extents, the fastest (x) first: 3600x1800")
      ->type_name("XxYxZ");
  app->add_flag("--verify", arguments->verify,
                "decode and check every value before the file gets its name");
  addReport(*app, arguments->report);
  addSweep(*app, arguments->report);
  addQuietAndVerbose(*app, arguments->common, kQuietEncoderHelp);
  addRunning(*app, arguments->common);
  addProgress(*app, arguments->common);
  addMemoryLimit(*app, arguments->common,
                 "refuse work that needs more memory than this besides the mapped input");
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
