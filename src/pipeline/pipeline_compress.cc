#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "backends/cpu/watched_executor.h"
#include "core/require.h"
#include "fz/progress.h"
#include "fz/stage_dims.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_access.h"
#include "pipeline/pipeline_impl.h"
#include "shared/bits.h"

namespace fz {

void* Pipeline::Impl::growFirstSegment(std::size_t n_bytes) {
  const std::size_t total = writer->headerBytes() + n_bytes + writer->otherSegmentBytes();
  engine->buffers.requireElsewhere(total, "frame");
  frame.reserve(total, 0, "frame");
  engine->buffers.setLimit(memory_limit_bytes, frame.capacity());
  return frame.data() + writer->headerBytes();
}

/// Only stages from outside the library ask for alignment. The padding repeats the last value, so
/// that it changes neither the range nor the special values of the data.
const void* Pipeline::Impl::padInput(const void* input,
                                     std::size_t n_bytes,
                                     std::size_t padded_bytes) {
  padded_input.reserve(padded_bytes, 0, "padded input");
  std::memcpy(padded_input.data(), input, n_bytes);
  const std::size_t value_bytes = writer->sourceValueBytes();
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
  const DataType type = writer->sourceType(n_bytes, frame_settings);
  const std::array<std::size_t, 3>& dims = frame_settings.dims;
  if (dims == std::array<std::size_t, 3>{0, 1, 1} || !isKnown(type)) {
    return;
  }
  StageDims shape;
  shape.setOwn(dims);
  shape.resolve(n_bytes / getDataTypeSize(type), who);
}

/// The hint is an upper limit; dims that were set say how long the data really are.
std::size_t Pipeline::Impl::warmupBytes() const {
  const DataType type = writer->sourceType(0, {});
  if (!isKnown(type)) {
    return hint_bytes;
  }
  const std::array<std::size_t, 3>& dims = frame_settings.dims;
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
             "Pipeline::compress: input of {} bytes, but the pipeline was made for at most {}",
             n_bytes, hint_bytes);
  requireDims(n_bytes, "Pipeline::compress");
  call_start = std::chrono::steady_clock::now();
  frame_bytes = 0;
  last_is_fallback = false;
  engine->reset(stream);
  try {
    if (on_device != nullptr) {
      requireNotCancelled(progress);
      frame_bytes = on_device->compress(input, n_bytes, stream);
      if (progress != nullptr) {
        progress->beginCall(entries.size());
        progress->endStages(entries.size());
      }
    } else {
      runOnHost(input, n_bytes, stream);
    }
    keepSmaller(input, n_bytes, stream);
  } catch (...) {
    engine->reset(stream);
    frame_bytes = 0;
    throw;
  }
  recordCompressed(n_bytes);
}

void PipelineAccess::setWatch(Pipeline& pipeline, FieldWatch* watch) {
  pipeline.impl_->watch = watch;
}

void Pipeline::Impl::runOnHost(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  requireHostPointer(input, "input");
  const std::size_t padded_bytes = bits::roundUp(n_bytes, alignment);
  const void* data = padded_bytes == n_bytes && isAlignedForValues(input)
                         ? input
                         : padInput(input, n_bytes, padded_bytes);
  Buffers& buffers = engine->buffers;
  buffers.at(writer->sourceBuffer()).size = padded_bytes;
  buffers.lendInput(writer->sourceBuffer(), const_cast<void*>(data));
  // The segment's place depends on the frame's memory, which the last call may have moved.
  writer->placeHeader(n_bytes, padded_bytes, frame_settings, last_header);
  const std::size_t header_bytes = writer->headerBytes();
  const bool has_room = frame.capacity() > header_bytes;
  buffers.lendOutput(writer->sinks().front(), has_room ? frame.data() + header_bytes : nullptr,
                     has_room ? frame.capacity() - header_bytes : 0);
  buffers.setLimit(memory_limit_bytes, frame.capacity());
  // A test may have put other threads there.
  const ExecContext& threads = engine->context != nullptr ? *engine->context : context;
  const Request request{
      .context = &threads, .progress = progress, .watch = watch, .profiling = profiling};
  runOnCpu(*engine, request, stream);
  writer->describe(n_bytes, padded_bytes, frame_settings, last_header);
  frame_bytes = writer->assemble(last_header, frame,
                                 context.cpu != nullptr ? *context.cpu : CpuExecutor::serial());
}

void Pipeline::Impl::recordCompressed(std::size_t n_bytes) {
  last_uncompressed_bytes = n_bytes;
  compressed_since_reset = true;
  if (profiling) {
    perf.is_compress = true;
    perf.input_bytes = n_bytes;
    perf.output_bytes = frame_bytes;
    fillPerf(perf, engine->collectTimings());
    recordTimes();
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

std::vector<std::size_t> Pipeline::Impl::sizesFor(std::size_t n_bytes, bool proven) const {
  Buffer& source = engine->buffers.at(writer->sourceBuffer());
  const std::size_t before = std::exchange(source.size, bits::roundUp(n_bytes, alignment));
  std::vector<std::size_t> sizes = estimateSizes(engine->graph, engine->buffers, proven);
  source.size = before;
  return sizes;
}

std::size_t Pipeline::estimateMemory(std::size_t n_bytes) const try {
  impl_->requireFinalized("estimateMemory");
  const Engine& engine = *impl_->engine;
  const std::vector<std::size_t> sizes = impl_->sizesFor(n_bytes, false);
  const std::size_t padded_bytes = bits::roundUp(n_bytes, impl_->alignment);
  Buffer& source = impl_->engine->buffers.at(impl_->writer->sourceBuffer());
  const std::size_t before = std::exchange(source.size, padded_bytes);
  // With the first segment, which the stages write into the frame; the others are copied there.
  std::size_t total =
      peakBytes(engine.graph, engine.plan, engine.buffers) + impl_->writer->maxHeaderBytes();
  source.size = before;
  const std::vector<int>& sinks = impl_->writer->sinks();
  for (std::size_t i = 1; i < sinks.size(); ++i) {
    total += sizes[static_cast<std::size_t>(sinks[i])];
  }
  return total - std::min(total, padded_bytes == n_bytes ? n_bytes : 0);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t Pipeline::getMaxCompressedSize(std::size_t n_bytes) const try {
  impl_->requireFinalized("getMaxCompressedSize");
  const std::vector<std::size_t> sizes = impl_->sizesFor(n_bytes, true);
  std::size_t total = impl_->writer->maxHeaderBytes();
  for (const int id : impl_->writer->sinks()) {
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
  impl_->engine->reset(stream);
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
  if (impl_->on_device != nullptr) {
    impl_->on_device->clear(zeros.data(), n_bytes, stream);
  } else {
    std::memset(zeros.data(), 0, n_bytes);
  }
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
