#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/captures.h"
#include "backends/cuda/device_guard.h"
#include "backends/cuda/host_copy.h"
#include "cuda_check.h"

namespace fz::cuda {

namespace {

// A thread copies 9 GB/s, a bus of today takes 25 to 55.
constexpr std::size_t kMaxLanes = 12;
// A piece costs the driver 12 us, whoever asks: 512 MiB in pieces of 2 MiB come at 88 % of the
// bus, of 512 KiB at 55 %.
constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
// Short copies are cut into four, so that memory and bus work at the same time.
constexpr std::size_t kMinPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kShortPieces = 4;
// Below, a copy takes as long as the driver takes to begin it.
constexpr std::size_t kMinStagedBytes = std::size_t{64} << 10;
constexpr std::size_t kSlotsPerLane = 2;

/// A piece of pinned memory and the event behind its last copy.
struct Slot {
  std::uint8_t* memory = nullptr;
  cudaEvent_t passed = nullptr;
  bool is_pending = false;

  void wait() {
    if (is_pending) {
      FZ_CUDA_CHECK(cudaEventSynchronize(passed));
      is_pending = false;
    }
  }
  void record(cudaStream_t stream) {
    FZ_CUDA_CHECK(cudaEventRecord(passed, stream));
    is_pending = true;
  }
};

/// The slots that one thread works with, on one device.
struct Lane {
  int device = -1;
  Slot slots[kSlotsPerLane];

  bool isUsable() const { return device >= 0; }
};

void destroy(Lane& lane) noexcept {
  const UnnoticedByCaptures unnoticed;
  for (Slot& slot : lane.slots) {
    if (slot.passed != nullptr) {
      FZ_CUDA_CHECK_WARN(cudaEventSynchronize(slot.passed));
      FZ_CUDA_CHECK_WARN(cudaEventDestroy(slot.passed));
    }
    if (slot.memory != nullptr) {
      FZ_CUDA_CHECK_WARN(cudaFreeHost(slot.memory));
    }
  }
  lane = {};
}

/// Not usable where there is no memory: the caller does without.
Lane makeLane(int device) noexcept {
  const UnnoticedByCaptures unnoticed;
  Lane lane;
  lane.device = device;
  for (Slot& slot : lane.slots) {
    void* memory = nullptr;
    if (cudaMallocHost(&memory, kPieceBytes) != cudaSuccess ||
        cudaEventCreateWithFlags(&slot.passed, cudaEventDisableTiming) != cudaSuccess) {
      cudaGetLastError();  // handled here; it must not turn up elsewhere
      slot.memory = static_cast<std::uint8_t*>(memory);
      destroy(lane);
      return lane;
    }
    slot.memory = static_cast<std::uint8_t*>(memory);
  }
  return lane;
}

/// Lanes that no copy uses, for the next one: pinning memory takes longer than most copies.
class Lanes {
 public:
  /// For the device that is current.
  Lane take(int device) noexcept {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(idle_.begin(), idle_.end(),
                                      [&](const Lane& lane) { return lane.device == device; });
      if (found != idle_.end()) {
        const Lane lane = *found;
        idle_.erase(found);
        return lane;
      }
    }
    return makeLane(device);
  }

  void giveBack(Lane& lane) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (idle_.size() < idle_.capacity()) {
        idle_.push_back(lane);
        lane = {};
        return;
      }
    }
    destroy(lane);
  }

  void clear() noexcept {
    while (true) {
      Lane lane;
      {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) {
          return;
        }
        lane = idle_.back();
        idle_.pop_back();
      }
      const DeviceGuard guard(lane.device);
      destroy(lane);
    }
  }

  /// Never destroyed: when static objects are, the driver may be gone.
  static Lanes& all() {
    static Lanes* const kLanes = new Lanes;
    return *kLanes;
  }

 private:
  Lanes() { idle_.reserve(2 * kMaxLanes); }

  std::mutex mutex_;
  std::vector<Lane> idle_;
};

/// A lane for one thread of one copy. What is under way when it ends goes on, unless it ends by an
/// exception: then nobody knows which copies an event stands behind.
class LaneScope {
 public:
  LaneScope(int device, cudaStream_t stream)
      : lane_(Lanes::all().take(device)),
        stream_(stream),
        n_exceptions_(std::uncaught_exceptions()) {}
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;
  ~LaneScope() {
    if (!lane_.isUsable()) {
      return;
    }
    if (std::uncaught_exceptions() > n_exceptions_) {
      FZ_CUDA_CHECK_WARN(cudaStreamSynchronize(stream_));
    }
    Lanes::all().giveBack(lane_);
  }
  bool isUsable() const { return lane_.isUsable(); }
  Slot& slot(std::size_t i) { return lane_.slots[i % kSlotsPerLane]; }

 private:
  Lane lane_;
  cudaStream_t stream_;
  int n_exceptions_;
};

