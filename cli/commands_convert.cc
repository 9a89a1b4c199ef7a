#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <memory>

#include "api/host_run.h"
#include "archive/chunk_grid.h"
#include "commands.h"
#include "field_io.h"
#include "fz/archive.h"
#include "fz/host_api.h"
#include "handover/handover.h"
#include "handover/zarr_name.h"
#include "hdf5_io.h"
#include "json_report.h"
#include "json_rows.h"
#include "memory_check.h"
#include "npy.h"
#include "options.h"
#include "output_io.h"
#include "pipeline/bound_check.h"
#include "pipeline_options.h"
#include "progress.h"
#include "standard_streams.h"
#include "target.h"
#include "warnings.h"

namespace fz::cli {

namespace {

constexpr const char* kConvertFooter =
    "Arrays: raw, .npy and HDF5 datasets (file.h5:/name) become each other, by the names. Values do\n"
    "not change; f32 stays f32. Existing HDF5 files are never changed.\n"
    "Archives: with -p, -c or --stages a .fzm is decoded and compressed again. Its values are those\n"
    "of the old archive, so the errors add up: |x - x''| <= old + new, which is said in absolute\n"
    "numbers where both are; the new archive states its own bound, against the old values.\n"
    "Hand-over: the chunks of an archive become those of a Zarr array (big.zarr, big.zarr.zip,\n"
    "big.zarr:/name) or of an HDF5 dataset with the fz filter, and back, as they are. --decode\n"
    "writes plain values to HDF5.\n"
    "\n"
    "Examples:\n"
    "  fz convert -d 3600x1800 temperature.f32 temperature.npy\n"
    "  fz convert climate.nc:/temperature temperature.npy\n"
    "  fz convert temperature.npy new.h5:/fields/temperature\n"
    "  fz convert big.fzm big.zarr\n"
    "  fz convert -p cusz -b abs:0.01 old.fzm new.fzm";

struct ConvertArguments {
  CommonOptions common;
  std::string input;
  std::string output;
  PipelineArguments pipeline;
  std::string type;
  std::string dims;
  bool decodes = false;
};

bool namesPipeline(const PipelineArguments& arguments) {
  return !arguments.preset.empty() || !arguments.config.empty() || !arguments.stages.empty() ||
         !arguments.bound.empty() || !arguments.settings.empty();
}

/// An array to a file of the kind that the name says.
void writeArray(const std::string& output,
                Existing existing,
                const Field& field,
                Progress& progress) {
  progress.beginBytes("writing", field.bytes.size());
  if (const std::optional<Hdf5Name> name = hdf5Name(output)) {
    writeHdf5(*name, field.type, shapeOf(field.extents), field.bytes, field.fill);
    return;
  }
  const std::string header =
      isNpyName(output) ? makeNpyHeader(field.type, shapeOf(field.extents)) : std::string();
  writeOutput(output, existing, header, field.bytes, &progress);
}

/// What an archive of chunks says as a whole.
FrameInfo infoOfWhole(const ArchiveReader& archive) {
  const ArchiveInfo& about = archive.info();
  FrameInfo info;
  info.type = about.type;
  info.extents = about.extents;
  info.dims = foldedDims(about.extents);
  info.original_bytes = about.original_bytes;
  info.payload_bytes = about.archive_bytes;
  info.bound = about.bound;
  info.lossless = !about.bound && archive.hasChunk(0) && archive.inspect(0).lossless;
  return info;
}

/// The array in an archive of chunks, whole.
Field decodeChunks(const ConvertArguments& arguments,
                   const ArchiveReader& archive,
                   Progress& progress) {
  const ArchiveInfo& about = archive.info();
  checkMemory({about.original_bytes, "holding the array"},
              arguments.common.limits.max_memory_bytes);
  const DecodeLimits limits = limitsBesideResult(arguments.common.limits, about.original_bytes);
  std::vector<std::uint8_t> values(about.original_bytes);
  progress.beginBytes("decoding", values.size());
  archive.read({AxisValues(about.extents.size(), 0), about.extents}, values,
               {.limits = limits,
                .backend = parseBackend(arguments.common.backend),
                .threads = arguments.common.threads});
  Field field;
  field.name = arguments.input;
  field.type = about.type;
  field.dims = foldedDims(about.extents);
  field.extents = about.extents;
  field.has_shape = true;
  field.how = "archive";
  field.fill = declaredFill(archive);
  field.bytes = InputBytes(std::move(values));
  return field;
}

/// The array in an archive.
Field decodeField(const ConvertArguments& arguments, Progress& progress, FrameInfo& info) {
  try {
    const InputBytes frame = readBytes(arguments.input, &progress);
    const ArchiveReader archive(sourceOf(frame));
    if (!archive.info().is_frame) {
      info = infoOfWhole(archive);
      return decodeChunks(arguments, archive, progress);
    }
    info = inspect(frame);
    progress.beginRun("decoding", info.original_bytes);
    const Array array =
        decompress(ByteView(frame),
                   {.limits = limitsBesideResult(arguments.common.limits, info.original_bytes),
                    .backend = parseBackend(arguments.common.backend),
                    .threads = arguments.common.threads,
                    .progress = progress.pipeline()});
    Field field;
    field.name = arguments.input;
    field.type = info.type;
    field.dims = info.dims;
    field.extents = info.extents;
    field.has_shape = true;
    field.how = "archive";
    field.fill = declaredFill(archive);
    const auto kept = std::make_shared<const Array>(array);
    field.bytes = InputBytes(kept, kept->bytes(), false);
    return field;
  } catch (...) {
    // The same library error means a damaged archive here and a wrong setting further on.
    throw currentFailure(Task::kDecode);
  }
}

/// The smallest double that is not below the real sum.
double roundedUpSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double rest = (a - (sum - b_part)) + (b - b_part);
  return rest > 0.0 ? std::nextafter(sum, std::numeric_limits<double>::infinity()) : sum;
}

/// What both bounds come to against the first original.
std::string sumText(const FrameInfo& old_info, const FrameInfo& new_info) {
  const std::optional<BoundRule> first = ruleOfFrame(old_info);
  const std::optional<BoundRule> second = ruleOfFrame(new_info);
  if (!first || !second) {
    return "one of the two archives promises no bound, so there is none against the original";
  }
  const auto isExact = [](const BoundRule& rule) { return rule.kind == BoundRule::Kind::kBits; };
  if (isExact(*first) || isExact(*second)) {
    return fmt::format("against the original: {}, because the {} archive is exact",
                       ruleText(isExact(*first) ? *second : *first),
                       isExact(*first) ? "old" : "new");
  }
  if (first->kind == BoundRule::Kind::kAbsolute && second->kind == BoundRule::Kind::kAbsolute) {
    return fmt::format("against the original: |x - x''| <= {} + {} = {}", first->value,
                       second->value, roundedUpSum(first->value, second->value));
  }
  if (first->kind == BoundRule::Kind::kPointwise && second->kind == BoundRule::Kind::kPointwise) {
    return fmt::format("against the original: |x - x''| <= ({} + {} + {} * {}) * |x|", first->value,
                       second->value, first->value, second->value);
  }
  return fmt::format(
      "against the original the errors add up: {} of the old archive, then {} of "
      "the new one",
      ruleText(*first), ruleText(*second));
}

FrameInfo encodeAgain(const ConvertArguments& arguments,
                      const Field& field,
                      const FrameInfo& old_info,
                      Progress& progress) {
  const PipelineChoice choice = choosePipeline(arguments.pipeline);
  if (!isFloat(field.type)) {
    throw Failure(ExitCode::kUsage, fmt::format("{}: holds {}, and pipelines take f32 and f64",
                                                arguments.input, dataTypeToString(field.type)));
  }
  CompressOptions options = compressOptions(choice, field.type);
  options.backend = parseBackend(arguments.common.backend);
  options.threads = arguments.common.threads;
  options.dims = field.dims;
  if (field.has_shape) {
    options.extents = field.extents;
  }
  options.max_memory_bytes = arguments.common.limits.max_memory_bytes;
  options.fill = field.fill;
  applyTarget(choice, field, arguments.common.quiet, options, progress);
  options.progress = progress.pipeline();
  HostCompression compression(field.type, field.bytes, options);
  const std::uint64_t n_bytes = compression.estimateMemory() + field.bytes.size();
  checkMemory({n_bytes, fmt::format("compressing {} bytes again", field.bytes.size())},
              arguments.common.limits.max_memory_bytes);
  progress.beginRun("compressing", field.bytes.size());
  const Frame frame = compression.run();
  FrameInfo info = inspect(frame);
  checkBoundKind(choice, info);
  progress.beginBytes("writing", frame.size());
  writeOutput(arguments.output, existingWith(arguments.common.force), {}, frame.bytes(), &progress);
  progress.end();
  if (!arguments.common.quiet) {
    say("{} -> {}: {} -> {} bytes, ratio {:.2f} (was {:.2f})\n  {}\n", inputName(arguments.input),
        arguments.output, old_info.frameBytes(), info.frameBytes(), info.ratio(), old_info.ratio(),
        sumText(old_info, info));
  }
  printWarnings(field, info, choice.name, arguments.common.quiet, true);
  if (!arguments.common.quiet && info.frameBytes() > old_info.frameBytes() &&
      info.frameBytes() <= info.original_bytes) {
    printWarning(field.name,
                 "the new archive is larger than the old one, and its values are no better; keep "
                 "the old one, or use a larger -b or another preset");
  }
  return info;
}

void checkTarget(const ConvertArguments& arguments) {
  checkHdf5Slash(arguments.output);
  const std::optional<Hdf5Name> dataset = hdf5Name(arguments.output);
  std::error_code ignored;
  if (dataset && std::filesystem::exists(dataset->file, ignored)) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' exists, and HDF5 files are never changed; name "
                                             "a new file",
                                             dataset->file));
  }
  const std::optional<ZarrName> zarr = zarrName(arguments.output);
  if (zarr && !zarr->is_zip && std::filesystem::exists(zarr->path, ignored)) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' exists, and Zarr folders are never changed; "
                                             "name a new one, or remove it",
                                             zarr->path));
  }
  if (!dataset) {
    checkHdf5Output(arguments.output);
    checkOutput(zarr ? zarr->path : arguments.output, arguments.input, arguments.common.force);
  }
}

