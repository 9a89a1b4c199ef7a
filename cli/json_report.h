#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fz/archive.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"
#include "pipeline/bound_check.h"

/// What --json prints. Keys are part of the interface: they are added to, never renamed.
namespace fz::cli {

/// What `info` shows: a frame, or an archive of chunks with the frame of one of them.
struct NamedFrame {
  std::string file;
  FrameInfo frame;
  std::optional<ArchiveInfo> archive = {};
};

std::string frameToJson(const NamedFrame& frame);
/// An array, however many there are.
std::string framesToJson(const std::vector<NamedFrame>& frames);
std::string stagesToJson(std::span<const StageDescriptor* const> stages);
std::string presetsToJson(std::span<const Preset> presets);
std::string checkToJson(const std::string& archive,
                        const std::string& original,
                        const CheckReport& report);

}  // namespace fz::cli
