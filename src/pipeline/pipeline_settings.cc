#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "backends/cuda/device_guard.h"
#include "core/require.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_access.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

const char* reasonUnavailable() {
  return cuda::isBuiltIn() ? "no CUDA device available" : "this build has no CUDA";
}

}  // namespace

void Pipeline::setMemoryStrategy(MemoryStrategy strategy) {
  impl_->requireNotFinalized("setMemoryStrategy");
  impl_->engine->buffers.setStrategy(strategy);
}
MemoryStrategy Pipeline::getMemoryStrategy() const {
  return impl_->engine->buffers.strategy();
}

void Pipeline::setBackend(Backend backend) {
  impl_->requireNotFinalized("setBackend");
  FZ_REQUIRE(isBackendAvailable(backend), ErrorCode::kNoDevice, "Pipeline: {}",
             reasonUnavailable());
  FZ_REQUIRE(
      impl_->backend == Backend::Auto || backend == impl_->backend || backend == Backend::Auto,
      ErrorCode::kInvalidState, "Pipeline: setBackend called after the {} backend was used",
      backendName(impl_->backend));
  impl_->requested_backend = backend;
}
Backend Pipeline::getBackend() const {
  return impl_->backend == Backend::Auto ? impl_->requested_backend : impl_->backend;
}

void Pipeline::setFusion(Fusion fusion) {
  impl_->requireNotFinalized("setFusion");
  impl_->context.fusion = fusion;
}
Fusion Pipeline::getFusion() const {
  return impl_->context.fusion;
}

void Pipeline::setDevice(int device) {
  impl_->requireNotFinalized("setDevice");
  FZ_REQUIRE(impl_->backend != Backend::CUDA || device == impl_->device, ErrorCode::kInvalidState,
             "Pipeline: setDevice called after device {} was used", impl_->device);
  FZ_REQUIRE(cuda::isBuiltIn(), ErrorCode::kNoDevice, "Pipeline: device {}: this build has no CUDA",
             device);
  FZ_REQUIRE(device >= 0 && device < cuda::deviceCount(), ErrorCode::kNoDevice,
             "Pipeline: no device {}; the machine has {}", device, cuda::deviceCount());
  impl_->device = device;
}
int Pipeline::getDevice() const {
  return impl_->device;
}

void Pipeline::Impl::resolveBackend(const char* call) {
  if (backend != Backend::Auto) {
    return;
  }
  if (const char* fusion_wish = std::getenv("FZ_FUSION");
      fusion_wish != nullptr && *fusion_wish != '\0') {
    const std::string_view text = fusion_wish;
    FZ_REQUIRE(text == "off" || text == "auto", ErrorCode::kInvalidArgument,
               "FZ_FUSION is '{}'; it must be off or auto", text);
    context.fusion = text == "off" ? Fusion::Off : Fusion::Auto;
  }
  Backend chosen = requested_backend;
  const char* wish = std::getenv("FZ_BACKEND");
  if (chosen == Backend::Auto && wish != nullptr && *wish != '\0') {
    const std::string_view text = wish;
    FZ_REQUIRE(text == "cpu" || text == "cuda" || text == "auto", ErrorCode::kInvalidArgument,
               "FZ_BACKEND is '{}'; it must be cpu, cuda or auto", text);
    chosen = text == "cpu" ? Backend::CPU : text == "cuda" ? Backend::CUDA : Backend::Auto;
    FZ_REQUIRE(isBackendAvailable(chosen), ErrorCode::kNoDevice, "FZ_BACKEND: {}",
               reasonUnavailable());
  }
  if (chosen == Backend::Auto) {
    chosen = isBackendAvailable(Backend::CUDA) ? Backend::CUDA : Backend::CPU;
  }
  if (chosen == Backend::CUDA) {
    // Before anything else of the runtime is called: loading a kernel can make it forget an error.
    cuda::dropStaleError(call);
    device = device < 0 ? cuda::currentDevice() : device;
    MemoryPoolConfig device_pool = pool_config;
    device_pool.backend = Backend::CUDA;
    device_pool.device_id = device;
    pool.reconfigure(device_pool);
    try {
      on_device = makeDeviceRunner(*this);
    } catch (...) {
      pool.reconfigure(pool_config);  // the next call may choose the CPU
      throw;
    }
    pool_config = device_pool;
  }
  backend = chosen;
  context.backend = chosen;
}

