#include <CLI/CLI.hpp>
#include <chrono>
#include <fmt/format.h>
#include <memory>

#include "commands.h"
#include "field_io.h"
#include "fz/archive.h"
#include "json_report.h"
#include "json_rows.h"
#include "options.h"
#include "output_io.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

constexpr std::string_view kPartSuffix = ".part";

std::string resultName(const CommonOptions& options, const std::string& input) {
  if (!options.output.empty()) {
    return options.output;
  }
  if (input.ends_with(kPartSuffix)) {
    return input.substr(0, input.size() - kPartSuffix.size());
  }
  throw Failure(ExitCode::kUsage,
                "its name does not end in .part, so the result has no name; give one with -o");
}

void recoverFile(const CommonOptions& options, const std::string& input, JsonRows& rows) {
  const std::string output = resultName(options, input);
  const std::shared_ptr<const ByteSource> source = reading([&] { return openSource(input); });
  checkOutput(output, input, options.force);
  const auto start = std::chrono::steady_clock::now();
  const Recovery found = recoverArchive(*source, behindLinks(output), options.force);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (rows.isOn()) {
    rows.add(input, recoveryToJson(output, found, ArchiveReader(output).info(), seconds.count()));
  }
  if (options.quiet) {
    return;
  }
  say("{} -> {}: {} chunks, {} of at least {} values along the slowest axis\n", input, output,
      found.n_chunks, found.extents.back(), found.whole.back());
  if (found.n_dropped > 0) {
    say("  {} more chunks are sound, but something before them is missing\n", found.n_dropped);
  }
}

}  // namespace

Command addRecover(CLI::App& root) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = root.add_subcommand(
      "recover", "Save what is left of an archive of chunks that was cut off or damaged");
  addFiles(*app, *options, "what is left: FILE.fzm.part of a run that was cut off, or an archive");
  addOutput(*app, *options, "the new archive; else the name without .part");
  addJson(*app, *options);
  app->add_flag("-q,--quiet", options->quiet, "say nothing but errors");
  app->footer(
      "Every chunk that is complete is found by its checksums; the new archive has the array up to\n"
      "the first that is missing. The input stays.\n"
      "\n"
      "Example:\n"
      "  fz recover run.f32.fzm.part");
  return {app,
          [options] {
            if (options->files.empty()) {
              throw Failure(ExitCode::kUsage, "name the file to recover");
            }
            checkOutputCount(*options);
            JsonRows rows("recover", options->json);
            return forEachFile(options->files, Task::kDecode, rows,
                               [&](const std::string& file) { recoverFile(*options, file, rows); });
          },
          Task::kDecode};
}

}  // namespace fz::cli
