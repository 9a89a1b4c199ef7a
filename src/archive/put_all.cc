// Chunks one after the other, several of them under way.
#include <algorithm>
#include <atomic>
#include <future>
#include <new>
#include <vector>

#include "archive/chunk_slots.h"
#include "archive/turns.h"
#include "archive/writer_state.h"
#include "backends/cuda/device_guard.h"
#include "core/require.h"

namespace fz {

namespace {

// While one chunk comes from the host, another is coded and a third goes back: three keep a bus
// busy both ways.
constexpr std::size_t kAtOnceOnDevice = 3;
// One is read while another is coded.
constexpr std::uint64_t kChunksOnCpu = 2;
// Larger chunks are enough for a bus by themselves, and each takes several times its length on a
// device.
constexpr std::uint64_t kMostBytesAtOnce = std::uint64_t{512} << 20;

using ReadBox = std::function<void(const Box& box, MutableByteView values)>;

}  // namespace

/// What the threads of one putAll() share.
class ArchiveWriter::OrderedWork {
 public:
  OrderedWork(State& state, const ReadBox& read)
      : state_(state),
        read_(read),
        device_(mayBeOnDevice() && cuda::isInUse() ? cuda::currentDevice() : -1) {}

  void run() {
    const std::size_t n_threads = static_cast<std::size_t>(std::min(atOnce(), state_.grid.count()));
    std::vector<std::future<void>> others;  // wait for their threads when an exception passes
    for (std::size_t i = 1; i < n_threads; ++i) {
      others.push_back(std::async(std::launch::async, [this] {
        const cuda::DeviceGuard guard(device_);
        work();
      }));
    }
    work();
    for (std::future<void>& other : others) {
      other.get();
    }
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  bool mayBeOnDevice() const {
    return state_.chunk_options.backend != Backend::CPU && cuda::isBuiltIn();
  }
  std::uint64_t atOnce() const {
    const bool has_room = state_.chunk_options.max_memory_bytes == 0 &&
                          state_.grid.chunkBytes() <= kMostBytesAtOnce / kChunksOnDevice;
    return mayBeOnDevice() && has_room ? kChunksOnDevice : kChunksOnCpu;
  }

  void work() {
    std::vector<std::uint8_t> values;
    for (std::uint64_t chunk = n_begun_++; chunk < state_.grid.count(); chunk = n_begun_++) {
      try {
        if (!one(chunk, values)) {
          return;
        }
      } catch (...) {
        fail(chunk, std::current_exception());
        return;
      }
    }
  }

  /// False where the work is over.
  bool one(std::uint64_t chunk, std::vector<std::uint8_t>& values) {
    const Box box = state_.grid.boxOf(chunk);
    if (!reading_.wait(chunk)) {
      return false;
    }
    values.resize(valueCount(box.extents) * state_.grid.valueBytes());
    read_(box, values);
    reading_.pass();
    // On the CPU all threads work on one chunk, and a plan is handed from chunk to chunk.
    const bool codes_alone = state_.searches_plan || !state_.is_on_device;
    if (!coding_.wait(chunk)) {
      return false;
    }
    if (!codes_alone) {
      coding_.pass();
    }
    state_.requireNotCancelled("putAll");
    ArchiveWriter::State::Made made = state_.make(box, values);
    if (codes_alone) {
      coding_.pass();
    }
    if (!placing_.wait(chunk)) {
      return false;
    }
    state_.place(chunk, box, made);
    placing_.pass();
    return true;
  }

  /// The error of the first chunk that has one is that of the call.
  void fail(std::uint64_t chunk, std::exception_ptr error) {
    if (placing_.wait(chunk)) {
      failure_ = std::move(error);
    }
    reading_.end();
    coding_.end();
    placing_.end();
  }

  State& state_;
  const ReadBox& read_;
  int device_;  // of the caller; -1: none, or the first
  std::atomic<std::uint64_t> n_begun_ = 0;
  Turns reading_;
  Turns coding_;
  Turns placing_;
  std::exception_ptr failure_;
};

void ArchiveWriter::putAll(const ReadBox& read) try {
  State& s = *state_;
  FZ_REQUIRE(!s.grows, ErrorCode::kInvalidState,
             "ArchiveWriter::putAll: needs an array whose extents are known");
  s.requireOpen("putAll");
  s.is_ordered = true;
  OrderedWork(s, read).run();
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
