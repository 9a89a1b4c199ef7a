#include <CLI/CLI.hpp>
#include <chrono>
#include <fmt/format.h>
#include <memory>

#include "api/host_run.h"
#include "archive_output.h"
#include "commands.h"
#include "field_io.h"
#include "fz/host_api.h"
#include "handover/zarr_name.h"
#include "hdf5_io.h"
#include "json_report.h"
#include "json_rows.h"
#include "memory_check.h"
#include "npy.h"
#include "options.h"
#include "output_io.h"
#include "progress.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

struct DecompressArguments {
  CommonOptions common;
  std::string box;
};

bool isPartOfArray(ByteView bytes) {
  return isChunkedArchive(*sourceOf(bytes));
}

DecompressOptions decodeOptions(const CommonOptions& common, Progress* progress) {
  return {.limits = common.limits,
          .backend = parseBackend(common.backend),
          .threads = common.threads,
          .progress = progress->pipeline()};
}

bool hasSuffix(std::string_view name) {
  return name.ends_with(kArchiveSuffix) && name.size() > kArchiveSuffix.size() &&
         name[name.size() - kArchiveSuffix.size() - 1] != '/';
}

/// The name without .fzm; without -o there must be one.
std::string arrayName(const CommonOptions& options, const std::string& input) {
  const std::string_view name = input;
  if (hasSuffix(name)) {
    return std::string(name.substr(0, name.size() - kArchiveSuffix.size()));
  }
  if (options.output.empty() && name != kStandardStream) {
    throw Failure(ExitCode::kUsage,
                  "its name does not end in .fzm, so the result has no name; give one with -o");
  }
  return input + ".out";
}

/// No result may replace another of the same run.
void checkDistinct(const CommonOptions& options) {
  DistinctOutputs outputs;
  for (const std::string& input : options.files) {
    // Without a name there is no result; that is said when its turn comes.
    if (!options.output.empty() || hasSuffix(input)) {
      outputs.add(outputPath(options, input, arrayName(options, input)), input);
    }
  }
}

const char* checksumText(const FrameInfo& info) {
  return info.has_checksums ? "match" : "absent (format 3.0)";
}

void sayResult(const CommonOptions& options,
               const std::string& input,
               const std::string& output,
               DataType type,
               const AxisValues& extents,
               std::uint64_t n_bytes) {
  if (!options.quiet) {
    say("{} -> {}: {} {}, {} bytes{}\n", inputName(input),
        output == kStandardStream ? "standard output" : output, dataTypeToString(type),
        dimsText(extents), n_bytes, isNpyName(output) ? " as .npy" : "");
  }
}

/// An archive of chunks, or a box of any. `bytes` are those of a pipe.
ArrayFacts decompressByParts(const DecompressArguments& arguments,
                             const std::string& input,
                             const std::string& output,
                             Progress& progress,
                             const InputBytes* bytes = nullptr) {
  const CommonOptions& options = arguments.common;
  const ArchiveReader reader = bytes == nullptr ? openArchive(input, options.limits, &progress)
                                                : ArchiveReader(sourceOf(*bytes), options.limits);
  const ArchiveInfo& info = reader.info();
  const BoxChoice choice =
      arguments.box.empty()
          ? BoxChoice{{AxisValues(info.extents.size(), 0), info.extents}, info.extents}
          : parseBox(arguments.box, info.extents);
  const std::uint64_t n_bytes = writeBox(reader, choice, {output, input}, options, progress);
  progress.end();
  sayResult(options, input, output, info.type, choice.kept_extents, n_bytes);
  if (options.verbose) {
    say("  ratio {:.2f}, {} chunks of {}\n", info.ratio(), info.n_chunks, dimsText(info.chunk));
  }
  return {output, info.type, choice.kept_extents, n_bytes, info.archive_bytes};
}

