#pragma once

#include <cstdint>
#include <string>

#include "fz/limits.h"

namespace fz::cli {

/// What this process can hope to get: the machine's memory, less where a control group or a limit
/// of the process (ulimit -v) allows less.
std::uint64_t usableMemoryBytes();

/// What a piece of work is expected to take besides its mapped input.
struct MemoryNeed {
  std::uint64_t n_bytes = 0;
  std::string what;  ///< for the message: "compressing 4.29 GB with pfpl"
};

/// Refuses work that cannot fit before it begins: over `limit_bytes`, or with 0 (no --max-memory)
/// over what the machine has. Throws Failure(kMemory).
void checkMemory(const MemoryNeed& need, std::uint64_t limit_bytes);

/// What is left for decoding where the result itself is held in memory too: --max-memory counts
/// both. Throws Failure(kMemory) when the result alone is too much.
DecodeLimits limitsBesideResult(const DecodeLimits& limits, std::uint64_t n_result_bytes);

}  // namespace fz::cli