void Pipeline::Impl::requireHostPointer(const void* data, const char* what) const {
  FZ_REQUIRE(
      !cuda::isInUse() || cuda::deviceCount() == 0 || !cuda::isDeviceOnly(data),
      ErrorCode::kInvalidArgument,
      "Pipeline: the {} at {} is device memory, but this pipeline runs on the CPU; pass host "
      "memory, or use setBackend(Backend::CUDA)",
      what, data);
}

void Pipeline::Impl::copyAndWait(
    void* to, const void* from, std::size_t n_bytes, cudaStream_t stream, bool ends_call) const {
  if (on_device != nullptr) {
    on_device->copyAndWait(to, from, n_bytes, stream, ends_call);
  } else if (n_bytes > 0) {
    std::memcpy(to, from, n_bytes);
  }
}

cudaStream_t PipelineAccess::ownStream(Pipeline& pipeline) {
  pipeline.impl_->resolveBackend("Pipeline");
  DeviceRunner* const runner = pipeline.impl_->on_device.get();
  return runner != nullptr ? runner->ownStream() : nullptr;
}

const void* PipelineAccess::upload(Pipeline& pipeline, ByteView values, cudaStream_t stream) {
  DeviceRunner* const runner = pipeline.impl_->on_device.get();
  return runner != nullptr ? runner->upload(values, stream) : values.data();
}

void PipelineAccess::copyAndWait(const Pipeline& pipeline,
                                 void* to,
                                 const void* from,
                                 std::size_t n_bytes,
                                 cudaStream_t stream) {
  pipeline.impl_->copyAndWait(to, from, n_bytes, stream);
}

void Pipeline::Impl::copyResult(void* to,
                                const void* from,
                                std::size_t n_bytes,
                                cudaStream_t stream) {
  copyAndWait(to, from, n_bytes, stream, true);
  recordTimes();
}

void Pipeline::Impl::recordTimes() {
  if (!profiling) {
    return;
  }
  perf.host_elapsed_ms =
      std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - call_start)
          .count();
  perf.device_elapsed_ms = on_device != nullptr ? on_device->callMilliseconds() : 0.0f;
}

