#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fz/data_type.h"
#include "stage/stage.h"

namespace fz::bench {

/// A stage alone, with a setting and data as in the pipelines that use it.
struct StageRun {
  std::string stage;
  std::vector<DataType> types = {};
  std::vector<std::pair<std::string, std::string>> params = {};
  std::array<std::size_t, 3> dims = {0, 1, 1};
  /// Stages whose output is this stage's input, so that coders see what they see in use.
  std::vector<std::string> before = {};
  /// How often the encoder must read its input, whoever writes it: 2 where a number of the whole
  /// array decides every code.
  unsigned n_encode_reads = 1;
};

/// Every stage, in the settings that matter.
std::vector<StageRun> stageRuns();
std::string labelOf(const StageRun& run);
/// Null for an unknown name.
std::unique_ptr<Stage> makeStage(const std::string& name, std::vector<DataType> types);
/// The types in "Name:type,type".
std::vector<DataType> parseTypes(const std::string& text);

}  // namespace fz::bench
