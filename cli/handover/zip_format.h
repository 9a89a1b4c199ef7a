#pragma once

#include <cstddef>
#include <cstdint>

// Numbers of PKWARE's APPNOTE.TXT that ZIP files have in them.
namespace fz::cli::zip {

inline constexpr std::uint32_t kLocalMagic = 0x04034b50;
inline constexpr std::uint32_t kCentralMagic = 0x02014b50;
inline constexpr std::uint32_t kEnd64Magic = 0x06064b50;
inline constexpr std::uint32_t kLocator64Magic = 0x07064b50;
inline constexpr std::uint32_t kEndMagic = 0x06054b50;

inline constexpr std::size_t kLocalBytes = 30;  // each without names and what follows them
inline constexpr std::size_t kCentralBytes = 46;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kLocator64Bytes = 20;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kMaxCommentBytes = 0xFFFF;

/// A field that says so stands in the ZIP64 record.
inline constexpr std::uint32_t kIn64 = 0xFFFFFFFF;
inline constexpr std::uint16_t kCountIn64 = 0xFFFF;
inline constexpr std::uint16_t kExtra64 = 1;

inline constexpr std::uint16_t kVersion = 20;
inline constexpr std::uint16_t kVersion64 = 45;
inline constexpr std::uint16_t kFlagEncrypted = 1;
inline constexpr std::uint16_t kFlagUtf8 = 0x0800;
inline constexpr std::uint16_t kStored = 0;

}  // namespace fz::cli::zip
