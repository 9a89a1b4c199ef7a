#pragma once

#include <cstddef>
#include <cstdint>
#ifndef __CUDACC_RTC__
#include <span>
#endif

#include "fz/stream.h"

namespace fz {

class MemoryPool;

/// What can go wrong where only the device looks. Larger values win when several are noted.
enum class DeviceError : std::uint64_t {
  kNone = 0,
  kCorrupt = 1,     ///< the stream contradicts itself; `index` is a place in it
  kDoesNotFit = 2,  ///< a value cannot be written with the settings; `index` is its position
  kBound = 3,       ///< a value misses its bound; `index` is its position
};

/// What one run of one stage leaves on the device: sizes, findings, errors. The pipeline keeps the
/// records of all stages side by side, clears them before a run and reads them back once, after it.
/// Kernels write it; nothing in it depends on the order in which they do.
struct StageRecord {
  static constexpr std::size_t kPorts = 8;
  static constexpr std::size_t kValues = 12;

  std::uint64_t n_bytes[kPorts];       ///< size of each output, never above its capacity
  std::uint64_t needed_bytes[kPorts];  ///< what the output would have needed; 0: n_bytes
  std::uint64_t value[kValues];        ///< the stage's own findings, see SimpleStage::deviceFields
  std::uint64_t error;                 ///< a DeviceError
  std::uint64_t error_index;           ///< smallest index noted; all ones: none
  std::uint64_t error_count;
  std::uint64_t error_value;  ///< free for the stage
};
static_assert(sizeof(StageRecord) == 256);

/// Part of a stage's config that only the device knows after encoding, and that the device must
/// know for decoding: `n_bytes` bytes at `config_offset`, kept in value[slot] (little-endian, zero
/// extended). The pipeline moves it both ways.
struct DeviceField {
  /// Instead of an offset: the stage's version, or the absolute bound (a double) that the frame's
  /// description names.
  static constexpr std::uint32_t kStageVersion = 0xfffffffe;
  static constexpr std::uint32_t kAbsoluteBound = 0xffffffff;

  std::uint32_t config_offset;
  std::uint32_t n_bytes;
  std::uint32_t slot;
};

/// A size in bytes as a kernel gets it: exact when `on_device` is null, else an upper limit for the
/// launch while the exact value stands on the device.
struct DeviceSize {
  std::uint64_t n_bytes = 0;
  const std::uint64_t* on_device = nullptr;

  bool isExact() const { return on_device == nullptr; }
};

struct CudaInput {
  const std::uint8_t* data = nullptr;  ///< 16-byte aligned but for UnalignedInputs; null: none
  DeviceSize size = {};
};

struct CudaOutput {
  std::uint8_t* data = nullptr;  ///< 16-byte aligned; null when capacity is 0
  std::size_t capacity_bytes = 0;
  /// The record already holds the size, since it follows from exact inputs; else the stage's
  /// kernels must write record->n_bytes.
  bool size_known = false;
};

#ifndef __CUDACC_RTC__
/// One run of a stage on a device. The stage only enqueues work on `stream`: it does not wait, does
/// not read anything back and allocates nothing but Scratch, which is in place from the second call
/// of a size on, with PREALLOCATE from the first (and during graph capture).
struct CudaRun {
  std::span<const CudaInput> inputs;
  std::span<const CudaOutput> outputs;
  StageRecord* record;  ///< on the device
  cudaStream_t stream;
  MemoryPool* pool;
};
#endif

}  // namespace fz
