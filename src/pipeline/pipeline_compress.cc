#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "core/require.h"
#include "fz/progress.h"
#include "fz/stage_dims.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"
#include "shared/bits.h"

#if FZ_HAVE_CUDA
#include "pipeline/cuda_runner.h"
#endif

namespace fz {

void PoolBuffer::reserve(std::size_t n_bytes, std::size_t n_kept, const char* tag) {
  if (n_bytes <= capacity_bytes_) {
    return;
  }
  void* larger = pool_->allocatePersistentDevice(n_bytes, tag);
  FZ_REQUIRE(larger != nullptr, ErrorCode::kOutOfMemory, "Pipeline: {} bytes for the {}", n_bytes,
             tag);
  if (n_kept > 0) {
    std::memcpy(larger, memory_, n_kept);
  }
  release();
  memory_ = larger;
  capacity_bytes_ = n_bytes;
}

void PoolBuffer::release() {
  if (memory_ != nullptr) {
    pool_->freePersistentDevice(memory_);
  }
  memory_ = nullptr;
  capacity_bytes_ = 0;
}

void* Pipeline::Impl::growFirstSegment(std::size_t n_bytes) {
  std::size_t others = 0;
  for (std::size_t i = 1; i < sinks.size(); ++i) {
    const BufferInfo& sink = dag->getBufferInfo(sinks[i]);
    others += std::max(sink.size, sink.initial_size);
  }
  requireFrameFits(header_bytes + n_bytes + others);
  frame.reserve(header_bytes + n_bytes + others, 0, "frame");
  dag->setMemoryLimit(memory_limit_bytes, frame.capacity());
  return frame.data() + header_bytes;
}

void Pipeline::Impl::requireFrameFits(std::size_t n_bytes) const {
  const std::size_t n_used = dag->getCurrentMemoryUsage();
  FZ_REQUIRE(memory_limit_bytes == 0 || n_bytes <= frame.capacity() ||
                 (n_used <= memory_limit_bytes && n_bytes <= memory_limit_bytes - n_used),
             ErrorCode::kLimit,
             "frame: {} bytes more than the {} in use exceed the limit of {} bytes", n_bytes,
             n_used, memory_limit_bytes);
}

/// Only stages from outside the library ask for alignment. The padding repeats the last value, so
/// that it changes neither the range nor the special values of the data.
const void* Pipeline::Impl::padInput(const void* input,
                                     std::size_t n_bytes,
                                     std::size_t padded_bytes) {
  padded_input.reserve(padded_bytes, 0, "padded input");
  std::memcpy(padded_input.data(), input, n_bytes);
  const auto type = static_cast<DataType>(dag->getOrder().front()->stage->getInputDataType(0));
  const std::size_t value_bytes = isKnown(type) ? getDataTypeSize(type) : 1;
  for (std::size_t i = n_bytes; i < padded_bytes; ++i) {
    padded_input.data()[i] = i >= value_bytes ? padded_input.data()[i - value_bytes] : 0;
  }
  return padded_input.data();
}

void Pipeline::Impl::fillPerf(PipelinePerfResult& result,
                              const std::vector<StageTimingResult>& stages) const {
  result.stages = stages;
  result.levels.clear();
  result.dag_elapsed_ms = 0;
  for (const StageTimingResult& row : stages) {
    result.dag_elapsed_ms += row.elapsed_ms;
    const auto level = static_cast<std::size_t>(row.level);
    if (result.levels.size() <= level) {
      result.levels.resize(level + 1);
    }
    result.levels[level].level = row.level;
    ++result.levels[level].parallelism;
    result.levels[level].elapsed_ms = std::max(result.levels[level].elapsed_ms, row.elapsed_ms);
  }
}

/// Stages that look at neighbours check their dims themselves; the others would let wrong ones
/// pass.
void Pipeline::Impl::requireDims(std::size_t n_bytes, const char* who) const {
  const DataType type = sourceType(n_bytes);
  if (dims == std::array<std::size_t, 3>{0, 1, 1} || !isKnown(type)) {
    return;
  }
  StageDims shape;
  shape.setOwn(dims);
  shape.resolve(n_bytes / getDataTypeSize(type), who);
}

/// The hint is an upper limit; dims that were set say how long the data really are.
std::size_t Pipeline::Impl::warmupBytes() const {
  const auto type = static_cast<DataType>(dag->getOrder().front()->stage->getInputDataType(0));
  if (!isKnown(type)) {
    return hint_bytes;
  }
  const std::size_t n_most = hint_bytes / getDataTypeSize(type);
  if (dims == std::array<std::size_t, 3>{0, 1, 1}) {
    return n_most * getDataTypeSize(type);
  }
  const std::size_t n_rows = dims[1] > n_most / dims[2] ? n_most + 1 : dims[1] * dims[2];
  const std::size_t n_columns = std::min(dims[0] == 0 ? n_most : dims[0], n_most / n_rows);
  return n_columns * n_rows * getDataTypeSize(type);
}

void Pipeline::Impl::runCompress(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  requireFinalized("compress");
  FZ_REQUIRE(input != nullptr || n_bytes == 0, ErrorCode::kInvalidArgument,
             "Pipeline::compress: the input is null");
  FZ_REQUIRE(hint_bytes == 0 || n_bytes <= hint_bytes, ErrorCode::kBadSize,
             "Pipeline::compress: input of {} bytes, the pipeline was made for at most {}", n_bytes,
             hint_bytes);
  requireDims(n_bytes, "Pipeline::compress");
  call_start = std::chrono::steady_clock::now();
  frame_bytes = 0;
  last_is_fallback = false;
  dag->reset(stream);
  try {
#if FZ_HAVE_CUDA
    if (cuda != nullptr) {
      cuda->compress(input, n_bytes, stream);
      if (progress != nullptr) {
        progress->beginCall(entries.size());
        progress->endStages(entries.size());
      }
      keepSmaller(input, n_bytes, stream);
      noteCompressed(n_bytes);
      return;
    }
#endif
    requireHostPointer(input, "input");
    const std::size_t padded_bytes = bits::roundUp(n_bytes, alignment);
    const void* data = padded_bytes == n_bytes && isAlignedForValues(input)
                           ? input
                           : padInput(input, n_bytes, padded_bytes);
    dag->updateBufferSize(source_buffer, padded_bytes);
    dag->setExternalPointer(source_buffer, const_cast<void*>(data));
    // The segment's place depends on the frame's memory, which the last call may have moved.
    dag->setExternalOutput(sinks.front(),
                           frame.capacity() > header_bytes ? frame.data() + header_bytes : nullptr,
                           frame.capacity() > header_bytes ? frame.capacity() - header_bytes : 0);
    dag->setMemoryLimit(memory_limit_bytes, frame.capacity());
    dag->setProgress(progress);
    dag->execute(stream);
    assembleFrame(n_bytes, padded_bytes);
    keepSmaller(input, n_bytes, stream);
  } catch (...) {
    dag->reset(stream);
    frame_bytes = 0;
    throw;
  }
  noteCompressed(n_bytes);
}

void Pipeline::Impl::noteCompressed(std::size_t n_bytes) {
  last_uncompressed_bytes = n_bytes;
  compressed_since_reset = true;
  if (profiling) {
    perf.is_compress = true;
    perf.input_bytes = n_bytes;
    perf.output_bytes = frame_bytes;
    fillPerf(perf, dag->collectTimings());
    noteTimes();
  }
}

void Pipeline::compress(const void* d_in,
                        std::size_t n_bytes,
                        void** d_out,
                        std::size_t* out_bytes,
                        cudaStream_t stream) try {
  FZ_REQUIRE(d_out != nullptr && out_bytes != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::compress: the result pointers are null");
  impl_->runCompress(d_in, n_bytes, stream);
  *d_out = impl_->frame.data();
  *out_bytes = impl_->frame_bytes;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

CompressedView Pipeline::compress(const void* d_in, std::size_t n_bytes, cudaStream_t stream) try {
  impl_->runCompress(d_in, n_bytes, stream);
  return {impl_->frame.data(), impl_->frame_bytes};
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::compress(const void* d_in,
                        std::size_t n_bytes,
                        void* d_buffer,
                        std::size_t capacity_bytes,
                        std::size_t* actual_bytes,
                        cudaStream_t stream) try {
  FZ_REQUIRE(d_buffer != nullptr && actual_bytes != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::compress: the caller's buffer or size pointer is null");
  impl_->runCompress(d_in, n_bytes, stream);
  FZ_REQUIRE(impl_->frame_bytes <= capacity_bytes, ErrorCode::kBufferTooSmall,
             "Pipeline::compress: the frame has {} bytes, the caller's buffer {}",
             impl_->frame_bytes, capacity_bytes);
  impl_->copyResult(d_buffer, impl_->frame.data(), impl_->frame_bytes, stream);
  *actual_bytes = impl_->frame_bytes;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t Pipeline::estimateMemory(std::size_t n_bytes) const try {
  impl_->requireFinalized("estimateMemory");
  CompressionDAG& dag = *impl_->dag;
  const std::size_t before = dag.getBufferSize(impl_->source_buffer);
  const std::size_t padded_bytes = bits::roundUp(n_bytes, impl_->alignment);
  dag.updateBufferSize(impl_->source_buffer, padded_bytes);
  // With the first segment, which the graph writes into the frame; the others are copied there.
  std::size_t total = dag.computeTopoPoolSize() + impl_->header_bytes;
  const std::vector<std::size_t> sizes = dag.propagateSizes(false);
  for (std::size_t i = 1; i < impl_->sinks.size(); ++i) {
    total += sizes[static_cast<std::size_t>(impl_->sinks[i])];
  }
  dag.updateBufferSize(impl_->source_buffer, before);
  return total - std::min(total, padded_bytes == n_bytes ? n_bytes : 0);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t Pipeline::getMaxCompressedSize(std::size_t n_bytes) const try {
  impl_->requireFinalized("getMaxCompressedSize");
  CompressionDAG& dag = *impl_->dag;
  const std::size_t before = dag.getBufferSize(impl_->source_buffer);
  dag.updateBufferSize(impl_->source_buffer, bits::roundUp(n_bytes, impl_->alignment));
  const std::vector<std::size_t> sizes = dag.propagateSizes(true);
  dag.updateBufferSize(impl_->source_buffer, before);
  std::size_t total = impl_->header_bytes;
  for (const int id : impl_->sinks) {
    total += sizes[static_cast<std::size_t>(id)];
  }
  return impl_->usesFallback() ? std::min(total, n_bytes + kStoredFrameBytes) : total;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t Pipeline::getLastUncompressedSize() const {
  return impl_->last_uncompressed_bytes;
}

void Pipeline::reset(cudaStream_t stream) {
  if (!impl_->finalized) {
    return;
  }
  impl_->dag->reset(stream);
  impl_->frame_bytes = 0;
  impl_->compressed_since_reset = false;
}

void Pipeline::warmup(cudaStream_t stream) try {
  impl_->requireFinalized("warmup");
  if (impl_->hint_bytes == 0) {
    return;
  }
  const std::size_t last = impl_->last_uncompressed_bytes;
  const bool profiling = std::exchange(impl_->profiling, false);
  const bool managed = std::exchange(impl_->pool_managed_output, true);
  const auto restore = [&] {
    impl_->profiling = profiling;
    impl_->pool_managed_output = managed;
    impl_->last_uncompressed_bytes = last;
  };
  PoolBuffer& zeros = impl_->padded_input;
  const std::size_t n_bytes = impl_->warmupBytes();
  zeros.reserve(n_bytes, 0, "zeros");
#if FZ_HAVE_CUDA
  if (impl_->cuda != nullptr) {
    impl_->cuda->clear(zeros.data(), n_bytes, stream);
  } else {
    std::memset(zeros.data(), 0, n_bytes);
  }
#else
  std::memset(zeros.data(), 0, n_bytes);
#endif
  try {
    impl_->runCompress(zeros.data(), n_bytes, stream);
    void* out = nullptr;
    std::size_t n_out = 0;
    decompress(nullptr, 0, &out, &n_out, stream);
  } catch (...) {
    restore();
    throw;
  }
  restore();
  reset(stream);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
