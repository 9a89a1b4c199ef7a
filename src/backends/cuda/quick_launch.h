#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace fz::cuda {

/// A kernel as cudaLaunchKernel takes it.
struct KernelLaunch {
  struct Parameter {
    const void* data;
    std::size_t n_bytes;
  };

  const void* function;
  const char* name;  ///< for errors
  unsigned n_blocks;
  unsigned n_threads;
  std::size_t shared_bytes;
  std::span<const Parameter> parameters;
};

/// Launches kernels that come again and again as graphs of one node each, whose parameters are set
/// when they change: that takes the host a third of the time of a launch, which small calls wait
/// for. A kernel that comes for the first time is launched as it is, and so are all where a graph
/// cannot be had.
class QuickLauncher {
 public:
  QuickLauncher() = default;
  QuickLauncher(const QuickLauncher&) = delete;
  QuickLauncher& operator=(const QuickLauncher&) = delete;
  ~QuickLauncher();

  /// While it lives, launchKernel() of this thread goes through the launcher. Not for work that is
  /// enqueued again before it has run: a graph waits for itself.
  class Scope {
   public:
    explicit Scope(QuickLauncher& launcher);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    QuickLauncher* previous_;
  };

 private:
  friend void launchKernel(const KernelLaunch& launch, cudaStream_t stream);

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

/// Through the QuickLauncher in scope, or as it is. Throws Error(kCuda) when it was refused.
void launchKernel(const KernelLaunch& launch, cudaStream_t stream);

/// In place of kernel<<<n_blocks, n_threads, shared_bytes, stream>>>(args...).
template <class... Params, class... Args>
void launchKernel(const char* name,
                  void (*kernel)(Params...),
                  unsigned n_blocks,
                  unsigned n_threads,
                  std::size_t shared_bytes,
                  cudaStream_t stream,
                  const Args&... args) {
  const std::tuple<Params...> values(args...);
  std::apply(
      [&](const Params&... value) {
        const KernelLaunch::Parameter parameters[] = {{&value, sizeof(value)}...};
        launchKernel({reinterpret_cast<const void*>(kernel), name, n_blocks, n_threads,
                      shared_bytes, parameters},
                     stream);
      },
      values);
}

}  // namespace fz::cuda
