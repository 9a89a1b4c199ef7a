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

}  // namespace fz
