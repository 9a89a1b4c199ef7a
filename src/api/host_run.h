#pragma once

#include "fz/host_api.h"
#include "pipeline/compressor.h"

namespace fz {

/// As compress(), on a pipeline of the caller, who reads its insight afterwards (profile, memory).
/// The first call loads the pipeline; later ones must have the same type and options.
Frame compressOn(Pipeline& pipeline, DataType type, ByteView bytes, const CompressOptions& options);
/// As decompress(), on a pipeline of the caller.
Array decompressOn(Pipeline& pipeline, ByteView frame, const DecompressOptions& options);

}  // namespace fz
