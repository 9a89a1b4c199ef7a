#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fz/cuda_run.h"
#include "fzm_format.h"

namespace fz {
class MemoryPool;
}

namespace fz::cuda {

/// What assembling or checking a frame leaves on the device, behind the records of the stages.
struct FrameState {
  std::uint64_t total_bytes;  ///< header and payload
  std::uint64_t payload_bytes;
  std::uint64_t segment_bytes[FZM_MAX_BUFFERS];
  std::uint64_t segment_offset[FZM_MAX_BUFFERS];  ///< within the payload
  std::uint32_t payload_crc;                      ///< as stored in the header
  std::uint32_t crc_remainder;  ///< sum of the parts' remainders while the payload is summed up
  std::uint32_t expected_crc;   ///< decoding: what the header announces
  std::uint32_t mismatch;       ///< decoding: 1 when payload or header are not what is expected
  std::uint32_t blocks_done;    ///< while the payload is summed up
};

/// The records of all stages of a graph and the frame's state: one block on the device and its
/// image in pinned memory, cleared and read back by one copy each.
class RunBlock {
 public:
  explicit RunBlock(MemoryPool* pool) : pool_(pool) {}
  RunBlock(const RunBlock&) = delete;
  RunBlock& operator=(const RunBlock&) = delete;
  ~RunBlock();

  /// Makes room for n records. Throws Error(kOutOfMemory).
  void reserve(std::size_t n_records);

  /// Start values, copied to the device by enqueueInit; the caller edits them before.
  StageRecord& initial(std::size_t i) { return initialRecords()[i]; }
  FrameState& initialFrame();
  void enqueueInit(cudaStream_t stream);
  void enqueueReadback(cudaStream_t stream);
  /// For a kernel that does the readback itself: the block on the device, where the host wants it,
  /// and its length in words.
  const std::uint32_t* deviceWords() const;
  std::uint32_t* hostWords() const;
  std::uint32_t wordCount() const;

  StageRecord* onDevice(std::size_t i) const;
  FrameState* frameOnDevice() const;
  /// What the last readback brought; valid once the stream has come past it.
  const StageRecord& result(std::size_t i) const;
  const FrameState& frameResult() const;

 private:
  StageRecord* initialRecords();
  std::size_t blockBytes() const;

  MemoryPool* pool_;
  std::size_t n_records_ = 0;
  std::uint8_t* device_ = nullptr;
  std::uint8_t* initial_ = nullptr;  // pinned
  std::uint8_t* result_ = nullptr;   // pinned
};

}  // namespace fz::cuda
