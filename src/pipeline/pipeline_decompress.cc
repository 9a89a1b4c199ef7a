#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/device_guard.h"
#include "core/require.h"
#include "format/file_io.h"
#include "mem/host_memory.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_access.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

/// Memory that the caller frees; never null, so that an empty result can be freed as well.
struct CallerMemory {
  void* memory = nullptr;
  void (*release)(void*) = &std::free;

  CallerMemory() = default;
  CallerMemory(const CallerMemory&) = delete;
  CallerMemory& operator=(const CallerMemory&) = delete;
  ~CallerMemory() {
    if (memory != nullptr) {
      release(memory);
    }
  }
  void allocate(std::size_t n_bytes, bool on_device, int device) {
    if (on_device) {
      release = &cuda::freeForCaller;
      memory = cuda::allocateForCaller(n_bytes, device);
      return;
    }
    memory = allocateOnHost(n_bytes);
    FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory,
               "Pipeline::decompress: cannot allocate {} bytes for the result", n_bytes);
  }
  void* give() { return std::exchange(memory, nullptr); }
};

/// However a call ends, nobody reads its frame afterwards.
class OpenFrame {
 public:
  explicit OpenFrame(DeviceRunner* runner) : runner_(runner) {}
  OpenFrame(const OpenFrame&) = delete;
  OpenFrame& operator=(const OpenFrame&) = delete;
  ~OpenFrame() {
    if (runner_ != nullptr) {
      runner_->closeFrame();
    }
  }

 private:
  DeviceRunner* runner_;
};

}  // namespace

std::vector<Stage*> Pipeline::Impl::stagesInOrder() const {
  std::vector<Stage*> stages;
  for (const DAGNode* node : engine->graph.order()) {
    stages.push_back(node->stage);
  }
  return stages;
}