void Pipeline::setThreads(std::size_t n_threads) try {
  impl_->n_threads = n_threads;
  impl_->executor = makeCpuExecutor(n_threads, defaultThreadBackend());
  impl_->context.cpu = impl_->executor.get();
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
std::size_t Pipeline::getThreads() const {
  return impl_->executor != nullptr ? impl_->executor->threadCount() : impl_->n_threads;
}

void Pipeline::setNumStreams(int n_streams) {
  impl_->requireNotFinalized("setNumStreams");
  FZ_REQUIRE(n_streams >= 1, ErrorCode::kInvalidArgument,
             "Pipeline: the number of streams must be at least 1, not {}", n_streams);
  impl_->engine->n_streams = n_streams;
}
int Pipeline::getNumStreams() const {
  return impl_->engine->n_streams;
}

void Pipeline::setDims(std::size_t x, std::size_t y, std::size_t z) {
  setDims(std::array<std::size_t, 3>{x, y, z});
}
void Pipeline::setDims(const std::array<std::size_t, 3>& dims) try {
  impl_->requireNotFinalized("setDims");
  FZ_REQUIRE(dims[1] >= 1 && dims[2] >= 1, ErrorCode::kInvalidArgument,
             "Pipeline: dims {} x {} x {}: y and z must be at least 1", dims[0], dims[1], dims[2]);
  impl_->frame_settings.dims = dims;
  for (Impl::Entry& entry : impl_->entries) {
    entry.stage->setPipelineDims(dims);
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
std::array<std::size_t, 3> Pipeline::getDims() const {
  return impl_->frame_settings.dims;
}

void Pipeline::setWarmupOnFinalize(bool on) {
  impl_->warmup_on_finalize = on;
}
bool Pipeline::isWarmupOnFinalizeEnabled() const {
  return impl_->warmup_on_finalize;
}
void Pipeline::setPoolManagedDecompOutput(bool on) {
  impl_->pool_managed_output = on;
}
bool Pipeline::isPoolManagedDecompOutput() const {
  return impl_->pool_managed_output;
}
void Pipeline::setMemoryLimit(std::size_t n_bytes) {
  impl_->memory_limit_bytes = n_bytes;
}
std::size_t Pipeline::getMemoryLimit() const {
  return impl_->memory_limit_bytes;
}
void Pipeline::setProgress(RunProgress* progress) {
  impl_->progress = progress;
}
void Pipeline::setDecodeLimits(const DecodeLimits& limits) {
  impl_->limits = limits;
}
DecodeLimits Pipeline::getDecodeLimits() const {
  return impl_->limits;
}

void Pipeline::setLosslessFallback(bool on) {
  impl_->lossless_fallback = on;
}
bool Pipeline::isLosslessFallbackEnabled() const {
  return impl_->lossless_fallback;
}
bool Pipeline::isLastFrameFallback() const {
  return impl_->last_is_fallback;
}

void Pipeline::enableProfiling(bool on) {
  impl_->profiling = on;
  impl_->engine->profiling = on;
}
bool Pipeline::isProfilingEnabled() const {
  return impl_->profiling;
}
void Pipeline::enableBoundsCheck(bool on) {
  impl_->dag->enableBoundsCheck(on);
}
bool Pipeline::isBoundsCheckEnabled() const {
  return impl_->dag->isBoundsCheckEnabled();
}

void Pipeline::setColoringEnabled(bool on) {
  impl_->requireNotFinalized("setColoringEnabled");
  impl_->engine->shares_memory = on;
}
bool Pipeline::isColoringEnabled() const {
  return impl_->dag->isColoringEnabled();
}
std::size_t Pipeline::getColorRegionCount() const {
  return impl_->dag->getColorRegionCount();
}

void Pipeline::enableGraphMode(bool on) {
  impl_->requireNotFinalized("enableGraphMode");
  impl_->graph_mode = on;
}
bool Pipeline::isGraphModeEnabled() const {
  return impl_->graph_mode;
}
bool Pipeline::isGraphCaptured() const {
  return impl_->graph_captured;
}

void Pipeline::captureGraph(cudaStream_t stream) try {
  impl_->requireFinalized("captureGraph");
  FZ_REQUIRE(impl_->graph_mode, ErrorCode::kInvalidState,
             "Pipeline: captureGraph needs enableGraphMode(true)");
  FZ_REQUIRE(!impl_->compressed_since_reset, ErrorCode::kInvalidState,
             "Pipeline: captureGraph called after compress; call reset() first");
  std::string names;
  for (const Impl::Entry& entry : impl_->entries) {
    if (!entry.stage->isGraphCompatible()) {
      names += (names.empty() ? "" : ", ") + entry.name;
    }
  }
  FZ_REQUIRE(names.empty(), ErrorCode::kUnsupported,
             "Pipeline: these stages cannot be part of a graph: {}", names);
  if (impl_->on_device != nullptr) {
    impl_->on_device->captureGraph(impl_->hint_bytes, stream);
  }
  // The CPU has no launch to record: the plan made by finalize() is what a replay would be.
  impl_->graph_captured = true;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

bool Pipeline::isFinalized() const {
  return impl_->finalized;
}

std::vector<Stage*> Pipeline::getStages() const try {
  std::vector<Stage*> stages;
  for (const Impl::Entry& entry : impl_->entries) {
    stages.push_back(entry.stage.get());
  }
  return stages;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

const std::string& Pipeline::getStageName(const Stage* stage) const {
  return impl_->entryOf(stage, "stage").name;
}

const PipelinePerfResult& Pipeline::getLastPerfResult() const {
  return impl_->perf;
}
CompressionDAG* Pipeline::getDAG() {
  return impl_->dag.get();
}
std::size_t Pipeline::getPoolThreshold() const {
  return impl_->pool.getConfiguredSize();
}
bool Pipeline::isMemPoolFallbackMode() const {
  return impl_->pool.isFallbackMode();
}
std::size_t Pipeline::getPeakMemoryUsage() const {
  return std::max(impl_->dag->getPeakMemoryUsage(), impl_->pool.getPeakUsage());
}
std::size_t Pipeline::getCurrentMemoryUsage() const {
  return impl_->dag->getCurrentMemoryUsage() + impl_->frame_bytes;
}
MemoryPool& Pipeline::getMemoryPool() {
  impl_->resolveBackend("Pipeline::getMemoryPool");
  return impl_->pool;
}

}  // namespace fz
