#include "report/hook.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

#include "failure.h"
#include "output_io.h"

namespace fz::cli {

namespace {

std::string& commandLine() {
  static std::string line;
  return line;
}

/// So that a shell reads it back as one word.
std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
  });
  if (is_plain) {
    return word;
  }
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return text + "'";
}

}  // namespace

void setCommandLine(const std::vector<std::string>& words) {
  commandLine() = "fz";
  for (const std::string& word : words) {
    commandLine() += " " + quoted(word);
  }
}

void addReport(CLI::App& app, ReportOptions& options) {
  app.add_option("--report", options.path,
                 "write a page of pictures and figures: before, after, error, spectrum, stages")
      ->type_name("HTML");
}

void addSweep(CLI::App& app, ReportOptions& options) {
  app.add_flag("--sweep{auto}", options.sweep,
               "a rate-distortion curve in the report: seven bounds around -b, or --sweep=E,E,...")
      ->type_name("");
}

void checkReport(const ReportOptions& options, const CommonOptions& common) {
  if (options.path.empty()) {
    if (!options.sweep.empty()) {
      throw Failure(ExitCode::kUsage, "--sweep is a part of the report; name it with --report");
    }
    return;
  }
  if (options.path == kStandardStream && common.output == kStandardStream) {
    throw Failure(ExitCode::kUsage,
                  "archive and report cannot both go to standard output; name a file for one");
  }
  if (!options.sweep.empty() && options.sweep != "auto") {
    report::parseSweep(options.sweep, {});
  }
  CommonOptions pages = common;
  pages.output = options.path;
  try {
    checkOutputCount(pages);
  } catch (const Failure&) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("--report {} is one page for {} inputs; name a folder", options.path,
                              common.files.size()));
  }
}

std::string pagePath(const ReportOptions& options,
                     const CommonOptions& common,
                     const std::string& input) {
  if (options.path.empty()) {
    return "";
  }
  CommonOptions pages = common;
  pages.output = options.path;
  return outputPath(pages, input, input + ".html");
}

std::string reportPath(const ReportOptions& options,
                       const CommonOptions& common,
                       const std::string& input) {
  std::string path = pagePath(options, common, input);
  if (!path.empty() && path != kStandardStream) {  // a page is text, and may go to a terminal
    checkOutput(path, input, common.force);
  }
  return path;
}

void writeReport(const std::string& path,
                 Existing existing,
                 const ReportOptions& options,
                 report::Input input) {
  input.command = commandLine();
  if (!options.sweep.empty()) {
    input.sweep_bounds = report::parseSweep(options.sweep, input.info);
  }
  writeOutput(path, existing, report::makePage(input), {});
}

void writeReportBeside(const std::string& path,
                       Existing existing,
                       const ReportOptions& options,
                       const std::string& archive,
                       bool is_written,
                       const std::function<report::Input()>& describe) {
  try {
    writeReport(path, existing, options, describe());
  } catch (...) {
    const Failure failure = currentFailure(Task::kEncode);
    throw Failure(failure.code(),
                  fmt::format("report '{}': {}; the archive {}", path, failure.what(),
                              is_written ? fmt::format("'{}' is complete", archive)
                                         : std::string("broke its bound and was not written")));
  }
}

}  // namespace fz::cli