/// Whether frames are copied between an archive and an array of Zarr or HDF5.
bool isHandover(const ConvertArguments& arguments) {
  if (arguments.decodes || namesPipeline(arguments.pipeline)) {
    return false;
  }
  const bool from_archive = arguments.input.ends_with(kArchiveSuffix);
  return from_archive ? takesFrames(arguments.output)
                      : arguments.output.ends_with(kArchiveSuffix) && hasFrames(arguments.input);
}

/// Throws Failure(kUsage) for Zarr where no frames can be copied.
void checkZarr(const ConvertArguments& arguments) {
  if (zarrName(arguments.input) || zarrName(arguments.output)) {
    throw Failure(ExitCode::kUsage,
                  "frames are copied between an archive and a Zarr array: 'fz convert a.fzm "
                  "a.zarr', 'fz convert a.zarr a.fzm', without -p and --decode");
  }
}

std::string runHandover(const ConvertArguments& arguments, const std::function<double()>& seconds) {
  const CommonOptions& common = arguments.common;
  const bool from_archive = arguments.input.ends_with(kArchiveSuffix);
  Progress progress(progressMode(common), inputName(arguments.input));
  Handover done;
  try {
    done = from_archive ? archiveToChunks(arguments.input, arguments.output, common, progress)
                        : chunksToArchive(arguments.input, arguments.output, common, progress);
  } catch (...) {
    throw currentFailure(Task::kDecode);
  }
  progress.end();
  if (!common.quiet) {
    say("{} -> {}: {} {}, {} frames copied\n", inputName(arguments.input), arguments.output,
        dataTypeToString(done.type), dimsText(done.extents), done.n_chunks - done.n_recoded);
    if (done.n_recoded > 0) {
      say("  {} more were coded anew without loss, as an archive could not have them as they were\n",
          done.n_recoded);
    }
  }
  return arrayToJson({arguments.output, done.type, done.extents, done.original_bytes,
                      done.frame_bytes, seconds()});
}

