#include <cuda_runtime_api.h>

#include "api/fused_batch.h"
#include "backends/cuda/batch_memory.h"
#include "backends/cuda/captures.h"
#include "cuda_check.h"
#include "fz/error.h"
#include "log.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_access.h"

namespace fz {

/// A pipeline that has compressed zeros, and what it took.
struct FusedBatch::Model {
  Model(DataType type,
        const CompressOptions& options,
        int device,
        std::size_t n,
        std::uint64_t number)
      : pipeline(n, MemoryStrategy::PREALLOCATE) {
    pipeline.setDevice(device);
    configure(pipeline, type, options);
    // Addresses that nobody has, other ones in every model.
    constexpr unsigned kApart = 41;
    at = {(std::uint64_t{1} << 56) + (number << kApart),
          (std::uint64_t{2} << 56) + (3 * number << kApart),
          (std::uint64_t{3} << 56) + (5 * number << kApart)};
    zeros.reserve(n);
    decoded.reserve(n);
    const cudaStream_t stream = PipelineAccess::ownStream(pipeline);
    FZ_CUDA_CHECK(cudaMemsetAsync(zeros.data(), 0, n, stream));
    pipeline.compress(zeros.data(), n, stream);
    const CompressedView frame = pipeline.compress(zeros.data(), n, stream);
    std::size_t n_out = 0;
    pipeline.decompress(frame.data, frame.n_bytes, decoded.data(), n, &n_out, stream);
    can_encode = PipelineAccess::recordCompress(pipeline, n, at, encoding);
    can_decode = PipelineAccess::recordDecompress(pipeline, n, at, decoding);
  }

  Pipeline pipeline;
  cuda::BatchMemory zeros;
  cuda::BatchMemory decoded;
  BatchAddresses at = {};
  BatchRecording encoding;
  BatchRecording decoding;
  bool can_encode = false;
  bool can_decode = false;
};

void FusedBatch::make(DataType type, CompressOptions options, int device, std::size_t field_bytes) {
  n_bytes = field_bytes;
  encode.reset();
  decode.reset();
  options.lossless_fallback = false;
  options.max_memory_bytes = 0;
  options.progress = nullptr;
  try {
    const Model one(type, options, device, field_bytes, 1);
    const Model other(type, options, device, field_bytes, 2);
    FZ_CUDA_CHECK(cuda::synchronizeDevice());  // what they leave is read
    if (one.can_encode && other.can_encode) {
      encode = BatchProgram::make(one.encoding, one.at, other.encoding, other.at, false);
    }
    if (one.can_decode && other.can_decode) {
      decode = BatchProgram::make(one.decoding, one.at, other.decoding, other.at, true);
    }
  } catch (const Error& error) {
    FZ_LOG(INFO, "DeviceBatch: fields are done one by one: %s", error.what());
  }
}

}  // namespace fz
