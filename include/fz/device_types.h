#pragma once

// What host and device code exchange; also compiled at run time, so nothing but plain data.

#include <cstddef>
#include <cstdint>

#include "fz/stream.h"

namespace fz {

/// What can go wrong where only the device looks. Larger values win when several are recorded.
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
  std::uint64_t value[kValues];        ///< the stage's own findings, see CudaPart::fields
  std::uint64_t error;                 ///< a DeviceError
  std::uint64_t error_index;           ///< smallest index recorded; all ones: none
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
  const std::uint8_t* data =
      nullptr;  ///< 16-byte aligned unless CudaPart::readsUnaligned; null: none
  DeviceSize size = {};
};

struct CudaOutput {
  std::uint8_t* data = nullptr;  ///< 16-byte aligned; null when capacity is 0
  std::size_t capacity_bytes = 0;
  /// The record already holds the size, since it follows from exact inputs; else the stage's
  /// kernels must write record->n_bytes.
  bool size_known = false;
};

/// The parameters of a kernel for every field of a batch: those of field i stand `i * stride` bytes
/// behind `arguments`, each at a multiple of 16 bytes.
struct EachField {
  const std::uint8_t* arguments;
  std::uint64_t stride;
};

/// How the kernel of a fused group is launched; known when it is compiled.
struct GroupShape {
  std::uint32_t n_threads = 0;             ///< of a thread block
  std::uint32_t tile_values = 0;           ///< values that a thread block works on at a time
  std::uint32_t shared_bytes = 0;          ///< dynamic shared memory
  std::uint32_t blocks_per_processor = 0;  ///< 0: one thread block per tile
  std::uint32_t args_bytes = 0;            ///< size of the kernel's parameter
};

}  // namespace fz
