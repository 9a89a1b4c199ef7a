// Builds without CUDA: what only a device could do.
#include "core/require.h"
#include "pipeline/device/device_runner.h"
#include "pipeline/frame/decode_plan.h"
#include "pipeline/plan/plan.h"
#include "stage/stage.h"

namespace fz {

std::unique_ptr<DeviceRunner> makeDeviceRunner(PipelineCore& /*core*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}

void FrameDecoder::runOnDevice(const FrameHeader& /*header*/,
                               const ExecContext& /*context*/,
                               cudaStream_t /*stream*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}

const cuda::GroupKernel* findChainKernel(const std::vector<DAGNode*>& /*chain*/,
                                         std::size_t /*value_bytes*/,
                                         std::string& reason) {
  reason = "this build has no CUDA";
  return nullptr;
}

}  // namespace fz
