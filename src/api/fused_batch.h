#pragma once

#include <cstddef>
#include <memory>

#include "fz/data_type.h"
#include "fz/host_api.h"
#include "pipeline/device/batch_program.h"

namespace fz {

/// Kernels for all fields at once, where the pipeline allows it.
struct FusedBatch {
  std::size_t n_bytes = 0;  ///< of a field
  std::unique_ptr<BatchProgram> encode;
  std::unique_ptr<BatchProgram> decode;

  /// Programs for fields of a length; none where they cannot be had.
  void make(DataType type, CompressOptions options, int device, std::size_t field_bytes);

 private:
  struct Model;
};

}  // namespace fz
