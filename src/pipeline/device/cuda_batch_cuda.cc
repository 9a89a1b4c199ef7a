// Recording what one field takes, for batches.
#include "backends/cuda/captures.h"
#include "backends/cuda/run_state.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "log.h"
#include "pipeline/device/batch_recording.h"
#include "pipeline/device/cuda_runner.h"
#include "pipeline/frame/async_decoder.h"
#include "shared/bits.h"

namespace fz {

namespace {

class RecordingStream {
 public:
  RecordingStream() { FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  RecordingStream(const RecordingStream&) = delete;
  RecordingStream& operator=(const RecordingStream&) = delete;
  ~RecordingStream() { FZ_CUDA_CHECK_WARN(cudaStreamDestroy(stream_)); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Calls enqueue(launcher) so that its launches are recorded. The stream is captured meanwhile:
/// what else goes there shows in the graph, and then a batch cannot be had.
template <class Enqueue>
bool recordLaunches(BatchRecording& recording, const Enqueue& enqueue) {
  const RecordingStream stream;
  const cuda::CaptureScope turn;
  FZ_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  bool is_good = true;
  try {
    enqueue(cuda::Launcher{stream.get(), nullptr, &recording.log});
  } catch (const Error& error) {
    FZ_LOG(INFO, "DeviceBatch: %s", error.what());
    is_good = false;
  }
  cudaGraph_t graph = nullptr;
  std::size_t n_nodes = 1;
  if (cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess && graph != nullptr) {
    FZ_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &n_nodes));
    FZ_CUDA_CHECK_WARN(cudaGraphDestroy(graph));
  }
  cudaGetLastError();
  for (const cuda::RecordedLaunch& launch : recording.log.launches) {
    is_good = is_good && launch.each_field != nullptr;
    if (launch.each_field == nullptr) {
      FZ_LOG(INFO, "DeviceBatch: %s has no form for many fields", launch.name);
    }
  }
  if (n_nodes != 0) {
    FZ_LOG(INFO, "DeviceBatch: more than kernels was enqueued: %zu", n_nodes);
  }
  return is_good && n_nodes == 0;
}

/// What the device may decide by itself. False: the host must look at every run.
bool takeQuietValues(const Graph& graph, BatchRecording& recording) {
  recording.n_records = graph.nodes().size();
  recording.quiet.assign(recording.n_records, 0);
  for (const DAGNode* node : graph.order()) {
    SimpleStage* const stage = simpleStage(*node);
    if (stage == nullptr || !StageAccess::hasKernels(*stage)) {
      return false;
    }
    const auto quiet = StageAccess::cudaPart(*stage)->quietValues();
    if (!quiet) {
      return false;
    }
    recording.quiet[static_cast<std::size_t>(node->id)] = *quiet;
  }
  return true;
}

/// Where the bound that a header names is found.
std::size_t boundWord(const Graph& graph) {
  for (const DAGNode* node : graph.order()) {
    if (!node->stage->boundInfo().has_value()) {
      continue;
    }
    for (const DeviceField& field : StageAccess::deviceFields(*simpleStage(*node))) {
      if (field.config_offset == DeviceField::kAbsoluteBound) {
        return (static_cast<std::size_t>(node->id) * sizeof(StageRecord) +
                offsetof(StageRecord, value)) /
                   sizeof(std::uint64_t) +
               field.slot;
      }
    }
    return 0;
  }
  return 0;
}

// Places that no kernel ever sees: a batch has the fields' own in their stead.
// NOLINTBEGIN(performance-no-int-to-ptr)
std::uint8_t* placeAt(std::uint64_t address) {
  return reinterpret_cast<std::uint8_t*>(address);
}
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace

bool CudaRunner::recordCompress(std::size_t n_bytes,
                                const BatchAddresses& at,
                                BatchRecording& recording) {
  const cuda::DeviceGuard guard(core_.device);
  if (bits::roundUp(n_bytes, core_.alignment) != n_bytes ||
      !takeQuietValues(core_.engine->graph, recording)) {
    return false;
  }
  const FrameRoom room = frameRoom(n_bytes);
  recording.output_bytes = room.n_bytes;
  recording.bound_word = boundWord(core_.engine->graph);
  const Attempt attempt{placeAt(at.input), n_bytes, n_bytes, placeAt(at.output),
                        room.first_segment_bytes};
  const bool is_good = recordLaunches(recording, [&](const cuda::Launcher& launcher) {
    enqueueAttempt(attempt, Request::Mode::kWaits, launcher);
  });
  recording.blocks = core_.pool.blocksInUse();
  recording.result = reinterpret_cast<const std::uint8_t*>(state().hostReadback().host);
  return is_good && is_header_placed_;
}

bool CudaRunner::recordDecompress(std::size_t original_bytes,
                                  const BatchAddresses& at,
                                  BatchRecording& recording,
                                  const FrameHeader& last_header,
                                  const FrameDecoder* decoder) try {
  const cuda::DeviceGuard guard(core_.device);
  if (decoder == nullptr || decoder->plan() == nullptr ||
      last_header.description.original_bytes != original_bytes) {
    return false;
  }
  batch_decoder_ = std::make_unique<AsyncDecoder>(
      last_header, ByteView(opener_.lastHeader(), last_header.core.header_size),
      decoder->customStages(), core_.pool);
  if (!takeQuietValues(batch_decoder_->plan().engine.graph, recording)) {
    return false;
  }
  recording.output_bytes = original_bytes;
  core_.padded_input.reserve(original_bytes, 0, "decoded output");
  const RecordingStream stream;
  for (int run = 0; run < 2; ++run) {  // the second one finds all as every later one does
    batch_decoder_->enqueueForBatch(core_.frame.data(),
                                    last_header.core.header_size + last_header.core.compressed_size,
                                    core_.padded_input.data(), core_.context, {stream.get()});
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    batch_decoder_->finish(stream.get());
  }
  const bool is_good = recordLaunches(recording, [&](const cuda::Launcher& launcher) {
    batch_decoder_->enqueueForBatch(placeAt(at.input), at.input_bytes, placeAt(at.output),
                                    core_.context, launcher);
  });
  recording.blocks = core_.pool.blocksInUse();
  recording.result =
      reinterpret_cast<const std::uint8_t*>(batch_decoder_->state().hostReadback().host);
  return is_good;
} catch (const Error& error) {
  FZ_LOG(INFO, "DeviceBatch: %s", error.what());
  return false;  // such frames are decoded one by one
}

}  // namespace fz
