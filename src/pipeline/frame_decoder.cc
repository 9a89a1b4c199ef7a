#include "pipeline/frame_decoder.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/cpu/exec_context.h"
#include "core/require.h"
#include "fz/stage_descriptor.h"
#include "mem/mempool.h"
#include "mem/scratch.h"
#include "stage/stage.h"
#include "stage/stage_factory.h"

#if FZ_HAVE_CUDA
#include <cuda_runtime_api.h>

#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/record.h"
#include "backends/cuda/run_block.h"
#include "cuda_check.h"
#include "fz/simple_stage.h"
#endif

namespace fz {

namespace {

// Segments stand back to back in a frame; stages get them aligned for any element type.
constexpr std::size_t kSegmentAlignment = 16;

/// What must be equal for a plan to serve another frame: the graph and the element types. Versions
/// and configs, which may change from frame to frame, are set for every one.
void putKey(const FrameHeader& header, std::vector<std::uint16_t>& key) {
  key.clear();
  for (const FZMStageInfo& stage : header.stages) {
    key.insert(key.end(), {stage.stage_type, stage.num_inputs, stage.num_outputs});
    key.insert(key.end(), stage.input_buffer_ids.begin(), stage.input_buffer_ids.end());
    key.insert(key.end(), stage.output_buffer_ids.begin(), stage.output_buffer_ids.end());
    if (const StageDescriptor* descriptor = findStage(stage.stage_type)) {
      for (const DataType type :
           descriptor->types_from_config(ByteView(stage.stage_config.data(), stage.config_size))) {
        key.push_back(static_cast<std::uint16_t>(type));
      }
    }
  }
  for (const FZMBufferEntry& buffer : header.buffers) {
    key.push_back(buffer.dag_buffer_id);
  }
}

bool contains(std::span<const std::uint16_t> ids, std::uint16_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::span<const std::uint16_t> inputsOf(const FZMStageInfo& stage) {
  return {stage.input_buffer_ids.data(), stage.num_inputs};
}
std::span<const std::uint16_t> outputsOf(const FZMStageInfo& stage) {
  return {stage.output_buffer_ids.data(), stage.num_outputs};
}

/// The stage that reads the pipeline's input: none of its inputs is another stage's output.
std::size_t sourceOf(const FrameHeader& header) {
  std::size_t found = header.stages.size();
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    const auto inputs = inputsOf(header.stages[i]);
    const bool is_source = std::all_of(inputs.begin(), inputs.end(), [&](std::uint16_t id) {
      return std::none_of(header.stages.begin(), header.stages.end(),
                          [&](const FZMStageInfo& s) { return contains(outputsOf(s), id); });
    });
    if (is_source) {
      FZ_REQUIRE(found == header.stages.size(), ErrorCode::kUnsupported,
                 "frame: more than one source stage");
      found = i;
    }
  }
  FZ_REQUIRE(found < header.stages.size() && header.stages[found].num_inputs == 1,
             ErrorCode::kCorrupt, "frame: no stage reads the input");
  return found;
}

}  // namespace

struct FrameDecoder::Plan {
  Plan(MemoryPool* pool, MemoryStrategy strategy) : dag(pool, strategy) {}

