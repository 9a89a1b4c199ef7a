// What a frame says about its data, and how its parts are put together on the CPU.
#include "pipeline/frame/writer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "format/crc32.h"
#include "stage/stage.h"

namespace fz {

namespace {

void putName(const std::string& name, std::array<char, FZM_MAX_NAME_LEN>& out) {
  const std::size_t n = std::min(name.size(), FZM_MAX_NAME_LEN - 1);
  std::copy_n(name.begin(), n, out.begin());
}

}  // namespace

void FrameWriter::placeSinks(int source_buffer) {
  source_buffer_ = source_buffer;
  const Graph& graph = engine_.graph;
  frame_ids_.assign(graph.edges().size(), FZM_UNUSED_BUFFER_ID);
  std::uint16_t next = 0;
  for (const DAGNode* node : graph.order()) {
    for (const int id : node->output_buffer_ids) {
      frame_ids_[static_cast<std::size_t>(id)] = next++;
    }
  }
  frame_ids_[static_cast<std::size_t>(source_buffer_)] = next;
  sinks_.clear();
  sink_names_.clear();
  const auto& order = graph.order();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    FZ_REQUIRE((*node)->output_buffer_ids.size() <= FZM_MAX_PORTS &&
                   (*node)->input_buffer_ids.size() <= FZM_MAX_PORTS,
               ErrorCode::kGraph, "Pipeline: {} has more than {} inputs or outputs", (*node)->name,
               FZM_MAX_PORTS);
    for (const int id : (*node)->output_buffer_ids) {
      if (graph.edge(id).consumers.empty()) {
        sinks_.push_back(id);
        const std::vector<std::string> names = (*node)->stage->getOutputNames();
        const auto port = static_cast<std::size_t>(graph.edge(id).port);
        sink_names_.push_back(port < names.size() ? names[port] : std::string());
      }
    }
  }
  FZ_REQUIRE(sinks_.size() <= FZM_MAX_BUFFERS, ErrorCode::kGraph,
             "Pipeline: {} outputs to store, but a frame holds at most {}", sinks_.size(),
             FZM_MAX_BUFFERS);
  is_compact_ = std::any_of(order.begin(), order.end(), [](const DAGNode* node) {
    return node->stage->getStageTypeId() >= FZM_FIRST_OWN_STAGE;
  });
  // A compact record with everything that it may say is shorter than one of a fixed length.
  max_header_bytes_ = kCoreBytes + kRecordBytes * (graph.nodes().size() + sinks_.size());
  header_bytes_ = max_header_bytes_;
}

void FrameWriter::placeHeader(std::size_t n_bytes,
                              std::size_t padded_bytes,
                              const FrameSettings& settings,
                              FrameHeader& header) {
  if (is_compact_) {
    describe(n_bytes, padded_bytes, settings, header);
    header_bytes_ = header.core.header_size;
  }
}

/// Dims set on the pipeline go before those of a stage; those that do not hold the data are no
/// description of it.
StageDims FrameWriter::shapeOf(std::size_t n_values, const FrameSettings& settings) const {
  std::optional<std::array<std::size_t, 3>> wanted;
  if (settings.dims != std::array<std::size_t, 3>{0, 1, 1}) {
    wanted = settings.dims;
  }
  for (const DAGNode* node : engine_.graph.order()) {
    wanted = wanted ? wanted : node->stage->ownDims();
  }
  StageDims shape;
  shape.setOwn(wanted.value_or(std::array<std::size_t, 3>{n_values, 1, 1}));
  shape.setOwn(shape.fitted(n_values).value_or(std::array<std::size_t, 3>{n_values, 1, 1}));
  return shape;
}

DataType FrameWriter::sourceType(std::size_t n_bytes, const FrameSettings& settings) const {
  const auto own = static_cast<DataType>(engine_.graph.order().front()->stage->getInputDataType(0));
  const DataType declared = settings.declared_type;
  const bool is_declared =
      !isKnown(own) && isKnown(declared) && n_bytes % getDataTypeSize(declared) == 0;
  return is_declared ? declared : own;
}

