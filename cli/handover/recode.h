#pragma once

#include <cstdint>
#include <vector>

#include "fz/host_api.h"
#include "handover/chunk_store.h"

namespace fz::cli {

/// Frames that another format keeps in a way that an archive cannot: chunks at the edge with values
/// beyond it, integers that stand for floats, and NaN that stand for fill values. They are decoded,
/// put right and kept without loss, so that every value is the one that was read before; the new
/// frame states the bound of the old one.

/// Throws Error (kCorrupt, kUnsupported) for what is no frame of this chunk.
bool needsRecoding(const StoredArray& about, std::uint64_t chunk, ByteView frame);
std::vector<std::uint8_t> recode(const StoredArray& about,
                                 std::uint64_t chunk,
                                 ByteView frame,
                                 const DecompressOptions& how);
/// Of an array without values.
std::vector<std::uint8_t> emptyFrame(const StoredArray& about);

}  // namespace fz::cli
