#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fz/data_type.h"

namespace fz {

/// Stage ids in files. Open: a stage declares its own id in its descriptor; these are the names
/// that existing callers use. Ids from 0x4000 up are free for stages outside the original system.
// NOLINTBEGIN(readability-identifier-naming)
enum class StageType : std::uint16_t {
  UNKNOWN = 0,
  LORENZO_QUANT = 1,
  DIFFERENCE = 2,
  SCALE = 3,
  PASSTHROUGH = 4,
  RLE = 5,
  HUFFMAN = 6,
  BITPACK = 7,
  SPLIT = 10,
  MERGE = 11,
  LORENZO = 12,
  QUANTIZER = 14,
  ZIGZAG = 15,
  NEGABINARY = 16,
  BITSHUFFLE = 17,
  RZE = 18,
  BITPLANE_RZE = 23,
  ADAPTIVE_BITPACK = 24,
  TILED_LORENZO = 25,
};

inline constexpr std::uint32_t FZM_MAGIC = 0x464D5A32;  // bytes 32 5A 4D 46 in a file
inline constexpr std::uint16_t FZM_VERSION_MAJOR = 3;
inline constexpr std::uint16_t FZM_VERSION_MINOR = 3;  // the newest that is read
/// Frames whose stages the original system has as well: records of a fixed length.
inline constexpr std::uint16_t FZM_VERSION = (FZM_VERSION_MAJOR << 8) | 2;
/// Frames with any other stage: records as long as what they say.
inline constexpr std::uint16_t FZM_VERSION_COMPACT = (FZM_VERSION_MAJOR << 8) | 3;
/// Ids from here up are of stages that the original system does not have.
inline constexpr std::uint16_t FZM_FIRST_OWN_STAGE = 0x4000;
inline constexpr std::size_t FZM_MAX_AXES = 8;
inline constexpr std::size_t FZM_MAX_STAGES = 32;
inline constexpr std::size_t FZM_MAX_BUFFERS = 32;
inline constexpr std::size_t FZM_MAX_SOURCES = 4;
inline constexpr std::size_t FZM_MAX_PORTS = 8;
inline constexpr std::size_t FZM_MAX_NAME_LEN = 64;
inline constexpr std::size_t FZM_STAGE_CONFIG_SIZE = 128;
inline constexpr std::uint16_t FZM_UNUSED_BUFFER_ID = 0xFFFF;
inline constexpr std::uint16_t FZM_FLAG_DATA_CHECKSUM = 1;
inline constexpr std::uint16_t FZM_FLAG_HEADER_CHECKSUM = 2;
inline constexpr std::uint16_t FZM_FLAG_PLACE =
    4;  // compact: the frame is a part of a larger array
// NOLINTEND(readability-identifier-naming)

inline constexpr std::size_t kCoreBytes = 80;
inline constexpr std::size_t kCoreBytesV30 = 72;
inline constexpr std::size_t kRecordBytes = 256;
/// What the shortest frame takes besides its data: the core and the records of one stage and one
/// segment, whose lengths are part of the format.
inline constexpr std::size_t kStoredFrameBytes = kCoreBytes + 2 * kRecordBytes;
/// Whether a lossy frame saves so little that a lossless one may be smaller. Then every front end
/// makes both and keeps the smaller: many values are stored as they are beside their codes, as
/// NaN and fill values of a mask, and lossless coders make more of these.
constexpr bool savesLittle(std::uint64_t frame_bytes, std::uint64_t original_bytes) {
  return frame_bytes > original_bytes / 2;
}

/// First part of a frame; docs/format.md has the layout. Parsed and written field by field.
struct FZMHeaderCore {
  std::uint32_t magic = FZM_MAGIC;
  std::uint16_t version = FZM_VERSION;
  std::uint16_t num_buffers = 0;
  std::uint64_t uncompressed_size = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t header_size = 0;
  std::uint32_t num_stages = 0;
  std::uint16_t num_sources = 1;
  std::uint16_t flags = FZM_FLAG_DATA_CHECKSUM | FZM_FLAG_HEADER_CHECKSUM;
  std::array<std::uint64_t, FZM_MAX_SOURCES> source_uncompressed_sizes = {};
  std::uint32_t data_checksum = 0;
  std::uint32_t header_checksum = 0;
};
static_assert(sizeof(FZMHeaderCore) == kCoreBytes);

/// One stage of the graph. `reserved` of the first record carries the frame description of
/// version 3.2 (see docs/format.md); the original system writes and ignores zeros there.
struct FZMStageInfo {
  std::uint16_t stage_type = 0;
  std::uint16_t stage_version = 1;
  std::uint8_t num_inputs = 0;
  std::uint8_t num_outputs = 0;
  std::uint16_t reserved1 = 0;
  std::array<std::uint16_t, FZM_MAX_PORTS> input_buffer_ids = {};
  std::array<std::uint16_t, FZM_MAX_PORTS> output_buffer_ids = {};
  std::array<std::uint8_t, FZM_STAGE_CONFIG_SIZE> stage_config = {};
  std::uint32_t config_size = 0;
  std::array<std::uint8_t, 84> reserved = {};
};
static_assert(sizeof(FZMStageInfo) == kRecordBytes);

/// One stored segment.
struct FZMBufferEntry {
  std::uint16_t stage_type = 0;
  std::uint16_t stage_version = 1;
  std::uint8_t data_type = 0;
  std::uint8_t producer_output_idx = 0;
  std::uint16_t dag_buffer_id = FZM_UNUSED_BUFFER_ID;
  std::array<char, FZM_MAX_NAME_LEN> name = {};
  std::uint64_t data_size = 0;
  std::uint64_t allocated_size = 0;
  std::uint64_t uncompressed_size = 0;
  std::uint64_t byte_offset = 0;
  std::array<std::uint8_t, FZM_STAGE_CONFIG_SIZE> stage_config = {};
  std::uint32_t config_size = 0;
  std::array<std::uint8_t, 14> reserved = {};
};
static_assert(sizeof(FZMBufferEntry) == kRecordBytes);

/// Name of a stage id as existing tools print it; "Unknown" for ids this build does not have.
std::string stageTypeToString(StageType type);

}  // namespace fz
