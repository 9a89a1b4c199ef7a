#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cuda/graph_launcher.h"
#include "backends/cuda/run_state.h"
#include "fz/stream.h"

namespace fz {
class ZeroedScratch;
}

namespace fz::cuda {

class SideStream;

/// Words that a kernel sets to zero besides its own work.
struct ClearRange {
  std::uint64_t* words;
  std::uint64_t n_words;
};

/// What the calls of one enqueued run share: how kernels are launched, whether outputs may be
/// written, what must be cleared behind them, and who brings the results to the host.
class RunContext {
 public:
  static constexpr std::size_t kMaxClears = 4;
  static constexpr std::size_t kMaxSides = 2;

  explicit RunContext(const Launcher& launcher) : launcher_(launcher) {}
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;
  /// Clears what no kernel has taken over, and waits for what was left beside the stream.
  ~RunContext();

  const Launcher& launcher() const { return launcher_; }
  cudaStream_t stream() const { return launcher_.stream; }

  /// See Call::mayWrite().
  void setMayWrite(const std::uint64_t* word) { may_write_ = word; }
  const std::uint64_t* mayWrite() const { return may_write_; }

  /// The kernel that ends the run clears this memory, where a memset would be one more thing that
  /// the stream waits for. False: there is no room; the caller must clear it. Else the owner, which
  /// must live as long, hears of it when the clearing is enqueued, which may fail.
  bool clearAtEnd(std::uint8_t* memory, std::size_t n_bytes, ZeroedScratch& owner);
  /// Its memory is needed before the run ends.
  void withdrawClear(const ZeroedScratch& owner);
  std::span<const ClearRange> clears() const { return {clears_.data(), n_clears_}; }
  /// A kernel that clears all of them is enqueued.
  void recordClears();

  /// Streams beside the run's own, which must not outlive it.
  bool hasRoomForSide() const { return n_sides_ < kMaxSides; }
  void recordSide(SideStream& side) { sides_[n_sides_++] = &side; }
  /// Whether there is work beside the stream.
  bool hasOpenSide() const;
  /// The stream waits for all that is beside it.
  void joinSides();
  /// Whoever enqueues the run calls joinSides() when its last step is enqueued; else that is done
  /// at the end of every step. A part may leave a side open when nothing that is enqueued behind
  /// the group's kernel writes to the output that is stored first: so the stream has time for work
  /// on that.
  void leaveSides() { leaves_sides_ = true; }
  bool leavesSides() const { return leaves_sides_; }

  /// Who ends the run.
  enum class Readback : std::uint8_t {
    kByCaller,  ///< whoever has enqueued it, by a kernel or a copy of its own
    kOffered,   ///< the last kernel of the last group, where a stage has one
    kOpen,      ///< that group is being enqueued
    kTaken,     ///< a kernel of it does
  };
  void offerReadback(DeviceRunState& state) {
    state_ = &state;
    readback_ = Readback::kOffered;
  }
  bool isReadbackOffered() const { return readback_ == Readback::kOffered; }
  /// While a part of the last group is called that can end the run.
  void openReadback() { readback_ = Readback::kOpen; }
  void closeReadback() {
    readback_ = readback_ == Readback::kOpen ? Readback::kByCaller : readback_;
  }
  bool isReadbackTaken() const { return readback_ == Readback::kTaken; }
  /// See Call::takeReadback().
  HostReadback takeReadback();

 private:
  Launcher launcher_;
  const std::uint64_t* may_write_ = nullptr;
  DeviceRunState* state_ = nullptr;
  Readback readback_ = Readback::kByCaller;
  std::array<ClearRange, kMaxClears> clears_ = {};
  std::array<ZeroedScratch*, kMaxClears> owners_ = {};
  std::size_t n_clears_ = 0;
  std::array<SideStream*, kMaxSides> sides_ = {};
  std::size_t n_sides_ = 0;
  bool leaves_sides_ = false;
};

}  // namespace fz::cuda
