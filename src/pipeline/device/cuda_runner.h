#pragma once

#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/device_guard.h"
#include "backends/cuda/device_image.h"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/graph_launcher.h"
#include "backends/cuda/host_copy.h"
#include "backends/cuda/timing_event.h"
#include "pipeline/device/device_runner.h"
#include "pipeline/frame/opener.h"
#include "pipeline/pipeline_core.h"
#include "pipeline/run/cuda_executor.h"

namespace fz {

class AsyncDecoder;

/// DeviceRunner on a CUDA device.
class CudaRunner final : public DeviceRunner {
 public:
  explicit CudaRunner(PipelineCore& core);
  ~CudaRunner() override;

  void prepare(std::size_t n_bytes) override;
  std::size_t compress(const void* input, std::size_t n_bytes, cudaStream_t stream) override;
  void compressAsync(const void* input,
                     std::size_t n_bytes,
                     void* d_frame,
                     std::size_t capacity_bytes,
                     std::uint64_t* d_frame_bytes,
                     cudaStream_t stream) override;
  void decompressAsync(const void* d_frame,
                       std::size_t capacity_bytes,
                       void* d_out,
                       std::size_t original_bytes,
                       std::uint64_t* d_out_bytes,
                       const LastDecoded& last,
                       cudaStream_t stream) override;
  std::size_t finishAsync(cudaStream_t stream) override;
  bool recordCompress(std::size_t n_bytes,
                      const BatchAddresses& at,
                      BatchRecording& recording) override;
  bool recordDecompress(std::size_t original_bytes,
                        const BatchAddresses& at,
                        BatchRecording& recording,
                        const FrameHeader& last_header,
                        const FrameDecoder* decoder) override;
  void captureGraph(std::size_t n_bytes, cudaStream_t stream) override;
  bool isGraphCaptured() const override { return is_captured_; }
  void openFrame(ByteView& frame, FrameHeader& header, cudaStream_t stream) override;
  void closeFrame() noexcept override { opener_.closeFrame(); }
  void prepareDecoder(FrameDecoder& decoder) override;
  void fetchHeader(ByteView frame, FrameHeader& header, cudaStream_t stream) override {
    opener_.fetchHeader(frame, header, stream);
  }
  cudaStream_t ownStream() override;
  const void* upload(ByteView values, cudaStream_t stream) override;
  void clear(void* memory, std::size_t n_bytes, cudaStream_t stream) override;
  void copyAndWait(void* to,
                   const void* from,
                   std::size_t n_bytes,
                   cudaStream_t stream,
                   bool ends_call) override;
  float callMilliseconds() const override { return call_timer_.milliseconds(); }

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

  /// Work on the pipeline's memory goes on on another stream: that one waits for the last.
  void enter(cudaStream_t stream);
  void leave(cudaStream_t stream);
  void leaveUnlessCapturing(cudaStream_t stream);
  /// Throws Error(kInvalidArgument) when a kernel cannot read the memory at `data`.
  void requireDevicePointer(const void* data, const char* what) const;
  /// Host memory, and device memory that is not aligned, is copied into the pipeline's own buffer;
  /// other device memory is taken as it is. Throws Error(kLimit) when the copy is too large.
  ByteView toDevice(ByteView bytes, cudaStream_t stream);
  cuda::HostCopy hostCopy(cudaStream_t stream) const;
  const void* alignedInput(const void* input, std::size_t n_bytes, cudaStream_t stream);
  /// Runs the stages and assembles the frame until every buffer was large enough.
  void runToEnd(const void* data, std::size_t n_bytes, cudaStream_t stream);
  FrameRoom frameRoom(std::size_t n_bytes);
  void bind(const Attempt& attempt);
  void updateTemplate(const Attempt& attempt, cudaStream_t stream);
  void enqueueFrame(const Attempt& attempt, Request::Mode mode, cuda::RunContext& run);
  void enqueueAttempt(const Attempt& attempt, Request::Mode mode, const cuda::Launcher& launcher);
  void launch(const Attempt& attempt, Request::Mode mode, const cuda::Launcher& launcher);
  /// After a run of this pipeline that broke off.
  void abandon(cudaStream_t stream) noexcept;
  /// For the run that was launched last.
  void waitForRun(cudaStream_t stream);
  void capture(const Attempt& attempt, cudaStream_t stream);
  void dropGraph();
  cudaStream_t captureStream(cudaStream_t stream);
  void dropCaptureStream();

  CudaExecutor& executor() { return core_.engine->cuda(); }
  cuda::DeviceRunState& state() { return executor().state(); }

  PipelineCore& core_;
  DeviceImage header_template_;
  DeviceImage header_fields_;
  std::uint32_t n_fields_ = 0;
  bool is_header_placed_ = true;  // the room that the last attempt left was right
  PoolBuffer aligned_input_;
  PoolBuffer host_input_;              // of upload()
  cudaStream_t own_stream_ = nullptr;  // null: not asked for yet
  PoolBuffer uploaded_frame_;
  std::size_t uploaded_bytes_ = 0;  // of the last frame's copy; 0: it was taken as it is

  cuda::CallTimer call_timer_;
  cuda::GraphNodeLauncher launcher_;  // for calls that the host waits for
  FrameOpener opener_;
  cudaEvent_t last_work_ = nullptr;
  cudaStream_t last_stream_ = nullptr;

  bool is_captured_ = false;
  cudaGraphExec_t graph_ = nullptr;
  std::vector<int> graph_kinds_;  // of its nodes
  cudaStream_t capture_stream_ = nullptr;
  int capture_priority_ = 0;
  Attempt captured_ = {};
  std::size_t scratch_bytes_ = 0;  // input size that all memory is in place for
  const std::uint8_t* scratch_frame_ = nullptr;
  std::shared_ptr<AsyncDecoder> async_decoder_;
  std::unique_ptr<AsyncDecoder> batch_decoder_;
  enum class Pending { kNone, kCompress, kDecompress } pending_ = Pending::kNone;
  Attempt pending_attempt_ = {};
};

}  // namespace fz
