#include <algorithm>
#include <map>

#include "backends/cuda/run_context.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "format/header_places.h"
#include "pipeline/frame/async_decoder.h"
#include "pipeline/frame/device_fields.h"
#include "pipeline/run/cuda_executor.h"
#include "stage/stage.h"

namespace fz {

AsyncDecoder::AsyncDecoder(const FrameHeader& header,
                           ByteView header_bytes,
                           const std::vector<Stage*>& custom_stages,
                           MemoryPool& pool)
    : pool_(pool),
      plan_(makeDecodePlan(header, custom_stages, &pool, MemoryStrategy::PREALLOCATE)),
      original_bytes_(header.description.original_bytes),
      header_bytes_(static_cast<std::uint32_t>(header.core.header_size)),
      template_(header_bytes.begin(), header_bytes.begin() + header_bytes_),
      template_image_(pool),
      fields_image_(pool) {
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    const auto* stage = dynamic_cast<const SimpleStage*>(plan_->stages[i]);
    FZ_REQUIRE(plan_->stages[i] == nullptr || (stage != nullptr && StageAccess::hasKernels(*stage)),
               ErrorCode::kUnsupported,
               "Pipeline::decompressAsync: {} has no kernels to decode with",
               plan_->stages[i]->getName());
  }
  FZ_REQUIRE(header.core.uncompressed_size == original_bytes_ && header.minor() >= 2,
             ErrorCode::kUnsupported,
             "Pipeline::decompressAsync: frames with padding or of other versions are not decoded "
             "without waiting");
  plan_->configure(header);
  planSizes(header);
  listFields(header);
}

/// The size of every buffer of the inverse graph, from the forward direction: exact where the data
/// have no say in it, else what no data can exceed.
void AsyncDecoder::planSizes(const FrameHeader& header) {
  struct Size {
    std::size_t n_bytes = 0;
    bool exact = false;
  };
  std::map<std::uint16_t, Size> sizes;  // by frame buffer id
  for (const FZMStageInfo& record : header.stages) {
    // The source's input is the only one that no stage produces.
    for (std::size_t k = 0; k < record.num_inputs; ++k) {
      sizes[record.input_buffer_ids[k]] = {original_bytes_, true};
    }
  }
  for (const FZMStageInfo& record : header.stages) {
    for (std::size_t k = 0; k < record.num_outputs; ++k) {
      sizes[record.output_buffer_ids[k]] = {};
    }
  }
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    auto* stage = dynamic_cast<SimpleStage*>(plan_->stages[i]);
    if (stage == nullptr) {
      continue;
    }
    const FZMStageInfo& record = header.stages[i];
    const Size in = sizes[record.input_buffer_ids[0]];
    stage->setInverse(false);
    const std::vector<std::size_t> most = stage->maxOutputSizes({in.n_bytes});
    for (std::size_t k = 0; k < record.num_outputs && k < most.size(); ++k) {
      sizes[record.output_buffer_ids[k]] = {most[k],
                                            in.exact && StageAccess::isOutputSizeFixed(*stage, k)};
    }
    stage->setInverse(true);
    Buffer& decoded = plan_->engine.buffers.at(plan_->nodes[i]->output_buffer_ids.front());
    decoded.planned_size = in.n_bytes;
    decoded.has_planned_size = true;
    decoded.planned_exact = in.exact;
  }
  for (const FZMBufferEntry& entry : header.buffers) {
    const auto found = plan_->segment_buffers.find(entry.dag_buffer_id);
    segment_buffers_.push_back(found == plan_->segment_buffers.end() ? -1 : found->second);
    max_segment_.push_back(std::max<std::uint64_t>(sizes[entry.dag_buffer_id].n_bytes, 1));
  }
}

/// Header fields that may differ from frame to frame, and where the device needs them.
void AsyncDecoder::listFields(const FrameHeader& header) {
  using Kind = HeaderFieldOnDevice::Kind;
  cuda::DeviceRunState& state = plan_->engine.cuda().state();
  cuda::FrameState* frame = state.frameOnDevice();
  std::vector<std::vector<DeviceField>> fields_of_stage;
  for (const Stage* stage : plan_->stages) {
    const auto* simple = dynamic_cast<const SimpleStage*>(stage);
    fields_of_stage.push_back(simple == nullptr ? std::vector<DeviceField>{}
                                                : StageAccess::deviceFields(*simple));
  }
  const auto targetOf = [&](const HeaderFieldOnDevice& field) -> std::uint64_t* {
    if (field.is_copy) {
      return nullptr;
    }
    switch (field.kind) {
      case Kind::kPayloadBytes:
        return &frame->payload_bytes;
      case Kind::kSegmentBytes:
        return &frame->segment_bytes[field.index];
      case Kind::kSegmentOffset:
        return &frame->segment_offset[field.index];
      case Kind::kAbsoluteBound:
        return nullptr;  // decoding goes by the stage's own
      case Kind::kStageValue:
        break;
    }
    const auto record = static_cast<std::size_t>(plan_->nodes[field.index]->id);
    return &state.onDevice(record)->value[field.slot];
  };
  for (const HeaderFieldOnDevice& field : listDeviceFields(header, fields_of_stage)) {
    fields_.push_back({targetOf(field), field.offset, field.n_bytes});
  }
  // Whether or not a stage fills it in: the bound may differ.
  const HeaderPlaces places = placesIn(header);
  fields_.push_back({nullptr, static_cast<std::uint32_t>(places.absolute_bound), 8});
  stores_offsets_ = std::any_of(places.segments.begin(), places.segments.end(),
                                [](const auto& segment) { return !segment.offset.empty(); });
  // The device compares what is left when these fields are taken out.
  for (const cuda::FieldTarget& field : fields_) {
    std::fill_n(template_.begin() + field.offset, field.n_bytes, std::uint8_t{0});
  }
  std::fill_n(template_.begin() + cuda::HeaderOffsets::kPayloadCrc, 8, std::uint8_t{0});
}

