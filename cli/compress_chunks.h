#pragma once

#include <string>

#include "chunked_input.h"
#include "compress_job.h"

namespace fz::cli {

class Progress;

/// Compresses an array that is read by parts into an archive of chunks. Throws Failure, Error.
/// Returns the seconds that it took.
double compressInChunks(const CompressJob& job,
                        const std::string& input_path,
                        const std::string& output,
                        ChunkedInput& input,
                        Progress& progress);

}  // namespace fz::cli
