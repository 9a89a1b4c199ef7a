// What a frame says about its data, and how its parts are put together on the CPU.
#include <algorithm>
#include <cstring>
#include <optional>

#include "format/crc32.h"
#include "fz/stage_dims.h"
#include "pipeline/fill_check.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

void putName(const std::string& name, std::array<char, FZM_MAX_NAME_LEN>& out) {
  const std::size_t n = std::min(name.size(), FZM_MAX_NAME_LEN - 1);
  std::copy_n(name.begin(), n, out.begin());
}

}  // namespace

/// Dims set on the pipeline go before those of a stage; those that do not hold the data are no
/// description of it.
StageDims Pipeline::Impl::shapeOf(std::size_t n_values) const {
  std::optional<std::array<std::size_t, 3>> wanted;
  if (dims != std::array<std::size_t, 3>{0, 1, 1}) {
    wanted = dims;
  }
  for (const DAGNode* node : dag->getOrder()) {
    wanted = wanted ? wanted : node->stage->ownDims();
  }
  StageDims shape;
  shape.setOwn(wanted.value_or(std::array<std::size_t, 3>{n_values, 1, 1}));
  shape.setOwn(shape.fitted(n_values).value_or(std::array<std::size_t, 3>{n_values, 1, 1}));
  return shape;
}

/// What the first stage reads; where it takes any bytes, what the caller says that they are.
DataType Pipeline::Impl::sourceType(std::size_t n_bytes) const {
  const auto own = static_cast<DataType>(dag->getOrder().front()->stage->getInputDataType(0));
  const bool is_declared =
      !isKnown(own) && isKnown(declared_type) && n_bytes % getDataTypeSize(declared_type) == 0;
  return is_declared ? declared_type : own;
}

/// Into a header that is used again and again, so that nothing is allocated.
void Pipeline::Impl::describeFrame(std::size_t n_bytes,
                                   std::size_t padded_bytes,
                                   FrameHeader& header) const {
  header.core = {};
  header.stages.clear();
  header.buffers.clear();
  header.description = {};
  header.core.uncompressed_size = padded_bytes;
  header.core.source_uncompressed_sizes[0] = padded_bytes;
  const auto idOf = [this](int id) { return frame_ids[static_cast<std::size_t>(id)]; };
  for (const DAGNode* node : dag->getOrder()) {
    FZMStageInfo record;
    record.stage_type = node->stage->getStageTypeId();
    record.stage_version = node->stage->getStageVersion();
    record.num_inputs = static_cast<std::uint8_t>(node->input_buffer_ids.size());
    record.num_outputs = static_cast<std::uint8_t>(node->output_buffer_ids.size());
    record.input_buffer_ids.fill(FZM_UNUSED_BUFFER_ID);
    record.output_buffer_ids.fill(FZM_UNUSED_BUFFER_ID);
    std::transform(node->input_buffer_ids.begin(), node->input_buffer_ids.end(),
                   record.input_buffer_ids.begin(), idOf);
    std::transform(node->output_buffer_ids.begin(), node->output_buffer_ids.end(),
                   record.output_buffer_ids.begin(), idOf);
    record.config_size = static_cast<std::uint32_t>(
        node->stage->serializeHeader(0, record.stage_config.data(), record.stage_config.size()));
    header.stages.push_back(record);
  }
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const int id = sinks[i];
    const BufferInfo& buffer = dag->getBufferInfo(id);
    const DAGNode& node = *dag->getNodes()[static_cast<std::size_t>(buffer.producer_stage_id)];
    const FZMStageInfo& producer = header.stages[static_cast<std::size_t>(node.execution_order)];
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    FZMBufferEntry record;
    record.stage_type = producer.stage_type;
    record.stage_version = producer.stage_version;
    record.data_type = node.stage->getOutputDataType(port);
    record.producer_output_idx = static_cast<std::uint8_t>(port);
    record.dag_buffer_id = idOf(id);
    putName(sink_names[i], record.name);
    record.data_size = buffer.size;
    record.allocated_size = buffer.size;
    record.uncompressed_size = buffer.size;
    record.byte_offset = header.core.compressed_size;
    record.stage_config = producer.stage_config;
    record.config_size = producer.config_size;
    header.core.compressed_size += buffer.size;
    header.buffers.push_back(record);
  }
  FrameDescription& description = header.description;
  description.type = sourceType(n_bytes);
  description.original_bytes = n_bytes;
  const std::size_t n_values =
      isKnown(description.type) ? n_bytes / getDataTypeSize(description.type) : n_bytes;
  const StageDims shape = shapeOf(n_values);
  std::copy_n(shape.get().begin(), 3, description.dims.begin());
  description.ndim = static_cast<std::uint8_t>(shape.ndim());
  for (const DAGNode* node : dag->getOrder()) {
    description.bound = description.bound ? description.bound : node->stage->boundInfo();
  }
  description.bound = description.bound ? description.bound : declared_bound;
}

void Pipeline::Impl::assembleFrame(std::size_t n_bytes, std::size_t padded_bytes) {
  FrameHeader& header = last_header;
  describeFrame(n_bytes, padded_bytes, header);
  const std::size_t total = header_bytes + header.core.compressed_size;
  requireFrameFits(total);
  const std::size_t n_first = header_bytes + dag->getBufferInfo(sinks.front()).size;
  frame.reserve(total, std::min(n_first, frame.capacity()), "frame");
  for (std::size_t i = 1; i < sinks.size(); ++i) {
    const BufferInfo& sink = dag->getBufferInfo(sinks[i]);
    if (sink.size > 0) {
      std::memcpy(frame.data() + header_bytes + header.buffers[i].byte_offset, sink.d_ptr,
                  sink.size);
    }
  }
  const MutableByteView all(frame.data(), total);
  header.core.data_checksum = crc32(all.subspan(header_bytes),
                                    context.cpu != nullptr ? *context.cpu : CpuExecutor::serial());
  writeHeader(header, all);
  frame_bytes = total;
}

void Pipeline::requireRangeWithoutFill(ByteView values,
                                       std::span<const double> fill,
                                       cudaStream_t stream) const try {
  // Other bounds are known without the frame, which may be on a device.
  const bool is_relative =
      std::any_of(impl_->entries.begin(), impl_->entries.end(), [](const Impl::Entry& entry) {
        const std::optional<BoundInfo> bound = entry.stage->boundInfo();
        return bound && bound->mode == ErrorBoundMode::NOA;
      });
  if (!is_relative || impl_->frame_bytes == 0) {
    return;
  }
  const FrameDescription description = impl_->describeLast(stream);
  const CpuExecutor* const executor = impl_->context.cpu;
  if (description.bound && description.original_bytes == values.size()) {
    checkRangeBound(*description.bound, description.type, values, fill,
                    executor != nullptr ? *executor : CpuExecutor::serial());
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
