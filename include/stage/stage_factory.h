#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fzm_format.h"
#include "stage/stage.h"

namespace fz {

/// A stage as an archive describes it: made for the types in the config and configured by it. The
/// bytes are untrusted. The caller owns the result. Throws Error: kUnsupported for an unknown id
/// or type combination, kCorrupt for a bad config.
Stage* createStage(StageType type, const std::uint8_t* config, std::size_t config_bytes);

/// The same with ownership in the type; `version` is the stage version of the record.
std::unique_ptr<Stage> makeStage(std::uint16_t type_id,
                                 const std::uint8_t* config,
                                 std::size_t config_bytes,
                                 std::uint16_t version = 1);

}  // namespace fz