  std::vector<std::uint16_t> key;
  std::vector<std::unique_ptr<Stage>> owned;
  std::vector<Stage*> stages;  // by record; null where the inverse does not need the stage
  std::vector<bool> is_custom;
  std::vector<DAGNode*> nodes;  // by record, as stages
  CompressionDAG dag;
  std::map<std::uint16_t, int> segment_buffers;  // frame buffer id -> graph buffer
  std::vector<Scratch> aligned_segments{FZM_MAX_BUFFERS};
  int result_buffer = -1;
};

/// Puts borrowed stages into inverse mode and back, also when decoding throws.
class FrameDecoder::InverseMode {
 public:
  explicit InverseMode(Plan& plan) : plan_(plan) {
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
  Plan& plan_;
};

FrameDecoder::FrameDecoder(MemoryPool* pool, MemoryStrategy strategy)
    : pool_(pool), strategy_(strategy) {
}
FrameDecoder::~FrameDecoder() = default;

std::unique_ptr<FrameDecoder::Plan> FrameDecoder::makePlan(const FrameHeader& header) const {
  auto plan = std::make_unique<Plan>(pool_, strategy_);
  const std::size_t n = header.stages.size();
  plan->key = key_;
  plan->stages.resize(n, nullptr);
  plan->is_custom.resize(n, false);

  // The last listed consumer of a buffer regenerates it; the others are not needed.
  const auto regeneratorOf = [&](std::uint16_t id) {
    std::size_t found = n;
    for (std::size_t i = 0; i < n; ++i) {
      found = contains(inputsOf(header.stages[i]), id) ? i : found;
    }
    return found;
  };
  std::vector<std::size_t> todo = {sourceOf(header)};
  std::vector<bool> needed(n, false);
  needed[todo.front()] = true;
  for (std::size_t k = 0; k < todo.size(); ++k) {
    for (const std::uint16_t id : outputsOf(header.stages[todo[k]])) {
      const std::size_t from = regeneratorOf(id);
      if (from < n && !needed[from]) {
        needed[from] = true;
        todo.push_back(from);
      }
    }
  }

  std::vector<DAGNode*> nodes(n, nullptr);
  for (std::size_t i = 0; i < n; ++i) {
    if (!needed[i]) {
      continue;
    }
    const FZMStageInfo& record = header.stages[i];
    if (findStage(record.stage_type) == nullptr && i < custom_stages_.size() &&
        custom_stages_[i] != nullptr && custom_stages_[i]->getStageTypeId() == record.stage_type) {
      plan->stages[i] = custom_stages_[i];
      plan->is_custom[i] = true;
    } else {
      plan->owned.push_back(makeStage(record.stage_type, record.stage_config.data(),
                                      record.config_size, record.stage_version));
      plan->stages[i] = plan->owned.back().get();
      plan->stages[i]->setInverse(true);
    }
    nodes[i] = plan->dag.addStage(plan->stages[i]);
    for (std::size_t port = 0; port < record.num_inputs; ++port) {
      plan->dag.addUnconnectedOutput(nodes[i], 0, static_cast<int>(port), nodes[i]->name);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!needed[i]) {
      continue;
    }
    for (const std::uint16_t id : outputsOf(header.stages[i])) {
      const std::size_t from = regeneratorOf(id);
      if (from < n) {
        const auto inputs = inputsOf(header.stages[from]);
        const auto port = std::find(inputs.begin(), inputs.end(), id) - inputs.begin();
        plan->dag.connectExistingOutput(nodes[from], nodes[i], static_cast<int>(port));
        continue;
      }
      const bool stored = std::any_of(header.buffers.begin(), header.buffers.end(),
                                      [id](const auto& b) { return b.dag_buffer_id == id; });
      FZ_REQUIRE(stored, ErrorCode::kCorrupt, "frame: buffer {} has neither a segment nor a reader",
                 id);
      plan->segment_buffers[id] = plan->dag.setInputBuffer(nodes[i], 0, nodes[i]->name);
    }
  }
  plan->dag.finalize();
  plan->nodes = nodes;
  plan->result_buffer = nodes[todo.front()]->output_buffer_ids.front();
  return plan;
}

void FrameDecoder::configureStages(const FrameHeader& header) {
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    Stage* stage = plan_->stages[i];
    if (stage == nullptr) {
      continue;
    }
    const FZMStageInfo& record = header.stages[i];
    stage->setStageVersion(record.stage_version);
    stage->deserializeHeader(record.stage_config.data(), record.config_size);
    FZ_REQUIRE(stage->getNumInputs() <= record.num_outputs, ErrorCode::kCorrupt,
               "{}: the frame stores {} outputs, {} are needed", stage->getName(),
               record.num_outputs, stage->getNumInputs());
    FZ_REQUIRE(stage->getNumOutputs() == record.num_inputs, ErrorCode::kCorrupt,
               "{}: the frame has {} inputs, the stage {}", stage->getName(), record.num_inputs,
               stage->getNumOutputs());
  }
}

void FrameDecoder::bindSegments(const FrameHeader& header,
                                ByteView payload,
                                [[maybe_unused]] cudaStream_t stream) {
  for (std::size_t i = 0; i < header.buffers.size(); ++i) {
    const FZMBufferEntry& entry = header.buffers[i];
    const auto found = plan_->segment_buffers.find(entry.dag_buffer_id);
    if (found == plan_->segment_buffers.end()) {
      continue;  // belongs to a branch that decoding does not need
    }
    const std::uint8_t* data = payload.data() + entry.byte_offset;
    if (entry.data_size > 0 && reinterpret_cast<std::uintptr_t>(data) % kSegmentAlignment != 0) {
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
  if (on_cpu) {
    verifyPayload(header, payload);  // a device does it on the way
  }
  putKey(header, key_);
  if (plan_ == nullptr || plan_->key != key_) {
    plan_ = makePlan(header);
  }
  const InverseMode inverse_mode(*plan_);
  configureStages(header);
  CompressionDAG& dag = plan_->dag;
  dag.reset(stream);
  bindSegments(header, payload, stream);
  dag.setExecContext(&context);
  dag.setMemoryLimit(limits.max_memory_bytes);
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
      runCuda(header, payload, stream);
    }
  } catch (...) {
    dag.reset(stream);
    throw;
  }
  const std::size_t came = dag.getBufferSize(plan_->result_buffer);
  dag.reset(stream);
  FZ_REQUIRE(came == n_bytes, ErrorCode::kCorrupt,
             "frame: the data decode to {} bytes, the header announces {}", came, n_bytes);
}

#if !FZ_HAVE_CUDA
void FrameDecoder::runCuda(const FrameHeader&, ByteView, cudaStream_t) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}
#else
void FrameDecoder::runCuda(const FrameHeader& header, ByteView payload, cudaStream_t stream) {
  constexpr int kMaxAttempts = 64;
  CompressionDAG& dag = plan_->dag;
  cuda::RunBlock& block = dag.runBlock();
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    const auto* stage = dynamic_cast<const SimpleStage*>(plan_->stages[i]);
    if (stage != nullptr) {
      const FZMStageInfo& record = header.stages[i];
      cuda::loadFields(stage->deviceFields(), {record.stage_config.data(), record.config_size},
                       block.initial(static_cast<std::size_t>(plan_->nodes[i]->id)));
    }
  }
  const bool has_crc = (header.core.flags & FZM_FLAG_DATA_CHECKSUM) != 0 && header.minor() > 0;
  cuda::FrameState& state = block.initialFrame();
  state = {};
  state.payload_bytes = payload.size();
  state.expected_crc = header.core.data_checksum;
  dag.enableProfiling(profiling_);
  for (int attempt = 0;; ++attempt) {
    FZ_REQUIRE(attempt < kMaxAttempts, ErrorCode::kInternal, "frame: not decoded after {} attempts",
               attempt);
    dag.enqueueCuda(stream);
    if (has_crc) {
      cuda::enqueuePayloadCrc(payload.data(), payload.size(), block.frameOnDevice(), stream);
      cuda::enqueueCrcCheck(payload.data(), block.frameOnDevice(), stream);
    }
    block.enqueueReadback(stream);
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    FZ_REQUIRE(block.frameResult().mismatch == 0, ErrorCode::kCorrupt,
               "frame: the payload does not match its checksum");
    if (dag.finishCuda(stream)) {
      return;
    }
  }
}
#endif

std::vector<StageTimingResult> FrameDecoder::collectTimings() const {
  return plan_ == nullptr ? std::vector<StageTimingResult>{} : plan_->dag.collectTimings();
}
std::size_t FrameDecoder::peakMemoryUsage() const {
  return plan_ == nullptr ? 0 : plan_->dag.getPeakMemoryUsage();
}

}  // namespace fz
