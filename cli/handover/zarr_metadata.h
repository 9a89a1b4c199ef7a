#pragma once

#include <string>

#include "fz/span.h"
#include "handover/chunk_store.h"

namespace fz::cli {

/// The text of zarr.json of an array whose codec is fz.frame.
std::string zarrArrayText(const StoredArray& array);
/// The same of a group.
std::string zarrGroupText();

struct ZarrArray {
  StoredArray about;
  char separator = '/';  ///< between the numbers of a chunk's key

  /// c/0/12/3, the slowest axis first.
  std::string chunkKey(std::uint64_t chunk) const;
};
/// Untrusted input: throws Error(kCorrupt) for what is no zarr.json, Error(kUnsupported) with the
/// reason for arrays whose chunks are not frames in a regular grid.
ZarrArray readZarrArray(ByteView text);

}  // namespace fz::cli