void AsyncDecoder::enqueue(const std::uint8_t* frame,
                           std::size_t capacity_bytes,
                           std::uint8_t* out,
                           const ExecContext& context,
                           cudaStream_t stream) {
  // It may be captured, so there are no graphs of one node.
  enqueueRun(frame, capacity_bytes, out, context, {stream}, false);
  state().enqueueCopyToHost(stream);
}

void AsyncDecoder::enqueueForBatch(const std::uint8_t* frame,
                                   std::size_t capacity_bytes,
                                   std::uint8_t* out,
                                   const ExecContext& context,
                                   const cuda::Launcher& launcher) {
  enqueueRun(frame, capacity_bytes, out, context, launcher, true);
  state().enqueueReadback(launcher);
}

cuda::DeviceRunState& AsyncDecoder::state() {
  return plan_->engine.cuda().state();
}

void AsyncDecoder::enqueueRun(const std::uint8_t* frame,
                              std::size_t capacity_bytes,
                              std::uint8_t* out,
                              const ExecContext& context,
                              const cuda::Launcher& launcher,
                              bool is_for_batch) {
  const cudaStream_t stream = launcher.stream;
  Engine& engine = plan_->engine;
  CudaExecutor& executor = engine.cuda();
  cuda::FrameState* state = executor.state().frameOnDevice();
  template_image_.update(template_, stream);
  fields_image_.update({reinterpret_cast<const std::uint8_t*>(fields_.data()),
                        fields_.size() * sizeof(cuda::FieldTarget)},
                       stream);
  const std::uint8_t* payload = frame + header_bytes_;
  cuda::SegmentLimits limits = {};
  limits.n_segments = static_cast<std::uint32_t>(segment_buffers_.size());
  limits.stores_offsets = stores_offsets_ ? 1 : 0;
  std::uint64_t max_payload = 0;
  for (std::size_t i = 0; i < segment_buffers_.size(); ++i) {
    limits.max_bytes[i] = max_segment_[i];
    max_payload += max_segment_[i];
  }
  max_payload = std::min<std::uint64_t>(
      max_payload, capacity_bytes > header_bytes_ ? capacity_bytes - header_bytes_ : 0);
  Request request{.context = &context};
  request.before_stages = [&, state](cudaStream_t /*stream*/) {
    cuda::enqueueOpen(frame, capacity_bytes, template_image_.data(), header_bytes_,
                      reinterpret_cast<const cuda::FieldTarget*>(fields_image_.data()),
                      static_cast<std::uint32_t>(fields_.size()), limits, state, launcher);
    cuda::enqueuePayloadCheck(payload, max_payload, state, launcher);
    for (std::size_t i = 0; i < segment_buffers_.size(); ++i) {
      if (i > 0 && segment_buffers_[i] >= 0) {
        auto copy = segments_[i].get<std::uint8_t>(&pool_, max_segment_[i] + 16);
        cuda::enqueueExtract(payload, copy.data(), max_segment_[i], state,
                             static_cast<std::uint32_t>(i), launcher);
      }
    }
  };
  for (std::size_t i = 0; i < segment_buffers_.size(); ++i) {
    if (segment_buffers_[i] < 0) {
      continue;
    }
    // The first segment stands aligned behind the header; the others are moved.
    std::uint8_t* data = i == 0
                             ? const_cast<std::uint8_t*>(payload)
                             : segments_[i].get<std::uint8_t>(&pool_, max_segment_[i] + 16).data();
    Buffer& buffer = engine.buffers.at(segment_buffers_[i]);
    buffer.size = max_segment_[i];
    buffer.size_on_device = &state->segment_bytes[i];
    engine.buffers.lendInput(segment_buffers_[i], data);
  }
  engine.buffers.lendOutput(plan_->result_buffer, out, original_bytes_);
  try {
    cuda::RunContext run(launcher);
    if (is_for_batch) {
      run.setMayWrite(&state->may_write);
    }
    executor.enqueue(request, run);
  } catch (...) {
    engine.abandonCuda(stream);
    throw;
  }
}

const std::uint64_t* AsyncDecoder::lengthOnDevice() const {
  const Edge& result = plan_->engine.graph.edge(plan_->result_buffer);
  return &plan_->engine.cuda()
              .state()
              .onDevice(static_cast<std::size_t>(result.producer))
              ->n_bytes[0];
}

std::size_t AsyncDecoder::finish(cudaStream_t stream) {
  const cuda::FrameState& state = plan_->engine.cuda().state().frameResult();
  FZ_REQUIRE(state.mismatch == 0, ErrorCode::kCorrupt, "frame: {}",
             state.mismatch == 1 ? "the payload does not match its checksum"
                                 : "the header is damaged or of another kind than the one decoded "
                                   "before");
  FZ_REQUIRE(plan_->engine.cuda().finish(stream), ErrorCode::kCorrupt,
             "frame: the data decode to more than the {} bytes that were announced",
             original_bytes_);
  return original_bytes_;
}

}  // namespace fz
