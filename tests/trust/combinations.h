#pragma once

#include <cstdint>
#include <string>

#include "fz/backend.h"
#include "fz/error.h"
#include "pipeline/compressor.h"
#include "trust/corpus.h"

namespace fz::trust {

/// One pipeline, one shape, one kind of data.
struct Combination {
  std::string name;
  std::string toml;
  ConfigOverrides overrides;
  DataType type = DataType::FLOAT32;
  Bytes bytes;  ///< the values
};

/// Combination number `trial` of a seed: presets and chains, families in turn, shapes of one to
/// three dimensions around the sizes at which layouts change, bounds from denormal to huge.
Combination combination(std::uint64_t seed, std::uint64_t trial);

/// How many pipelines and families combinations are drawn from.
std::size_t pipelineCount();
std::size_t familyCount();

/// Whether this is how a pipeline says that it cannot keep such a bound, or not for such data.
bool isRefusal(ErrorCode code);

/// Loads the combination's pipeline. Throws Error or InvalidArgument where it refuses the bound.
void load(Pipeline& pipeline, const Combination& combination, Backend backend);

}  // namespace fz::trust
