#pragma once

#include <optional>

#include "fz/archive.h"

namespace fz {

/// The bound that a chunk would have with these options; nothing where chunks are lossless.
std::optional<BoundInfo> boundOf(DataType type, const CompressOptions& options);

/// Options with which every chunk keeps the bound that the whole array was promised. Throws
/// InvalidArgument where that needs a range that nobody gave.
CompressOptions optionsForChunks(DataType type, const ArchiveOptions& options);

}  // namespace fz
