#pragma once

#include <memory>

#include "fz/limits.h"
#include "handover/chunk_store.h"
#include "handover/key_store.h"
#include "handover/zarr_name.h"

namespace fz::cli {

/// Throws Failure(kUsage) for a group, Error.
std::unique_ptr<ChunkSource> openZarr(const ZarrName& name, const DecodeLimits& limits);
std::unique_ptr<ChunkTarget> createZarr(const ZarrName& name,
                                        const StoredArray& about,
                                        Existing existing);

}  // namespace fz::cli
