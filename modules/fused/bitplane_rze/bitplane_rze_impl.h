#pragma once

#include <cstring>

#include "fused/bitplane_rze/bitplane_rze_codec.h"
#include "fused/bitplane_rze/bitplane_rze_cpu.h"
#include "fz/byte_io.h"
#include "fz/span.h"

/// What the stage alone and the stage in a group share.
namespace fz::bitplane_rze {

/// f(chunk bytes) with a whole chunk: the input itself, or its ragged end padded with zeros.
template <class F>
void withChunk(ByteView in, std::size_t chunk, F f) {
  const std::size_t begin = chunk * kChunkBytes;
  const std::size_t n_bytes = in.size() - begin;
  if (n_bytes >= kChunkBytes) {
    f(in.data() + begin);
    return;
  }
  std::uint8_t padded[kChunkBytes] = {};
  std::memcpy(padded, in.data() + begin, n_bytes);
  f(static_cast<const std::uint8_t*>(padded));
}

inline std::uint32_t storedWordsAt(const std::uint8_t* flags) {
  std::uint32_t words[kFlagWords];
  std::memcpy(words, flags, sizeof(words));
  return storedWords(words);
}

inline void writeHeader(std::uint64_t n_symbols, std::uint64_t n_words, MutableByteView archive) {
  const Layout layout = layoutOf(n_symbols);
  ByteWriter out(archive.first(kHeaderBytes));
  out.u64(n_symbols).u32(0).u32(kHeaderBytes);
  out.u32(static_cast<std::uint32_t>(layout.starts_at));
  out.u32(static_cast<std::uint32_t>(layout.stream_at));
  out.u32(static_cast<std::uint32_t>(layout.stream_at + 4 * n_words));
  out.zeros(kHeaderBytes - out.position());
}

/// Decodes a chunk, or what there is of the last one; false when its groups lie outside the stream.
inline bool decodeChunkAt(ByteView archive,
                          const Layout& layout,
                          std::size_t chunk,
                          MutableByteView out) {
  const std::uint64_t n_words = (archive.size() - layout.stream_at) / 4;
  const std::uint8_t* flags = archive.data() + layout.flagsAt(chunk);
  const std::uint64_t start = loadLe<std::uint32_t>(archive.data() + layout.startAt(chunk));
  if (start + storedWordsAt(flags) > n_words) {
    return false;
  }
  const std::uint8_t* stream = archive.data() + layout.stream_at + 4 * start;
  if (out.size() >= kChunkBytes) {
    decodeChunk(flags, stream, out.data());
    return true;
  }
  std::uint8_t padded[kChunkBytes];
  decodeChunk(flags, stream, padded);
  std::memcpy(out.data(), padded, out.size());
  return true;
}

}  // namespace fz::bitplane_rze
