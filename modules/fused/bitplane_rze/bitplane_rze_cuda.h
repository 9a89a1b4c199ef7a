#pragma once

#include <cstdint>

#include "fz/device_types.h"
#include "fz/stream.h"

namespace fz::bitplane_rze {

/// What record->error_value says about a damaged archive.
constexpr std::uint64_t kChunkIsDamaged = 0;
constexpr std::uint64_t kHeaderIsWrong = 1;

/// Slot of the config's number of symbols in StageRecord::value.
constexpr unsigned kSymbolsSlot = 0;

constexpr std::uint32_t kChunksPerBlock = 8;  // a warp each; not part of the format

/// One run in either direction.
struct CudaArgs {
  CudaInput in;
  CudaOutput out;
  StageRecord* record;
  std::uint64_t* states;   ///< of the look-back when encoding, one word per block, zero
  std::uint32_t n_blocks;  ///< of the launch: the data has no more
};

/// Enqueue only.
void launchEncode(const CudaArgs& args, cudaStream_t stream);
void launchDecode(const CudaArgs& args, cudaStream_t stream);

}  // namespace fz::bitplane_rze
