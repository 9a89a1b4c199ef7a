#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/run_block.h"
#include "fz/cuda_run.h"

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

/// Sizes and places of the segments, into the state.
void enqueueLayout(const SegmentList& segments,
                   std::uint64_t header_bytes,
                   FrameState* state,
                   cudaStream_t stream);
/// Copies all segments but the first, which its stage wrote in place.
void enqueueSegmentCopies(const SegmentList& segments,
                          std::uint8_t* payload,
                          const FrameState* state,
                          cudaStream_t stream);
/// Remainder of the payload's CRC into state->crc_remainder; state->payload_bytes must be set.
void enqueuePayloadCrc(const std::uint8_t* payload,
                       std::uint64_t max_bytes,
                       FrameState* state,
                       cudaStream_t stream);
/// The header: template and fields, payload checksum, header checksum.
void enqueueHeader(const std::uint8_t* header_template,
                   std::uint32_t header_bytes,
                   const HeaderField* fields,
                   std::uint32_t n_fields,
                   std::uint8_t* frame,
                   FrameState* state,
                   cudaStream_t stream);
/// Decoding: finishes the payload's checksum and compares it with state->expected_crc. A payload
/// that does not pass sets state->mismatch to 1 and has no bytes in any segment.
void enqueueCrcCheck(const std::uint8_t* payload, FrameState* state, cudaStream_t stream);
/// The checksum of a frame's payload into state->payload_crc, for a host that has not seen the
/// header yet; the frame has at least the bytes of a header's core. Means nothing where the header
/// does not stand up to the host's checks.
void enqueueFrameCrc(const std::uint8_t* frame,
                     std::uint64_t n_bytes,
                     FrameState* state,
                     cudaStream_t stream);

/// A header field that may differ between frames of one kind, and where it is wanted (may be null).
struct FieldTarget {
  std::uint64_t* target;
  std::uint32_t offset;
  std::uint32_t n_bytes;
};

struct SegmentLimits {
  std::uint64_t max_bytes[FZM_MAX_BUFFERS];
  std::uint32_t n_segments;
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
                 cudaStream_t stream);
/// Copies segment `index` to `to`, which is aligned and holds 16 bytes more than max_bytes.
void enqueueExtract(const std::uint8_t* payload,
                    std::uint8_t* to,
                    std::uint64_t max_bytes,
                    const FrameState* state,
                    std::uint32_t index,
                    cudaStream_t stream);

/// Offsets in the header that these kernels read or write.
struct HeaderOffsets {
  static constexpr std::uint32_t kHeaderSize = 24;
  static constexpr std::uint32_t kPayloadCrc = 72;
  static constexpr std::uint32_t kHeaderCrc = 76;
};

}  // namespace fz::cuda
