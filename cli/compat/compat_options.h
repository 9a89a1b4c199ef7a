#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"
#include "pipeline/dag.h"

/// The command line of fzgmod-cli: its options, their aliases and defaults.
namespace fz::cli::compat {

/// A row of the table from which parser, help and manual are made.
struct OptionRow {
  std::string_view key;        ///< the long name that stands for all
  std::string_view spellings;  ///< "-e --error-bound --eb", all of them
  std::string_view value;      ///< what follows, for the help; empty for switches
  std::string_view usual;      ///< default, for the help; may be empty
  std::string_view help;
};

std::span<const OptionRow> optionRows();

enum class Mode { kNone, kCompress, kDecompress, kBenchmark };

struct Options {
  Mode mode = Mode::kNone;
  bool help = false;
  std::string input;
  std::string output;
  std::string config;
  std::string stages = "lorenzo->bitshuffle->rze";
  DataType type = DataType::FLOAT32;
  ErrorBoundMode bound_mode = ErrorBoundMode::REL;
  double error_bound = 1e-3;
  std::size_t radius = 32768;
  std::optional<std::array<std::size_t, 3>> dims;
  std::size_t chunk_bytes = 16384;
  std::size_t rze_levels = 4;
  bool report = false;
  std::string compare;
  std::size_t runs = 10;
  MemoryStrategy strategy = MemoryStrategy::PREALLOCATE;
  double pool_multiplier = 3.0;
  bool warmup = false;
  bool profile = false;
  /// Options that -c makes meaningless and that were given, as written.
  std::vector<std::string> unused_with_config;
};

/// Throws Failure(kUsage): unknown options (with a suggestion), positional arguments, missing or
/// wrong values, missing mode or input.
Options parseOptions(const std::vector<std::string>& words);

std::string usageText();
/// fzgmod-cli.1
std::string manualPage();

}  // namespace fz::cli::compat
