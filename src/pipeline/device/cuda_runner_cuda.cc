#include <algorithm>

#include "backends/cuda/alignment.h"
#include "backends/cuda/nvtx_range.h"
#include "backends/cuda/run_context.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "format/frame_layout.h"
#include "pipeline/device/cuda_runner.h"
#include "pipeline/frame/async_decoder.h"
#include "pipeline/frame/device_fields.h"
#include "shared/bits.h"

namespace fz {

std::unique_ptr<DeviceRunner> makeDeviceRunner(PipelineCore& core) {
  return std::make_unique<CudaRunner>(core);
}

CudaRunner::CudaRunner(PipelineCore& core)
    : core_(core),
      header_template_(core.pool),
      header_fields_(core.pool),
      aligned_input_(core.pool),
      host_input_(core.pool),
      uploaded_frame_(core.pool),
      opener_(core.pool, core.device, launcher_) {
  FZ_CUDA_CHECK(cudaEventCreateWithFlags(&last_work_, cudaEventDisableTiming));
}

CudaRunner::~CudaRunner() {
  dropGraph();
  dropCaptureStream();
  FZ_CUDA_CHECK_WARN(cudaEventDestroy(last_work_));
  if (own_stream_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaStreamDestroy(own_stream_));
  }
}

cudaStream_t CudaRunner::ownStream() {
  if (own_stream_ == nullptr) {
    const cuda::DeviceGuard guard(core_.device);
    FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking));
  }
  return own_stream_;
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
  cuda::copyToHost({static_cast<std::uint8_t*>(to), n_bytes}, from, hostCopy(stream));
  if (ends_call) {
    call_timer_.end(stream);
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
}

cuda::HostCopy CudaRunner::hostCopy(cudaStream_t stream) const {
  return {core_.device, stream, core_.context.cpu};
}

const void* CudaRunner::upload(ByteView values, cudaStream_t stream) {
  const cuda::DeviceGuard guard(core_.device);
  enter(stream);
  host_input_.reserve(values.size(), 0, "input");
  cuda::copyFromHost(host_input_.data(), values, hostCopy(stream));
  return host_input_.data();
}

void CudaRunner::openFrame(ByteView& frame, FrameHeader& header, cudaStream_t stream) {
  const cuda::DeviceGuard guard(core_.device);
  cuda::dropStaleError("Pipeline::decompress");
  enter(stream);
  call_timer_.begin(core_.profiling, stream);
  const ByteView given = frame;
  frame = toDevice(frame, stream);
  // What the host can read it reads itself, once.
  const bool is_on_host = uploaded_bytes_ > 0 && !cuda::isDeviceOnly(given.data());
  opener_.openFrame(frame, is_on_host ? given : ByteView{}, header, stream);
}

void CudaRunner::prepareDecoder(FrameDecoder& decoder) {
  decoder.setCallTimer(&call_timer_);
  decoder.setGraphNodes(&launcher_);
  decoder.setPayloadCrc([this] { return opener_.payloadCrc(); }, opener_.mayWrite());
  decoder.setFrameCopyBytes(uploaded_bytes_);
}

void CudaRunner::clear(void* memory, std::size_t n_bytes, cudaStream_t stream) {
  const cuda::DeviceGuard guard(core_.device);
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
  FZ_REQUIRE(attributes.type != cudaMemoryTypeDevice || attributes.device == core_.device,
             ErrorCode::kInvalidArgument,
             "Pipeline: the {} at {} is on device {}, but this pipeline runs on device {}", what,
             data, attributes.device, core_.device);
}

ByteView CudaRunner::toDevice(ByteView bytes, cudaStream_t stream) {
  cudaPointerAttributes attributes = {};
  FZ_CUDA_CHECK(cudaPointerGetAttributes(&attributes, bytes.data()));
  if (attributes.type != cudaMemoryTypeUnregistered && cuda::isAligned(bytes.data())) {
    uploaded_bytes_ = 0;
    return bytes;
  }
  FZ_REQUIRE(core_.limits.max_memory_bytes == 0 || bytes.size() <= core_.limits.max_memory_bytes,
             ErrorCode::kLimit, "frame: {} bytes to copy to the device, the memory limit is {}",
             bytes.size(), core_.limits.max_memory_bytes);
  uploaded_bytes_ = bytes.size();
  uploaded_frame_.reserve(bytes.size(), 0, "frame on the device");
  cuda::copyFromHost(uploaded_frame_.data(), bytes, hostCopy(stream));
  return {uploaded_frame_.data(), bytes.size()};
}

