#pragma once

#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/device_guard.h"
#include "backends/cuda/device_image.h"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/graph_launcher.h"
#include "backends/cuda/timing_event.h"
#include "pipeline/frame_opener.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

class AsyncDecoder;

/// The part of a pipeline that works on a device: runs, frames, graphs. One per pipeline.
class CudaRunner {
 public:
  explicit CudaRunner(Pipeline::Impl& pipeline);
  CudaRunner(const CudaRunner&) = delete;
  CudaRunner& operator=(const CudaRunner&) = delete;
  ~CudaRunner();

  /// One run over zeros of this length, so that compress() finds all memory in place: what stages
  /// keep on the device they take when they run. Throws Error(kOutOfMemory).
  void prepare(std::size_t n_bytes);
  /// Compresses into the pipeline's frame; on return the frame is complete.
  void compress(const void* input, std::size_t n_bytes, cudaStream_t stream);
  /// Enqueues a compression into the caller's buffer; the frame's size goes to d_frame_bytes.
  void compressAsync(const void* input,
                     std::size_t n_bytes,
                     void* d_frame,
                     std::size_t capacity_bytes,
                     std::uint64_t* d_frame_bytes,
                     cudaStream_t stream);
  /// Enqueues the decoding of a frame like the last one that decompress() met.
  void decompressAsync(const void* d_frame,
                       std::size_t capacity_bytes,
                       void* d_out,
                       std::size_t original_bytes,
                       std::uint64_t* d_out_bytes,
                       cudaStream_t stream);
  /// Waits for the last compressAsync or decompressAsync and throws what it found.
  std::size_t finishAsync(cudaStream_t stream);

  /// What decoding begins with.
  FrameOpener& opener() { return opener_; }

  void captureGraph(cudaStream_t stream);
  void dropGraph();

  /// Work on the pipeline's memory goes on on another stream: that one waits for the last.
  void enter(cudaStream_t stream);
  void leave(cudaStream_t stream);
  void leaveUnlessCapturing(cudaStream_t stream);

  void clear(void* memory, std::size_t n_bytes, cudaStream_t stream);
  /// Copies between any two places and waits. `ends_call`: the copy is part of the timed call.
  void copyAndWait(
      void* to, const void* from, std::size_t n_bytes, cudaStream_t stream, bool ends_call = false);
  /// From the first to the last work that the current call gave its stream.
  cuda::CallTimer& callTimer() { return call_timer_; }
  /// For calls that the host waits for.
  cuda::GraphNodeLauncher& launcher() { return launcher_; }
  /// Throws Error(kInvalidArgument) when a kernel cannot read the memory at `data`.
  void requireDevicePointer(const void* data, const char* what) const;
  /// Host memory, and device memory that is not aligned, is copied into the pipeline's own buffer;
  /// other device memory is taken as it is. Throws Error(kLimit) when the copy is too large.
  ByteView toDevice(ByteView bytes, cudaStream_t stream);
  /// Bytes of the last frame's copy; 0 when it was taken as it is.
  std::size_t uploadedBytes() const { return uploaded_bytes_; }

 private:
  struct Attempt {
    const void* input;
    std::size_t n_bytes;
    std::size_t padded_bytes;
    std::uint8_t* frame;
    std::size_t first_segment_bytes;  ///< capacity
  };
  /// What the largest frame takes.
  struct FrameRoom {
    std::size_t n_bytes;
    std::size_t first_segment_bytes;
  };

  const void* alignedInput(const void* input, std::size_t n_bytes, cudaStream_t stream);
  /// Runs the stages and assembles the frame until every buffer was large enough.
  void runToEnd(const void* data, std::size_t n_bytes, cudaStream_t stream);
  FrameRoom frameRoom(std::size_t padded_bytes);
  void bind(const Attempt& attempt);
  void updateTemplate(const Attempt& attempt, cudaStream_t stream);
  void enqueueFrame(const Attempt& attempt, cuda::RunContext& run);
  void enqueueAttempt(const Attempt& attempt, const cuda::Launcher& launcher);
  void launch(const Attempt& attempt, const cuda::Launcher& launcher);
  /// After a run of this pipeline that broke off; see abandonRun().
  void abandon(cudaStream_t stream) noexcept;
  /// For the run that was launched last.
  void waitForRun(cudaStream_t stream);
  void capture(const Attempt& attempt, cudaStream_t stream);
  cudaStream_t captureStream(cudaStream_t stream);
  void dropCaptureStream();

  Pipeline::Impl& p_;
  DeviceImage header_template_;
  DeviceImage header_fields_;
  std::uint32_t n_fields_ = 0;
  PoolBuffer aligned_input_;
  PoolBuffer uploaded_frame_;
  std::size_t uploaded_bytes_ = 0;

  cuda::CallTimer call_timer_;
  cuda::GraphNodeLauncher launcher_;
  FrameOpener opener_;
  cudaEvent_t last_work_ = nullptr;
  cudaStream_t last_stream_ = nullptr;

  cudaGraphExec_t graph_ = nullptr;
  std::vector<int> graph_kinds_;  // of its nodes
  cudaStream_t capture_stream_ = nullptr;
  int capture_priority_ = 0;
  Attempt captured_ = {};
  std::size_t scratch_bytes_ = 0;  // input size that all memory is in place for
  const std::uint8_t* scratch_frame_ = nullptr;
  std::shared_ptr<AsyncDecoder> async_decoder_;
  enum class Pending { kNone, kCompress, kDecompress } pending_ = Pending::kNone;
  Attempt pending_attempt_ = {};
};

}  // namespace fz