ByteView Pipeline::Impl::frameOrLast(const void* data, std::size_t n_bytes) const {
  if (data != nullptr) {
    return {static_cast<const std::uint8_t*>(data), n_bytes};
  }
  FZ_REQUIRE(frame_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline::decompress: no frame was given and none was compressed before");
  return {frame.data(), frame_bytes};
}

/// The header goes to read_header, from `known` where somebody has read it on the host.
void Pipeline::Impl::openFrame(ByteView& bytes, cudaStream_t stream, const FrameHeader* known) {
  resolveBackend("Pipeline::decompress");
  call_start = std::chrono::steady_clock::now();
  if (on_device != nullptr) {
    on_device->openFrame(bytes, read_header, stream);
    return;
  }
  if (known != nullptr) {
    read_header = *known;
    return;
  }
  requireHostPointer(bytes.data(), "frame");
  fz::readHeader(bytes, bytes.size(), read_header);
}

std::size_t Pipeline::Impl::runDecompress(ByteView bytes,
                                          OutputProvider provide,
                                          cudaStream_t stream) {
  const FrameHeader& header = read_header;
  const cuda::DeviceGuard guard(device);
  if (executor == nullptr) {
    executor = makeCpuExecutor(n_threads, defaultThreadBackend());
    context.cpu = executor.get();
  }
  const MemoryStrategy strategy = engine->buffers.strategy();
  if (decoder == nullptr || !decoder->isFor(strategy)) {
    decoder = std::make_unique<FrameDecoder>(&pool, strategy);
    decoder->setCustomStages(stagesInOrder());
  }
  decoder->enableProfiling(profiling);
  decoder->setProgress(progress);
  if (on_device != nullptr) {
    on_device->prepareDecoder(*decoder);
  }
  decoder->decode(header, bytes.subspan(header.core.header_size), limits, context, provide, stream);
  if (profiling) {
    perf.is_compress = false;
    perf.input_bytes = bytes.size();
    perf.output_bytes = header.description.original_bytes;
    fillPerf(perf, decoder->collectTimings());
    recordTimes();
  }
  return header.description.original_bytes;
}

void Pipeline::decompress(const void* d_in,
                          std::size_t n_bytes,
                          void** d_out,
                          std::size_t* out_bytes,
                          cudaStream_t stream) try {
  impl_->requireFinalized("decompress");
  impl_->decompressTo(impl_->frameOrLast(d_in, n_bytes), d_out, out_bytes, stream);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::decompressFrame(ByteView bytes, void** d_out, std::size_t* out_bytes) try {
  impl_->decompressTo(bytes, d_out, out_bytes, nullptr);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t Pipeline::decompressFrame(ByteView bytes,
                                      const std::function<void*(std::size_t)>& provide) {
  return PipelineAccess::decompressFrame(*this, {bytes}, provide);
}

std::size_t PipelineAccess::decompressFrame(Pipeline& pipeline,
                                            const ReadFrame& frame,
                                            const std::function<void*(std::size_t)>& provide) try {
  Pipeline::Impl* const impl = pipeline.impl_.get();
  ByteView bytes = frame.bytes;
  impl->openFrame(bytes, frame.stream, frame.header);
  const OpenFrame open_frame(impl->on_device.get());
  const FrameHeader& header = impl->read_header;
  // A padded frame decodes to more than its data, and a device to memory of its own.
  const bool direct = impl->on_device == nullptr &&
                      header.core.uncompressed_size == header.description.original_bytes;
  const std::size_t n_bytes = impl->runDecompress(
      bytes,
      [&](std::size_t n) -> void* {
        if (direct) {
          return provide(n);
        }
        impl->decoded.reserve(n, 0, "decoded output");
        return impl->decoded.data();
      },
      frame.stream);
  if (!direct && n_bytes > 0) {
    impl->copyAndWait(provide(n_bytes), impl->decoded.data(), n_bytes, frame.stream);
  }
  return n_bytes;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::Impl::decompressTo(ByteView bytes,
                                  void** d_out,
                                  std::size_t* out_bytes,
                                  cudaStream_t stream) {
  FZ_REQUIRE(d_out != nullptr && out_bytes != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::decompress: the result pointers are null");
  openFrame(bytes, stream);
  const OpenFrame open_frame(on_device.get());
  if (pool_managed_output) {
    *out_bytes = runDecompress(
        bytes,
        [this](std::size_t n) {
          decoded.reserve(n, 0, "decoded output");
          return decoded.data();
        },
        stream);
    *d_out = decoded.data();
    return;
  }
  CallerMemory result;
  *out_bytes = runDecompress(
      bytes,
      [&](std::size_t n) {
        if (result.memory != nullptr) {
          result.release(result.give());
        }
        result.allocate(n, on_device != nullptr, device);
        return result.memory;
      },
      stream);
  if (result.memory == nullptr) {
    result.allocate(0, on_device != nullptr, device);
  }
  *d_out = result.give();
}

void Pipeline::decompress(const void* d_in,
                          std::size_t n_bytes,
                          void* d_buffer,
                          std::size_t capacity_bytes,
                          std::size_t* actual_bytes,
                          cudaStream_t stream) try {
  impl_->requireFinalized("decompress");
  FZ_REQUIRE(d_buffer != nullptr && actual_bytes != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::decompress: the caller's buffer or size pointer is null");
  ByteView bytes = impl_->frameOrLast(d_in, n_bytes);
  impl_->openFrame(bytes, stream);
  const OpenFrame open_frame(impl_->on_device.get());
  const FrameHeader& header = impl_->read_header;
  const std::uint64_t wanted = header.description.original_bytes;
  FZ_REQUIRE(wanted <= capacity_bytes, ErrorCode::kBufferTooSmall,
             "Pipeline::decompress: the data have {} bytes, the caller's buffer {}", wanted,
             capacity_bytes);
  // A padded frame decodes to more than its data; only then, or where the buffer's alignment does
  // not suit the stages, a detour is needed.
  constexpr std::size_t kDeviceAlignment = 16;
  const bool aligned = impl_->on_device == nullptr
                           ? isAlignedForValues(d_buffer)
                           : reinterpret_cast<std::uintptr_t>(d_buffer) % kDeviceAlignment == 0;
  const bool direct = header.core.uncompressed_size <= capacity_bytes && aligned;
  *actual_bytes = impl_->runDecompress(
      bytes,
      [&](std::size_t n) -> void* {
        if (direct) {
          return d_buffer;
        }
        impl_->padded_input.reserve(n, 0, "padded output");
        return impl_->padded_input.data();
      },
      stream);
  if (!direct) {
    impl_->copyResult(d_buffer, impl_->padded_input.data(), *actual_bytes, stream);
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::writeToFile(const std::string& path, cudaStream_t stream) try {
  impl_->requireFinalized("writeToFile");
  FZ_REQUIRE(impl_->frame_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline::writeToFile: nothing was compressed");
  if (impl_->on_device == nullptr) {
    writeFileAtomically(path, {impl_->frame.data(), impl_->frame_bytes});
    return;
  }
  std::vector<std::uint8_t> bytes(impl_->frame_bytes);
  impl_->copyAndWait(bytes.data(), impl_->frame.data(), bytes.size(), stream);
  writeFileAtomically(path, bytes);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

Pipeline::FZMFileHeader Pipeline::readHeader(const std::string& path) try {
  std::uint64_t total_bytes = 0;
  const std::vector<std::uint8_t> front = readFileFront(path, kMaxHeaderBytes, &total_bytes);
  FrameHeader header = fz::readHeader(front, total_bytes);
  return {header.core, std::move(header.stages), std::move(header.buffers)};
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

Pipeline::FZMFileHeader Pipeline::buildHeader() const try {
  impl_->requireFinalized("buildHeader");
  FZ_REQUIRE(impl_->frame_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline::buildHeader: nothing was compressed");
  if (impl_->on_device != nullptr) {
    FrameHeader header;
    impl_->on_device->fetchHeader({impl_->frame.data(), impl_->frame_bytes}, header, nullptr);
    return {header.core, std::move(header.stages), std::move(header.buffers)};
  }
  return {impl_->last_header.core, impl_->last_header.stages, impl_->last_header.buffers};
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::decompressFromFileInstance(const std::string& path,
                                          void** d_out,
                                          std::size_t* out_bytes,
                                          cudaStream_t stream,
                                          PipelinePerfResult* perf) try {
  const std::vector<std::uint8_t> bytes = readFile(path);
  const bool profiling = std::exchange(impl_->profiling, impl_->profiling || perf != nullptr);
  try {
    impl_->decompressTo(bytes, d_out, out_bytes, stream);
  } catch (...) {
    impl_->profiling = profiling;
    throw;
  }
  impl_->profiling = profiling;
  if (perf != nullptr) {
    *perf = impl_->perf;
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::decompressFromFile(const std::string& path,
                                  void** d_out,
                                  std::size_t* out_bytes,
                                  cudaStream_t stream,
                                  PipelinePerfResult* perf,
                                  std::size_t pool_override_bytes) try {
  Pipeline pipeline(pool_override_bytes, MemoryStrategy::MINIMAL, 1.0f);
  pipeline.setPoolManagedDecompOutput(false);
  pipeline.decompressFromFileInstance(path, d_out, out_bytes, stream, perf);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
