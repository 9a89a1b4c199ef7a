#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/exec_context.h"
#include "core/require.h"
#include "fz/progress.h"
#include "fz/stream.h"

namespace fz {

class Engine;
class FieldWatch;
struct Step;

/// What a caller wants of one run.
struct Request {
  /// Who looks at a run on a device, and when.
  enum class Mode : std::uint8_t {
    kWaits,     ///< the caller waits for it, and may run it again with larger buffers
    kDetached,  ///< no one soon: the run must be complete in itself
    kCapture,   ///< it becomes a graph, which is launched later
  };

  const ExecContext* context = nullptr;
  RunProgress* progress = nullptr;  ///< counts stages as they are done
  FieldWatch* watch = nullptr;      ///< on the CPU: looks at the field; may be null
  bool profiling = false;
  Mode mode = Mode::kWaits;
  /// On a device: enqueues what must come before the first stage; may be empty.
  std::function<void(cudaStream_t)> before_stages = {};
  /// On a device: called once, before the first kernel is enqueued that may write to a buffer; a
  /// group looks over its input before. Where the run has a word that says whether outputs may be
  /// written, groups look at it themselves, and this is called when the first one is enqueued.
  std::function<void()> before_output = {};
};

/// Arguments of a stage in the run at hand, kept so that the next run allocates nothing.
struct NodeRun {
  std::vector<void*> inputs;
  std::vector<void*> outputs;
  std::vector<std::size_t> sizes;
  std::vector<std::size_t> capacities;
  bool follows_reserve = false;  ///< a decoder on a device whose input's size is not known yet
  float elapsed_ms = 0.0f;
};

/// Calls attempt() until it returns true: a stage may ask for larger outputs or another pass, and
/// one that never settles is broken. Throws Error(kInternal).
template <class Attempt>
void repeatUntilDone(const std::string& who, Attempt attempt) {
  constexpr int kMaxAttempts = 64;
  for (int i = 0; i < kMaxAttempts; ++i) {
    if (attempt()) {
      return;
    }
  }
  detail::throwError(
      ErrorCode::kInternal,
      fmt::format("{}: buffers still too small after {} attempts", who, kMaxAttempts));
}

/// Runs all steps of the engine's plan on the CPU. Throws what a stage throws; the engine can be
/// run again afterwards.
void runOnCpu(Engine& engine, const Request& request, cudaStream_t stream);

/// Runs one stage until it is done and takes its sizes over; with pointers of either backend.
void runStage(Engine& engine, const DAGNode& node, cudaStream_t stream);

}  // namespace fz
