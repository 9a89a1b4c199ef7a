#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fz/archive.h"
#include "options.h"

namespace fz::cli {

class Progress;

/// Between archives and arrays of Zarr and HDF5 whose chunks are frames: `fz convert` copies them
/// as they are.

/// Whether the result is an array of Zarr or HDF5 that takes frames.
bool takesFrames(const std::string& output);
/// Whether the input is one whose chunks may be frames: of Zarr, or of HDF5 with the filter.
bool hasFrames(const std::string& input);

/// The fill values that the first chunk with any declares.
std::vector<double> declaredFill(const ArchiveReader& archive);

struct Handover {
  DataType type = DataType::UNKNOWN;
  AxisValues extents;
  std::uint64_t original_bytes = 0;
  std::uint64_t frame_bytes = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_recoded = 0;  ///< that could not be copied
};

/// Throws Failure, Error; nothing is left then.
Handover archiveToChunks(const std::string& input,
                         const std::string& output,
                         const CommonOptions& common,
                         Progress& progress);
Handover chunksToArchive(const std::string& input,
                         const std::string& output,
                         const CommonOptions& common,
                         Progress& progress);

}  // namespace fz::cli
