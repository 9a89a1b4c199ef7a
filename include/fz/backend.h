#pragma once

#include <cstdint>

namespace fz {

/// Where a pipeline runs. Pointers given to it belong to that side.
enum class Backend : std::uint8_t {
  Auto,  // NOLINT(readability-identifier-naming): CUDA if it can be used, else CPU
  CPU,   // NOLINT(readability-identifier-naming)
  CUDA,  // NOLINT(readability-identifier-naming)
};

/// True when this build has the backend and it can be used on this machine.
bool isBackendAvailable(Backend backend) noexcept;
const char* backendName(Backend backend) noexcept;

}  // namespace fz
