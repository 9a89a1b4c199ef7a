#include "fz/simple_stage.h"

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "fz/byte_io.h"

namespace fz {

/// Runs one stage alone on the device, waits for it and takes its results over. Throws
/// Error(kNoDevice) in a build without CUDA.
void executeAloneCuda(SimpleStage& stage,
                      cudaStream_t stream,
                      MemoryPool* pool,
                      std::span<const ByteView> inputs,
                      std::span<const MutableByteView> outputs);

void SimpleStage::execute(cudaStream_t stream,
                          MemoryPool* pool,
                          const std::vector<void*>& inputs,
                          const std::vector<void*>& outputs,
                          const std::vector<std::size_t>& sizes) {
  const std::size_t n_inputs = getNumInputs();
  FZ_REQUIRE(inputs.size() >= n_inputs && sizes.size() == inputs.size(), ErrorCode::kGraph,
             "{}: expected {} inputs, got {}", getName(), n_inputs, inputs.size());
  FZ_REQUIRE(outputs.size() == getNumOutputs(), ErrorCode::kGraph,
             "{}: expected {} outputs, got {}", getName(), getNumOutputs(), outputs.size());
  if (capacity_bytes_.size() != outputs.size()) {
    capacity_bytes_ = estimateOutputSizes(sizes);  // a caller without a pipeline sizes by estimate
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    FZ_REQUIRE(inputs[i] != nullptr || sizes[i] == 0, ErrorCode::kInvalidArgument,
               "{}: input {} of {} bytes is null", getName(), i, sizes[i]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    capacity_bytes_[i] = outputs[i] == nullptr ? 0 : capacity_bytes_[i];
  }
  takeViews(inputs, outputs, sizes);
  if (execContext() != nullptr && execContext()->backend == Backend::CUDA) {
    executeAloneCuda(*this, stream, pool, input_views_, output_views_);
    capacity_bytes_.clear();
    return;
  }
  const CpuRun run = cpuRun(pool);
  if (inverse_) {
    decodeCpu(run);
  } else {
    encodeCpu(run);
  }
  capacity_bytes_.clear();
}

void SimpleStage::takeViews(const std::vector<void*>& inputs,
                            const std::vector<void*>& outputs,
                            const std::vector<std::size_t>& sizes) {
  input_views_.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    input_views_.emplace_back(static_cast<const std::uint8_t*>(inputs[i]), sizes[i]);
  }
  output_views_.clear();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    output_views_.emplace_back(static_cast<std::uint8_t*>(outputs[i]), capacity_bytes_[i]);
  }
  actual_bytes_.assign(outputs.size(), 0);
  needed_bytes_.clear();
}

CpuRun SimpleStage::cpuRun(MemoryPool* pool) const {
  const ExecContext* context = execContext();
  const CpuExecutor& executor =
      context != nullptr && context->cpu != nullptr ? *context->cpu : CpuExecutor::serial();
  return {input_views_, output_views_, executor, pool};
}

CudaPart* StageAccess::cudaPart(const SimpleStage& stage) {
  auto& part = stage.cuda_part_;
  if (part == nullptr) {
    if (const MakeCudaPart make = stage.descriptor().make_cuda) {
      part = make(const_cast<SimpleStage&>(stage));  // it works on the stage that owns it
    }
  }
  return part.get();
}

bool StageAccess::hasKernels(const SimpleStage& stage) {
  const CudaPart* part = cudaPart(stage);
  return part != nullptr && part->hasKernels();
}

std::vector<DeviceField> StageAccess::deviceFields(const SimpleStage& stage) {
  const CudaPart* part = cudaPart(stage);
  return part == nullptr ? std::vector<DeviceField>{} : part->fields();
}

bool StageAccess::isOutputSizeFixed(const SimpleStage& stage, std::size_t port) {
  return stage.inverse_ ? stage.hasFixedDecodedBytes() : stage.hasFixedEncodedBytes(port);
}

TileOp SimpleStage::tileOp(Backend backend) const {
  if (backend == Backend::CPU) {
    return cpuTileOp();
  }
  const CudaPart* part = StageAccess::cudaPart(*this);
  return part == nullptr ? TileOp{} : part->tileOp();
}

void StageAccess::beginInGroup(SimpleStage& stage,
                               MemoryPool* pool,
                               const std::vector<void*>& inputs,
                               const std::vector<void*>& outputs,
                               const std::vector<std::size_t>& sizes,
                               const TileCut& cut) {
  FZ_ASSERT(stage.capacity_bytes_.size() == outputs.size());
  stage.takeViews(inputs, outputs, sizes);
  cpuTilePart(stage)->beginTiles(stage.cpuRun(pool), cut);
}

void StageAccess::endInGroup(SimpleStage& stage, MemoryPool* pool) {
  cpuTilePart(stage)->endTiles(stage.cpuRun(pool));
  stage.capacity_bytes_.clear();
}

