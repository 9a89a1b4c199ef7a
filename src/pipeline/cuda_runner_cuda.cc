#include <algorithm>

#include "backends/cuda/alignment.h"
#include "backends/cuda/nvtx_range.h"
#include "backends/cuda/run_context.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "format/frame_layout.h"
#include "pipeline/async_decoder.h"
#include "pipeline/cuda_runner.h"
#include "pipeline/dag_cuda.h"
#include "shared/bits.h"

namespace fz {

namespace {

constexpr int kMaxAttempts = 64;

}  // namespace

CudaRunner::CudaRunner(Pipeline::Impl& pipeline)
    : p_(pipeline),
      header_template_(pipeline.pool),
      header_fields_(pipeline.pool),
      aligned_input_(pipeline.pool),
      uploaded_frame_(pipeline.pool),
      opener_(pipeline.pool, pipeline.device, launcher_) {
  FZ_CUDA_CHECK(cudaEventCreateWithFlags(&last_work_, cudaEventDisableTiming));
}

CudaRunner::~CudaRunner() {
  dropGraph();
  dropCaptureStream();
  FZ_CUDA_CHECK_WARN(cudaEventDestroy(last_work_));
}

void CudaRunner::enter(cudaStream_t stream) {
  if (stream != last_stream_) {
    FZ_CUDA_CHECK(cudaStreamWaitEvent(stream, last_work_, 0));
    last_stream_ = stream;
  }
}

void CudaRunner::leave(cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaEventRecord(last_work_, stream));
}

void CudaRunner::leaveUnlessCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FZ_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  if (status == cudaStreamCaptureStatusNone) {
    leave(stream);
  }
}

void CudaRunner::copyAndWait(
    void* to, const void* from, std::size_t n_bytes, cudaStream_t stream, bool ends_call) {
  if (n_bytes > 0) {
    FZ_CUDA_CHECK(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream));
  }
  if (ends_call) {
    call_timer_.end(stream);
  }
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
}

void CudaRunner::clear(void* memory, std::size_t n_bytes, cudaStream_t stream) {
  const cuda::DeviceGuard guard(p_.device);
  enter(stream);
  FZ_CUDA_CHECK(cudaMemsetAsync(memory, 0, n_bytes, stream));
}

void CudaRunner::requireDevicePointer(const void* data, const char* what) const {
  cudaPointerAttributes attributes = {};
  FZ_CUDA_CHECK(cudaPointerGetAttributes(&attributes, data));
  FZ_REQUIRE(attributes.type != cudaMemoryTypeUnregistered, ErrorCode::kInvalidArgument,
             "Pipeline: the {} at {} is ordinary host memory, but this pipeline runs on CUDA; pass "
             "device memory, or use setBackend(Backend::CPU) or fz::compress()",
             what, data);
  FZ_REQUIRE(attributes.type != cudaMemoryTypeDevice || attributes.device == p_.device,
             ErrorCode::kInvalidArgument,
             "Pipeline: the {} at {} is on device {}, but this pipeline runs on device {}", what,
             data, attributes.device, p_.device);
}

ByteView CudaRunner::toDevice(ByteView bytes, cudaStream_t stream) {
  cudaPointerAttributes attributes = {};
  FZ_CUDA_CHECK(cudaPointerGetAttributes(&attributes, bytes.data()));
  if (attributes.type != cudaMemoryTypeUnregistered && cuda::isAligned(bytes.data())) {
    uploaded_bytes_ = 0;
    return bytes;
  }
  FZ_REQUIRE(p_.limits.max_memory_bytes == 0 || bytes.size() <= p_.limits.max_memory_bytes,
             ErrorCode::kLimit, "frame: {} bytes to copy to the device, the memory limit is {}",
             bytes.size(), p_.limits.max_memory_bytes);
  uploaded_bytes_ = bytes.size();
  uploaded_frame_.reserve(bytes.size(), 0, "frame on the device");
  FZ_CUDA_CHECK(cudaMemcpyAsync(uploaded_frame_.data(), bytes.data(), bytes.size(),
                                cudaMemcpyDefault, stream));
  return {uploaded_frame_.data(), bytes.size()};
}

/// Kernels rely on 16-byte alignment; other input goes through a buffer. Padding, which only stages
/// from outside ask for, repeats the last value.
const void* CudaRunner::alignedInput(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  const std::size_t padded_bytes = bits::roundUp(n_bytes, p_.alignment);
  if (padded_bytes == n_bytes && cuda::isAligned(input)) {
    return input;
  }
  aligned_input_.reserve(padded_bytes, 0, "aligned input");
  std::uint8_t* to = aligned_input_.data();
  FZ_CUDA_CHECK(cudaMemcpyAsync(to, input, n_bytes, cudaMemcpyDefault, stream));
  const auto type = static_cast<DataType>(p_.dag->getOrder().front()->stage->getInputDataType(0));
  const std::size_t value_bytes = isKnown(type) ? getDataTypeSize(type) : 1;
  for (std::size_t at = n_bytes; at < padded_bytes; at += value_bytes) {
    const std::size_t n = std::min(value_bytes, padded_bytes - at);
    if (at >= value_bytes) {
      FZ_CUDA_CHECK(
          cudaMemcpyAsync(to + at, to + at - value_bytes, n, cudaMemcpyDeviceToDevice, stream));
    } else {
      FZ_CUDA_CHECK(cudaMemsetAsync(to + at, 0, n, stream));
    }
  }
  return to;
}

