// Running one stage on a device: alone, or on the host where it has no kernels.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "backends/cuda/record.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fzm_format.h"

namespace fz {

namespace {

constexpr std::size_t kHostAlignment = 64;

struct HostFree {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using HostBytes = std::unique_ptr<std::uint8_t, HostFree>;

HostBytes hostBytes(std::size_t n_bytes) {
  const std::size_t rounded = (n_bytes / kHostAlignment + 1) * kHostAlignment;
  HostBytes memory(static_cast<std::uint8_t*>(std::aligned_alloc(kHostAlignment, rounded)));
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "cannot allocate {} bytes of host memory",
             n_bytes);
  return memory;
}

struct DeviceFree {
  void operator()(void* memory) const { FZ_CUDA_CHECK_WARN(cudaFree(memory)); }
};

}  // namespace

void cuda::initRecord(StageRecord& record) {
  record = StageRecord{};
  record.error_index = ~std::uint64_t{0};
}

void cuda::loadFields(std::span<const DeviceField> fields,
                      ByteView config,
                      std::uint16_t stage_version,
                      StageRecord& record) {
  for (const DeviceField& field : fields) {
    std::uint64_t value = field.config_offset == DeviceField::kStageVersion ? stage_version : 0;
    if (std::uint64_t{field.config_offset} + field.n_bytes <= config.size()) {
      std::memcpy(&value, config.data() + field.config_offset, field.n_bytes);
    }
    record.value[field.slot] = value;
  }
}

void executeAloneCuda(SimpleStage& stage,
                      cudaStream_t stream,
                      MemoryPool* pool,
                      std::span<const ByteView> inputs,
                      std::span<const MutableByteView> outputs) {
  StageRecord record;
  cuda::initRecord(record);
  std::vector<std::size_t> sizes;
  std::vector<CudaInput> cuda_inputs;
  for (const ByteView input : inputs) {
    sizes.push_back(input.size());
    cuda_inputs.push_back({input.data(), {input.size(), nullptr}});
  }
  const std::vector<std::size_t> estimates = stage.estimateOutputSizes(sizes);
  std::vector<CudaOutput> cuda_outputs;
  std::vector<std::size_t> capacities;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool known = StageAccess::isOutputSizeFixed(stage, i);
    FZ_REQUIRE(!known || estimates[i] <= outputs[i].size(), ErrorCode::kBufferTooSmall,
               "{}: {} bytes needed for output {}, which has {}", stage.getName(), estimates[i], i,
               outputs[i].size());
    record.n_bytes[i] = known ? estimates[i] : 0;
    cuda_outputs.push_back({outputs[i].data(), outputs[i].size(), known});
    capacities.push_back(outputs[i].size());
  }
  if (stage.isInverse()) {
    std::array<std::uint8_t, FZM_STAGE_CONFIG_SIZE> config{};
    const std::size_t n = stage.serializeHeader(0, config.data(), config.size());
    cuda::loadFields(StageAccess::deviceFields(stage), {config.data(), n}, stage.getStageVersion(),
                     record);
  }
  void* memory = nullptr;
  FZ_CUDA_CHECK(cudaMalloc(&memory, sizeof(StageRecord)));
  const std::unique_ptr<void, DeviceFree> owned(memory);
  auto* on_device = static_cast<StageRecord*>(memory);
  FZ_CUDA_CHECK(cudaMemcpyAsync(on_device, &record, sizeof(record), cudaMemcpyDefault, stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  StageAccess::enqueueCuda(stage, {cuda_inputs, cuda_outputs, on_device, stream, pool});
  FZ_CUDA_CHECK(cudaMemcpyAsync(&record, on_device, sizeof(record), cudaMemcpyDefault, stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  StageAccess::finishCuda(stage, record, capacities);
}

void StageAccess::enqueueCuda(SimpleStage& stage, const cuda::Call& call) {
  stage.actual_bytes_.assign(call.outputs.size(), 0);
  stage.needed_bytes_.clear();
  CudaPart* part = cudaPart(stage);
  if (part == nullptr || !part->hasKernels()) {
    runOnHost(stage, call);
  } else if (stage.inverse_) {
    part->decode(call);
  } else {
    part->encode(call);
  }
}

void StageAccess::runOnHost(SimpleStage& stage, const cuda::Call& call) {
  std::vector<HostBytes> memory;
  std::vector<ByteView> inputs;
  for (const CudaInput& input : call.inputs) {
    std::uint64_t n_bytes = input.size.n_bytes;
    if (!input.size.isExact()) {
      FZ_CUDA_CHECK(cudaMemcpyAsync(&n_bytes, input.size.on_device, sizeof(n_bytes),
                                    cudaMemcpyDefault, call.stream));
      FZ_CUDA_CHECK(cudaStreamSynchronize(call.stream));
    }
    memory.push_back(hostBytes(n_bytes));
    FZ_CUDA_CHECK(
        cudaMemcpyAsync(memory.back().get(), input.data, n_bytes, cudaMemcpyDefault, call.stream));
    inputs.emplace_back(memory.back().get(), n_bytes);
  }
  FZ_CUDA_CHECK(cudaStreamSynchronize(call.stream));
  std::vector<MutableByteView> outputs;
  for (const CudaOutput& output : call.outputs) {
    memory.push_back(hostBytes(output.capacity_bytes));
    outputs.emplace_back(memory.back().get(), output.capacity_bytes);
  }
  const ExecContext* context = stage.execContext();
  const CpuExecutor& executor =
      context != nullptr && context->cpu != nullptr ? *context->cpu : CpuExecutor::serial();
  const CpuRun cpu_run{inputs, outputs, executor, nullptr};
  if (stage.isInverse()) {
    stage.decodeCpu(cpu_run);
  } else {
    stage.encodeCpu(cpu_run);
  }
  StageRecord record;
  cuda::initRecord(record);
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    record.n_bytes[i] = stage.getActualOutputSize(static_cast<int>(i));
    record.needed_bytes[i] = i < stage.needed_bytes_.size() ? stage.needed_bytes_[i] : 0;
    FZ_CUDA_CHECK(cudaMemcpyAsync(call.outputs[i].data, outputs[i].data(), record.n_bytes[i],
                                  cudaMemcpyDefault, call.stream));
  }
  FZ_CUDA_CHECK(
      cudaMemcpyAsync(call.record, &record, sizeof(record), cudaMemcpyDefault, call.stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(call.stream));
}

}  // namespace fz
