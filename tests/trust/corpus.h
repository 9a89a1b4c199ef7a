#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/frame_header.h"
#include "fz/span.h"

namespace fz::trust {

using Bytes = std::vector<std::uint8_t>;

/// A valid frame to start from.
struct Seed {
  std::string name;  ///< unique; says stage or preset, types, settings, version
  Bytes frame;
  Bytes original;  ///< the bytes that were compressed
};

/// Every stage in every combination of types and settings alone in a pipeline, over n values of
/// the first input family that applies; frames of versions 3.2 and 3.3.
std::vector<Seed> stageSeeds(std::size_t n_values);
/// Every preset and every chain of support/fusion_chains.h, for both float types, in one, two and
/// three dimensions, over a field whose values no library function computes.
std::vector<Seed> pipelineSeeds();
/// The same frame as a writer of version 3.1 or 3.0 would have left it (minor: 1 or 0).
Seed asOlderVersion(const Seed& seed, unsigned minor);
/// All of the above together: the corpus of the mutation tests.
std::vector<Seed> mutationSeeds();

bool isCompact(const Bytes& frame);

/// A frame taken apart; close() makes a whole one of it again, with sizes and checksums that fit,
/// whatever was changed. Not for versions below 3.2.
struct OpenFrame {
  FrameHeader header;
  Bytes payload;

  /// Throws Error where the frame is no good one.
  explicit OpenFrame(const Bytes& frame);
  Bytes close();
  /// All places that state the decoded length say this one.
  void claimLength(std::uint64_t n_values, std::uint64_t value_bytes);
};

/// Sizes and checksums made to fit the bytes again, as far as they have the form of a frame.
void repairFrame(Bytes& frame);

}  // namespace fz::trust
