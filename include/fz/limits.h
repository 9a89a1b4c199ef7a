#pragma once

#include <cstddef>
#include <cstdint>

namespace fz {

/// Most threads that a pipeline takes; a larger request gets these.
inline constexpr std::size_t kMaxThreads = 1024;

/// What decoding a frame from somewhere may cost; 0 means no limit. Exceeding one throws
/// Error(kLimit) before the memory is taken.
struct DecodeLimits {
  std::uint64_t max_output_bytes = 0;
  /// Working memory besides the frame and the output: buffers between the stages, what the stages
  /// keep for their own work, aligned copies of parts of the frame, and on a device the frame's
  /// copy there where it came from the host.
  std::uint64_t max_memory_bytes = 0;
};

}  // namespace fz
