#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "backends/cpu/missing.h"
#include "backends/cpu/value_ends.h"
#include "fz/data_type.h"
#include "fz/stream.h"
#include "pipeline/compressor.h"

namespace fz {

namespace cuda {
class FieldLook;
}

/// What front ends ask of a field in device memory, as missing_values.h has it of those of the
/// host. A sample is looked at when it is made; a build without CUDA throws Error(kNoDevice) then.
class DeviceField {
 public:
  /// Keeps memory from one field to the next.
  class Room {
   public:
    Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room();

   private:
    friend class DeviceField;
    std::unique_ptr<cuda::FieldLook> look_;
  };

  /// Values and fill must outlive it. Throws InvalidArgument for too many fill values.
  DeviceField(Room& room,
              int device,
              DataType type,
              const void* values,
              std::size_t n_bytes,
              std::span<const double> fill,
              cudaStream_t stream);

  /// As the functions of these names.
  bool hasMissing() const;
  bool hasAnyMissing() const;
  ValidRange rangeOfValid() const;
  /// As Pipeline::requireRangeWithoutFill(), after compress().
  void requireRangeWithoutFill(const Pipeline& pipeline) const;

 private:
  template <class T>
  void check(const BoundInfo& bound) const;

  cuda::FieldLook* look_;
  DataType type_;
  const void* values_;
  std::size_t n_bytes_;
  std::span<const double> fill_;
  cudaStream_t stream_;
  int device_;
  bool is_missing_in_sample_ = false;
  ValueEnds<double> sample_;
};

}  // namespace fz
