#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/require.h"
#include "format/file_io.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

constexpr std::size_t kMaxHeaderBytes =
    kCoreBytes + kRecordBytes * (FZM_MAX_STAGES + FZM_MAX_BUFFERS);

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using OwnedBytes = std::unique_ptr<void, Free>;

/// Memory that the caller frees; never null, so that an empty result can be freed as well.
OwnedBytes allocateForCaller(std::size_t n_bytes) {
  OwnedBytes memory(std::malloc(std::max<std::size_t>(1, n_bytes)));
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory,
             "Pipeline::decompress: {} bytes for the result", n_bytes);
  return memory;
}

}  // namespace

std::vector<Stage*> Pipeline::Impl::stagesInOrder() const {
  std::vector<Stage*> stages;
  for (const DAGNode* node : dag->getOrder()) {
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

std::size_t Pipeline::Impl::runDecompress(ByteView bytes,
                                          OutputProvider provide,
                                          cudaStream_t stream) {
  const auto start = std::chrono::steady_clock::now();
  fz::readHeader(bytes, bytes.size(), read_header);
  const FrameHeader& header = read_header;
  if (executor == nullptr) {
    executor = makeCpuExecutor(n_threads, defaultThreadBackend());
    context.cpu = executor.get();
  }
  if (decoder == nullptr || !decoder->isFor(strategy)) {
    decoder = std::make_unique<FrameDecoder>(&pool, strategy);
    decoder->setCustomStages(stagesInOrder());
  }
  decoder->decode(header, bytes.subspan(header.core.header_size), limits, context, provide, stream);
  if (profiling) {
    perf.is_compress = false;
    perf.input_bytes = bytes.size();
    perf.output_bytes = header.description.original_bytes;
    fillPerf(perf, decoder->collectTimings());
    perf.host_elapsed_ms =
        std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  return header.description.original_bytes;
}

void Pipeline::decompress(const void* d_in,
                          std::size_t n_bytes,
                          void** d_out,
                          std::size_t* out_bytes,
                          cudaStream_t stream) {
  impl_->requireFinalized("decompress");
  impl_->decompressTo(impl_->frameOrLast(d_in, n_bytes), d_out, out_bytes, stream);
}

void Pipeline::decompressFrame(ByteView bytes, void** d_out, std::size_t* out_bytes) {
  impl_->decompressTo(bytes, d_out, out_bytes, nullptr);
}

void Pipeline::Impl::decompressTo(ByteView bytes,
                                  void** d_out,
                                  std::size_t* out_bytes,
                                  cudaStream_t stream) {
  FZ_REQUIRE(d_out != nullptr && out_bytes != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::decompress: the result pointers are null");
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
  OwnedBytes result;
  *out_bytes = runDecompress(
      bytes,
      [&](std::size_t n) {
        result = allocateForCaller(n);
        return result.get();
      },
      stream);
  *d_out = result != nullptr ? result.release() : allocateForCaller(0).release();
}

void Pipeline::decompress(const void* d_in,
                          std::size_t n_bytes,
                          void* d_buffer,
                          std::size_t capacity_bytes,
                          std::size_t* actual_bytes,
                          cudaStream_t stream) {
  impl_->requireFinalized("decompress");
  FZ_REQUIRE(d_buffer != nullptr && actual_bytes != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::decompress: the caller's buffer or size pointer is null");
  const ByteView bytes = impl_->frameOrLast(d_in, n_bytes);
  fz::readHeader(bytes, bytes.size(), impl_->read_header);
  const FrameHeader& header = impl_->read_header;
  const std::uint64_t wanted = header.description.original_bytes;
  FZ_REQUIRE(wanted <= capacity_bytes, ErrorCode::kBufferTooSmall,
             "Pipeline::decompress: the data have {} bytes, the caller's buffer {}", wanted,
             capacity_bytes);
  // A padded frame decodes to more than its data; only then a detour is needed.
  const bool direct = header.core.uncompressed_size <= capacity_bytes;
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
    std::memcpy(d_buffer, impl_->padded_input.data(), *actual_bytes);
  }
}

void Pipeline::writeToFile(const std::string& path, cudaStream_t /*stream*/) {
  impl_->requireFinalized("writeToFile");
  FZ_REQUIRE(impl_->frame_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline::writeToFile: nothing was compressed");
  writeFileAtomically(path, {impl_->frame.data(), impl_->frame_bytes});
}

Pipeline::FZMFileHeader Pipeline::readHeader(const std::string& path) {
  std::uint64_t total_bytes = 0;
  const std::vector<std::uint8_t> front = readFileFront(path, kMaxHeaderBytes, &total_bytes);
  FrameHeader header = fz::readHeader(front, total_bytes);
  return {header.core, std::move(header.stages), std::move(header.buffers)};
}

Pipeline::FZMFileHeader Pipeline::buildHeader() const {
  impl_->requireFinalized("buildHeader");
  FZ_REQUIRE(impl_->frame_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline::buildHeader: nothing was compressed");
  return {impl_->last_header.core, impl_->last_header.stages, impl_->last_header.buffers};
}

void Pipeline::decompressFromFileInstance(const std::string& path,
                                          void** d_out,
                                          std::size_t* out_bytes,
                                          cudaStream_t stream,
                                          PipelinePerfResult* perf) {
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
}

void Pipeline::decompressFromFile(const std::string& path,
                                  void** d_out,
                                  std::size_t* out_bytes,
                                  cudaStream_t stream,
                                  PipelinePerfResult* perf,
                                  std::size_t pool_override_bytes) {
  Pipeline pipeline(pool_override_bytes, MemoryStrategy::MINIMAL, 1.0f);
  pipeline.setPoolManagedDecompOutput(false);
  pipeline.decompressFromFileInstance(path, d_out, out_bytes, stream, perf);
}

}  // namespace fz
