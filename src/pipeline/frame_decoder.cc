#include "pipeline/frame_decoder.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "fz/progress.h"
#include "mem/mempool.h"
#include "mem/scratch.h"
#include "pipeline/decode_plan.h"
#include "stage/stage.h"

#if FZ_HAVE_CUDA
#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "backends/cuda/run_context.h"
#include "backends/cuda/timing_event.h"
#include "cuda_check.h"
#include "pipeline/dag_cuda.h"
#endif

namespace fz {

namespace {

// Segments stand back to back in a frame; stages get them aligned for any element type.
constexpr std::size_t kSegmentAlignment = 16;

/// Whether everybody who reads a buffer can do so from any address, on a device.
bool isReadUnaligned(const CompressionDAG& dag, int buffer_id) {
  const std::vector<int>& consumers = dag.getBufferInfo(buffer_id).consumer_stage_ids;
  return std::all_of(consumers.begin(), consumers.end(), [&](int id) {
    const DAGNode& node = *dag.getNodes()[static_cast<std::size_t>(id)];
    const auto* stage = dynamic_cast<const SimpleStage*>(node.stage);
    const CudaPart* part = stage == nullptr ? nullptr : StageAccess::cudaPart(*stage);
    if (part == nullptr) {
      return false;
    }
    for (std::size_t i = 0; i < node.input_buffer_ids.size(); ++i) {
      if (node.input_buffer_ids[i] == buffer_id && !part->readsUnaligned(i)) {
        return false;
      }
    }
    return true;
  });
}

}  // namespace

/// Puts borrowed stages into inverse mode and back, also when decoding throws.
class FrameDecoder::InverseMode {
 public:
  explicit InverseMode(DecodePlan& plan) : plan_(plan) {
    each([](Stage& stage) {
      stage.saveState();
      stage.setInverse(true);
    });
  }
  InverseMode(const InverseMode&) = delete;
  InverseMode& operator=(const InverseMode&) = delete;
  ~InverseMode() {
    each([](Stage& stage) {
      stage.setInverse(false);
      stage.restoreState();
    });
  }

 private:
  template <class F>
  void each(F f) {
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      if (plan_.is_custom[i] && plan_.stages[i] != nullptr) {
        f(*plan_.stages[i]);
      }
    }
  }
  DecodePlan& plan_;
};

FrameDecoder::FrameDecoder(MemoryPool* pool, MemoryStrategy strategy)
    : pool_(pool), strategy_(strategy) {
}
FrameDecoder::~FrameDecoder() = default;

void FrameDecoder::bindSegments(const FrameHeader& header,
                                ByteView payload,
                                [[maybe_unused]] cudaStream_t stream) {
  const CompressionDAG::ScratchScope scope(plan_->dag);
  for (std::size_t i = 0; i < header.buffers.size(); ++i) {
    const FZMBufferEntry& entry = header.buffers[i];
    const auto found = plan_->segment_buffers.find(entry.dag_buffer_id);
    if (found == plan_->segment_buffers.end()) {
      continue;  // belongs to a branch that decoding does not need
    }
    const std::uint8_t* data = payload.data() + entry.byte_offset;
    if (entry.data_size > 0 && reinterpret_cast<std::uintptr_t>(data) % kSegmentAlignment != 0 &&
        (pool_->getBackend() != Backend::CUDA || !isReadUnaligned(plan_->dag, found->second))) {
      const auto copy = plan_->aligned_segments[i].get<std::uint8_t>(pool_, entry.data_size);
#if FZ_HAVE_CUDA
      if (pool_->getBackend() == Backend::CUDA) {
        FZ_CUDA_CHECK(
            cudaMemcpyAsync(copy.data(), data, entry.data_size, cudaMemcpyDeviceToDevice, stream));
      } else {
        std::memcpy(copy.data(), data, entry.data_size);
      }
#else
      std::memcpy(copy.data(), data, entry.data_size);
#endif
      data = copy.data();
    }
    plan_->dag.updateBufferSize(found->second, entry.data_size);
    plan_->dag.setExternalPointer(found->second, const_cast<std::uint8_t*>(data));
  }
}

