#pragma once

#include <cstddef>
#include <cstdint>

// Positions inside a frame that writer and reader share; docs/format.md has the whole layout.
namespace fz {

inline constexpr std::size_t kCompressedSizeOffset = 16;
inline constexpr std::size_t kHeaderChecksumOffset = 76;
inline constexpr std::size_t kHeaderSizeOffset = 24;
inline constexpr std::size_t kRecordVersionOffset = 2;  // in stage and buffer records
inline constexpr std::size_t kStageConfigOffset = 40;
inline constexpr std::size_t kBufferConfigOffset = 104;
inline constexpr std::size_t kBufferSizeOffsets[] = {72, 80, 88};  // stored, allocated, raw
inline constexpr std::size_t kBufferPlaceOffset = 96;
inline constexpr std::size_t kDescriptionOffset = 172;  // in the first stage record
inline constexpr std::size_t kDescriptionBoundOffset = kDescriptionOffset + 48;  // absolute bound
inline constexpr std::size_t kBufferTailBytes = 20;      // reserved end of a buffer record
inline constexpr std::uint32_t kDescriptionVersion = 1;  // of the block in the first record
inline constexpr std::uint8_t kNoBound = 0xFF;           // lossless: no bound mode

// The compact form (3.3). Its core is as long as the other one, and has lengths and checksums where
// that has them, so that whoever only needs those reads both alike.
inline constexpr std::size_t kCompactCountsOffset = 32;  // stages, axes, element type, bound mode
inline constexpr std::size_t kCompactFlagsOffset = 38;
inline constexpr std::size_t kCompactOriginalOffset = 40;
inline constexpr std::size_t kCompactBoundOffset = 56;    // absolute bound
inline constexpr std::size_t kCompactArrayIdOffset = 64;  // of the array that it is a part of
inline constexpr std::size_t kCompactAlignment = 16;      // of the payload in the frame
inline constexpr std::size_t kCompactStageBytes = 6;     // besides the ids of inputs and the config
inline constexpr std::size_t kCompactSegmentBytes = 12;  // besides the name
inline constexpr std::size_t kCompactNameOffset = 4;     // in the record of a segment

}  // namespace fz
