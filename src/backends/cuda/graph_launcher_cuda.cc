#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cuda/captures.h"
#include "backends/cuda/graph_launcher.h"
#include "backends/cuda/launch.h"
#include "core/require.h"

namespace fz::cuda {

namespace {

constexpr std::size_t kMaxParameters = 16;

/// The form in which the runtime wants parameters.
std::array<void*, kMaxParameters> pointersTo(const KernelLaunch& launch) {
  FZ_ASSERT(launch.parameters.size() <= kMaxParameters);
  std::array<void*, kMaxParameters> pointers = {};
  std::transform(
      launch.parameters.begin(), launch.parameters.end(), pointers.begin(),
      [](const KernelLaunch::Parameter& parameter) { return const_cast<void*>(parameter.data); });
  return pointers;
}

cudaKernelNodeParams nodeOf(const KernelLaunch& launch, void** parameters) {
  cudaKernelNodeParams node = {};
  node.func = const_cast<void*>(launch.function);
  node.gridDim = dim3(launch.n_blocks);
  node.blockDim = dim3(launch.n_threads);
  node.sharedMemBytes = static_cast<unsigned>(launch.shared_bytes);
  node.kernelParams = parameters;
  return node;
}

/// Copies the parameters there; false when they are there already.
bool copyChanges(const KernelLaunch& launch, std::vector<std::uint8_t>& to) {
  std::size_t n_bytes = 0;
  for (const KernelLaunch::Parameter& parameter : launch.parameters) {
    n_bytes += parameter.n_bytes;
  }
  bool has_changed = to.size() != n_bytes;
  to.resize(n_bytes);
  std::size_t at = 0;
  for (const KernelLaunch::Parameter& parameter : launch.parameters) {
    if (has_changed || std::memcmp(to.data() + at, parameter.data, parameter.n_bytes) != 0) {
      std::memcpy(to.data() + at, parameter.data, parameter.n_bytes);
      has_changed = true;
    }
    at += parameter.n_bytes;
  }
  return has_changed;
}

/// Takes away what a refused call has left with the runtime, and says whether there was any.
bool isGood(cudaError_t status) {
  if (status != cudaSuccess) {
    cudaGetLastError();
  }
  return status == cudaSuccess;
}

bool isCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return !isGood(cudaStreamIsCapturing(stream, &status)) || status != cudaStreamCaptureStatusNone;
}

}  // namespace

GraphNodeLauncher::~GraphNodeLauncher() {
  for (Entry& entry : entries_) {
    drop(entry);
  }
}

void GraphNodeLauncher::drop(Entry& entry) noexcept {
  if (entry.exec != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaGraphExecDestroy(entry.exec));
    entry.exec = nullptr;
  }
  if (entry.graph != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaGraphDestroy(entry.graph));
    entry.graph = nullptr;
  }
}

bool GraphNodeLauncher::build(Entry& entry, const KernelLaunch& launch) {
  const UnnoticedByCaptures unnoticed;
  drop(entry);
  auto parameters = pointersTo(launch);
  const cudaKernelNodeParams node = nodeOf(launch, parameters.data());
  cudaKernelNodeAttrValue priority = {};
  priority.priority = entry.priority;
  return isGood(cudaGetDevice(&entry.device)) && isGood(cudaGraphCreate(&entry.graph, 0)) &&
         isGood(cudaGraphAddKernelNode(&entry.node, entry.graph, nullptr, 0, &node)) &&
         isGood(
             cudaGraphKernelNodeSetAttribute(entry.node, cudaLaunchAttributePriority, &priority)) &&
         isGood(cudaGraphInstantiate(&entry.exec, entry.graph, 0));
}

bool GraphNodeLauncher::update(Entry& entry, const KernelLaunch& launch) {
  const bool has_changed = copyChanges(launch, entry.parameters);
  if (!has_changed && entry.n_blocks == launch.n_blocks && entry.n_threads == launch.n_threads &&
      entry.shared_bytes == launch.shared_bytes) {
    return true;
  }
  entry.n_blocks = launch.n_blocks;
  entry.n_threads = launch.n_threads;
  entry.shared_bytes = launch.shared_bytes;
  auto parameters = pointersTo(launch);
  const cudaKernelNodeParams node = nodeOf(launch, parameters.data());
  return isGood(cudaGraphExecKernelNodeSetParams(entry.exec, entry.node, &node));
}

bool GraphNodeLauncher::tryLaunch(const KernelLaunch& launch, cudaStream_t stream) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.function == launch.function;
  });
  if (found == entries_.end()) {
    entries_.emplace_back().function = launch.function;
    return false;
  }
  Entry& entry = *found;
  if (!entry.is_usable || isCapturing(stream)) {
    return false;
  }
  int device = 0;
  bool is_current =
      entry.exec != nullptr && isGood(cudaGetDevice(&device)) && device == entry.device;
  if (!is_current || stream != entry.stream) {
    int priority = 0;
    if (!isGood(cudaStreamGetPriority(stream, &priority))) {
      return false;
    }
    is_current = is_current && priority == entry.priority;
    entry.priority = priority;
    entry.stream = stream;
  }
  entry.is_usable = (is_current || build(entry, launch)) && update(entry, launch) &&
                    isGood(cudaGraphLaunch(entry.exec, stream));
  return entry.is_usable;
}

void GraphNodeLauncher::launch(const KernelLaunch& launch, cudaStream_t stream) {
  if (!tryLaunch(launch, stream)) {
    launchKernel(launch, stream);
  }
}

void LaunchLog::add(const KernelLaunch& launch) {
  constexpr std::size_t kAlignment = 16;
  RecordedLaunch made{launch.name,
                      launch.each_field,
                      launch.n_blocks,
                      launch.least_blocks,
                      launch.n_threads,
                      launch.shared_bytes,
                      {}};
  for (const KernelLaunch::Parameter& parameter : launch.parameters) {
    const auto* bytes = static_cast<const std::uint8_t*>(parameter.data);
    made.arguments.insert(made.arguments.end(), bytes, bytes + parameter.n_bytes);
    made.arguments.resize((made.arguments.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  launches.push_back(std::move(made));
}

void Launcher::launch(const KernelLaunch& launch) const {
  if (log != nullptr) {
    log->add(launch);
  } else if (nodes != nullptr) {
    nodes->launch(launch, stream);
  } else {
    launchKernel(launch, stream);
  }
}

void launchKernel(const KernelLaunch& launch, cudaStream_t stream) {
  auto parameters = pointersTo(launch);
  const cudaError_t status =
      cudaLaunchKernel(launch.function, dim3(launch.n_blocks), dim3(launch.n_threads),
                       parameters.data(), launch.shared_bytes, stream);
  if (status != cudaSuccess) {
    cudaGetLastError();
    detail::throwCudaError(static_cast<int>(status), launch.name, "kernel launch", 0);
  }
}

}  // namespace fz::cuda
