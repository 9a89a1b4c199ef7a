#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "api/host_run.h"
#include "commands.h"
#include "field_io.h"
#include "fz/host_api.h"
#include "hdf5_io.h"
#include "memory_check.h"
#include "npy.h"
#include "options.h"
#include "output_io.h"
#include "progress.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

constexpr std::string_view kArchiveSuffix = ".fzm";

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
std::string ownName(const CommonOptions& options, const std::string& input) {
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
      outputs.add(outputPath(options, input, ownName(options, input)), input);
    }
  }
}

const char* checksumText(const FrameInfo& info) {
  return info.has_checksums ? "match" : "absent (format 3.0)";
}

void decompressFile(const CommonOptions& options, const std::string& input) {
  const std::string output = outputPath(options, input, ownName(options, input));
  if (hdf5Name(output)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("decompress writes raw and .npy files; for HDF5 use 'fz convert {} "
                              "{}'",
                              input, output));
  }
  checkHdf5Slash(output);
  checkOutput(output, input, options.force);
  Progress progress(progressMode(options), inputName(input));
  const InputBytes frame = readBytes(input, &progress);
  HostDecompression decompression(frame);
  const FrameInfo& info = decompression.info();
  const std::string header =
      isNpyName(output) ? makeNpyHeader(info.type, info.dims, info.ndim) : std::string();
  Result result(output, existingWith(options.force), header);
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
  if (!options.quiet) {
    say("{} -> {}: {} {}, {} bytes{}\n", inputName(input),
        output == kStandardStream ? "standard output" : output, dataTypeToString(info.type),
        dimsText(info.dims), n_bytes, header.empty() ? "" : " as .npy");
  }
  if (options.verbose) {
    say("  ratio {:.2f}, {} stages, checksums {}\n", info.ratio(), info.stages.size(),
        checksumText(info));
  }
}

void testFile(const CommonOptions& options, const std::string& input) {
  Progress progress(progressMode(options), inputName(input));
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
  if (options.quiet) {
    return;
  }
  fmt::print("{}: ok\n", inputName(input));
  if (options.verbose) {
    fmt::print("  {} {}, {} bytes decoded, checksums {}\n", dataTypeToString(info.type),
               dimsText(info.dims), array.bytes().size(), checksumText(info));
  }
}

}  // namespace

Command addDecompress(CLI::App& root) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app =
      root.add_subcommand("decompress", "Decode archives: FILE.fzm becomes FILE and stays");
  addFiles(*app, *options, "archives; - or none: stdin");
  addOutput(*app, *options, "result; .npy by its name, a folder for several files, - for stdout");
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
      "  fz decompress - < field.fzm | analyse");
  return {app,
          [options] {
            options->files = filesOrStandardInput(options->files);
            checkCommon(*options);
            checkOutputCount(*options);
            checkDistinct(*options);
            return forEachFile(options->files, Task::kDecode,
                               [&](const std::string& file) { decompressFile(*options, file); });
          },
          Task::kDecode};
}

Command addTest(CLI::App& root) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app =
      root.add_subcommand("test", "Check archives: checksums and a full decode, no output");
  addFiles(*app, *options, "archives; - or none: stdin");
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
            options->files = filesOrStandardInput(options->files);
            checkCommon(*options);
            return forEachFile(options->files, Task::kDecode,
                               [&](const std::string& file) { testFile(*options, file); });
          },
          Task::kDecode};
}

}  // namespace fz::cli
