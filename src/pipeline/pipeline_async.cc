// The calls that do not wait; only the CUDA backend has them.
#include <new>

#include "core/require.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_access.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

DeviceRunner& requireDevice(const std::unique_ptr<DeviceRunner>& runner, const char* call) {
  FZ_REQUIRE(runner != nullptr, ErrorCode::kUnsupported, "Pipeline::{}: needs the CUDA backend",
             call);
  return *runner;
}

}  // namespace

void Pipeline::compressAsync(const void* d_in,
                             std::size_t n_bytes,
                             void* d_frame,
                             std::size_t capacity_bytes,
                             std::uint64_t* d_frame_bytes,
                             cudaStream_t stream) try {
  impl_->requireFinalized("compressAsync");
  FZ_REQUIRE(
      !impl_->lossless_fallback, ErrorCode::kInvalidState,
      "Pipeline::compressAsync: not with setLosslessFallback(true), which must wait for a size");
  DeviceRunner& runner = requireDevice(impl_->on_device, "compressAsync");
  FZ_REQUIRE(impl_->hint_bytes == 0 || n_bytes <= impl_->hint_bytes, ErrorCode::kBadSize,
             "Pipeline::compressAsync: input of {} bytes, but the pipeline was made for at most {}",
             n_bytes, impl_->hint_bytes);
  impl_->requireDims(n_bytes, "Pipeline::compressAsync");
  runner.compressAsync(d_in, n_bytes, d_frame, capacity_bytes, d_frame_bytes, stream);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::decompressAsync(const void* d_frame,
                               std::size_t capacity_bytes,
                               void* d_out,
                               std::size_t original_bytes,
                               std::uint64_t* d_out_bytes,
                               cudaStream_t stream) try {
  requireDevice(impl_->on_device, "decompressAsync")
      .decompressAsync(d_frame, capacity_bytes, d_out, original_bytes, d_out_bytes,
                       {impl_->read_header, impl_->decoder.get()}, stream);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

bool PipelineAccess::recordCompress(Pipeline& pipeline,
                                    std::size_t n_bytes,
                                    const BatchAddresses& at,
                                    BatchRecording& recording) {
  return pipeline.impl_->on_device->recordCompress(n_bytes, at, recording);
}

bool PipelineAccess::recordDecompress(Pipeline& pipeline,
                                      std::size_t original_bytes,
                                      const BatchAddresses& at,
                                      BatchRecording& recording) {
  Pipeline::Impl& impl = *pipeline.impl_;
  return impl.on_device->recordDecompress(original_bytes, at, recording, impl.read_header,
                                          impl.decoder.get());
}

std::size_t Pipeline::finishAsync(cudaStream_t stream) try {
  return requireDevice(impl_->on_device, "finishAsync").finishAsync(stream);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
