#pragma once

#include <span>

#include "fz/device_types.h"
#include "fz/span.h"

namespace fz::cuda {

/// The state of a record before a run.
void initRecord(StageRecord& record);
/// Puts the config fields that the device must know into the record.
void loadFields(std::span<const DeviceField> fields,
                ByteView config,
                std::uint16_t stage_version,
                StageRecord& record);

}  // namespace fz::cuda
