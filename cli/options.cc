#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "failure.h"
#include "fz/bound_kind.h"
#include "fz/limits.h"
#include "json_rows.h"
#include "suggest.h"

namespace fz::cli {

namespace {

constexpr ErrorBoundMode kBoundModes[] = {ErrorBoundMode::ABS, ErrorBoundMode::REL,
                                          ErrorBoundMode::NOA};

[[noreturn]] void failUsage(const std::string& message) {
  throw Failure(ExitCode::kUsage, message);
}

template <class T>
std::optional<T> parseNumber(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional<T>(value) : std::nullopt;
}

/// "1e-3", "abs=1" or anything else that has no colon.
[[noreturn]] void failWithoutColon(std::string_view text) {
  constexpr std::string_view kSeeHelp = "(see 'fz compress --help')";
  if (parseNumber<double>(text)) {
    failUsage(
        fmt::format("-b '{}' does not say what kind of bound it is; write abs:{}, rel:{} or "
                    "range:{} {}",
                    text, text, text, text, kSeeHelp));
  }
  for (const ErrorBoundMode mode : kBoundModes) {
    const std::string_view name = boundKindName(mode);
    if (!text.starts_with(name)) {
      continue;
    }
    std::string_view number = text.substr(name.size());
    number.remove_prefix(std::min(number.find_first_not_of("= "), number.size()));
    if (parseNumber<double>(number)) {
      failUsage(fmt::format("-b '{}': write {}:{} {}", text, name, number, kSeeHelp));
    }
  }
  failUsage(fmt::format(
      "-b '{}' is not a bound; write abs:E, rel:E or range:E with a number E, as in abs:1e-3 {}",
      text, kSeeHelp));
}

}  // namespace

std::string toBytes(std::string& text) {
  constexpr std::string_view kUnits = "kmgtpe";
  std::string wrong = fmt::format("'{}': write a number of bytes, as in 500M or 4G", text);
  const std::size_t n_digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = parseNumber<std::uint64_t>(std::string_view(text).substr(0, n_digits));
  std::string unit = CLI::detail::to_lower(text.substr(n_digits));
  std::size_t shift = 0;
  if (!unit.empty() && kUnits.find(unit.front()) != std::string_view::npos) {
    shift = 10 * (kUnits.find(unit.front()) + 1);
    unit.erase(0, unit.substr(1, 1) == "i" ? 2 : 1);
  }
  if (!count || (!unit.empty() && unit != "b") ||
      *count > std::numeric_limits<std::uint64_t>::max() >> shift) {
    return wrong;
  }
  text = std::to_string(*count << shift);
  return {};
}

void addFiles(CLI::App& app, CommonOptions& options, const char* help) {
  app.add_option("files", options.files, help)->type_name("FILE");
}

void addOutput(CLI::App& app, CommonOptions& options, const char* help) {
  app.add_option("-o,--output", options.output, help)->type_name("FILE");
  app.add_flag("-f,--force", options.force, "overwrite existing files");
}

void addStandardOutput(CLI::App& app, CommonOptions& options, const char* names) {
  app.add_flag_callback(
      names,
      [&options] {
        if (!options.output.empty()) {
          failUsage("-o and --stdout contradict each other; leave one out");
        }
        options.output = "-";
      },
      "the same as -o -");
}

void addFileHabits(CLI::App& app, CommonOptions& options) {
  app.add_flag("-k,--keep", options.keep, "keep the input, which happens anyway");
  app.add_flag("--rm", options.remove, "remove each input once its result is on the disk");
  app.add_flag("-r,--recursive", options.recursive, "the files in folders, and in folders there");
  app.add_flag(
      "--no-sync", options.no_sync,
      "do not wait for the disk: faster with many small files, which a power cut may lose; "
      "--rm waits in any case");
}

void addJson(CLI::App& app, CommonOptions& options) {
  app.add_flag("--json", options.json, kJsonHelp);
}

void addQuietAndVerbose(CLI::App& app, CommonOptions& options, const char* quiet_help) {
  app.add_flag("-q,--quiet", options.quiet, quiet_help);
  app.add_flag("-v,--verbose", options.verbose, "say more");
}

void addRunning(CLI::App& app, CommonOptions& options) {
  app.add_option("-T,--threads", options.threads, "threads; 0 means all")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, kMaxThreads).description(""))
      ->capture_default_str();
  app.add_option("--backend", options.backend, "where to run: auto, cpu or cuda")
      ->type_name("NAME")
      ->capture_default_str();
}

void addProgress(CLI::App& app, CommonOptions& options) {
  app.add_option("--progress", options.progress,
                 "a progress line: auto (long work on a terminal), always or never")
      ->type_name("WHEN")
      ->capture_default_str();
}

void addLimits(CLI::App& app, CommonOptions& options) {
  app.add_option("--max-output", options.limits.max_output_bytes,
                 "refuse archives that decode to more bytes (as in 500M or 4G)")
      ->transform(CLI::Validator(&toBytes, ""))
      ->type_name("BYTES");
  addMemoryLimit(
      app, options,
      "refuse archives that need more memory than this, results held in memory included");
}

void addMemoryLimit(CLI::App& app, CommonOptions& options, const char* help) {
  app.add_option("--max-memory", options.limits.max_memory_bytes, help)
      ->transform(CLI::Validator(&toBytes, ""))
      ->type_name("BYTES");
}

void checkCommon(const CommonOptions& options) {
  if (options.quiet && options.verbose) {
    failUsage("-q and -v contradict each other; leave one out");
  }
  if (options.keep && options.remove) {
    failUsage("-k and --rm contradict each other; leave one out");
  }
  const bool has_no_file =
      options.output == "-" ||
      (options.output.empty() && options.files.size() == 1 && options.files.front() == "-");
  if (options.remove && has_no_file) {
    failUsage("--rm removes files once their results are on the disk; name a file with -o");
  }
  parseBackend(options.backend);
  parseProgress(options.progress);
}

