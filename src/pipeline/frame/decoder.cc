#include "pipeline/frame/decoder.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "backends/cpu/watched_executor.h"
#include "backends/cuda/device_guard.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "fz/progress.h"
#include "mem/mempool.h"
#include "mem/scratch.h"
#include "pipeline/frame/decode_plan.h"
#include "stage/stage.h"

namespace fz {

namespace {

// Segments stand back to back in a frame; stages get them aligned for any element type.
constexpr std::size_t kSegmentAlignment = 16;

/// Whether everybody who reads a buffer can do so from any address, on a device.
bool isReadUnaligned(const Graph& graph, int buffer_id) {
  const std::vector<int>& consumers = graph.edge(buffer_id).consumers;
  return std::all_of(consumers.begin(), consumers.end(), [&](int id) {
    const DAGNode& node = graph.node(id);
    const SimpleStage* stage = simpleStage(node);
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

void FrameDecoder::bindSegments(const FrameHeader& header, ByteView payload, cudaStream_t stream) {
  Engine& engine = plan_->engine;
  const Buffers::ScratchScope scope(engine.buffers);
  for (std::size_t i = 0; i < header.buffers.size(); ++i) {
    const FZMBufferEntry& entry = header.buffers[i];
    const auto found = plan_->segment_buffers.find(entry.dag_buffer_id);
    if (found == plan_->segment_buffers.end()) {
      continue;  // belongs to a branch that decoding does not need
    }
    const std::uint8_t* data = payload.data() + entry.byte_offset;
    if (entry.data_size > 0 && reinterpret_cast<std::uintptr_t>(data) % kSegmentAlignment != 0 &&
        (pool_->getBackend() != Backend::CUDA || !isReadUnaligned(engine.graph, found->second))) {
      const auto copy = plan_->aligned_segments[i].get<std::uint8_t>(pool_, entry.data_size);
      if (pool_->getBackend() == Backend::CUDA) {
        cuda::copyOnDevice(copy.data(), data, entry.data_size, stream);
      } else {
        std::memcpy(copy.data(), data, entry.data_size);
      }
      data = copy.data();
    }
    engine.buffers.at(found->second).size = entry.data_size;
    engine.buffers.lendInput(found->second, const_cast<std::uint8_t*>(data));
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
  Engine& engine = plan_->engine;
  engine.reset(stream);
  engine.buffers.setLimit(limits.max_memory_bytes, frame_copy_bytes_);
  bindSegments(header, payload, stream);
  engine.buffers.lendOutput(plan_->result_buffer, nullptr, 0);
  // A stage may begin with less and ask for the rest once its stream has confirmed it.
  engine.buffers.setGrower([&](int /*buffer_id*/, std::size_t stage_bytes) {
    FZ_REQUIRE(stage_bytes <= n_bytes, ErrorCode::kCorrupt,
               "frame: the data decode to {} bytes, the header announces {}", stage_bytes, n_bytes);
    return provide_output(stage_bytes);
  });
  try {
    if (on_cpu) {
      runOnCpu(engine, {.context = &context, .progress = progress_, .profiling = profiling_},
               stream);
    } else {
      requireNotCancelled(progress_);
      runOnDevice(header, context, stream);
      if (progress_ != nullptr) {
        progress_->beginCall(header.stages.size());
        progress_->endStages(header.stages.size());
      }
    }
  } catch (...) {
    engine.reset(stream);
    throw;
  }
  const std::size_t came = engine.buffers.at(plan_->result_buffer).size;
  engine.reset(stream);
  FZ_REQUIRE(came == n_bytes, ErrorCode::kCorrupt,
             "frame: the data decode to {} bytes, the header announces {}", came, n_bytes);
}

std::vector<StageTimingResult> FrameDecoder::collectTimings() const {
  return plan_ == nullptr ? std::vector<StageTimingResult>{} : plan_->engine.collectTimings();
}

}  // namespace fz
