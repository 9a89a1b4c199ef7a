#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chunked_input.h"
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

/// The original of an archive, to be read by parts. Throws Failure where it has another type or
/// shape.
ChunkedInput openOriginal(const std::string& path, const ArchiveInfo& info);

/// Compares an archive with its original, chunk by chunk. Throws Failure, Error.
CheckReport checkChunks(const ArchiveReader& reader,
                        const ChunkCheck& check,
                        const CommonOptions& common,
                        Progress& progress);

}  // namespace fz::cli
