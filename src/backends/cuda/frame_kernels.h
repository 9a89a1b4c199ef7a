#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/run_context.h"
#include "backends/cuda/run_state.h"
#include "fz/device_types.h"

namespace fz::cuda {

/// One stored buffer of a frame.
struct Segment {
  const std::uint8_t* data;      ///< where its stage left it
  const std::uint64_t* n_bytes;  ///< on the device
  std::uint64_t max_bytes;
};

struct SegmentList {
  Segment segment[FZM_MAX_BUFFERS];
  std::uint32_t n_segments;
};

/// A header field that only the device knows: `n_bytes` bytes at `offset` of the header.
struct HeaderField {
  const std::uint64_t* source;  ///< on the device, little-endian
  std::uint32_t offset;
  std::uint32_t n_bytes;
};

/// Everything that turns the outputs of the stages into a frame.
struct FrameJob {
  SegmentList segments;  ///< the first was written in place, behind the header
  std::uint8_t* frame;
  const std::uint8_t* header_template;
  std::uint32_t header_bytes;
  std::uint32_t n_fields;
  const HeaderField* fields;
  FrameState* state;
  HostReadback readback;
  ClearRange clears[RunContext::kMaxClears];
  std::uint32_t n_clears;
  std::uint32_t is_front_summed;  ///< 1: by enqueueFrontSum()
};

/// Sums up the first segment's part of the payload's checksum, while others are not there yet.
void enqueueFrontSum(const FrameJob& job, const Launcher& launcher);
/// Moves the segments to their places, writes the header with both checksums, and hands the run
/// block to the host.
void enqueueFrame(const FrameJob& job, const Launcher& launcher);
/// Decoding: compares the payload's checksum with state->expected_crc. A payload that does not pass
/// sets state->mismatch to 1 and has no bytes in any segment; else state->may_write becomes 1.
void enqueuePayloadCheck(const std::uint8_t* payload,
                         std::uint64_t max_bytes,
                         FrameState* state,
                         const Launcher& launcher);
/// Where the host wants what it must know before it can decode: its own pinned memory.
struct FrameFront {
  std::uint32_t* payload_crc;
  std::uint8_t* header;            ///< 16-byte aligned
  std::uint32_t max_header_bytes;  ///< at least those of a header's core
  // 1 when they are there; the header comes first.
  std::uint32_t* has_header;
  std::uint32_t* has_crc;
};

/// A frame's header, as long as it says it is but at most max_header_bytes, and the checksum of the
/// payload behind it, to the host. The frame is 16-byte aligned and has at least the bytes of a
/// header's core. The checksum means nothing where the header does not stand up to the host's
/// checks. `state` is zero before the first call.
void enqueueFrontRead(const std::uint8_t* frame,
                      std::uint64_t n_bytes,
                      FrameState* state,
                      const FrameFront& front,
                      const Launcher& launcher);

/// A header field that may differ between frames of one kind, and where it is wanted (may be null).
struct FieldTarget {
  std::uint64_t* target;
  std::uint32_t offset;
  std::uint32_t n_bytes;
};

struct SegmentLimits {
  std::uint64_t max_bytes[FZM_MAX_BUFFERS];
  std::uint32_t n_segments;
  std::uint32_t stores_offsets;  ///< 1: the header says where segments begin
};

/// Checks a frame's header against a template (in which fields and checksums are zero), against its
/// own checksum and against the memory there is, and hands the fields out. A frame that does not
/// pass sets state->mismatch to 2 and has no bytes in any segment.
void enqueueOpen(const std::uint8_t* frame,
                 std::uint64_t capacity_bytes,
                 const std::uint8_t* header_template,
                 std::uint32_t header_bytes,
                 const FieldTarget* fields,
                 std::uint32_t n_fields,
                 const SegmentLimits& limits,
                 FrameState* state,
                 const Launcher& launcher);
/// Copies segment `index` to `to`, which is aligned and holds 16 bytes more than max_bytes.
void enqueueExtract(const std::uint8_t* payload,
                    std::uint8_t* to,
                    std::uint64_t max_bytes,
                    const FrameState* state,
                    std::uint32_t index,
                    const Launcher& launcher);

/// Offsets in the header that these kernels read or write.
struct HeaderOffsets {
  static constexpr std::uint32_t kHeaderSize = 24;
  static constexpr std::uint32_t kCoreEnd = 80;  ///< these bytes every frame has
  static constexpr std::uint32_t kPayloadCrc = 72;
  static constexpr std::uint32_t kHeaderCrc = 76;
};

}  // namespace fz::cuda
