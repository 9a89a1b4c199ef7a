#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fz/host_api.h"
#include "fz/stage_descriptor.h"

namespace fz {

/// Whether archives keep this setting of a stage. Those that no decoder needs are not written down:
/// a stage that was made from an archive has their defaults. False for unknown keys.
bool isRecorded(const StageDescriptor& stage, std::string_view key);
/// The settings of a frame's stage that the frame really has, without the defaults of the rest.
std::vector<std::pair<std::string, ParamValue>> recordedParams(const FrameStageInfo& stage);

}  // namespace fz
