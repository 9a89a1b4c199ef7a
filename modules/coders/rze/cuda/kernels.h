#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

namespace fz::rze {

/// What record->error_value says about a damaged stream; every larger value is the byte where the
/// chunks end, and not where the stream does.
constexpr std::uint64_t kChunkIsDamaged = 0;
constexpr std::uint64_t kHeaderIsWrong = 1;

/// Slot of the config's byte count in StageRecord::value.
constexpr unsigned kBytesSlot = 0;

/// One run in either direction.
struct RzeArgs {
  CudaInput in;
  CudaOutput out;
  StageRecord* record;
  /// Encoding: of the look-back, one word per chunk of the launch, and kCounters more; all zero
  /// before the kernel and after it. Decoding: two words per chunk, which launchPlaces fills; null
  /// for at most kFewChunks, whose places the decoder adds up itself.
  std::uint64_t* states;
  std::uint32_t n_chunks;  ///< of the launch: the input has no more
  std::uint32_t levels;
};

/// Bytes that a warp has where values are put in rows.
inline constexpr std::uint32_t kWarpBytes = 2048;

inline constexpr unsigned kCounters = 2;  ///< chunks taken, blocks done
inline constexpr std::uint32_t kFewChunks = 2048;

inline constexpr unsigned kPlaceThreads = 256;
inline constexpr unsigned kPlaceEach = 4;
inline constexpr unsigned kPlaceChunks = kPlaceThreads * kPlaceEach;
constexpr std::uint32_t placeBlocks(std::uint32_t n_chunks) {
  return (n_chunks + kPlaceChunks - 1) / kPlaceChunks;
}
/// Before a decode, also that of a group. Enqueues nothing where the decoder does without.
void launchPlaces(const RzeArgs& args, std::uint32_t chunk_bytes, const cuda::Call& call);

/// Enqueue only; chunk_bytes is one of the three of the format.
void launchEncode(const RzeArgs& args, std::uint32_t chunk_bytes, const cuda::Call& call);
void launchDecode(const RzeArgs& args, std::uint32_t chunk_bytes, const cuda::Call& call);

}  // namespace fz::rze
