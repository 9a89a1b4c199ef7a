#pragma once

#include "fz/host_api.h"
#include "pipeline/compressor.h"

namespace fz {

// Host memory through a pipeline of the CUDA backend. A build without CUDA has no such pipeline,
// and never gets here.

/// As Pipeline::compress(), by a copy of the input on the device. Throws FillValueError as
/// requireSoundRange() does.
Frame compressByDevice(Pipeline& pipeline, ByteView bytes, const CompressOptions& options);
/// What a caller owns on the device, brought to the host and freed there.
std::vector<std::uint8_t> takeFromDevice(void* memory, std::size_t n_bytes);

}  // namespace fz
