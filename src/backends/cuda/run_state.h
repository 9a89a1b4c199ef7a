#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"
#include "fz/stream.h"
#include "fzm_format.h"

namespace fz {
class MemoryPool;
}

namespace fz::cuda {

struct Launcher;

/// What assembling or checking a frame leaves on the device, behind the records of the stages.
struct FrameState {
  std::uint64_t total_bytes;  ///< header and payload
  std::uint64_t payload_bytes;
  std::uint64_t segment_bytes[FZM_MAX_BUFFERS];
  std::uint64_t segment_offset[FZM_MAX_BUFFERS];  ///< within the payload
  std::uint64_t may_write;        ///< decoding: not 0 when the payload is what the header announces
  std::uint32_t payload_crc;      ///< as stored in the header
  std::uint32_t header_crc;       ///< encoding: what it would be if payload_crc were 0
  std::uint32_t crc_remainder;    ///< sum of the parts' remainders while the payload is summed up
  std::uint32_t expected_crc;     ///< decoding: what the header announces
  std::uint32_t mismatch;         ///< decoding: 1 when payload or header are not what is expected
  std::uint32_t blocks_done;      ///< while the payload is summed up
  std::uint32_t front_remainder;  ///< of the first segment's whole pieces, where that came before
  std::uint32_t unused;
};

/// The end of a run, for a kernel that brings the results to the host and leaves the records as
/// they were before it: a copy each would cost a small call more than its checksum.
struct HostReadback {
  std::uint32_t* device;       ///< the block
  const std::uint32_t* start;  ///< its start values
  std::uint32_t* host;         ///< where the host wants it
  std::uint32_t n_words;
  std::uint32_t n_record_words;  ///< the first of them, which get their start values back
  std::uint32_t* is_done;        ///< on the host; 1 when all the rest is there
};

/// The records of all stages of a graph and the frame's state: one block on the device and its
/// image in pinned memory. A run sets it and reads it back by one copy each, or ends with a
/// HostReadback, which leaves nothing to set for the next.
class DeviceRunState {
 public:
  explicit DeviceRunState(MemoryPool* pool) : pool_(pool) {}
  DeviceRunState(const DeviceRunState&) = delete;
  DeviceRunState& operator=(const DeviceRunState&) = delete;
  ~DeviceRunState();

  /// Makes room for n records. Throws Error(kOutOfMemory).
  void reserve(std::size_t n_records);

  /// Start values, copied to the device when a run begins; the caller edits them before.
  StageRecord& initial(std::size_t i) { return initialRecords()[i]; }
  void enqueueInit(cudaStream_t stream);
  /// The same for a run that is sure to run now; nothing is copied where the last such run ended
  /// with a HostReadback and the values have not changed.
  void enqueueInitIfNeeded(cudaStream_t stream);
  void enqueueCopyToHost(cudaStream_t stream);

  /// For a kernel that is the last one of a run; recordReadback() when it is enqueued.
  HostReadback hostReadback() const;
  /// Such a kernel, which does nothing else.
  void enqueueReadback(const Launcher& launcher);
  /// A kernel with a HostReadback, or a graph that ends with one, is enqueued next.
  void recordReadback();
  /// A run broke off: what is on the device is unknown, so the next one sets it.
  void recordFailure() { contents_ = Contents::kUnknown; }
  /// Waits until the last HostReadback is done, or for the stream when that takes long: a failed
  /// kernel shows there. Only for whoever has waited for all earlier ones.
  void waitForReadback(cudaStream_t stream) const;

  StageRecord* onDevice(std::size_t i) const;
  FrameState* frameOnDevice() const;
  /// What the last readback brought; valid once the stream has come past it.
  const StageRecord& result(std::size_t i) const;
  const FrameState& frameResult() const;

 private:
  StageRecord* initialRecords();
  std::size_t blockBytes() const;
  std::uint32_t* doneWord() const;

  MemoryPool* pool_;
  std::size_t n_records_ = 0;
  std::uint8_t* device_ = nullptr;   // the block, and behind it its start values
  std::uint8_t* initial_ = nullptr;  // pinned, both: as the caller wants them, as they were sent
  std::uint8_t* result_ = nullptr;   // pinned, and behind it a word: the last HostReadback is done
  /// What the records on the device are when all that was enqueued has run.
  enum class Contents : std::uint8_t {
    kUnknown,
    kInRun,    ///< findings of a run that may be enqueued again later, or never
    kRunEnds,  ///< findings of a run; a HostReadback behind it leaves them at their start values
    kAtStart,
  } contents_ = Contents::kUnknown;
};

}  // namespace fz::cuda
