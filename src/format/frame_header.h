#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/span.h"
#include "fzm_format.h"

namespace fz {

class CpuExecutor;

/// Extents of an array of up to eight axes, the fastest first.
struct FrameShape {
  std::uint8_t n_axes = 0;
  std::array<std::uint64_t, FZM_MAX_AXES> extents = {};

  bool operator==(const FrameShape&) const = default;
};

/// Where the array of a frame stands in a larger one. Compact frames only.
struct FramePlace {
  std::uint64_t array_id = 0;  ///< the same in all parts of one array
  std::array<std::uint64_t, FZM_MAX_AXES> origin = {};
  std::array<std::uint64_t, FZM_MAX_AXES> whole = {};  ///< extents of the larger array

  bool operator==(const FramePlace&) const = default;
};

/// What versions 3.2 and 3.3 add: the array that the frame holds. 3.2 stores it in the reserved
/// bytes of the first stage record, which the original system writes as zeros and never reads.
struct FrameDescription {
  DataType type = DataType::UNKNOWN;
  std::uint8_t ndim = 1;
  std::uint64_t original_bytes = 0;
  /// As predictors see the array: axes beyond the third are part of it.
  std::array<std::uint64_t, 3> dims = {0, 1, 1};
  std::optional<BoundInfo> bound;
  /// All axes, where the frame is compact; else the dims.
  FrameShape shape;
  std::optional<FramePlace> place;
};

/// Of the longest header there is.
inline constexpr std::size_t kMaxHeaderBytes =
    kCoreBytes + kRecordBytes * (FZM_MAX_STAGES + FZM_MAX_BUFFERS);

/// A parsed and checked header.
struct FrameHeader {
  FZMHeaderCore core;
  std::vector<FZMStageInfo> stages;
  std::vector<FZMBufferEntry> buffers;
  FrameDescription description;

  std::uint16_t major() const;
  std::uint16_t minor() const;
  bool isCompact() const { return minor() >= 3; }
  std::uint64_t frameBytes() const { return core.header_size + core.compressed_size; }
};

/// Bytes that writeHeader() takes for it; in the compact form they depend on what it says.
std::size_t headerBytes(const FrameHeader& header);

/// Writes `header` to the front of `out`, which must hold headerBytes() of it. Fills in version,
/// sizes and flags; data_checksum must be set; computes the header checksum.
void writeHeader(FrameHeader& header, MutableByteView out);

/// Parses the front of a frame. Checks magic, version, counts, every offset, size and id against
/// each other and against total_bytes (the length of the whole frame), and the header checksum.
/// `front` needs to hold the header only. Throws Error(kCorrupt) or Error(kUnsupported).
FrameHeader readHeader(ByteView front, std::uint64_t total_bytes);
/// The same, into a header whose storage is used again; undefined after a throw.
void readHeader(ByteView front, std::uint64_t total_bytes, FrameHeader& header);

/// Throws Error(kCorrupt) when the payload does not match its checksum. A no-op for 3.0 frames,
/// which have none.
void verifyPayload(const FrameHeader& header, ByteView payload, const CpuExecutor& executor);
/// The same with a checksum that was computed elsewhere.
void verifyPayloadCrc(const FrameHeader& header, std::uint32_t crc);

}  // namespace fz
