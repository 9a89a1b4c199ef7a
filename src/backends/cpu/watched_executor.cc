#include "backends/cpu/watched_executor.h"

#include <algorithm>

#include "core/require.h"

namespace fz {

namespace {

/// So many looks at the caller's wish in one call: the work between two is short, and the looks
/// cost nothing that could be measured.
constexpr std::size_t kPieces = 256;

struct Job {
  CpuExecutor::Body body;
  const RunProgress& progress;
  std::size_t n_items_in_piece;
};

void runPieces(void* object, std::size_t begin, std::size_t end) {
  const Job& job = *static_cast<const Job*>(object);
  for (std::size_t at = begin; at < end; at += job.n_items_in_piece) {
    requireNotCancelled(&job.progress);
    job.body.call(job.body.object, at, std::min(end, at + job.n_items_in_piece));
  }
}

}  // namespace

void WatchedExecutor::run(std::size_t n_items, Body body) const {
  Job job{body, progress_, std::max<std::size_t>(1, n_items / kPieces)};
  inner_.run(n_items, {&job, runPieces});
}

void requireNotCancelled(const RunProgress* progress) {
  FZ_REQUIRE(progress == nullptr || !progress->is_cancelled.load(std::memory_order_relaxed),
             ErrorCode::kCancelled, "the call was asked to stop");
}

}  // namespace fz
