#pragma once

#include <cstdint>

namespace fz {

/// Whether a pipeline runs chains of stages as one pass over memory. The bytes are the same.
enum class Fusion : std::uint8_t {
  Off,   // NOLINT(readability-identifier-naming): every stage by itself
  Auto,  // NOLINT(readability-identifier-naming): wherever the stages allow it
};

const char* fusionName(Fusion fusion) noexcept;

}  // namespace fz
