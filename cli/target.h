#pragma once

#include "field_io.h"
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

}  // namespace fz::cli
