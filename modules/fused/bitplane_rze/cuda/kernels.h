#pragma once

#include <cstdint>

#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

namespace fz::bitplane_rze {

/// What record->error_value says about a damaged archive.
constexpr std::uint64_t kChunkIsDamaged = 0;
constexpr std::uint64_t kHeaderIsWrong = 1;

/// Slot of the config's number of symbols in StageRecord::value.
constexpr unsigned kSymbolsSlot = 0;

constexpr std::uint32_t kChunksPerBlock = 8;  // a warp each; not part of the format

/// One run in either direction: the arguments of BitplaneRzeOp.
struct BitplaneArgs {
  CudaInput in;
  CudaOutput out;
  StageRecord* record;
  std::uint64_t* states;   ///< of the look-back when encoding, one word per block, zero
  std::uint32_t n_blocks;  ///< of the launch: the data has no more
};

/// Enqueue only.
void launchEncode(const BitplaneArgs& args, const cuda::Call& call);
void launchDecode(const BitplaneArgs& args, const cuda::Call& call);

}  // namespace fz::bitplane_rze
