#pragma once

#include <optional>
#include <string>

#include "fz/archive.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"
#include "pipeline/bound_check.h"

/// The objects of --json (JsonRows puts them together). Keys are part of the interface: they are
/// added to, never renamed.
namespace fz::cli {

/// What `info` shows: a frame, or an archive of chunks with the frame of one of them.
struct NamedFrame {
  std::string file;
  FrameInfo frame;
  std::optional<ArchiveInfo> archive = {};
};

std::string frameToJson(const NamedFrame& frame);
/// What a run adds to what its archive says.
struct RunFacts {
  std::string output;
  std::string pipeline;
  double seconds = 0.0;
};
std::string compressToJson(const NamedFrame& frame, const RunFacts& run);
/// An array that was written, from an archive or another file. Bytes of 0: there is no archive.
struct ArrayFacts {
  std::string output;
  DataType type = DataType::UNKNOWN;
  AxisValues extents;
  std::uint64_t original_bytes = 0;
  std::uint64_t archive_bytes = 0;
  double seconds = 0.0;
};
std::string arrayToJson(const ArrayFacts& facts);
/// An archive that was put together from what is left of another.
std::string recoveryToJson(const std::string& output,
                           const Recovery& found,
                           const ArchiveInfo& archive,
                           double seconds);
std::string stageToJson(const StageDescriptor& stage);
std::string presetToJson(const Preset& preset, bool is_by_purpose);
std::string checkToJson(const std::string& archive,
                        const std::string& original,
                        const CheckReport& report);

}  // namespace fz::cli
