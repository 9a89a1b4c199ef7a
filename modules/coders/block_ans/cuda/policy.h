#pragma once

#include <cstdint>

/// Launch shapes; no byte depends on them. Measured on an H200, see NOTES.md.
namespace fz::block_ans {

inline constexpr unsigned kMeasureThreads = 256;
inline constexpr unsigned kMeasureBlocks = 4;  ///< per multiprocessor
inline constexpr unsigned kTableThreads = 1024;

/// Warps that share a copy of the tables; each works on a chunk of its own.
inline constexpr unsigned kEncodeThreads = 512;
inline constexpr unsigned kEncodeBlocks = 2;  ///< per multiprocessor
inline constexpr unsigned kDecodeThreads = 512;
inline constexpr unsigned kDecodeBlocks = 2;

inline constexpr unsigned kCompactThreads = 128;
inline constexpr unsigned kCompactBlocks = 32;  ///< at most, per multiprocessor

/// Groups of a stored stream that a warp copies at a time.
inline constexpr std::uint32_t kCopiedGroups = 8;

}  // namespace fz::block_ans
