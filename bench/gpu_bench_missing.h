#pragma once

#include <cstddef>
#include <string>

#include "fz/stream.h"

namespace fz::bench {

/// Presets whose name has `only` in it, on a field with coasts of NaN and on the same field filled:
/// medians of whole calls, and where their time goes.
void measureMissing(std::size_t n_bytes, int runs, const std::string& only, cudaStream_t stream);

}  // namespace fz::bench