/// Header, and every segment at its largest.
CudaRunner::FrameRoom CudaRunner::frameRoom(std::size_t padded_bytes) {
  p_.dag->updateBufferSize(p_.source_buffer, padded_bytes);
  const std::vector<std::size_t> sizes = p_.dag->propagateSizes(false);
  FrameRoom room{p_.header_bytes, sizes[static_cast<std::size_t>(p_.sinks.front())]};
  for (const int id : p_.sinks) {
    room.n_bytes += sizes[static_cast<std::size_t>(id)];
  }
  return room;
}

void CudaRunner::bind(const Attempt& attempt) {
  CompressionDAG& dag = *p_.dag;
  dag.updateBufferSize(p_.source_buffer, attempt.padded_bytes);
  dag.setExternalPointer(p_.source_buffer, const_cast<void*>(attempt.input));
  dag.setExternalOutput(p_.sinks.front(), attempt.frame + p_.header_bytes,
                        attempt.first_segment_bytes);
}

/// The header as far as the host knows it, and the list of what the device must fill in.
void CudaRunner::updateTemplate(const Attempt& attempt, cudaStream_t stream) {
  FrameHeader header;
  p_.describeFrame(attempt.n_bytes, attempt.padded_bytes, header);
  std::vector<std::uint8_t> bytes(p_.header_bytes);
  std::vector<cuda::HeaderField> fields;
  cuda::DeviceRunState& block = p_.dag->runState();
  const cuda::FrameState* state = block.frameOnDevice();
  const auto add = [&](std::size_t offset, std::size_t n_bytes, const std::uint64_t* source) {
    fields.push_back(
        {source, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(n_bytes)});
  };
  add(kCompressedSizeOffset, 8, &state->payload_bytes);
  const auto& order = p_.dag->getOrder();
  const auto bufferRecord = [&](std::size_t i) {
    return kCoreBytes + kRecordBytes * (order.size() + i);
  };
  for (std::size_t i = 0; i < p_.sinks.size(); ++i) {
    for (const std::size_t offset : kBufferSizeOffsets) {
      add(bufferRecord(i) + offset, 8, &state->segment_bytes[i]);
    }
    add(bufferRecord(i) + kBufferPlaceOffset, 8, &state->segment_offset[i]);
  }
  bool has_bound = false;
  for (std::size_t s = 0; s < order.size(); ++s) {
    const auto* stage = dynamic_cast<const SimpleStage*>(order[s]->stage);
    const bool first_bound = !has_bound && order[s]->stage->boundInfo().has_value();
    has_bound = has_bound || first_bound;
    if (stage == nullptr || !StageAccess::hasKernels(*stage)) {
      continue;
    }
    const StageRecord* record = block.onDevice(static_cast<std::size_t>(order[s]->id));
    for (const DeviceField& field : StageAccess::deviceFields(*stage)) {
      const std::uint64_t* source = &record->value[field.slot];
      if (field.config_offset == DeviceField::kAbsoluteBound) {
        if (first_bound) {
          add(kCoreBytes + kDescriptionBoundOffset, 8, source);
        }
        continue;
      }
      const bool is_version = field.config_offset == DeviceField::kStageVersion;
      add(kCoreBytes + kRecordBytes * s +
              (is_version ? kRecordVersionOffset : kStageConfigOffset + field.config_offset),
          field.n_bytes, source);
      for (std::size_t i = 0; i < p_.sinks.size(); ++i) {
        if (p_.dag->getBufferInfo(p_.sinks[i]).producer_stage_id == order[s]->id) {
          add(bufferRecord(i) +
                  (is_version ? kRecordVersionOffset : kBufferConfigOffset + field.config_offset),
              field.n_bytes, source);
        }
      }
    }
  }
  header.core.data_checksum = 0;
  writeHeader(header, bytes);
  // What the device fills in must not make two templates differ.
  for (const cuda::HeaderField& field : fields) {
    std::fill_n(bytes.begin() + field.offset, field.n_bytes, std::uint8_t{0});
  }
  std::fill_n(bytes.begin() + cuda::HeaderOffsets::kPayloadCrc, 8, std::uint8_t{0});
  header_template_.update(bytes, stream);
  header_fields_.update({reinterpret_cast<const std::uint8_t*>(fields.data()),
                         fields.size() * sizeof(cuda::HeaderField)},
                        stream);
  n_fields_ = static_cast<std::uint32_t>(fields.size());
}

