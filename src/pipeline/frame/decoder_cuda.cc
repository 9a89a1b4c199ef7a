// Decoding a frame on a device, for a caller who waits.
#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "backends/cuda/run_context.h"
#include "backends/cuda/timing_event.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "pipeline/frame/decode_plan.h"
#include "pipeline/frame/decoder.h"
#include "pipeline/run/cuda_executor.h"

namespace fz {

void FrameDecoder::runOnDevice(const FrameHeader& header,
                               const ExecContext& context,
                               cudaStream_t stream) {
  CudaExecutor& executor = plan_->engine.cuda();
  cuda::DeviceRunState& state = executor.state();
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    if (plan_->nodes[i] == nullptr) {
      continue;
    }
    if (const SimpleStage* stage = simpleStage(*plan_->nodes[i])) {
      const FZMStageInfo& record = header.stages[i];
      cuda::loadFields(StageAccess::deviceFields(*stage),
                       {record.stage_config.data(), record.config_size}, record.stage_version,
                       state.initial(static_cast<std::size_t>(plan_->nodes[i]->id)));
    }
  }
  // Frames of minor version 0 have no checksum that a device could go by.
  const std::uint64_t* may_write = header.minor() == 0 ? nullptr : may_write_;
  bool is_verified = false;
  Request request{.context = &context, .profiling = profiling_};
  request.before_output = [&] {
    is_verified = true;
    const std::uint32_t crc = wait_for_crc_();
    if (may_write != nullptr && crc != header.core.data_checksum) {
      FZ_CUDA_CHECK(cudaStreamSynchronize(stream));  // a kernel is on its way to look
    }
    verifyPayloadCrc(header, crc);
  };
  try {
    repeatUntilDone("frame", [&] {
      {
        cuda::RunContext run({stream, graph_nodes_});
        run.setMayWrite(may_write);
        run.offerReadback(state);
        executor.enqueue(request, run);
        FZ_ASSERT(is_verified);
        if (!run.isReadbackTaken()) {
          state.enqueueReadback(run.launcher());
        }
      }
      if (call_timer_ != nullptr) {
        call_timer_->end(stream);
      }
      if (profiling_) {  // events must have passed before they are read
        FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
      } else {
        state.waitForReadback(stream);
      }
      return executor.finish(stream);
    });
  } catch (...) {
    plan_->engine.abandonCuda(stream);
    throw;
  }
}

}  // namespace fz
