#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fz/backend.h"
#include "fz/data_type.h"
#include "fz/host_api.h"
#include "fz/limits.h"
#include "fz/target.h"
#include "pipeline/bound_check.h"
#include "progress.h"

namespace CLI {
class App;
}

namespace fz::cli {

/// Options that several sub-commands share.
struct CommonOptions {
  std::vector<std::string> files;
  std::string output;
  bool force = false;
  bool quiet = false;
  bool verbose = false;
  std::size_t threads = 0;
  std::string backend = "auto";
  std::string progress = "auto";
  bool keep = false;       ///< -k, the default anyway
  bool remove = false;     ///< --rm
  bool recursive = false;  ///< -r
  bool no_sync = false;
  bool json = false;
  DecodeLimits limits;
};

void addFiles(CLI::App& app, CommonOptions& options, const char* help);
void addOutput(CLI::App& app, CommonOptions& options, const char* help);
/// After addOutput(): under these names, a flag that says -o -.
void addStandardOutput(CLI::App& app, CommonOptions& options, const char* names);
/// -k, --rm, -r and --no-sync, as gzip and zstd have them.
void addFileHabits(CLI::App& app, CommonOptions& options);
/// --json.
void addJson(CLI::App& app, CommonOptions& options);
void addQuietAndVerbose(CLI::App& app,
                        CommonOptions& options,
                        const char* quiet_help = "say nothing but errors");
/// What -q leaves of commands that encode.
inline constexpr const char* kQuietEncoderHelp =
    "say nothing but errors and that values may be lost";
void addRunning(CLI::App& app, CommonOptions& options);
/// --progress.
void addProgress(CLI::App& app, CommonOptions& options);
/// What decoding may cost.
void addLimits(CLI::App& app, CommonOptions& options);
/// --max-memory alone.
void addMemoryLimit(CLI::App& app, CommonOptions& options, const char* help);
/// Throws Failure(kUsage) for options that contradict each other and for an unknown backend.
void checkCommon(const CommonOptions& options);

// The parsers throw Failure(kUsage) that quotes the text and says what is allowed.

/// "abs:1e-3", "rel:1e-4", "range:1e-4".
BoundRequest parseBound(std::string_view text);
/// "psnr:80" or "ratio:20"; nothing where it is of no such kind.
std::optional<ResultTarget> parseTarget(std::string_view text);
/// "3600x1800": x first, one to three extents, the rest 1.
std::array<std::size_t, 3> parseDims(std::string_view text);
/// The same for one to eight extents.
AxisValues parseExtents(std::string_view text, std::string_view option = "-d");
/// "500M", "4GiB" or a plain number, as the number of bytes; units count in steps of 1024. Returns
/// what is wrong, or an empty text. A misread limit would be no limit at all, so nothing else
/// passes: no sign, no number beyond 64 bits.
std::string toBytes(std::string& text);
/// f32 or f64, also by their long names.
DataType parseType(std::string_view text);
Backend parseBackend(std::string_view text);
ProgressMode parseProgress(std::string_view text);
/// What --progress asks for; nothing with -q unless it was asked for.
ProgressMode progressMode(const CommonOptions& options);
/// "stage.key=value" or "key=value".
std::pair<std::string, std::string> parseSetting(std::string_view text);

/// x * y * z, or nothing when that overflows.
std::optional<std::size_t> countOf(const std::array<std::size_t, 3>& dims);

/// --fill, any number of times.
void addFill(CLI::App& app, std::vector<std::string>& words);

}  // namespace fz::cli
