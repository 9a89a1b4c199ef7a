// compressAsync, decompressAsync and how they end.
#include "backends/cuda/alignment.h"
#include "backends/cuda/nvtx_range.h"
#include "backends/cuda/run_state.h"
#include "core/require.h"
#include "cuda_check.h"
#include "pipeline/device/cuda_runner.h"
#include "pipeline/frame/async_decoder.h"
#include "shared/bits.h"

namespace fz {

void CudaRunner::compressAsync(const void* input,
                               std::size_t n_bytes,
                               void* d_frame,
                               std::size_t capacity_bytes,
                               std::uint64_t* d_frame_bytes,
                               cudaStream_t stream) {
  const cuda::NvtxRange range("fz::compressAsync");
  const cuda::DeviceGuard guard(core_.device);
  cuda::dropStaleError("Pipeline::compressAsync");
  if (n_bytes > 0) {
    requireDevicePointer(input, "input");
  }
  requireDevicePointer(d_frame, "frame");
  FZ_REQUIRE(cuda::isAligned(d_frame), ErrorCode::kInvalidArgument,
             "Pipeline::compressAsync: the frame must be {}-byte aligned", cuda::kPointerAlignment);
  const std::size_t padded_bytes = bits::roundUp(n_bytes, core_.alignment);
  const FrameRoom room = frameRoom(n_bytes);
  FZ_REQUIRE(room.n_bytes <= capacity_bytes, ErrorCode::kBufferTooSmall,
             "Pipeline::compressAsync: the frame may take {} bytes, the caller's buffer has {}",
             room.n_bytes, capacity_bytes);
  enter(stream);
  const void* data = alignedInput(input, n_bytes, stream);
  pending_attempt_ = {data, n_bytes, padded_bytes, static_cast<std::uint8_t*>(d_frame),
                      room.first_segment_bytes};
  pending_ = Pending::kCompress;
  try {
    launch(pending_attempt_, Request::Mode::kDetached, {stream});
  } catch (...) {
    abandon(stream);
    throw;
  }
  if (d_frame_bytes != nullptr) {
    FZ_CUDA_CHECK(cudaMemcpyAsync(d_frame_bytes, &state().frameOnDevice()->total_bytes,
                                  sizeof(std::uint64_t), cudaMemcpyDeviceToDevice, stream));
  }
  leave(stream);
}

void CudaRunner::decompressAsync(const void* d_frame,
                                 std::size_t capacity_bytes,
                                 void* d_out,
                                 std::size_t original_bytes,
                                 std::uint64_t* d_out_bytes,
                                 const LastDecoded& last,
                                 cudaStream_t stream) {
  const cuda::NvtxRange range("fz::decompressAsync");
  const cuda::DeviceGuard guard(core_.device);
  cuda::dropStaleError("Pipeline::decompressAsync");
  requireDevicePointer(d_frame, "frame");
  FZ_REQUIRE(cuda::isAligned(d_frame) && cuda::isAligned(d_out), ErrorCode::kInvalidArgument,
             "Pipeline::decompressAsync: frame and result must be {}-byte aligned",
             cuda::kPointerAlignment);
  const bool primed = last.decoder != nullptr && last.decoder->plan() != nullptr &&
                      last.header.description.original_bytes == original_bytes;
  if (async_decoder_ == nullptr || !async_decoder_->isFor(original_bytes)) {
    FZ_REQUIRE(primed, ErrorCode::kInvalidState,
               "Pipeline::decompressAsync: decompress() one frame of {} bytes of data first (or "
               "warmup()), so that its kind is known",
               original_bytes);
    async_decoder_ = std::make_shared<AsyncDecoder>(
        last.header, ByteView(opener_.lastHeader(), last.header.core.header_size),
        last.decoder->customStages(), core_.pool);
  }
  if (original_bytes > 0) {
    requireDevicePointer(d_out, "result");
  }
  enter(stream);
  async_decoder_->enqueue(static_cast<const std::uint8_t*>(d_frame), capacity_bytes,
                          static_cast<std::uint8_t*>(d_out), core_.context, stream);
  if (d_out_bytes != nullptr) {
    // Zero when the header was refused; later findings are finishAsync()'s to tell.
    FZ_CUDA_CHECK(cudaMemcpyAsync(d_out_bytes, async_decoder_->lengthOnDevice(),
                                  sizeof(std::uint64_t), cudaMemcpyDeviceToDevice, stream));
  }
  leaveUnlessCapturing(stream);
  pending_ = Pending::kDecompress;
}

std::size_t CudaRunner::finishAsync(cudaStream_t stream) {
  const cuda::DeviceGuard guard(core_.device);
  FZ_REQUIRE(pending_ != Pending::kNone, ErrorCode::kInvalidState,
             "Pipeline::finishAsync: nothing was started");
  const Pending what = pending_;  // kept: a graph may replay what was enqueued
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  if (what == Pending::kDecompress) {
    return async_decoder_->finish(stream);
  }
  const bool done = executor().finish(stream);
  if (!done) {
    dropGraph();
  }
  FZ_REQUIRE(
      done, ErrorCode::kBufferTooSmall,
      "Pipeline::finishAsync: a buffer was too small for these data; buffers are larger from "
      "now on, so start again (setOutlierCapacity avoids it)");
  return state().frameResult().total_bytes;
}

}  // namespace fz
