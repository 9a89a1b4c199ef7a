#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fz/host_api.h"
#include "options.h"

namespace CLI {
class App;
}

namespace fz::cli {

/// The options that say how to compress: -b, -p, -c, --stages, --set, --no-fallback.
struct PipelineArguments {
  std::string bound;
  std::string preset;
  std::string config;
  std::string stages;
  std::vector<std::string> settings;
  bool no_fallback = false;
  bool fast = false;  ///< --fast, --best: presets by their purpose
  bool best = false;
};

/// The word for no loss at all, of -b and of -p.
inline constexpr std::string_view kLossless = "lossless";

void addPipeline(CLI::App& app, PipelineArguments& arguments);
/// --fast and --best alone.
void addPurpose(CLI::App& app, PipelineArguments& arguments);
/// Without -b and -p.
void addOwnPipeline(CLI::App& app, PipelineArguments& arguments);

/// What they come to.
struct PipelineChoice {
  std::optional<BoundRequest> bound;
  std::optional<ResultTarget> target;  ///< instead of a bound
  std::string name;                    ///< of the preset, of the file, or "--stages"
  bool is_lossless = false;            ///< asked for, or nothing else was
  bool is_lossless_by_default = false;
  std::string config_toml;  ///< of the file; empty for presets and --stages
  bool has_config = false;  ///< a file, which may have a shape
  std::string stages;       ///< the text of --stages
  std::vector<std::pair<std::string, std::string>> settings;
  bool has_fallback = true;  ///< lossless where that makes a smaller archive
};

/// Reads the file that -c names. Throws Failure for options that contradict each other, unknown
/// presets and mistakes in --stages that do not depend on the data.
PipelineChoice choosePipeline(const PipelineArguments& arguments);
/// The options of the library that mean the same for data of this type. Throws Failure(kUsage).
CompressOptions compressOptions(const PipelineChoice& choice, DataType type);
/// -b rel promises a bound for each value; a stage that takes REL of the largest value does less.
/// Throws Failure(kUsage) where that happened.
void checkBoundKind(const PipelineChoice& choice, const FrameInfo& info);
/// All names that -p takes: by purpose first, then the families.
std::vector<std::string> presetNames();
/// Whether a preset is named after what it is for, not after a paper.
bool isByPurpose(std::string_view preset);
/// Throws Failure(kUsage), with what may have been meant.
void checkPreset(const std::string& name);

}  // namespace fz::cli
