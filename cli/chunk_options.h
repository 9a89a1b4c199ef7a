#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fz/archive.h"

namespace CLI {
class App;
}

namespace fz::cli {

/// Inputs above this are compressed chunk by chunk when nothing is said.
inline constexpr std::uint64_t kChunkedAboveBytes = std::uint64_t{256} << 20;

/// What --chunk and --range say.
struct ChunkArguments {
  std::string chunk;
  std::string range;
};

struct ChunkChoice {
  bool is_given = false;
  bool is_none = false;
  std::uint64_t n_bytes = 0;  ///< 0: extents, or nothing was said
  AxisValues extents = {};    ///< x first
  std::optional<ValueRange> range = {};

  /// Inputs of at most so many bytes become one frame, within this limit of memory (0: none).
  std::uint64_t wholeBytes(std::uint64_t memory_limit) const {
    constexpr std::uint64_t kCopies = 4;  // that a pipeline may hold of its input
    const std::uint64_t most = memory_limit == 0
                                   ? kChunkedAboveBytes
                                   : std::min(kChunkedAboveBytes, memory_limit / kCopies);
    return is_none ? ~std::uint64_t{0} : is_given ? 0 : most;
  }
};

void addChunk(CLI::App& app, ChunkArguments& arguments);
/// Throws Failure(kUsage).
ChunkChoice parseChunk(const ChunkArguments& arguments);

/// A box, and which of its axes a result keeps: a single index takes its axis away.
struct BoxChoice {
  Box box;
  AxisValues kept_extents;  ///< x first
};
/// "0:100,:,20:30" by numpy's rules, the slowest axis first. Throws Failure(kUsage).
BoxChoice parseBox(std::string_view text, const AxisValues& extents);

}  // namespace fz::cli
