#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fz/data_type.h"

/// Pipelines in one line: "quantizer(linear)->lorenzo(block_size=32)->adaptive_bitpack".
///
///   pipeline = stage { "->" stage }
///   stage    = name [ "(" [ argument { "," argument } ] ")" ]
///   argument = key "=" value | word
///
/// A word is a switch (linear for linear_mode = true), a choice (rel, fine) or an element type.
namespace fz {
struct StageDescriptor;
}
namespace fz::cli {

/// What stands between the brackets; places are characters of the text, counted from 1.
struct StageArgument {
  std::string key;  ///< empty for a word
  std::string value;
  std::size_t place = 0;
};

struct StageSpec {
  std::string word;  ///< as it was written
  std::size_t place = 0;
  const StageDescriptor* stage = nullptr;
  std::vector<StageArgument> arguments;
};

/// Throws Failure(kUsage) with the place and, where a word is nearly right, the right one.
std::vector<StageSpec> parseStages(std::string_view text);

/// A stage with everything settled.
struct BuiltStage {
  std::string name;  ///< in the configuration: what --set calls it
  const StageDescriptor* stage = nullptr;
  std::vector<DataType> types;
  std::string port;  ///< of the stage before; empty for the first
  /// Keys and TOML values as they go into the configuration.
  std::vector<std::pair<std::string, std::string>> settings;
  /// Keys that were chosen here, not given.
  std::vector<std::string> chosen;
};

/// Checks the arguments, chooses the element types so that each stage takes what the one before
/// gives, and what follows from that: element_width of shufflers, bklen of Huffman, the policy
/// Guarantee of linear quantisers, the bound range:1e-3 where none is given. Throws Failure(kUsage)
/// with the place.
std::vector<BuiltStage> buildStages(std::string_view text, DataType input_type);
/// The configuration file that says the same.
std::string stagesToToml(const std::vector<BuiltStage>& stages);
/// One line per stage, for -v. With `has_bound` the bound is left out, which -b gives.
std::string describeStages(const std::vector<BuiltStage>& stages, bool has_bound);

/// By name or alias; case, dashes and underscores do not count. Null when there is none.
const StageDescriptor* findStageLoosely(std::string_view word);
/// The names that a message or a completion offers: adaptive_bitpack.
std::string snakeName(std::string_view name);

}  // namespace fz::cli
