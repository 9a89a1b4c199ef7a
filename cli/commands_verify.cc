#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "archive_output.h"
#include "bench_report.h"
#include "commands.h"
#include "compress_job.h"
#include "field_io.h"
#include "fz/host_api.h"
#include "hdf5_io.h"
#include "json_report.h"
#include "json_rows.h"
#include "memory_check.h"
#include "npy.h"
#include "options.h"
#include "output_io.h"
#include "pipeline/bound_check.h"
#include "progress.h"
#include "report/hook.h"
#include "report_chunks.h"
#include "verify_chunks.h"

namespace fz::cli {

namespace {

struct VerifyArguments {
  CommonOptions common;
  std::string archive;
  std::string original;
  std::string bound;
  std::vector<std::string> fill;
  ReportOptions report;
  bool json = false;
  mutable std::string row = {};  ///< the report as JSON, once there is one
};

/// The same axes in another order; those of one value do not count.
bool isTransposed(AxisValues one, AxisValues other) {
  std::erase(one, 1U);
  std::erase(other, 1U);
  return one != other && std::is_permutation(one.begin(), one.end(), other.begin(), other.end());
}

/// The original's values; the archive knows their type. Fill values that the file names are added
/// to `fill`.
InputBytes readOriginal(const std::string& path,
                        const FrameInfo& info,
                        Progress* progress,
                        std::vector<double>& fill) {
  const bool is_typed = isFloat(info.type);
  InputBytes bytes;
  checkHdf5Slash(path);
  if (isNpyName(path) || hdf5Name(path)) {
    Field field = readField(path, {}, progress);
    if (is_typed && field.type != info.type) {
      throw Failure(ExitCode::kBound,
                    fmt::format("{}: holds {}, the archive {}; is it the right original?", path,
                                dataTypeToString(field.type), dataTypeToString(info.type)));
    }
    if (isTransposed(field.extents, info.extents)) {
      throw Failure(ExitCode::kBound,
                    fmt::format("{}: is {}, the archive {} (x fastest); its axes are in another "
                                "order",
                                path, dimsText(field.extents), dimsText(info.extents)));
    }
    bytes = std::move(field.bytes);
    fill.insert(fill.end(), field.fill.begin(), field.fill.end());
  } else {
    bytes = readBytes(path, progress);
  }
  if (bytes.size() != info.original_bytes) {
    throw Failure(ExitCode::kBound, fmt::format("{}: has {} bytes, the archive decodes to {}; is "
                                                "it the right original?",
                                                path, bytes.size(), info.original_bytes));
  }
  return bytes;
}

void printKept(const char* label, const KeptCount& count) {
  fmt::print("{:<14}{} of {} kept bit for bit\n", label, count.n_kept, count.n_values);
}

void printReport(const CheckReport& report) {
  fmt::print("{:<14}{}\n", "bound:", ruleText(report.rule));
  fmt::print("{:<14}{}\n", "values:", report.n_values);
  fmt::print("{:<14}{} at index {}\n", "max error:", report.stats.max_error,
             report.stats.max_error_index);
  if (report.rule.kind == BoundRule::Kind::kPointwise) {
    fmt::print("{:<14}{} at index {}\n", "max relative:", report.max_relative,
               report.max_relative_index);
  }
  if (report.passed()) {
    fmt::print("{:<14}0\n", "violations:");
  } else {
    fmt::print("{:<14}{}, first at index {}: {} became {}\n", "violations:", report.n_violations,
               report.first_index, report.first_original, report.first_decoded);
  }
  const bool has_psnr = !std::isnan(report.psnr());
  fmt::print("{:<14}{}\n", "PSNR:", has_psnr ? fmt::format("{:.4f} dB", report.psnr()) : "n/a");
  fmt::print("{:<14}{}\n", "NRMSE:", has_psnr ? fmt::format("{:.6g}", report.nrmse()) : "n/a");
  printKept("NaN:", report.nan);
  printKept("Inf:", report.infinity);
  printKept("-0:", report.negative_zero);
  if (!report.rule.fill.empty()) {
    printKept("fill:", report.fill);
  }
}

/// What the archive records and --fill declares; for an archive that stands in without loss, and so
/// records nothing, what the original's file does as well.
std::vector<double> fillToLeaveOut(const FillChoice& choice,
                                   const FrameInfo& info,
                                   const std::vector<double>& in_file) {
  std::vector<double> fill = fillOf(info);
  const auto add = [&](const std::vector<double>& values) {
    for (const double value : values) {
      if (std::find(fill.begin(), fill.end(), value) == fill.end()) {
        fill.push_back(value);
      }
    }
  };
  add(choice.values);
  if (info.isFallback() && !info.missing && !choice.is_none) {
    add(in_file);
  }
  return fill;
}

/// What to do about a check that failed: a bound of one's own may be more than was ever promised.
std::string failureAdvice(const VerifyArguments& arguments,
                          const FrameInfo& info,
                          ByteView original,
                          ByteView decoded) {
  const std::optional<BoundRule> promised = ruleOfFrame(info);
  if (!arguments.bound.empty() && !promised) {
    return fmt::format(
        "the archive promises no bound; compress the original again with -b {} and --verify",
        arguments.bound);
  }
  if (!arguments.bound.empty() && checkValues(info.type, original, decoded, *promised).passed()) {
    return fmt::format(
        "the archive was made with {} and keeps to it; for {} compress the original "
        "again with -b {}",
        boundOption(info), arguments.bound, arguments.bound);
  }
  return "compress again with --verify, and report it if this is the original";
}

void show(const VerifyArguments& arguments, const CheckReport& report) {
  if (arguments.json) {
    arguments.row = checkToJson(arguments.archive, arguments.original, report);
  } else if (!arguments.common.quiet) {
    printReport(report);
  }
}

ExitCode verifyByChunks(const VerifyArguments& arguments,
                        const ChunkCheck& check,
                        const std::string& page,
                        Progress& progress) {
  if (arguments.original == kStandardStream) {
    throw Failure(ExitCode::kUsage,
                  "an archive of chunks is verified part by part, which a pipe does not allow; "
                  "give the original as a file");
  }
  const ArchiveReader reader = openArchive(arguments.archive, arguments.common.limits, &progress);
  const CheckReport report = checkChunks(reader, check, arguments.common, progress);
  std::optional<ChunkedPage> pictures;
  if (!page.empty()) {
    pictures.emplace(reader, arguments.archive, arguments.original, page, arguments.common,
                     progress);
  }
  progress.end();
  show(arguments, report);
  if (pictures) {
    writeReport(page, existingWith(arguments.common.force), arguments.report,
                pictures->input(report));
  }
  if (!report.passed()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("{}: {}; compress again with --verify, and report it if this is the "
                              "original",
                              arguments.archive, violationText(report)));
  }
  return ExitCode::kOk;
}

ExitCode runVerify(const VerifyArguments& arguments) {
  std::optional<BoundRequest> request;
  if (!arguments.bound.empty()) {
    request = parseBound(arguments.bound);
  }
  const FillChoice fill = parseFill(arguments.fill);
  checkCommon(arguments.common);
  Progress progress(progressMode(arguments.common), arguments.archive);
  DecompressOptions options{.limits = arguments.common.limits,
                            .backend = parseBackend(arguments.common.backend),
                            .threads = arguments.common.threads,
                            .progress = progress.pipeline()};
  if (arguments.archive == kStandardStream && arguments.original == kStandardStream) {
    throw Failure(ExitCode::kUsage,
                  "only one of the two can be standard input; give a file name for the other");
  }
  const std::string page = reportPath(arguments.report, arguments.common, arguments.original);
  if (isChunkedFile(arguments.archive)) {
    return verifyByChunks(arguments, {arguments.original, request, fill}, page, progress);
  }
  Array decoded;
  FrameInfo info;
  InputBytes frame;
  try {
    frame = readBytes(arguments.archive, &progress);
    info = inspect(frame);
    options.limits = limitsBesideResult(arguments.common.limits, info.original_bytes);
    progress.beginRun("decoding", info.original_bytes);
    decoded = decompress(ByteView(frame), options);
  } catch (...) {
    const Failure failure = currentFailure(Task::kDecode);
    throw Failure(failure.code(),
                  fmt::format("{}: {}", inputName(arguments.archive), failure.what()));
  }
  std::vector<double> fill_in_file;
  const InputBytes original = readOriginal(arguments.original, info, &progress, fill_in_file);
  const std::vector<double> declared = fillToLeaveOut(fill, info, fill_in_file);
  std::optional<BoundRule> rule =
      request ? ruleOfRequest(*request, info.type, original, declared) : ruleOfFrame(info);
  if (!rule) {
    throw Failure(ExitCode::kUsage, fmt::format("{}: the archive states no bound; give one with -b",
                                                arguments.archive));
  }
  rule->fill = declared;
  progress.beginBytes("checking", info.original_bytes);
  const CheckReport report = checkValues(info.type, original, decoded.bytes(), *rule,
                                         [&](std::size_t n) { progress.add(n); });
  progress.end();
  show(arguments, report);
  if (!page.empty()) {
    report::Input input;
    input.original_name = inputName(arguments.original);
    input.archive_name = inputName(arguments.archive);
    input.original = {info.type, info.dims, original};
    input.decoded = decoded.bytes();
    input.frame = frame;
    input.info = info;
    input.check = report;
    input.decode = options;
    writeReport(page, existingWith(arguments.common.force), arguments.report, std::move(input));
  }
  if (!report.passed()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("{}: {}; {}", arguments.archive, violationText(report),
                              failureAdvice(arguments, info, original, decoded.bytes())));
  }
  return ExitCode::kOk;
}