void CudaRunner::enqueueFrame(const Attempt& attempt, cuda::RunContext& run) {
  cuda::DeviceRunState& block = p_.dag->runState();
  cuda::FrameJob job = {};
  job.segments.n_segments = static_cast<std::uint32_t>(p_.sinks.size());
  for (std::size_t i = 0; i < p_.sinks.size(); ++i) {
    const BufferInfo& sink = p_.dag->getBufferInfo(p_.sinks[i]);
    const StageRecord* record = block.onDevice(static_cast<std::size_t>(sink.producer_stage_id));
    job.segments.segment[i] = {static_cast<const std::uint8_t*>(sink.d_ptr),
                               &record->n_bytes[sink.producer_output_index], sink.size};
  }
  job.frame = attempt.frame;
  job.header_template = header_template_.data();
  job.header_bytes = static_cast<std::uint32_t>(p_.header_bytes);
  job.fields = reinterpret_cast<const cuda::HeaderField*>(header_fields_.data());
  job.n_fields = n_fields_;
  job.state = block.frameOnDevice();
  job.readback = block.hostReadback();
  job.n_clears = static_cast<std::uint32_t>(run.clears().size());
  std::copy(run.clears().begin(), run.clears().end(), job.clears);
  if (!p_.dag->isCaptureMode()) {
    block.recordReadback();
  }
  cuda::enqueueFrame(job, run.launcher());
  run.recordClears();
}

/// Everything of one attempt, ending with the readback. Enqueues only, unless a stage has no
/// kernels.
void CudaRunner::enqueueAttempt(const Attempt& attempt, const cuda::Launcher& launcher) {
  bind(attempt);
  cuda::RunContext run(launcher);
  p_.dag->enqueueCuda(run);
  if (!p_.dag->isCaptureMode()) {
    updateTemplate(attempt, run.stream());
  }
  enqueueFrame(attempt, run);
}

void CudaRunner::launch(const Attempt& attempt, const cuda::Launcher& launcher) {
  if (!p_.graph_captured) {
    enqueueAttempt(attempt, launcher);
    return;
  }
  const cudaStream_t stream = launcher.stream;
  const bool same = graph_ != nullptr && captured_.input == attempt.input &&
                    captured_.n_bytes == attempt.n_bytes && captured_.frame == attempt.frame;
  if (!same) {
    capture(attempt, stream);
  }
  cuda::DeviceRunState& block = p_.dag->runState();
  block.enqueueInitIfNeeded(stream);
  block.recordReadback();
  FZ_CUDA_CHECK(cudaGraphLaunch(graph_, stream));
}

void CudaRunner::waitForRun(cudaStream_t stream) {
  // Events must have passed before they are read, and a run that nobody has waited for may end
  // after this one was begun.
  if (p_.profiling || pending_ != Pending::kNone) {
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  } else {
    p_.dag->runState().waitForReadback(stream);
  }
}

void CudaRunner::runToEnd(const void* data, std::size_t n_bytes, cudaStream_t stream) {
  const std::size_t padded_bytes = bits::roundUp(n_bytes, p_.alignment);
  for (int tries = 0;; ++tries) {
    FZ_REQUIRE(tries < kMaxAttempts, ErrorCode::kInternal, "Pipeline: not done after {} attempts",
               tries);
    const FrameRoom room = frameRoom(padded_bytes);
    p_.frame.reserve(room.n_bytes, 0, "frame");
    launch({data, n_bytes, padded_bytes, p_.frame.data(), room.first_segment_bytes},
           {stream, &launcher_});
    call_timer_.end(stream);
    leave(stream);
    waitForRun(stream);
    if (p_.dag->finishCuda(stream)) {
      return;
    }
    dropGraph();  // the buffers move; the next launch captures again
  }
}

void CudaRunner::compress(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  const cuda::NvtxRange range("fz::compress");
  const cuda::DeviceGuard guard(p_.device);
  cuda::dropStaleError("Pipeline::compress");
  if (n_bytes > 0) {
    requireDevicePointer(input, "input");
  }
  enter(stream);
  call_timer_.begin(p_.profiling, stream);
  try {
    runToEnd(alignedInput(input, n_bytes, stream), n_bytes, stream);
  } catch (...) {
    abandon(stream);
    throw;
  }
  p_.frame_bytes = p_.dag->runState().frameResult().total_bytes;
}

void CudaRunner::abandon(cudaStream_t stream) noexcept {
  abandonRun(*p_.dag, stream);
  // It may point to memory that was given up meanwhile, or expect it as the run should have left
  // it.
  dropGraph();
  pending_ = Pending::kNone;
}

}  // namespace fz