std::size_t FrameWriter::sourceValueBytes() const {
  const DataType type = sourceType(0, {});
  return isKnown(type) ? getDataTypeSize(type) : 1;
}

void FrameWriter::describe(std::size_t n_bytes,
                           std::size_t padded_bytes,
                           const FrameSettings& settings,
                           FrameHeader& header) const {
  header.core = {};
  header.stages.clear();
  header.buffers.clear();
  header.description = {};
  header.core.uncompressed_size = padded_bytes;
  header.core.source_uncompressed_sizes[0] = padded_bytes;
  const auto idOf = [this](int id) { return frame_ids_[static_cast<std::size_t>(id)]; };
  for (const DAGNode* node : engine_.graph.order()) {
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
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    const int id = sinks_[i];
    const Buffer& buffer = engine_.buffers.at(id);
    const DAGNode& node = engine_.graph.node(buffer.producer_stage_id);
    const FZMStageInfo& producer = header.stages[static_cast<std::size_t>(node.execution_order)];
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    FZMBufferEntry record;
    record.stage_type = producer.stage_type;
    record.stage_version = producer.stage_version;
    record.data_type = node.stage->getOutputDataType(port);
    record.producer_output_idx = static_cast<std::uint8_t>(port);
    record.dag_buffer_id = idOf(id);
    putName(sink_names_[i], record.name);
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
  description.type = sourceType(n_bytes, settings);
  description.original_bytes = n_bytes;
  const std::size_t n_values =
      isKnown(description.type) ? n_bytes / getDataTypeSize(description.type) : n_bytes;
  const StageDims shape = shapeOf(n_values, settings);
  std::copy_n(shape.get().begin(), 3, description.dims.begin());
  description.ndim = static_cast<std::uint8_t>(shape.ndim());
  for (const DAGNode* node : engine_.graph.order()) {
    description.bound = description.bound ? description.bound : node->stage->boundInfo();
  }
  description.bound = description.bound ? description.bound : settings.declared_bound;
  description.shape.n_axes = description.ndim;
  std::copy_n(description.dims.begin(), description.ndim, description.shape.extents.begin());
  header.core.version = is_compact_ ? FZM_VERSION_COMPACT : FZM_VERSION;
  header.core.header_size = fz::headerBytes(header);
}

std::size_t FrameWriter::otherSegmentBytes() const {
  std::size_t n_bytes = 0;
  for (std::size_t i = 1; i < sinks_.size(); ++i) {
    const Buffer& sink = engine_.buffers.at(sinks_[i]);
    n_bytes += std::max(sink.size, sink.initial_size);
  }
  return n_bytes;
}

std::size_t FrameWriter::assemble(FrameHeader& header,
                                  PoolBuffer& frame,
                                  const CpuExecutor& executor) const {
  const std::size_t n_header = header.core.header_size;
  const std::size_t total = n_header + header.core.compressed_size;
  engine_.buffers.requireElsewhere(total, "frame");
  const std::size_t n_first = engine_.buffers.at(sinks_.front()).size;
  frame.reserve(total, std::min(header_bytes_ + n_first, frame.capacity()), "frame");
  if (n_header != header_bytes_ && n_first > 0) {
    std::memmove(frame.data() + n_header, frame.data() + header_bytes_, n_first);
  }
  for (std::size_t i = 1; i < sinks_.size(); ++i) {
    const Buffer& sink = engine_.buffers.at(sinks_[i]);
    if (sink.size > 0) {
      std::memcpy(frame.data() + n_header + header.buffers[i].byte_offset, sink.d_ptr, sink.size);
    }
  }
  const MutableByteView all(frame.data(), total);
  header.core.data_checksum = crc32(all.subspan(n_header), executor);
  writeHeader(header, all);
  return total;
}

}  // namespace fz
