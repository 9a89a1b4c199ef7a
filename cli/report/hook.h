#pragma once

#include <functional>
#include <string>

#include "field_io.h"
#include "format/file_io.h"
#include "options.h"
#include "report/report.h"

/// What the sub-commands need of reports.
namespace CLI {
class App;
}

namespace fz::cli {

/// --report and --sweep as they were typed.
struct ReportOptions {
  std::string path;
  std::string sweep;  ///< empty: none
};

void addReport(CLI::App& app, ReportOptions& options);
void addSweep(CLI::App& app, ReportOptions& options);
/// Refuses a sweep without a report, and one report for several files.
void checkReport(const ReportOptions& options, const CommonOptions& common);

/// The name of the page for this input; empty when no report was asked for.
std::string pagePath(const ReportOptions& options,
                     const CommonOptions& common,
                     const std::string& input);
/// The name of the page for this input, checked against existing files before the work begins.
/// Empty when no report was asked for.
std::string reportPath(const ReportOptions& options,
                       const CommonOptions& common,
                       const std::string& input);
/// Makes the page and writes it; it is complete under its name or not there.
void writeReport(const std::string& path,
                 Existing existing,
                 const ReportOptions& options,
                 report::Input input);

/// The same after an archive was made, with what `describe` gives; a failure, there or later, says
/// what became of the archive.
void writeReportBeside(const std::string& path,
                       Existing existing,
                       const ReportOptions& options,
                       const std::string& archive,
                       bool is_written,
                       const std::function<report::Input()>& describe);

/// The words that the process was started with, for the page. Set once, by main.
void setCommandLine(const std::vector<std::string>& words);

}  // namespace fz::cli