void StageAccess::finishCuda(SimpleStage& stage,
                             const StageRecord& record,
                             std::span<const std::size_t> capacities) {
  stage.actual_bytes_.assign(capacities.size(), 0);
  stage.needed_bytes_.clear();
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    stage.actual_bytes_[i] = record.n_bytes[i];
    if (record.needed_bytes[i] > capacities[i]) {
      stage.requestOutputBytes(i, record.needed_bytes[i]);
    }
  }
  if (!stage.needed_bytes_.empty()) {
    return;  // whatever else was found, it was found in part of the data
  }
  CudaPart* part = cudaPart(stage);
  if (part != nullptr) {
    stage.inverse_ ? part->finishDecode(record) : part->finishEncode(record);
  }
  if (record.error == 0) {
    return;
  }
  if (part != nullptr) {
    part->throwError(record);
  }
  const bool corrupt = static_cast<DeviceError>(record.error) == DeviceError::kCorrupt;
  detail::throwError(corrupt ? ErrorCode::kCorrupt : ErrorCode::kBoundViolation,
                     fmt::format("{}: {} at {}", stage.getName(),
                                 corrupt ? "the stream contradicts itself"
                                         : "a value cannot be kept with these settings",
                                 record.error_index));
}

std::string SimpleStage::getName() const {
  return std::string(descriptor().name);
}
std::uint16_t SimpleStage::getStageTypeId() const {
  return descriptor().id;
}

std::size_t SimpleStage::getNumInputs() const {
  return inverse_ ? outputPorts().size() : 1;
}
std::size_t SimpleStage::getNumOutputs() const {
  return inverse_ ? 1 : outputPorts().size();
}

std::vector<std::string> SimpleStage::getOutputNames() const {
  if (inverse_) {
    return {decodedPortName()};
  }
  std::vector<std::string> names;
  for (const Port& port : outputPorts()) {
    names.emplace_back(port.name);
  }
  return names;
}

std::uint8_t SimpleStage::getInputDataType(std::size_t input_index) const {
  if (!inverse_) {
    return static_cast<std::uint8_t>(inputType());
  }
  const Ports ports = outputPorts();
  return static_cast<std::uint8_t>(input_index < ports.size() ? ports[input_index].type
                                                              : DataType::UNKNOWN);
}

std::uint8_t SimpleStage::getOutputDataType(std::size_t output_index) const {
  if (inverse_) {
    return static_cast<std::uint8_t>(inputType());
  }
  const Ports ports = outputPorts();
  return static_cast<std::uint8_t>(output_index < ports.size() ? ports[output_index].type
                                                               : DataType::UNKNOWN);
}

std::vector<std::size_t> SimpleStage::estimateOutputSizes(
    const std::vector<std::size_t>& input_sizes) const {
  std::vector<std::size_t> n_bytes;
  estimateOutputSizesInto(input_sizes, n_bytes);
  return n_bytes;
}

void SimpleStage::estimateOutputSizesInto(const std::vector<std::size_t>& input_sizes,
                                          std::vector<std::size_t>& n_bytes) const {
  if (inverse_) {
    n_bytes.assign(1, decodedBytes(input_sizes));
    return;
  }
  const PortBytes bytes = encodedBytes(input_sizes.empty() ? 0 : input_sizes[0]);
  n_bytes.assign(bytes.begin(), bytes.end());
}

std::vector<std::size_t> SimpleStage::maxOutputSizes(
    const std::vector<std::size_t>& input_sizes) const {
  if (inverse_) {
    return {decodedBytes(input_sizes)};
  }
  const PortBytes bytes = maxEncodedBytes(input_sizes.empty() ? 0 : input_sizes[0]);
  return {bytes.begin(), bytes.end()};
}

void SimpleStage::setOutputCapacities(const std::vector<std::size_t>& n_bytes) {
  capacity_bytes_ = n_bytes;
}

std::unordered_map<std::string, std::size_t> SimpleStage::getActualOutputSizesByName() const {
  std::unordered_map<std::string, std::size_t> sizes;
  const std::vector<std::string> names = getOutputNames();
  for (std::size_t i = 0; i < names.size() && i < actual_bytes_.size(); ++i) {
    sizes.emplace(names[i], actual_bytes_[i]);
  }
  return sizes;
}

std::size_t SimpleStage::getActualOutputSize(int output_index) const {
  const auto i = static_cast<std::size_t>(output_index);
  return output_index < 0 || i >= actual_bytes_.size() ? 0 : actual_bytes_[i];
}

bool SimpleStage::isGraphCompatible() const {
  return inverse_ ? descriptor().graph_compatible_inverse : descriptor().graph_compatible_forward;
}

std::size_t SimpleStage::serializeHeader(std::size_t /*output_index*/,
                                         std::uint8_t* buffer,
                                         std::size_t max_bytes) const {
  ByteWriter out({buffer, max_bytes});
  writeConfig(out);
  FZ_REQUIRE(!out.overflowed(), ErrorCode::kBufferTooSmall, "{}: config does not fit into {} bytes",
             getName(), max_bytes);
  return out.position();
}

void SimpleStage::deserializeHeader(const std::uint8_t* bytes, std::size_t n_bytes) {
  ByteReader in({bytes, n_bytes});
  readConfig(in);
}

std::size_t SimpleStage::getMaxHeaderSize(std::size_t /*output_index*/) const {
  return FZM_STAGE_CONFIG_SIZE;
}

void SimpleStage::setActualBytes(std::size_t output_index, std::size_t n_bytes) {
  FZ_ASSERT(output_index < actual_bytes_.size());
  actual_bytes_[output_index] = n_bytes;
}

void SimpleStage::requestOutputBytes(std::size_t output_index, std::size_t n_bytes) {
  needed_bytes_.resize(actual_bytes_.size(), 0);
  needed_bytes_[output_index] = n_bytes;
}

}  // namespace fz