/// Kernels rely on 16-byte alignment; other input goes through a buffer. Padding, which only stages
/// from outside ask for, repeats the last value.
const void* CudaRunner::alignedInput(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  const std::size_t padded_bytes = bits::roundUp(n_bytes, core_.alignment);
  if (padded_bytes == n_bytes && cuda::isAligned(input)) {
    return input;
  }
  aligned_input_.reserve(padded_bytes, 0, "aligned input");
  std::uint8_t* to = aligned_input_.data();
  FZ_CUDA_CHECK(cudaMemcpyAsync(to, input, n_bytes, cudaMemcpyDefault, stream));
  const std::size_t value_bytes = core_.writer->sourceValueBytes();
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
CudaRunner::FrameRoom CudaRunner::frameRoom(std::size_t n_bytes) {
  FrameWriter& writer = *core_.writer;
  const std::size_t padded_bytes = bits::roundUp(n_bytes, core_.alignment);
  FrameHeader header;
  writer.placeHeader(n_bytes, padded_bytes, core_.frame_settings, header);
  core_.engine->buffers.at(writer.sourceBuffer()).size = padded_bytes;
  const std::vector<std::size_t> sizes =
      estimateSizes(core_.engine->graph, core_.engine->buffers, false);
  FrameRoom room{writer.headerBytes(), sizes[static_cast<std::size_t>(writer.sinks().front())]};
  for (const int id : writer.sinks()) {
    room.n_bytes += sizes[static_cast<std::size_t>(id)];
  }
  return room;
}

void CudaRunner::bind(const Attempt& attempt) {
  const FrameWriter& writer = *core_.writer;
  Buffers& buffers = core_.engine->buffers;
  buffers.at(writer.sourceBuffer()).size = attempt.padded_bytes;
  buffers.lendInput(writer.sourceBuffer(), const_cast<void*>(attempt.input));
  buffers.lendOutput(writer.sinks().front(), attempt.frame + writer.headerBytes(),
                     attempt.first_segment_bytes);
}

/// The header as far as the host knows it, and the list of what the device must fill in.
void CudaRunner::updateTemplate(const Attempt& attempt, cudaStream_t stream) {
  using Kind = HeaderFieldOnDevice::Kind;
  FrameHeader header;
  core_.writer->describe(attempt.n_bytes, attempt.padded_bytes, core_.frame_settings, header);
  const std::vector<DAGNode*>& order = core_.engine->graph.order();
  std::vector<std::vector<DeviceField>> fields_of_stage;
  std::size_t first_bound = order.size();
  for (std::size_t s = 0; s < order.size(); ++s) {
    const SimpleStage* stage = simpleStage(*order[s]);
    const bool is_native = stage != nullptr && StageAccess::hasKernels(*stage);
    fields_of_stage.push_back(is_native ? StageAccess::deviceFields(*stage)
                                        : std::vector<DeviceField>{});
    if (first_bound == order.size() && order[s]->stage->boundInfo().has_value()) {
      first_bound = s;
    }
  }
  const cuda::FrameState* frame = state().frameOnDevice();
  const auto sourceOf = [&](const HeaderFieldOnDevice& field) -> const std::uint64_t* {
    switch (field.kind) {
      case Kind::kPayloadBytes:
        return &frame->payload_bytes;
      case Kind::kSegmentBytes:
        return &frame->segment_bytes[field.index];
      case Kind::kSegmentOffset:
        return &frame->segment_offset[field.index];
      case Kind::kAbsoluteBound:
        if (field.index != first_bound) {
          return nullptr;  // the header names the bound of another stage
        }
        [[fallthrough]];
      case Kind::kStageValue:
        break;
    }
    const auto record = static_cast<std::size_t>(order[field.index]->id);
    return &state().onDevice(record)->value[field.slot];
  };
  std::vector<cuda::HeaderField> fields;
  for (const HeaderFieldOnDevice& field : listDeviceFields(header, fields_of_stage)) {
    if (const std::uint64_t* source = sourceOf(field)) {
      fields.push_back({source, field.offset, field.n_bytes});
    }
  }
  // A stage without kernels may find out, while it runs, what makes the header longer or shorter;
  // then the attempt is made again, with the first segment where it belongs.
  const std::size_t n_room = core_.writer->headerBytes();
  is_header_placed_ = header.core.header_size == n_room;
  if (!is_header_placed_) {
    fields.clear();
  }
  std::vector<std::uint8_t> bytes(std::max<std::size_t>(header.core.header_size, n_room));
  header.core.data_checksum = 0;
  writeHeader(header, bytes);
  bytes.resize(n_room);
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

void CudaRunner::enqueueFrame(const Attempt& attempt, Request::Mode mode, cuda::RunContext& run) {
  const std::vector<int>& sinks = core_.writer->sinks();
  cuda::FrameJob job = {};
  job.segments.n_segments = static_cast<std::uint32_t>(sinks.size());
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const Buffer& sink = core_.engine->buffers.at(sinks[i]);
    const StageRecord* record = state().onDevice(static_cast<std::size_t>(sink.producer_stage_id));
    job.segments.segment[i] = {static_cast<const std::uint8_t*>(sink.d_ptr),
                               &record->n_bytes[sink.producer_output_index], sink.size};
  }
  job.frame = attempt.frame;
  job.header_template = header_template_.data();
  job.header_bytes = static_cast<std::uint32_t>(core_.writer->headerBytes());
  job.fields = reinterpret_cast<const cuda::HeaderField*>(header_fields_.data());
  job.n_fields = n_fields_;
  job.state = state().frameOnDevice();
  job.readback = state().hostReadback();
  job.n_clears = static_cast<std::uint32_t>(run.clears().size());
  std::copy(run.clears().begin(), run.clears().end(), job.clears);
  if (mode != Request::Mode::kCapture) {
    state().recordReadback();
  }
  if (run.hasOpenSide()) {
    job.is_front_summed = 1;
    cuda::enqueueFrontSum(job, run.launcher());
    run.joinSides();
  }
  cuda::enqueueFrame(job, run.launcher());
  run.recordClears();
}

/// Everything of one attempt, ending with the readback. Enqueues only, unless a stage has no
/// kernels.
void CudaRunner::enqueueAttempt(const Attempt& attempt,
                                Request::Mode mode,
                                const cuda::Launcher& launcher) {
  bind(attempt);
  cuda::RunContext run(launcher);
  run.leaveSides();
  executor().enqueue({.context = &core_.context, .profiling = core_.profiling, .mode = mode}, run);
  if (mode != Request::Mode::kCapture) {
    updateTemplate(attempt, run.stream());
  }
  enqueueFrame(attempt, mode, run);
}

void CudaRunner::launch(const Attempt& attempt,
                        Request::Mode mode,
                        const cuda::Launcher& launcher) {
  if (!is_captured_) {
    enqueueAttempt(attempt, mode, launcher);
    return;
  }
  const cudaStream_t stream = launcher.stream;
  const bool same = graph_ != nullptr && captured_.input == attempt.input &&
                    captured_.n_bytes == attempt.n_bytes && captured_.frame == attempt.frame;
  if (!same) {
    capture(attempt, stream);
  }
  state().enqueueInitIfNeeded(stream);
  state().recordReadback();
  FZ_CUDA_CHECK(cudaGraphLaunch(graph_, stream));
}

void CudaRunner::waitForRun(cudaStream_t stream) {
  // Events must have passed before they are read, and a run that nobody has waited for may end
  // after this one was begun.
  if (core_.profiling || pending_ != Pending::kNone) {
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  } else {
    state().waitForReadback(stream);
  }
}

void CudaRunner::runToEnd(const void* data, std::size_t n_bytes, cudaStream_t stream) {
  const std::size_t padded_bytes = bits::roundUp(n_bytes, core_.alignment);
  repeatUntilDone("Pipeline", [&] {
    const FrameRoom room = frameRoom(n_bytes);
    if (core_.frame.capacity() < room.n_bytes) {
      core_.frame.reserve(room.n_bytes + kHeaderHeadroom, 0, "frame");
    }
    launch({data, n_bytes, padded_bytes, core_.frame.data(), room.first_segment_bytes},
           Request::Mode::kWaits, {stream, &launcher_});
    call_timer_.end(stream);
    leave(stream);
    waitForRun(stream);
    if (executor().finish(stream) && is_header_placed_) {
      return true;
    }
    dropGraph();  // the buffers move; the next launch captures again
    return false;
  });
}

std::size_t CudaRunner::compress(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  const cuda::NvtxRange range("fz::compress");
  const cuda::DeviceGuard guard(core_.device);
  cuda::dropStaleError("Pipeline::compress");
  if (n_bytes > 0) {
    requireDevicePointer(input, "input");
  }
  enter(stream);
  call_timer_.begin(core_.profiling, stream);
  try {
    runToEnd(alignedInput(input, n_bytes, stream), n_bytes, stream);
  } catch (...) {
    abandon(stream);
    throw;
  }
  return state().frameResult().total_bytes;
}

void CudaRunner::abandon(cudaStream_t stream) noexcept {
  core_.engine->abandonCuda(stream);
  // It may point to memory that was given up meanwhile, or expect it as the run should have left
  // it.
  dropGraph();
  pending_ = Pending::kNone;
}

}  // namespace fz
