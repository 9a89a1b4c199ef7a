#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "backends/cuda/graph_launcher.h"
#include "format/frame_header.h"
#include "pipeline/pool_buffer.h"

namespace fz {

/// Reads the headers of frames on a device, and has their payloads checked there.
class FrameOpener {
 public:
  /// Throws Error(kOutOfMemory).
  FrameOpener(MemoryPool& pool, int device, cuda::GraphNodeLauncher& launcher);
  FrameOpener(const FrameOpener&) = delete;
  FrameOpener& operator=(const FrameOpener&) = delete;
  ~FrameOpener();

  /// Reads the header of a frame on the device, from `host_copy` where that is not empty. The
  /// device goes on to compute the payload's checksum.
  void openFrame(ByteView frame, ByteView host_copy, FrameHeader& header, cudaStream_t stream);
  /// Of the last frame that was opened; waits for it. Throws Error(kCuda).
  std::uint32_t payloadCrc();
  /// On the device: not 0 once its payload has been found to be what its header announces.
  const std::uint64_t* mayWrite() const;
  /// After it the device reads that frame no more.
  void closeFrame() noexcept;
  /// Its header's bytes.
  const std::uint8_t* lastHeader() const;
  /// The header of any frame on the device, which is not opened by that. Waits.
  void fetchHeader(ByteView frame, FrameHeader& header, cudaStream_t stream);

 private:
  /// Where the device leaves what the host must know of a frame.
  struct Front;

  MemoryPool& pool_;
  int device_;
  cuda::GraphNodeLauncher& launcher_;
  PoolBuffer state_;  // a cuda::FrameState, of the last frame that was opened
  bool is_state_clear_ = false;
  Front* front_;  // pinned
  cudaStream_t stream_ = nullptr;
  bool is_open_ = false;  // the checksum is on its way
};

}  // namespace fz
