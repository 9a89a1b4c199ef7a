#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fz/data_type.h"
#include "fz/params.h"

namespace fz::python {

/// A stage as Python names it.
struct StageRequest {
  std::string type;
  std::string name;
  /// Stage and port; an empty port means the producer's first. None given: the stage before.
  std::optional<std::vector<std::pair<std::string, std::string>>> inputs;
  /// Parameters and type keys.
  std::vector<std::pair<std::string, ParamValue>> settings;
};

/// Builds the stages for data of a type and gives the configuration file that says the same. Types
/// that are left open are chosen so that each stage takes what the one before it gives.
/// Throws Error, InvalidArgument.
std::string stagesToToml(const std::vector<StageRequest>& requests, DataType input_type);

}  // namespace fz::python