BoundRequest parseBound(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    failWithoutColon(text);
  }
  const std::string_view name = text.substr(0, colon);
  const std::string_view number = text.substr(colon + 1);
  if (const std::optional<ErrorBoundMode> mode = boundKindFromName(name)) {
    const std::optional<double> value = parseNumber<double>(number);
    if (!value || !std::isfinite(*value) || !(*value > 0)) {
      failUsage(fmt::format("-b '{}': the bound must be a number above 0, as in {}:1e-3{}", text,
                            name, value == 0.0 ? "; -b lossless keeps every bit" : ""));
    }
    return {*mode, *value};
  }
  if (targetKindFromName(name)) {
    failUsage(
        fmt::format("-b '{}' names a result; only compress and convert look for the "
                    "bound of one; use abs, rel or range",
                    text));
  }
  failUsage(fmt::format("-b '{}': unknown kind of bound '{}'; use abs, rel, range, psnr or ratio{}",
                        text, name, didYouMean(name, {"abs", "rel", "range", "psnr", "ratio"})));
}

std::optional<ResultTarget> parseTarget(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::optional<ResultTarget::Kind> kind = targetKindFromName(text.substr(0, colon));
  if (!kind || colon == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<double> value = parseNumber<double>(text.substr(colon + 1));
  if (!value || !std::isfinite(*value) || !(*value > 0)) {
    failUsage(fmt::format("-b '{}': write a number above 0, as in {}", text,
                          *kind == ResultTarget::Kind::kPsnr ? "psnr:80" : "ratio:20"));
  }
  return ResultTarget{*kind, *value};
}

std::optional<std::size_t> countOf(const std::array<std::size_t, 3>& dims) {
  std::size_t count = 1;
  for (const std::size_t extent : dims) {
    if (extent != 0 && count > std::numeric_limits<std::size_t>::max() / extent) {
      return std::nullopt;
    }
    count *= extent;
  }
  return count;
}

AxisValues parseExtents(std::string_view text, std::string_view option) {
  AxisValues extents;
  std::string_view rest = text;
  std::uint64_t n_values = 1;
  for (bool more = true; more;) {
    const std::size_t cut = rest.find_first_of("xX");
    const std::optional<std::size_t> extent = parseNumber<std::size_t>(rest.substr(0, cut));
    if (extents.size() == kMaxAxes || !extent || *extent == 0) {
      failUsage(
          fmt::format("{} '{}': write one to eight extents of at least 1, the fastest (x) "
                      "first, as in 3600x1800",
                      option, text));
    }
    if (__builtin_mul_overflow(n_values, *extent, &n_values)) {
      failUsage(fmt::format("{} '{}': more values than memory can address; check the extents",
                            option, text));
    }
    extents.push_back(*extent);
    more = cut != std::string_view::npos;
    rest = more ? rest.substr(cut + 1) : std::string_view();
  }
  return extents;
}

std::array<std::size_t, 3> parseDims(std::string_view text) {
  const AxisValues extents = parseExtents(text);
  if (extents.size() > 3) {
    failUsage(
        fmt::format("-d '{}': write one to three extents of at least 1, the fastest (x) "
                    "first, as in 3600x1800",
                    text));
  }
  std::array<std::size_t, 3> dims = {1, 1, 1};
  std::copy(extents.begin(), extents.end(), dims.begin());
  return dims;
}

DataType parseType(std::string_view text) {
  const std::optional<DataType> type = dataTypeFromString(text);
  if (!type || !isFloat(*type)) {
    failUsage(fmt::format("-t '{}': the element type must be f32 or f64", text));
  }
  return *type;
}

Backend parseBackend(std::string_view text) {
  if (text == "auto") {
    return Backend::Auto;
  }
  if (text == "cpu") {
    return Backend::CPU;
  }
  if (text == "cuda") {
    return Backend::CUDA;
  }
  std::string hint = didYouMean(text, {"auto", "cpu", "cuda"});
  for (const std::string_view device : {"gpu", "GPU", "nvidia"}) {
    // By its letters 'gpu' is next to 'cpu', which is the opposite.
    hint = text == device ? "; did you mean 'cuda'?" : hint;
  }
  failUsage(fmt::format("--backend '{}': must be auto, cpu or cuda{}", text, hint));
}

ProgressMode parseProgress(std::string_view text) {
  if (text == "auto") {
    return ProgressMode::kAuto;
  }
  if (text == "always") {
    return ProgressMode::kAlways;
  }
  if (text == "never") {
    return ProgressMode::kNever;
  }
  failUsage(fmt::format("--progress '{}': must be auto, always or never{}", text,
                        didYouMean(text, {"auto", "always", "never"})));
}

ProgressMode progressMode(const CommonOptions& options) {
  const ProgressMode mode = parseProgress(options.progress);
  return options.quiet && mode == ProgressMode::kAuto ? ProgressMode::kNever : mode;
}

std::pair<std::string, std::string> parseSetting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    failUsage(
        fmt::format("--set '{}': write stage.key=value, as in quantizer.outlier_capacity=0.1 "
                    "('fz stages NAME' lists the keys)",
                    text));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

void addFill(CLI::App& app, std::vector<std::string>& words) {
  app.add_option("--fill", words,
                 "a value that means missing, kept bit for bit and out of the bound; again for "
                 "more; none: there are none")
      ->type_name("V")
      ->allow_extra_args(false);
}

}  // namespace fz::cli