void FrameDecoder::decode(const FrameHeader& header,
                          ByteView payload,
                          const DecodeLimits& limits,
                          const ExecContext& context,
                          OutputProvider provide_output,
                          cudaStream_t stream) {
  const std::uint64_t n_bytes = header.core.uncompressed_size;
  FZ_REQUIRE(limits.max_output_bytes == 0 || n_bytes <= limits.max_output_bytes, ErrorCode::kLimit,
             "frame: decodes to {} bytes, the limit is {}", n_bytes, limits.max_output_bytes);
  const bool on_cpu = context.backend == Backend::CPU;
  // Before anything is decoded, so that damage leaves the caller's memory alone. A device does it
  // while the rest is prepared here.
  if (on_cpu) {
    verifyPayload(header, payload, context.cpu != nullptr ? *context.cpu : CpuExecutor::serial());
  }
  putPlanKey(header, key_);
  if (plan_ == nullptr || plan_->key != key_) {
    plan_ = makeDecodePlan(header, custom_stages_, pool_, strategy_);
  }
  const InverseMode inverse_mode(*plan_);
  plan_->configure(header);
  CompressionDAG& dag = plan_->dag;
  dag.reset(stream);
  dag.setMemoryLimit(limits.max_memory_bytes, frame_copy_bytes_);
  bindSegments(header, payload, stream);
  dag.setExecContext(&context);
  dag.setProgress(progress_);
  dag.setExternalOutput(plan_->result_buffer, nullptr, 0);
  // A stage may begin with less and ask for the rest once its stream has confirmed it.
  dag.setExternalGrower([&](int /*buffer_id*/, std::size_t stage_bytes) {
    FZ_REQUIRE(stage_bytes <= n_bytes, ErrorCode::kCorrupt,
               "frame: the data decode to {} bytes, the header announces {}", stage_bytes, n_bytes);
    return provide_output(stage_bytes);
  });
  try {
    if (on_cpu) {
      dag.execute(stream);
    } else {
      runCuda(header, stream);
      if (progress_ != nullptr) {
        progress_->beginCall(header.stages.size());
        progress_->endStages(header.stages.size());
      }
    }
  } catch (...) {
    dag.setBeforeOutput({});
#if FZ_HAVE_CUDA
    if (!on_cpu) {
      abandonRun(dag, stream);
    }
#endif
    dag.reset(stream);
    throw;
  }
  const std::size_t came = dag.getBufferSize(plan_->result_buffer);
  dag.reset(stream);
  FZ_REQUIRE(came == n_bytes, ErrorCode::kCorrupt,
             "frame: the data decode to {} bytes, the header announces {}", came, n_bytes);
}

#if !FZ_HAVE_CUDA
void FrameDecoder::runCuda(const FrameHeader&, cudaStream_t) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}
#else
void FrameDecoder::runCuda(const FrameHeader& header, cudaStream_t stream) {
  constexpr int kMaxAttempts = 64;
  CompressionDAG& dag = plan_->dag;
  cuda::DeviceRunState& block = dag.runState();
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    const auto* stage = dynamic_cast<const SimpleStage*>(plan_->stages[i]);
    if (stage != nullptr) {
      const FZMStageInfo& record = header.stages[i];
      cuda::loadFields(StageAccess::deviceFields(*stage),
                       {record.stage_config.data(), record.config_size}, record.stage_version,
                       block.initial(static_cast<std::size_t>(plan_->nodes[i]->id)));
    }
  }
  dag.enableProfiling(profiling_);
  bool is_verified = false;
  // Frames of minor version 0 have no checksum that a gate could go by.
  const std::uint64_t* gate = header.minor() == 0 ? nullptr : output_gate_;
  dag.setBeforeOutput([&] {
    is_verified = true;
    const std::uint32_t crc = wait_for_crc_();
    if (gate != nullptr && crc != header.core.data_checksum) {
      FZ_CUDA_CHECK(cudaStreamSynchronize(stream));  // a kernel is on its way to the gate
    }
    verifyPayloadCrc(header, crc);
  });
  for (int attempt = 0;; ++attempt) {
    FZ_REQUIRE(attempt < kMaxAttempts, ErrorCode::kInternal, "frame: not decoded after {} attempts",
               attempt);
    {
      cuda::RunContext run({stream, graph_nodes_});
      run.setMayWrite(gate);
      run.offerReadback(block);
      dag.enqueueCuda(run);
      FZ_ASSERT(is_verified);
      if (!run.isReadbackTaken()) {
        block.enqueueReadback(run.launcher());
      }
    }
    if (call_timer_ != nullptr) {
      call_timer_->end(stream);
    }
    if (profiling_) {  // events must have passed before they are read
      FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    } else {
      block.waitForReadback(stream);
    }
    if (dag.finishCuda(stream)) {
      return;
    }
  }
}
#endif

std::vector<StageTimingResult> FrameDecoder::collectTimings() const {
  return plan_ == nullptr ? std::vector<StageTimingResult>{} : plan_->dag.collectTimings();
}

}  // namespace fz
