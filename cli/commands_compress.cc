#include <CLI/CLI.hpp>
#include <chrono>
#include <fmt/format.h>
#include <memory>

#include "archive_output.h"
#include "chunked_input.h"
#include "commands.h"
#include "compress_chunks.h"
#include "compress_job.h"
#include "compress_verify.h"
#include "dims_hint.h"
#include "field_io.h"
#include "fz/bound_kind.h"
#include "fz/host_api.h"
#include "hdf5_io.h"
#include "inspect_any.h"
#include "json_report.h"
#include "json_rows.h"
#include "memory_check.h"
#include "options.h"
#include "output_io.h"
#include "pipeline_options.h"
#include "progress.h"
#include "report/hook.h"
#include "report_chunks.h"
#include "stage_spec.h"
#include "standard_streams.h"
#include "target.h"
#include "verify_chunks.h"
#include "warnings.h"

namespace fz::cli {

namespace {

constexpr const char* kCompressFooter =
    "Bounds (-b), for every finite value x and its decoded x':\n"
    "  abs:E    |x - x'| <= E, in the unit of the data\n"
    "  rel:E    |x - x'| <= E * |x|, so small values keep their digits\n"
    "  range:E  |x - x'| <= E * (max - min) of the field; of a constant field: E itself\n"
    "Missing values come back bit for bit and have no part in the bound or the range: NaN,\n"
    "infinities, and fill values, which --fill or the attributes of an HDF5 or netCDF file name.\n"
    "Where a value that nobody named looks like one, range:E is refused.\n"
    "lossless, and no -b at all: every value comes back bit for bit.\n"
    "\n"
    "Pipelines: a preset (-p), a file (-c), or one line (--stages): stages joined by '->', settings\n"
    "in brackets as key=value, switches and choices by their word: quantizer(rel), huffman(fine).\n"
    "Element types, element_width and bklen follow from the stages around; -v shows them.\n"
    "\n"
    "Examples:\n"
    "  fz compress -b range:1e-4 -d 3600x1800 temperature.f32    writes temperature.f32.fzm\n"
    "  fz compress -p cusz -b abs:0.01 --verify wind.npy\n"
    "  fz compress -b range:1e-3 climate.nc:/temperature\n"
    "  fz compress -b abs:0.01 --fill -9999 sea.f32\n"
    "  fz compress --stages 'quantizer(linear)->lorenzo(block_size=32)->adaptive_bitpack' a.f32\n"
    "  generate | fz compress -t f64 -b rel:1e-3 - > field.fzm";

std::string boundText(const FrameInfo& info) {
  if (!info.bound) {
    return info.lossless ? "none (lossless)" : "none (values may miss it)";
  }
  std::string text = fmt::format("{}:{}", boundKindName(*info.bound), info.bound->requested);
  if (info.bound->mode != ErrorBoundMode::ABS && !isPointwise(*info.bound) &&
      info.original_bytes > 0) {
    text += fmt::format(" = {} absolute", info.bound->absolute);
  }
  return text;
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
  say("{} -> {}: {} -> {} bytes, ratio {:.2f}, bound {}\n", inputName(input),
      output == kStandardStream ? "standard output" : output, info.original_bytes,
      info.frameBytes(), info.ratio(), boundText(info));
  if (info.isFallback() && info.original_bytes > 0) {
    say("  stored without loss: with this bound '{}' would have made more bytes\n",
        job.pipeline.name);
  }
  if (info.missing && info.missing->n_missing > 0) {
    say("  {}\n", missingText(info));
  }
  if (!job.common.verbose) {
    return;
  }
  std::string stages;
  for (const FrameStageInfo& stage : info.stages) {
    stages += fmt::format("{}{}", stages.empty() ? "" : ", ", stage.name);
  }
  say("  pipeline '{}': {}\n  {:.3f} s, {:.3f} GB/s\n", job.pipeline.name, stages, seconds,
      static_cast<double>(info.original_bytes) / seconds * 1e-9);
}

void sayField(const CompressJob& job, const Field& field, const std::string& about) {
  if (job.common.quiet) {
    return;
  }
  say("{}: {}\n", field.name, about);
  if (!field.note.empty()) {
    say("  {}\n", field.note);
  }
  if (job.common.verbose && !job.pipeline.stages.empty()) {
    say("  --stages builds:\n{}", describeStages(buildStages(job.pipeline.stages, field.type),
                                                 job.pipeline.bound.has_value()));
  }
}

/// What is written, and where.
struct Outputs {
  std::string archive;
  std::string page;  ///< of the report; empty: none
};

Outputs outputsFor(const CompressJob& job, const std::string& input) {
  if (input.ends_with(kArchiveSuffix) && !job.common.force) {
    throw Failure(ExitCode::kUsage,
                  "its name says that it already is an archive; use -f to compress it anyway");
  }
  const std::string archive = outputPath(job.common, input, ownName(input));
  checkHdf5Output(archive);
  checkJsonOutput(job.common, archive);
  checkOutput(archive, input, job.common.force);
  return {archive, reportPath(job.report, job.common, input)};
}

void reportChunked(const CompressJob& job,
                   const std::string& input,
                   const Outputs& outputs,
                   const Field& field,
                   Progress& progress) {
  std::optional<ChunkedPage> page;
  writeReportBeside(
      outputs.page, existingWith(job.common.force), job.report, outputs.archive, true, [&] {
        const ArchiveReader reader = openArchive(outputs.archive, job.common.limits, &progress);
        const CheckReport check = checkChunks(reader, {input, {}, job.fill}, job.common, progress);
        page.emplace(reader, outputs.archive, input, outputs.page, job.common, progress);
        progress.end();
        report::Input about = page->input(check);
        about.options = optionsFor(job, field);
        return about;
      });
  if (!job.common.quiet) {
    say("  report: {}\n", outputs.page);
  }
}

void compressChunked(const CompressJob& job,
                     const std::string& input,
                     const Outputs& outputs,
                     ChunkedInput& chunked,
                     Progress& progress,
                     JsonRows& rows) {
  progress.pause();
  sayField(job, chunked.field, describeChunked(chunked));
  // A page is made of an archive that keeps its bound, so every chunk is checked before it is
  // written.
  CompressJob checked = job;
  checked.verify = job.verify || !outputs.page.empty();
  const double seconds = compressInChunks(checked, input, outputs.archive, chunked, progress);
  if (!outputs.page.empty()) {
    reportChunked(job, input, outputs, chunked.field, progress);
  }
  if (rows.isOn()) {
    rows.add(input, compressToJson(inspectAny(outputs.archive),
                                   {outputs.archive, job.pipeline.name, seconds}));
  }
}

/// A frame, and how it came about.
struct Outcome {
  Frame frame;
  FrameInfo info;
  double seconds = 0.0;
  std::optional<Decoded> decoded;  ///< where it was verified
};

Outcome runCompression(const CompressJob& job,
                       const Field& field,
                       HostCompression& compression,
                       bool is_verified,
                       Progress& progress) {
  progress.beginRun("compressing", field.bytes.size());
  Outcome made;
  const auto start = std::chrono::steady_clock::now();
  made.frame = compression.run();
  made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  made.info = inspect(made.frame);
  checkBoundKind(job.pipeline, made.info);
  if (is_verified) {
    made.decoded = verifyFrame(job, field, made.frame, made.info, progress);
  }
  if (job.strict) {
    refuseLoss(findWarnings(field, made.info, job.pipeline.name, !job.fill.is_none));
  }
  return made;
}

void sayOutcome(const CompressJob& job,
                const std::string& input,
                const Outputs& outputs,
                const Field& field,
                const Outcome& made,
                const HostCompression& compression) {
  if (job.common.quiet) {
    printWarnings(field, made.info, job.pipeline.name, true, !job.fill.is_none);
    return;
  }
  report(job, input, outputs.archive, made.info, made.seconds);
  if (job.common.verbose) {
    say("  ran on {}: {}\n", backendName(compression.pipeline().getBackend()),
        compression.whyThere());
  }
  for (const Stage* stage : compression.pipeline().getStages()) {
    if (const std::string note = stage->runNote(); job.common.verbose && !note.empty()) {
      say("  {}: {}\n", stage->getName(), note);
    }
  }
  if (!field.has_shape && made.info.ndim > 1) {
    say("  shape {} ({})\n", dimsText(made.info.extents), job.pipeline.name);
  }
  if (made.decoded) {
    const CheckReport& check = made.decoded->check;
    say("  verified: all {} values meet {}, largest error {}\n", check.n_values,
        ruleText(check.rule), largestErrorText(check));
  }
  if (!outputs.page.empty()) {
    say("  report: {}\n", outputs.page);
  }
  printWarnings(field, made.info, job.pipeline.name, false, !job.fill.is_none);
  if (const std::string hint = reversedDimsHint(field, made.info); !hint.empty()) {
    say("fz: hint: {}: {}\n", field.name, hint);
  }
}

void compressWhole(const CompressJob& job,
                   const std::string& input,
                   const Outputs& outputs,
                   const Field& field,
                   Progress& progress,
                   JsonRows& rows) {
  progress.pause();
  sayField(job, field, describeField(field, job.pipeline.has_config ? job.pipeline.name : ""));
  CompressOptions options = optionsFor(job, field);
  applyTarget(job.pipeline, field, job.common.quiet, options, progress);
  options.progress = progress.pipeline();
  HostCompression compression(field.type, field.bytes, options);
  checkMemoryFor(job, field, compression);
  const Outcome made =
      runCompression(job, field, compression, job.verify || !outputs.page.empty(), progress);
  const bool has_passed = !made.decoded || made.decoded->check.passed();
  if (has_passed) {
    progress.beginBytes("writing", made.frame.size());
    writeOutput(outputs.archive, writingWith(job.common), {}, made.frame.bytes(), &progress, input);
  }
  progress.end();
  if (!outputs.page.empty()) {
    writeReportBeside(
        outputs.page, existingWith(job.common.force), job.report, outputs.archive, has_passed, [&] {
          report::Input about = reportInput(field, made.frame, *made.decoded, options);
          about.archive_name = outputs.archive;
          about.options->progress = nullptr;
          return about;
        });
  }
  if (made.decoded) {
    requirePassed(made.decoded->check);
  }
  if (rows.isOn()) {
    rows.add(input, compressToJson({input, made.info},
                                   {outputs.archive, job.pipeline.name, made.seconds}));
  }
  sayOutcome(job, input, outputs, field, made, compression);
}

void compressFile(const CompressJob& job, const std::string& input, JsonRows& rows) {
  const Outputs outputs = outputsFor(job, input);
  Progress progress(progressMode(job.common), inputName(input));
  // Bounds by result look at all values several times, and reports at the archive as well.
  const bool needs_whole =
      (job.pipeline.target && isStream(input)) ||
      (!outputs.page.empty() && (isStream(input) || !isReplaceable(outputs.archive)));
  const std::uint64_t limit = job.common.limits.max_memory_bytes;
  std::optional<InputBytes> piped;
  if (auto chunked = openChunked(
          input, job.request,
          needs_whole && !job.chunk.is_given ? ~std::uint64_t{0} : job.chunk.wholeBytes(limit),
          &progress, piped)) {
    if (needs_whole) {
      throw Failure(
          ExitCode::kUsage,
          "psnr: and ratio: from a pipe, and a report from or to one, need the whole array in "
          "memory; add --chunk none");
    }
    compressChunked(job, input, outputs, *chunked, progress, rows);
    return;
  }
  if (const std::optional<Hdf5Name> dataset = hdf5Name(input)) {
    checkMemory({hdf5DatasetBytes(*dataset), "holding the dataset"}, limit);
  }
  compressWhole(job, input, outputs, readField(input, job.request, &progress, piped), progress,
                rows);
}

/// Once for all files: the difference is large, and nobody has to know of bounds to begin.
void sayLossless(const CompressJob& job) {
  if (job.pipeline.is_lossless_by_default && !job.common.quiet) {
    say("fz: no bound given, so every bit is kept; with one, such as -b range:1e-3 or -b abs:0.01, "
        "archives are far smaller (-b lossless says that this is meant)\n");
  }
}

}  // namespace

Command addCompress(CLI::App& root) {
  auto arguments = std::make_shared<CompressArguments>();
  CLI::App* app = root.add_subcommand(
      "compress", "Compress arrays of f32 or f64: FILE becomes FILE.fzm and stays");
  addFiles(*app, arguments->common,
           "raw little-endian fields, .npy, or datasets as file.h5:/name; - or none: stdin");
  addOutput(*app, arguments->common, "result; a folder for several files, - for stdout");
  addStandardOutput(*app, arguments->common, "--stdout");
  addFileHabits(*app, arguments->common);
  addPipeline(*app, arguments->pipeline);
  app->add_option("-t,--type", arguments->type, "f32 or f64; else by the name (.f32, .f64, .npy)")
      ->type_name("TYPE");
  app->add_option("-d,--dims", arguments->dims, "extents, the fastest (x) first: 3600x1800")
      ->type_name("XxYxZ");
  addFill(*app, arguments->fill);
  addChunk(*app, arguments->chunk);
  app->add_flag("--verify", arguments->verify,
                "decode and check every value before the file gets its name");
  app->add_flag(
      "--strict", arguments->strict,
      "warnings that values may be lost are errors, and nothing is written (exit code 4)");
  addReport(*app, arguments->report);
  addSweep(*app, arguments->report);
  addJson(*app, arguments->common);
  addQuietAndVerbose(*app, arguments->common, kQuietEncoderHelp);
  addRunning(*app, arguments->common);
  addProgress(*app, arguments->common);
  addMemoryLimit(*app, arguments->common,
                 "refuse work that needs more memory than this besides the mapped input");
  app->footer(kCompressFooter);
  return {app,
          [arguments] {
            const CompressJob job = makeJob(*arguments);
            sayLossless(job);
            JsonRows rows("compress", job.common.json);
            return forEachFile(job.common.files, Task::kEncode, rows, [&](const std::string& file) {
              compressFile(job, file, rows);
              removeInput(job.common, file);
            });
          },
          Task::kEncode};
}

}  // namespace fz::cli
