#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/value_ends.h"
#include "fz/data_type.h"
#include "fz/stream.h"

namespace fz::cuda {

/// A field in device memory, at any address, and the values that were declared to be missing.
struct FieldValues {
  DataType type;  ///< FLOAT32 or FLOAT64
  const void* data;
  std::uint64_t n_bytes;
  std::span<const double> fill;
  int device;
};

/// Of some or all of its values.
struct FieldFindings {
  bool has_missing = false;
  ValueEnds<double> ends;  ///< of those that are not missing
};

/// Asks for what is to be known of a field before or after it is compressed. Every question is one
/// kernel, and a wait for it.
class FieldLook {
 public:
  /// Throws Error(kOutOfMemory).
  FieldLook();
  FieldLook(const FieldLook&) = delete;
  FieldLook& operator=(const FieldLook&) = delete;
  ~FieldLook();

  /// Of the values that field_sample.h names.
  FieldFindings sample(const FieldValues& field, cudaStream_t stream);
  FieldFindings all(const FieldValues& field, cudaStream_t stream);
  std::uint64_t countEqual(const FieldValues& field, double value, cudaStream_t stream);

  static constexpr unsigned kMaxParts = 1024;
  static constexpr unsigned kMaxFills = 8;
  /// What a thread block found; no value is an infinity.
  struct Part {
    double low;
    double next_low;
    double high;
    double next_high;
    std::uint64_t count;  ///< missing ones, or equal ones
  };

 private:
  FieldFindings merge(unsigned n_parts) const;

  Part* parts_ = nullptr;  // pinned, which kernels write to
};

}  // namespace fz::cuda