/// The row of --json.
std::string runConvert(const ConvertArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  checkCommon(arguments.common);
  checkJsonOutput(arguments.common, arguments.output);
  checkTarget(arguments);
  if (isHandover(arguments)) {
    return runHandover(arguments, seconds);
  }
  checkZarr(arguments);
  const bool from_archive = arguments.input.ends_with(kArchiveSuffix);
  const bool to_archive = arguments.output.ends_with(kArchiveSuffix);
  const bool encodes = namesPipeline(arguments.pipeline);
  if (to_archive && !from_archive) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' is an array; 'fz compress -o {} {}' makes an "
                              "archive of it",
                              arguments.input, arguments.output, arguments.input));
  }
  if (encodes != to_archive) {
    throw Failure(ExitCode::kUsage,
                  to_archive
                      ? "name the new pipeline with -p, -c or --stages; to keep the old one, "
                        "copy the file"
                      : "-b, -p, -c, --stages and --set are for results that end in .fzm");
  }
  Progress progress(progressMode(arguments.common), inputName(arguments.input));
  FieldRequest request;
  if (!arguments.type.empty()) {
    request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    request.extents = parseExtents(arguments.dims);
  }
  FrameInfo info;
  const Field field = from_archive ? decodeField(arguments, progress, info)
                                   : readField(arguments.input, request, &progress);
  if (to_archive) {
    const FrameInfo made = encodeAgain(arguments, field, info, progress);
    return compressToJson({arguments.input, made},
                          {arguments.output, choosePipeline(arguments.pipeline).name, seconds()});
  }
  writeArray(arguments.output, existingWith(arguments.common.force), field, progress);
  progress.end();
  if (!arguments.common.quiet) {
    say("{} -> {}: {} {}, {} bytes\n", inputName(arguments.input),
        arguments.output == kStandardStream ? "standard output" : arguments.output,
        dataTypeToString(field.type), dimsText(field.dims), field.bytes.size());
    if (!field.note.empty()) {
      say("  {}\n", field.note);
    }
  }
  return arrayToJson({arguments.output, field.type, field.extents, field.bytes.size(),
                      from_archive ? info.frameBytes() : 0, seconds()});
}

