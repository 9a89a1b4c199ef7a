#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coders/adaptive_bitpack/codec.h"
#include "fz/simple_stage.h"
#include "fz/span.h"
#include "mem/scratch.h"

namespace fz::adaptive_bitpack {

/// What Kernels::encode may write behind the payload proper.
inline constexpr std::size_t kEncodeSlackBytes = 64;

struct BlocksMeasure {
  std::uint64_t payload_bytes = 0;
  std::uint64_t n_good = 0;  ///< blocks up to the first whose metadata is invalid
};

/// Serial work on a run of blocks, tuned for one vector target.
template <class T>
struct Kernels {
  /// Encodes n values in blocks from the first on, the last one zero-filled. Writes the metadata
  /// of the blocks to `meta` and their payload to `payload`, which must have room for maxBlockCost
  /// bytes per block and kEncodeSlackBytes. Returns the payload bytes.
  std::size_t (*encode)(const T* values,
                        std::size_t n,
                        BlockLayout layout,
                        std::uint8_t* meta,
                        std::uint8_t* payload);

  /// Decodes n values. The metadata must have passed `measure`, and the payload must have at least
  /// the bytes that `measure` gave; it may go on behind them and is never read past its end.
  void (*decode)(
      const std::uint8_t* meta, ByteView payload, std::size_t n, BlockLayout layout, T* values);

  /// Payload bytes of n_blocks blocks by their metadata, which need not be trusted.
  BlocksMeasure (*measure)(const std::uint8_t* meta, std::size_t n_blocks, BlockLayout layout);
};

/// The kernels for this machine.
template <class T>
Kernels<T> kernelsFor();
template <>
Kernels<std::int16_t> kernelsFor<std::int16_t>();
template <>
Kernels<std::int32_t> kernelsFor<std::int32_t>();

/// Working memory of a stage.
struct CpuScratch {
  Scratch slots;
  Scratch sizes;
};

/// Encodes run.inputs[0] into run.outputs[0] with the executor's threads; returns the archive
/// bytes, or 0 when the output is too small.
template <class T>
std::size_t encodeArchive(const CpuRun& run, BlockLayout layout, CpuScratch& scratch);

/// Checks the metadata of an archive of n values, which is untrusted; returns where in the payload
/// the parts of tile_blocks blocks begin. Throws Error(kCorrupt).
template <class T>
std::span<const std::uint64_t> checkedOffsets(const CpuRun& run,
                                              BlockLayout layout,
                                              std::size_t n,
                                              std::size_t tile_blocks,
                                              Scratch& scratch);

/// Decodes n values from run.inputs[0], which is untrusted. Throws Error(kCorrupt).
template <class T>
void decodeArchive(const CpuRun& run, BlockLayout layout, std::size_t n, CpuScratch& scratch);

}  // namespace fz::adaptive_bitpack
