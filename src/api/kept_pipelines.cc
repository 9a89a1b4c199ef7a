#include "api/kept_pipelines.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "backends/cuda/device_guard.h"
#include "backends/cuda/host_copy.h"
#include "core/require.h"
#include "fz/host_api.h"

namespace fz {

namespace {

// As many threads may want one each; more are made anew.
constexpr std::size_t kMaxKept = 32;
// Shapes of one batch that take turns.
constexpr std::size_t kMaxOwn = 4;
// Memory that a device is left with for others counts more than a call that begins sooner.
constexpr std::size_t kDeviceShare = 16;

std::size_t memoryOf(Pipeline& pipeline) {
  return pipeline.getMemoryPool().getPeakUsage();  // what is kept is no more
}

/// Those that no call uses, the last one that was used first.
class Shelf {
 public:
  std::shared_ptr<Pipeline> take(const std::string& key, int device) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Entry& entry) {
      return entry.pipeline->getDevice() == device && entry.key == key;
    });
    if (found == kept_.end()) {
      return nullptr;
    }
    std::shared_ptr<Pipeline> pipeline = std::move(found->pipeline);
    kept_.erase(found);
    return pipeline;
  }

  void put(std::string key, std::shared_ptr<Pipeline> pipeline) {
    const int device = pipeline->getDevice();
    const std::size_t n_most = cuda::totalMemory(device) / kDeviceShare;
    std::list<Entry> dropped;  // outlives the lock: what is dropped waits for its device
    dropped.push_front({std::move(key), std::move(pipeline)});
    const std::lock_guard lock(mutex_);
    kept_.splice(kept_.begin(), dropped);
    std::size_t n_bytes = 0;
    std::size_t n_kept = 0;
    for (auto at = kept_.begin(); at != kept_.end();) {
      const bool is_here = at->pipeline->getDevice() == device;
      const std::size_t bytes_here = is_here ? memoryOf(*at->pipeline) : 0;
      const auto next = std::next(at);
      if (n_kept == kMaxKept || (is_here && n_bytes + bytes_here > n_most)) {
        dropped.splice(dropped.end(), kept_, at);
      } else {
        n_bytes += bytes_here;
        ++n_kept;
      }
      at = next;
    }
  }

  void clear() {
    std::list<Entry> dropped;
    const std::lock_guard lock(mutex_);
    kept_.swap(dropped);
  }

  /// Never destroyed: when static objects are, the driver may be gone.
  static Shelf& ofProcess() {
    static Shelf* const kShelf = new Shelf;
    return *kShelf;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<Pipeline> pipeline;
  };
  std::mutex mutex_;
  std::list<Entry> kept_;
};

}  // namespace

std::shared_ptr<Pipeline> OwnPipelines::take(const std::string& key) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (found == kept_.end()) {
    return nullptr;
  }
  std::shared_ptr<Pipeline> pipeline = std::move(found->second);
  kept_.erase(found);
  return pipeline;
}

void OwnPipelines::put(std::string key, std::shared_ptr<Pipeline> pipeline) {
  kept_.emplace_front(std::move(key), std::move(pipeline));
  if (kept_.size() > kMaxOwn) {
    kept_.pop_back();
  }
}

KeptPipeline::KeptPipeline(std::string key, Backend wish, OwnPipelines* own)
    : key_(std::move(key)), own_(own), pipeline_(own == nullptr ? nullptr : own->take(key_)) {
  if (pipeline_ == nullptr && wish != Backend::CPU && cuda::deviceCount() > 0) {
    pipeline_ = Shelf::ofProcess().take(key_, cuda::currentDevice());
  }
}

KeptPipeline::~KeptPipeline() {
  if (!is_kept_ || pipeline_ == nullptr) {
    return;
  }
  try {
    if (pipeline_->getBackend() != Backend::CUDA) {
      if (own_ != nullptr) {
        own_->put(std::move(key_), std::move(pipeline_));
      }
      return;
    }
    pipeline_->setProgress(nullptr);
    Shelf::ofProcess().put(std::move(key_), std::move(pipeline_));
  } catch (...) {  // no memory for the list: it is not kept
  }
}

void releaseDeviceMemory() {
  Shelf::ofProcess().clear();
  if (cuda::deviceCount() > 0) {
    cuda::releasePinnedPieces();
  }
}

}  // namespace fz