/// A row of --json in any case.
ExitCode verifyWithRow(const VerifyArguments& arguments) {
  JsonRows rows("verify", arguments.json);
  try {
    const ExitCode code = runVerify(arguments);
    rows.add(arguments.archive, arguments.row.empty() ? "{}" : arguments.row);
    rows.print();
    return code;
  } catch (...) {
    const Failure failure = currentFailure(Task::kEncode);
    rows.addFailure(arguments.archive, failure, arguments.row.empty() ? "{}" : arguments.row);
    rows.print();
    throw failure;
  }
}

}  // namespace

Command addVerify(CLI::App& root) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* app = root.add_subcommand(
      "verify", "Compare an archive with its original: exact errors, violations, PSNR");
  app->add_option("archive", arguments->archive, "the archive")->type_name("ARCHIVE")->required();
  app->add_option("original", arguments->original,
                  "raw, .npy or file.h5:/name; the archive knows the type")
      ->type_name("ORIGINAL")
      ->required();
  app->add_option("-b,--bound", arguments->bound,
                  "check abs:E, rel:E or range:E instead of the archive's own bound")
      ->type_name("KIND:E");
  app->add_option("--fill", arguments->fill,
                  "a value that means missing besides those that the archive records: checked bit "
                  "for bit, and no part of the statistics; again for more")
      ->type_name("V")
      ->allow_extra_args(false);
  app->add_flag("--json", arguments->json, kJsonHelp);
  addReport(*app, arguments->report);
  app->add_flag("-f,--force", arguments->common.force, "overwrite an existing page of --report");
  app->add_flag("-q,--quiet", arguments->common.quiet, "say nothing but errors");
  addRunning(*app, arguments->common);
  addProgress(*app, arguments->common);
  addLimits(*app, arguments->common);
  app->footer(
      "Exit code 4 means that a value is outside the bound or the files do not belong together.\n"
      "\n"
      "Example:\n"
      "  fz verify temperature.f32.fzm temperature.f32");
  return {app, [arguments] { return verifyWithRow(*arguments); }, Task::kEncode};
}

}  // namespace fz::cli