ArrayFacts decompressFile(const DecompressArguments& arguments, const std::string& input) {
  const CommonOptions& options = arguments.common;
  const std::string output = outputPath(options, input, arrayName(options, input));
  if (!arguments.box.empty() && options.output.empty() && output != kStandardStream) {
    throw Failure(ExitCode::kUsage, fmt::format("a part would have the name of the whole array, "
                                                "'{}'; give it one of its own with -o",
                                                output));
  }
  if (hdf5Name(output)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("decompress writes raw and .npy files; for HDF5 use 'fz convert "
                              "--decode {} {}'",
                              input, output));
  }
  if (zarrName(output)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("decompress writes raw and .npy files; for Zarr use 'fz convert {} "
                              "{}'",
                              input, output));
  }
  checkHdf5Slash(output);
  if (!options.output.empty()) {
    checkHdf5Output(output);
  }
  checkJsonOutput(options, output);
  checkOutput(output, input, options.force);
  Progress progress(progressMode(options), inputName(input));
  if (!arguments.box.empty() || isChunkedFile(input)) {
    return decompressByParts(arguments, input, output, progress);
  }
  const InputBytes frame = readBytes(input, &progress);
  if (isPartOfArray(frame)) {
    return decompressByParts(arguments, input, output, progress, &frame);
  }
  HostDecompression decompression(frame);
  const FrameInfo& info = decompression.info();
  const std::string header =
      isNpyName(output) ? makeNpyHeader(info.type, shapeOf(info.extents)) : std::string();
  Result result(output, writingWith(options), header, input);
  progress.beginRun("decompressing", info.original_bytes);
  DecompressOptions how = decodeOptions(options, &progress);
  if (result.staysInMemory(info.original_bytes)) {
    how.limits = limitsBesideResult(options.limits, info.original_bytes);
  }
  const std::size_t n_bytes =
      decompression.into([&](std::size_t n) { return result.provide(n); }, how);
  progress.beginBytes("writing", result.isMapped() ? 0 : n_bytes);
  result.finish(&progress);
  progress.end();
  sayResult(options, input, output, info.type, info.extents, n_bytes);
  if (options.verbose) {
    say("  ratio {:.2f}, {} stages, checksums {}\n", info.ratio(), info.stages.size(),
        checksumText(info));
    const BackendChoice where = decompression.backendFor(how);
    say("  ran on {}: {}\n", backendName(where.backend), where.reason);
  }
  return {output, info.type, info.extents, n_bytes, info.frameBytes()};
}

bool isTalkative(const CommonOptions& options) {
  return options.verbose && !options.json;
}

/// The result of test is on standard output, unless rows of --json are.
void sayOk(const CommonOptions& options, const std::string& input) {
  if (!options.quiet && !options.json) {
    fmt::print("{}: ok\n", inputName(input));
  }
}

/// With its time, as a row.
void addRow(JsonRows& rows, const std::string& file, const std::function<ArrayFacts()>& work) {
  const auto start = std::chrono::steady_clock::now();
  ArrayFacts facts = work();
  facts.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (rows.isOn()) {
    rows.add(file, arrayToJson(facts));
  }
}

bool isArchiveName(const std::string& path) {
  return path.ends_with(kArchiveSuffix);
}

constexpr std::string_view kNotArchives = "files whose names do not end in .fzm";

ArrayFacts testByParts(const CommonOptions& options, const std::string& input, Progress& progress) {
  const ArchiveReader reader = openArchive(input, options.limits, &progress);
  testChunks(reader, options, progress);
  progress.end();
  const ArchiveInfo& info = reader.info();
  sayOk(options, input);
  if (isTalkative(options)) {
    fmt::print("  {} {}, {} bytes decoded in {} chunks, checksums match\n",
               dataTypeToString(info.type), dimsText(info.extents), info.original_bytes,
               info.n_chunks);
  }
  return {"", info.type, info.extents, info.original_bytes, info.archive_bytes};
}

