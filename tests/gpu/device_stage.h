#pragma once

#include <memory>

#include "gpu/device_fixture.h"
#include "mem/mempool.h"
#include "support/stage_case.h"

/// One stage on the device, without a pipeline.
namespace fz::test {

/// A pool that lives as long as the process, so that stages may go after the test.
MemoryPool& devicePool();

/// As encode() and decode() of stage_case.h, on the device. Outputs are poisoned and guarded.
Encoded encodeOnDevice(Stage& stage, ByteView input, std::uint8_t poison = 0xCD);
Bytes decodeOnDevice(std::uint16_t stage_id, const Encoded& encoded);

}  // namespace fz::test
