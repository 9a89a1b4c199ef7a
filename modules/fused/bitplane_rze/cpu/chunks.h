#pragma once

#include <cstdint>

/// One chunk with the widest vectors of this machine; bytes as in codec.h. Chunks are
/// 4096 bytes, flags 32 bytes; no pointer needs any alignment.
namespace fz::bitplane_rze {

/// The chunk's flags, without transposing it.
void flagChunk(const std::uint8_t* chunk, std::uint8_t* flags);
/// Writes exactly the groups that `flags` (from flagChunk of this chunk) names.
void encodeChunk(const std::uint8_t* chunk, const std::uint8_t* flags, std::uint8_t* stream);
/// Reads exactly the groups that `flags` names.
void decodeChunk(const std::uint8_t* flags, const std::uint8_t* stream, std::uint8_t* chunk);

}  // namespace fz::bitplane_rze
