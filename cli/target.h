#pragma once

#include "chunked_input.h"
#include "field_io.h"
#include "fz/archive.h"
#include "fz/host_api.h"
#include "pipeline_options.h"
#include "progress.h"

namespace fz::cli {

/// Where -b names a result, looks for the bound that leads to it, puts it into the options and says
/// so. Throws TargetError where none does.
void applyTarget(const PipelineChoice& choice,
                 const Field& field,
                 bool quiet,
                 CompressOptions& options,
                 Progress& progress);

/// The same for an array that becomes an archive of chunks; the input is read several times, so it
/// is no pipe.
void applyTarget(const PipelineChoice& choice,
                 const ChunkedInput& input,
                 bool quiet,
                 ArchiveOptions& options,
                 Progress& progress);

}  // namespace fz::cli
