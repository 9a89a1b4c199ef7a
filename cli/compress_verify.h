#pragma once

#include "compress_job.h"
#include "fz/host_api.h"
#include "pipeline/bound_check.h"
#include "progress.h"

namespace fz::cli {

/// A report shows a failed check as well; without one the check throws.
struct Decoded {
  Array values;
  CheckReport check;
};

/// Decodes a frame and checks every value. Throws Failure for a result of another length.
Decoded verifyFrame(const CompressJob& job,
                    const Field& field,
                    const Frame& frame,
                    const FrameInfo& info,
                    Progress& progress);
/// Throws Failure(kBound) for a check that failed.
void requirePassed(const CheckReport& check);

}  // namespace fz::cli