ExitCode convertWithRow(const ConvertArguments& arguments) {
  JsonRows rows("convert", arguments.common.json);
  return forEachFile({arguments.input}, Task::kEncode, rows,
                     [&](const std::string& file) { rows.add(file, runConvert(arguments)); });
}

}  // namespace

Command addConvert(CLI::App& root) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* app = root.add_subcommand(
      "convert", "Arrays between raw, .npy and HDF5; archives to Zarr and HDF5, or another bound");
  app->add_option("input", arguments->input, "array or archive; - for stdin")
      ->type_name("INPUT")
      ->required();
  app->add_option("output", arguments->output, "its kind is in its name; - for stdout, raw")
      ->type_name("OUTPUT")
      ->required();
  app->add_flag("-f,--force", arguments->common.force, "overwrite an existing file");
  addPipeline(*app, arguments->pipeline);
  app->add_option("-t,--type", arguments->type, "f32 or f64 of a raw input, as for compress")
      ->type_name("TYPE");
  app->add_option("-d,--dims", arguments->dims, "extents of a raw input, the fastest (x) first")
      ->type_name("XxYxZ");
  app->add_flag("--decode", arguments->decodes,
                "write values of an archive to HDF5, instead of its frames for the filter");
  addJson(*app, arguments->common);
  app->add_flag("-q,--quiet", arguments->common.quiet, kQuietEncoderHelp);
  addRunning(*app, arguments->common);
  addProgress(*app, arguments->common);
  addLimits(*app, arguments->common);
  app->footer(kConvertFooter);
  return {app, [arguments] { return convertWithRow(*arguments); }, Task::kEncode};
}

}  // namespace fz::cli