ArrayFacts testFile(const CommonOptions& options, const std::string& input) {
  Progress progress(progressMode(options), inputName(input));
  if (isChunkedFile(input)) {
    return testByParts(options, input, progress);
  }
  const InputBytes frame = readBytes(input, &progress);
  HostDecompression decompression(frame);
  const FrameInfo& info = decompression.info();
  progress.beginRun("testing", info.original_bytes);
  DecompressOptions how = decodeOptions(options, &progress);
  how.limits = limitsBesideResult(options.limits, info.original_bytes);
  Pipeline pipeline;
  const Array array = decompression.on(pipeline, how);
  progress.end();
  if (array.bytes().size() != info.original_bytes) {
    throw Failure(ExitCode::kCorrupt,
                  fmt::format("decodes to {} bytes, its header says {}; restore the file",
                              array.bytes().size(), info.original_bytes));
  }
  sayOk(options, input);
  if (isTalkative(options)) {
    fmt::print("  {} {}, {} bytes decoded, checksums {}\n", dataTypeToString(info.type),
               dimsText(info.extents), array.bytes().size(), checksumText(info));
  }
  return {"", info.type, info.extents, array.bytes().size(), info.frameBytes()};
}

}  // namespace

Command addDecompress(CLI::App& root) {
  auto arguments = std::make_shared<DecompressArguments>();
  const std::shared_ptr<CommonOptions> options(arguments, &arguments->common);
  CLI::App* app =
      root.add_subcommand("decompress", "Decode archives: FILE.fzm becomes FILE and stays");
  addFiles(*app, *options, "archives; - or none: stdin");
  addOutput(*app, *options, "result; .npy by its name, a folder for several files, - for stdout");
  addStandardOutput(*app, *options, "-c,--stdout");
  app->add_option("--box", arguments->box,
                  "a part, FIRST:END for each axis, the slowest first, as numpy has it; only the "
                  "chunks that it touches are read; needs -o")
      ->type_name("SLICES");
  addFileHabits(*app, *options);
  addJson(*app, *options);
  addQuietAndVerbose(*app, *options);
  addRunning(*app, *options);
  addProgress(*app, *options);
  addLimits(*app, *options);
  app->footer(
      "The result is the plain little-endian array, or a .npy file if its name ends so.\n"
      "\n"
      "Examples:\n"
      "  fz decompress temperature.f32.fzm            writes temperature.f32\n"
      "  fz decompress -o temperature.npy temperature.f32.fzm\n"
      "  fz decompress --box 0:100,:,20:30 -o part.npy big.f32.fzm\n"
      "  fz decompress - < field.fzm | analyse");
  return {app,
          [options, arguments] {
            options->files = filesOrStandardInput(filesOf(*options, isArchiveName, kNotArchives));
            checkCommon(*options);
            checkOutputCount(*options);
            checkDistinct(*options);
            JsonRows rows("decompress", options->json);
            return forEachFile(options->files, Task::kDecode, rows, [&](const std::string& file) {
              addRow(rows, file, [&] { return decompressFile(*arguments, file); });
              removeInput(*options, file);
            });
          },
          Task::kDecode};
}

Command addTest(CLI::App& root) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app =
      root.add_subcommand("test", "Check archives: checksums and a full decode, no output");
  addFiles(*app, *options, "archives; - or none: stdin");
  app->add_flag("-r,--recursive", options->recursive,
                "the archives in folders, and in folders there");
  addJson(*app, *options);
  addQuietAndVerbose(*app, *options);
  addRunning(*app, *options);
  addProgress(*app, *options);
  addLimits(*app, *options);
  app->footer(
      "Examples:\n"
      "  fz test *.fzm\n"
      "  fz test -q field.fzm && echo sound");
  return {app,
          [options] {
            options->files = filesOrStandardInput(filesOf(*options, isArchiveName, kNotArchives));
            checkCommon(*options);
            JsonRows rows("test", options->json);
            return forEachFile(options->files, Task::kDecode, rows, [&](const std::string& file) {
              addRow(rows, file, [&] { return testFile(*options, file); });
            });
          },
          Task::kDecode};
}

}  // namespace fz::cli
