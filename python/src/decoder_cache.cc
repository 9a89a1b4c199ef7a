#include "decoder_cache.h"

#include <algorithm>
#include <vector>

#include "fz/host_api.h"

namespace fz::python {

namespace {

constexpr std::size_t kKept =
    2;  // of one device; more threads than that make decoders of their own

struct Idle {
  int device;
  std::shared_ptr<Session> session;
};

struct Cache {
  std::mutex mutex;
  std::vector<Idle> idle;  // the last one was used last
};

Cache& cache() {
  // Never destroyed: when the process ends, the driver may be gone before static objects are.
  static Cache& only = *new Cache;
  return only;
}

std::shared_ptr<Session> take(int device) {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  std::vector<Idle>& idle = cache().idle;
  const auto found = std::find_if(idle.rbegin(), idle.rend(),
                                  [&](const Idle& row) { return row.device == device; });
  if (found == idle.rend()) {
    return nullptr;
  }
  std::shared_ptr<Session> session = std::move(found->session);
  idle.erase(std::next(found).base());
  return session;
}

/// Gives back what has to go, to be destroyed outside the lock.
std::shared_ptr<Session> give(int device, std::shared_ptr<Session> session) {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  std::vector<Idle>& idle = cache().idle;
  idle.push_back({device, std::move(session)});
  const auto is_here = [&](const Idle& row) { return row.device == device; };
  if (static_cast<std::size_t>(std::count_if(idle.begin(), idle.end(), is_here)) <= kKept) {
    return nullptr;
  }
  const auto oldest = std::find_if(idle.begin(), idle.end(), is_here);
  std::shared_ptr<Session> dropped = std::move(oldest->session);
  idle.erase(oldest);
  return dropped;
}

}  // namespace

CachedDecoder::CachedDecoder(int device, const DecodeSettings& settings)
    : device_(device), session_(take(device)) {
  if (session_ == nullptr) {
    session_ = decodingSession(settings);
  }
  lock_ = std::unique_lock<std::mutex>(session_->mutex);
  session_->pipeline.setDecodeLimits(settings.limits);
}

CachedDecoder::~CachedDecoder() {
  lock_.unlock();
  if (is_good_) {
    give(device_, std::move(session_));
  }
}

void clearDecoders() {
  std::vector<Idle> all;
  {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    all.swap(cache().idle);
  }
  all.clear();
  releaseDeviceMemory();
}

}  // namespace fz::python
