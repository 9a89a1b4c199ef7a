#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fz/data_type.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/span.h"
#include "fz/stream.h"

/// Many arrays in one call. Each frame has the bytes that compress() gives for its field alone, and
/// a field that cannot be done leaves the others as they are.
namespace fz {

/// One array of a batch, in host memory.
struct BatchField {
  DataType type = DataType::UNKNOWN;
  ByteView bytes = {};
  /// All extents, x fastest; absent: as the options say.
  std::optional<AxisValues> extents = {};
};

/// What became of one field.
template <class T>
struct BatchResult {
  T value = {};
  std::exception_ptr error = nullptr;  ///< what the call for this field alone would have thrown

  bool isDone() const { return error == nullptr; }
  /// Throws `error` where there is one.
  const T& get() const {
    if (error != nullptr) {
      std::rethrow_exception(error);
    }
    return value;
  }
};

/// The code of an Error or InvalidArgument; kInternal for what is neither.
ErrorCode errorCodeOf(const std::exception_ptr& error) noexcept;

/// compress() of every field, in their order. `threads` work on as many fields at a time, and
/// limits of memory are those of one field. Of `progress`, n_stages and n_stages_done count fields,
/// and a field that has begun is finished. Throws for the whole of it Error (kCancelled,
/// kOutOfMemory); all else is a field's own.
std::vector<BatchResult<Frame>> compressBatch(std::span<const BatchField> fields,
                                              const CompressOptions& options = {});

/// decompress() of every frame, in their order; as compressBatch().
std::vector<BatchResult<Array>> decompressBatch(std::span<const ByteView> frames,
                                                const DecompressOptions& options = {});

/// Where frame `i` of a batch is decoded to: memory for so many bytes. Called by several threads at
/// once; what it throws is that field's error.
using BatchMemory = std::function<void*(std::size_t i, std::size_t n_bytes)>;

/// decompressInto() of every frame; results are the lengths.
std::vector<BatchResult<std::size_t>> decompressBatchInto(std::span<const ByteView> frames,
                                                          const BatchMemory& memory,
                                                          const DecompressOptions& options = {});

/// What became of one field of a DeviceBatch.
struct FieldResult {
  std::uint64_t n_bytes = 0;  ///< of its frame, or of its values
  std::int32_t status = 0;    ///< 0: done; else an ErrorCode plus one, as fz_status has it
  std::int32_t reserved = 0;
};

/// Memory on a device for one field or frame.
struct DeviceBytes {
  const void* data = nullptr;
  std::size_t n_bytes = 0;
};
struct DeviceRoom {
  void* data = nullptr;
  std::size_t capacity_bytes = 0;
};

/// Batches of arrays of one type and shape in device memory. Keeps what it needs for the next
/// batch. For one thread at a time. In a build without CUDA the constructor throws
/// Error(kNoDevice).
class DeviceBatch {
 public:
  /// For the current device. Throws as configure() does.
  DeviceBatch(DataType type, const CompressOptions& options);
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;
  ~DeviceBatch();

  /// Bytes that no frame of a field of n_bytes exceeds, and with which fields may be compressed all
  /// at once: at least compressBound().
  std::size_t slotBytes(std::size_t n_bytes) const;

  /// The frame of field i to slots[i], which may be too small for what comes (kBufferTooSmall: then
  /// n_bytes is what is needed); the outcome to results[i], in host or device memory. Fields have
  /// the same length, and stay as they are until the call returns. Work begins behind that of
  /// `stream`, and all of it is done on return. Extents beyond three axes are not written into
  /// frames. Throws for the whole of it InvalidArgument and Error (kInvalidArgument, kOutOfMemory,
  /// kCuda).
  void compress(std::span<const void* const> fields,
                std::size_t n_bytes,
                std::span<const DeviceRoom> slots,
                FieldResult* results,
                cudaStream_t stream = nullptr);

  /// Frame i, of any pipeline, to outputs[i]; otherwise as compress(). Damage is found before a
  /// field's output is written to.
  void decompress(std::span<const DeviceBytes> frames,
                  std::span<const DeviceRoom> outputs,
                  FieldResult* results,
                  cudaStream_t stream = nullptr);
  /// Of decompress(), for each frame.
  void setDecodeLimits(const DecodeLimits& limits);
  /// Fields of the last call that were done by kernels for all of them at once.
  std::size_t fusedFields() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fz
