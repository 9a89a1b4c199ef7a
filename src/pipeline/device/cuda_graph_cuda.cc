// Graph capture and replay. A graph is bound to an input pointer and size; a call with others
// records again and updates the graph in place.
#include <algorithm>

#include "backends/cuda/captures.h"
#include "core/require.h"
#include "cuda_check.h"
#include "pipeline/device/cuda_runner.h"

namespace fz {

namespace {

/// Ends a capture however it goes.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    FZ_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (!ended_) {
      cudaGraph_t broken = nullptr;
      cudaStreamEndCapture(stream_, &broken);
      if (broken != nullptr) {
        cudaGraphDestroy(broken);
      }
      cudaGetLastError();  // the failure that led here is reported by whoever threw
    }
  }
  cudaGraph_t end() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    FZ_CUDA_CHECK(cudaStreamEndCapture(stream_, &graph));
    return graph;
  }

 private:
  cudaStream_t stream_;
  bool ended_ = false;
};

struct GraphDestroy {
  void operator()(CUgraph_st* graph) const { FZ_CUDA_CHECK_WARN(cudaGraphDestroy(graph)); }
};

/// What the nodes of a graph are, in ascending order. All work goes to one stream, so the nodes are
/// a chain, and a graph can be updated in place by one with the same kinds of nodes.
std::vector<int> nodeKinds(cudaGraph_t graph) {
  std::size_t n_nodes = 0;
  FZ_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &n_nodes));
  std::vector<cudaGraphNode_t> nodes(n_nodes);
  FZ_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &n_nodes));
  std::vector<int> kinds;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType kind = {};
    FZ_CUDA_CHECK(cudaGraphNodeGetType(node, &kind));
    kinds.push_back(static_cast<int>(kind));
  }
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

}  // namespace

void CudaRunner::dropGraph() {
  if (graph_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaGraphExecDestroy(graph_));
    graph_ = nullptr;
  }
  scratch_bytes_ = 0;
}

/// A captured stream that waits for the default one could not be captured while another thread uses
/// that; hence one of our own. Kernels in a graph have the priority of the stream they come from.
cudaStream_t CudaRunner::captureStream(cudaStream_t stream) {
  int priority = 0;
  FZ_CUDA_CHECK(cudaStreamGetPriority(stream, &priority));
  if (capture_stream_ == nullptr || priority != capture_priority_) {
    dropCaptureStream();
    FZ_CUDA_CHECK(cudaStreamCreateWithPriority(&capture_stream_, cudaStreamNonBlocking, priority));
    capture_priority_ = priority;
  }
  return capture_stream_;
}

void CudaRunner::dropCaptureStream() {
  if (capture_stream_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaStreamDestroy(capture_stream_));
    capture_stream_ = nullptr;
  }
}

void CudaRunner::capture(const Attempt& attempt, cudaStream_t stream) {
  // An ordinary run on the same data leaves every buffer and all scratch in place: during capture
  // nothing may be allocated.
  if (scratch_bytes_ < attempt.padded_bytes || scratch_frame_ != attempt.frame) {
    enqueueAttempt(attempt, Request::Mode::kWaits, {stream});
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    scratch_bytes_ = attempt.padded_bytes;
    scratch_frame_ = attempt.frame;
  }
  std::unique_ptr<CUgraph_st, GraphDestroy> graph;
  {
    const cudaStream_t own_stream = captureStream(stream);
    const cuda::CaptureScope turn;
    Capture recording(own_stream);
    enqueueAttempt(attempt, Request::Mode::kCapture, {own_stream});
    graph.reset(recording.end());
  }
  std::vector<int> kinds = nodeKinds(graph.get());
  if (graph_ != nullptr) {
    cudaGraphExecUpdateResultInfo info = {};
    if (kinds != graph_kinds_ || cudaGraphExecUpdate(graph_, graph.get(), &info) != cudaSuccess) {
      cudaGetLastError();
      FZ_CUDA_CHECK_WARN(cudaGraphExecDestroy(graph_));
      graph_ = nullptr;
    }
  }
  if (graph_ == nullptr) {
    FZ_CUDA_CHECK(cudaGraphInstantiate(&graph_, graph.get(), 0));
  }
  graph_kinds_ = std::move(kinds);
  captured_ = attempt;
  updateTemplate(attempt, stream);  // now that the stages have seen the size
}

void CudaRunner::captureGraph(std::size_t n_bytes, cudaStream_t stream) {
  const cuda::DeviceGuard guard(core_.device);
  cuda::dropStaleError("Pipeline::captureGraph");
  FZ_REQUIRE(stream != nullptr, ErrorCode::kInvalidArgument,
             "Pipeline::captureGraph: the default stream cannot be captured; make a stream");
  enter(stream);
  const FrameRoom room = frameRoom(n_bytes);
  core_.frame.reserve(room.n_bytes, 0, "frame");
  // No data are known yet. Zeros stand in for the run that fixes the memory; the first compress()
  // records again with its own pointer.
  core_.padded_input.reserve(n_bytes, 0, "input of the capture");
  FZ_CUDA_CHECK(cudaMemsetAsync(core_.padded_input.data(), 0, n_bytes, stream));
  dropGraph();
  try {
    capture(
        {core_.padded_input.data(), n_bytes, n_bytes, core_.frame.data(), room.first_segment_bytes},
        stream);
  } catch (...) {
    abandon(stream);
    throw;
  }
  leave(stream);
  is_captured_ = true;
}

}  // namespace fz
