#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress_job.h"
#include "fz/archive.h"
#include "options.h"
#include "pipeline/bound_check.h"

namespace fz::cli {

class Progress;

/// What is checked, and against what.
struct ChunkCheck {
  std::string original;
  std::optional<BoundRequest> request;  ///< instead of the archive's own bound
  FillChoice fill;
};

/// Compares an archive with its original, chunk by chunk. Throws Failure, Error.
CheckReport checkChunks(const ArchiveReader& reader,
                        const ChunkCheck& check,
                        const CommonOptions& common,
                        Progress& progress);

}  // namespace fz::cli
