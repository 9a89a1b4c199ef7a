#include "backends/cpu/executors.h"

#if FZ_HAVE_TBB
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace fz {

#if FZ_HAVE_TBB

namespace {

/// An arena of its own, so a pipeline's thread count never touches global state and calls nest
/// inside an application that uses TBB itself.
class TbbExecutor final : public CpuExecutor {
 public:
  explicit TbbExecutor(std::size_t n_threads)
      : n_threads_(n_threads), arena_(static_cast<int>(n_threads)) {}

  std::size_t threadCount() const noexcept override { return n_threads_; }

  void run(std::size_t n_items, Body body) const override {
    arena_.execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, n_items),
                        [&](const tbb::blocked_range<std::size_t>& range) {
                          body.call(body.object, range.begin(), range.end());
                        });
    });
  }

 private:
  std::size_t n_threads_;
  mutable tbb::task_arena arena_;
};

}  // namespace

bool hasTbb() noexcept {
  return true;
}
std::unique_ptr<CpuExecutor> makeTbbExecutor(std::size_t n_threads) {
  return std::make_unique<TbbExecutor>(n_threads);
}

#else

bool hasTbb() noexcept {
  return false;
}
std::unique_ptr<CpuExecutor> makeTbbExecutor(std::size_t /*n_threads*/) {
  return nullptr;
}

#endif

}  // namespace fz
