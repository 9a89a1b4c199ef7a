#pragma once

#include <memory>

#include "handover/chunk_store.h"
#include "hdf5_io.h"

namespace fz::cli {

/// Datasets whose chunks the fz filter made, read and written without the filter.

/// Whether the dataset is there and has the filter, and no other.
bool isFilteredHdf5(const Hdf5Name& name);
/// Throws Failure(kUsage) for datasets without the filter, Failure(kIo).
std::unique_ptr<ChunkSource> openHdf5Chunks(const Hdf5Name& name);
/// A new file with this one dataset. Throws Failure(kUsage) with the reason for arrays that HDF5
/// does not keep in chunks, Failure(kIo).
std::unique_ptr<ChunkTarget> createHdf5Chunks(const Hdf5Name& name, const StoredArray& about);

}  // namespace fz::cli
