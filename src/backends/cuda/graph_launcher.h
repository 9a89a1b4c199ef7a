#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "fz/cuda_part.h"

namespace fz::cuda {

/// Launches kernels that come again and again as graphs of one node each, whose parameters are set
/// when they change: that takes the host a third of the time of a launch, which small calls wait
/// for. A kernel that comes for the first time is launched as it is, and so are all where a graph
/// cannot be had.
class GraphNodeLauncher {
 public:
  GraphNodeLauncher() = default;
  GraphNodeLauncher(const GraphNodeLauncher&) = delete;
  GraphNodeLauncher& operator=(const GraphNodeLauncher&) = delete;
  ~GraphNodeLauncher();

  /// Not for work that is enqueued again before it has run: a graph waits for itself.
  void launch(const KernelLaunch& launch, cudaStream_t stream);

 private:
  /// One kernel, and the parameters that its graph has now.
  struct Entry {
    const void* function = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    bool is_usable = true;
    int device = -1;
    int priority = 0;
    cudaStream_t stream = nullptr;  // whose priority it is
    unsigned n_blocks = 0;
    unsigned n_threads = 0;
    std::size_t shared_bytes = 0;
    std::vector<std::uint8_t> parameters;
  };

  /// False: nothing was launched.
  bool tryLaunch(const KernelLaunch& launch, cudaStream_t stream);
  static bool build(Entry& entry, const KernelLaunch& launch);
  static bool update(Entry& entry, const KernelLaunch& launch);
  static void drop(Entry& entry) noexcept;

  std::vector<Entry> entries_;
};

/// As it is. Throws Error(kCuda) when it was refused.
void launchKernel(const KernelLaunch& launch, cudaStream_t stream);

/// A launch as it was asked for.
struct RecordedLaunch {
  const char* name;
  const void* each_field;  ///< as KernelLaunch has it
  unsigned n_blocks;
  unsigned least_blocks;
  unsigned n_threads;
  std::size_t shared_bytes;
  std::vector<std::uint8_t> arguments;  ///< each at a multiple of 16 bytes
};
struct LaunchLog {
  std::vector<RecordedLaunch> launches;
  void add(const KernelLaunch& launch);
};

/// A stream, and how kernels get there.
struct Launcher {
  cudaStream_t stream;
  GraphNodeLauncher* nodes = nullptr;  ///< null: kernels are launched as they are
  LaunchLog* log = nullptr;            ///< not null: they are recorded instead

  void launch(const KernelLaunch& launch) const;

  /// In place of kernel<<<n_blocks, n_threads, shared_bytes, stream>>>(args...).
  template <class... Params, class... Args>
  void launch(const char* name,
              void (*kernel)(Params...),
              unsigned n_blocks,
              unsigned n_threads,
              std::size_t shared_bytes,
              const Args&... args) const {
    launch(name, KernelOf<Params...>{kernel}, n_blocks, n_threads, shared_bytes, args...);
  }
  template <class... Params, class... Args>
  void launch(const char* name,
              const KernelOf<Params...>& kernel,
              unsigned n_blocks,
              unsigned n_threads,
              std::size_t shared_bytes,
              const Args&... args) const {
    packLaunch([this](const KernelLaunch& packed) { launch(packed); }, name, kernel, n_blocks,
               n_threads, shared_bytes, args...);
  }
};

}  // namespace fz::cuda