/// Ordinary memory, which a device cannot reach by itself.
bool isPageable(const void* memory) noexcept {
  cudaPointerAttributes attributes = {};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

/// A copy in pieces, which threads take one after the other.
class Pieces {
 public:
  Pieces(std::size_t n_bytes, const CpuExecutor& threads)
      : n_bytes_(n_bytes), n_lanes_(std::min(threads.threadCount(), kMaxLanes)) {
    piece_bytes_ =
        std::clamp((n_bytes + kShortPieces - 1) / kShortPieces, kMinPieceBytes, kPieceBytes);
    n_pieces_ = (n_bytes + piece_bytes_ - 1) / piece_bytes_;
    n_lanes_ = std::min(n_lanes_, n_pieces_);
  }

  struct Piece {
    std::size_t offset = 0;
    std::size_t n_bytes = 0;  // 0: none is left
  };
  Piece take() {
    const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= n_pieces_) {
      return {};
    }
    return {i * piece_bytes_, std::min(piece_bytes_, n_bytes_ - i * piece_bytes_)};
  }
  std::size_t laneCount() const { return n_lanes_; }

 private:
  std::size_t n_bytes_;
  std::size_t n_lanes_;
  std::size_t piece_bytes_;
  std::size_t n_pieces_;
  std::atomic<std::size_t> next_{0};
};

void copyDirectly(void* to, const void* from, std::size_t n_bytes, cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream));
}

const CpuExecutor& threadsOf(const HostCopy& how) {
  return how.threads != nullptr ? *how.threads : CpuExecutor::serial();
}

/// One thread's part of a copy to the device.
void sendPieces(Pieces& pieces, std::uint8_t* to, const std::uint8_t* from, const HostCopy& how) {
  const DeviceGuard guard(how.device);
  LaneScope lane(how.device, how.stream);
  std::size_t i = 0;
  for (Pieces::Piece piece = pieces.take(); piece.n_bytes > 0; piece = pieces.take(), ++i) {
    if (!lane.isUsable()) {
      copyDirectly(to + piece.offset, from + piece.offset, piece.n_bytes, how.stream);
      continue;
    }
    Slot& slot = lane.slot(i);
    slot.wait();
    std::memcpy(slot.memory, from + piece.offset, piece.n_bytes);
    copyDirectly(to + piece.offset, slot.memory, piece.n_bytes, how.stream);
    slot.record(how.stream);
  }
}

/// One thread's part of a copy to the host: while it empties a slot the other one is filled.
void fetchPieces(Pieces& pieces, std::uint8_t* to, const std::uint8_t* from, const HostCopy& how) {
  const DeviceGuard guard(how.device);
  LaneScope lane(how.device, how.stream);
  Pieces::Piece waiting;
  std::size_t i = 0;
  const auto empty = [&](Slot& slot) {
    slot.wait();
    std::memcpy(to + waiting.offset, slot.memory, waiting.n_bytes);
  };
  for (Pieces::Piece piece = pieces.take(); piece.n_bytes > 0; piece = pieces.take(), ++i) {
    if (!lane.isUsable()) {
      copyDirectly(to + piece.offset, from + piece.offset, piece.n_bytes, how.stream);
      continue;
    }
    Slot& slot = lane.slot(i);
    slot.wait();
    copyDirectly(slot.memory, from + piece.offset, piece.n_bytes, how.stream);
    slot.record(how.stream);
    if (waiting.n_bytes > 0) {
      empty(lane.slot(i + 1));
    }
    waiting = piece;
  }
  if (waiting.n_bytes > 0) {
    empty(lane.slot(i + 1));
  }
}

}  // namespace

void copyFromHost(void* to_device, ByteView from, const HostCopy& how) {
  if (from.empty()) {
    return;
  }
  const DeviceGuard guard(how.device);
  if (from.size() < kMinStagedBytes || !isPageable(from.data())) {
    copyDirectly(to_device, from.data(), from.size(), how.stream);
    return;
  }
  const CpuExecutor& threads = threadsOf(how);
  Pieces pieces(from.size(), threads);
  parallelFor(threads, pieces.laneCount(), [&](std::size_t /*lane*/) {
    sendPieces(pieces, static_cast<std::uint8_t*>(to_device), from.data(), how);
  });
}

void copyToHost(MutableByteView to, const void* from_device, const HostCopy& how) {
  if (to.empty()) {
    return;
  }
  const DeviceGuard guard(how.device);
  if (to.size() < kMinStagedBytes || !isPageable(to.data())) {
    copyDirectly(to.data(), from_device, to.size(), how.stream);
  } else {
    const CpuExecutor& threads = threadsOf(how);
    Pieces pieces(to.size(), threads);
    parallelFor(threads, pieces.laneCount(), [&](std::size_t /*lane*/) {
      fetchPieces(pieces, to.data(), static_cast<const std::uint8_t*>(from_device), how);
    });
  }
  FZ_CUDA_CHECK(cudaStreamSynchronize(how.stream));
}

void releasePinnedPieces() noexcept {
  Lanes::all().clear();
}

}  // namespace fz::cuda
