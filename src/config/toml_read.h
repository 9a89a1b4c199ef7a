#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/compressor.h"

namespace fz {

/// Where in a file something stands, counted from 1.
struct TextPlace {
  std::size_t line;
  std::size_t column;
};

/// A connection as the file names it.
struct Link {
  std::string from;
  std::string port;
  TextPlace where;
};

/// A stage of the file, not yet part of a pipeline.
struct LoadedStage {
  std::string name;
  std::unique_ptr<Stage> stage;
  std::vector<Link> inputs;
};

/// What a configuration file says.
struct LoadedConfig {
  std::vector<LoadedStage> stages;
  std::optional<std::size_t> input_bytes;
  std::optional<std::array<std::size_t, 3>> dims;
  std::optional<MemoryStrategy> strategy;
  std::optional<double> pool_multiplier;
  std::optional<int> n_streams;
};

/// Parses a document and makes its stages. Of the overrides only the element type and the leave
/// for unknown keys matter here. Throws Error(kConfig) with source_name, line and column.
LoadedConfig readConfig(const std::string& text,
                        const std::string& source_name,
                        const ConfigOverrides& overrides);

}  // namespace fz
