#include <algorithm>
#include <cstring>

#include "backends/cuda/device_guard.h"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/host_flag.h"
#include "core/require.h"
#include "cuda_check.h"
#include "format/frame_layout.h"
#include "pipeline/frame/opener.h"

namespace fz {

// Kernels cannot include the format, so what they repeat of it is compared here.
static_assert(cuda::HeaderOffsets::kHeaderSize == kHeaderSizeOffset);
static_assert(cuda::HeaderOffsets::kHeaderCrc == kHeaderChecksumOffset);
static_assert(cuda::HeaderOffsets::kCoreEnd == kCoreBytes);

struct FrameOpener::Front {
  alignas(16) std::uint8_t header[kMaxHeaderBytes];
  std::uint32_t payload_crc;
  std::uint32_t has_header;
  std::uint32_t has_crc;
  std::uint8_t fetched[kMaxHeaderBytes];
};

FrameOpener::FrameOpener(MemoryPool& pool, int device, cuda::GraphNodeLauncher& launcher)
    : pool_(pool),
      device_(device),
      launcher_(launcher),
      state_(pool),
      front_(static_cast<Front*>(pool.allocatePersistentPinned(sizeof(Front), "frame header"))) {
  FZ_REQUIRE(front_ != nullptr, ErrorCode::kOutOfMemory,
             "Pipeline: cannot allocate {} bytes of pinned memory", sizeof(Front));
}

FrameOpener::~FrameOpener() {
  closeFrame();
  pool_.freePersistentPinned(front_);
}

void FrameOpener::openFrame(ByteView frame,
                            ByteView host_copy,
                            FrameHeader& header,
                            cudaStream_t stream) {
  const cuda::DeviceGuard guard(device_);
  closeFrame();  // else its checksum would be taken for that of this one
  std::size_t n_front = std::min(frame.size(), kMaxHeaderBytes);
  if (frame.size() < kCoreBytes) {  // refused as a header, whatever its checksum
    fetchHeader(frame, header, stream);
    return;
  }
  if (!is_state_clear_) {  // the kernel finds its sums at zero, and leaves them so
    state_.reserve(sizeof(cuda::FrameState), 0, "state of a frame");
    FZ_CUDA_CHECK(cudaMemsetAsync(state_.data(), 0, sizeof(cuda::FrameState), stream));
    is_state_clear_ = true;
  }
  cuda::lowerFlag(&front_->has_header);
  cuda::lowerFlag(&front_->has_crc);
  cuda::enqueueFrontRead(frame.data(), frame.size(),
                         reinterpret_cast<cuda::FrameState*>(state_.data()),
                         {&front_->payload_crc, front_->header, static_cast<std::uint32_t>(n_front),
                          &front_->has_header, &front_->has_crc},
                         {stream, &launcher_});
  is_open_ = true;
  stream_ = stream;
  try {
    if (!host_copy.empty()) {
      readHeader(host_copy, host_copy.size(), header);
      return;
    }
    cuda::waitForFlag(&front_->has_header, stream);
    std::uint64_t stated_bytes = 0;
    std::memcpy(&stated_bytes, front_->header + cuda::HeaderOffsets::kHeaderSize, 8);
    n_front = std::min<std::size_t>(n_front, std::max<std::uint64_t>(stated_bytes, kCoreBytes));
    readHeader({front_->header, n_front}, frame.size(), header);
  } catch (...) {
    closeFrame();
    throw;
  }
}

void FrameOpener::fetchHeader(ByteView frame, FrameHeader& header, cudaStream_t stream) {
  const cuda::DeviceGuard guard(device_);
  const std::size_t n_front = std::min(frame.size(), kMaxHeaderBytes);
  if (n_front > 0) {
    FZ_CUDA_CHECK(
        cudaMemcpyAsync(front_->fetched, frame.data(), n_front, cudaMemcpyDefault, stream));
  }
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  readHeader({front_->fetched, n_front}, frame.size(), header);
}

std::uint32_t FrameOpener::payloadCrc() {
  if (is_open_) {
    cuda::waitForFlag(&front_->has_crc, stream_);
    is_open_ = false;
  }
  return front_->payload_crc;
}

const std::uint64_t* FrameOpener::mayWrite() const {
  return &reinterpret_cast<const cuda::FrameState*>(state_.data())->may_write;
}

void FrameOpener::closeFrame() noexcept try { payloadCrc(); } catch (const Error&) {
  is_open_ = false;  // the next call on the device meets the same error
}

const std::uint8_t* FrameOpener::lastHeader() const {
  return front_->header;
}

}  // namespace fz
