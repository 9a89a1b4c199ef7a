#pragma once

#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

/// A run on a device as its host code sees it, alone or in a fused group.
namespace fz {

template <class TInput, class TCode>
struct LorenzoQuantStage<TInput, TCode>::CudaEncoding {
  lorenzo_quant::device::EncodeRun run;
  lorenzo_quant::device::Layout limit;
};
template <class TInput, class TCode>
struct LorenzoQuantStage<TInput, TCode>::CudaDecoding {
  lorenzo_quant::device::DecodeRun run;
  lorenzo_quant::device::Layout limit;
  std::size_t entry_limit;
  std::uint64_t* n_blocks_done;  ///< in a group
};

namespace lorenzo_quant::device {

/// Extremes are gathered in the plan.
template <class T>
void clearPlan(const EncodeRun& run, cudaStream_t stream) {
  if (run.scans_range) {
    FZ_CUDA_CHECK(cudaMemsetAsync(run.plan, 0, sizeof(EncodePlan<T>), stream));
  }
}

}  // namespace lorenzo_quant::device

}  // namespace fz
