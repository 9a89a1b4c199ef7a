#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The bytes of BitplaneRZE; SPEC.md says the same in words. A chunk is 1024 words of two symbols;
/// its 32 bit planes are cut into groups of four words, and groups of zeros are left out.
namespace fz::bitplane_rze {

// All of these are part of the format.
constexpr std::uint32_t kChunkSymbols = 2048;
constexpr std::uint32_t kChunkWords = kChunkSymbols / 2;
constexpr std::uint32_t kChunkBytes = 4 * kChunkWords;
constexpr std::uint32_t kPlanes = 32;
constexpr std::uint32_t kPlaneWords = kChunkWords / kPlanes;
constexpr std::uint32_t kGroupWords = 4;
constexpr std::uint32_t kGroups = kChunkWords / kGroupWords;
constexpr std::uint32_t kFlagWords = kGroups / 32;
constexpr std::uint32_t kFlagBytes = 4 * kFlagWords;
constexpr std::uint32_t kHeaderBytes = 128;

/// Where the parts of an archive begin, in bytes. 64 bits wide, so that no length overflows it.
struct Layout {
  std::uint64_t n_chunks;
  std::uint64_t starts_at;
  std::uint64_t stream_at;

  FZ_HD std::uint64_t flagsAt(std::uint64_t chunk) const {
    return kHeaderBytes + chunk * kFlagBytes;
  }
  FZ_HD std::uint64_t startAt(std::uint64_t chunk) const { return starts_at + 4 * chunk; }
  /// What no archive of this many chunks can exceed: every group of every chunk stored.
  FZ_HD std::uint64_t maxBytes() const { return stream_at + n_chunks * kChunkBytes; }
};

FZ_HD constexpr Layout layoutOf(std::uint64_t n_symbols) {
  const std::uint64_t n_chunks = n_symbols / kChunkSymbols + (n_symbols % kChunkSymbols != 0);
  const std::uint64_t starts_at = kHeaderBytes + n_chunks * kFlagBytes;
  return {n_chunks, starts_at, starts_at + 4 * n_chunks};
}

/// The header holds byte offsets of 32 bits, so the largest archive has 2^32 - 1 bytes.
constexpr std::uint64_t kMaxChunks =
    (0xFFFFFFFFull - kHeaderBytes) / (kFlagBytes + 4 + kChunkBytes);
constexpr std::uint64_t kMaxSymbols = kMaxChunks * kChunkSymbols;

/// Word i of a chunk that has n_symbols symbols; what is missing reads as zero.
FZ_HD std::uint32_t wordOf(const std::uint16_t* symbols, std::uint32_t n_symbols, std::uint32_t i) {
  const std::uint32_t low = 2 * i < n_symbols ? symbols[2 * i] : 0u;
  const std::uint32_t high = 2 * i + 1 < n_symbols ? symbols[2 * i + 1] : 0u;
  return low | high << 16;
}

/// Plane p is a string of 1024 bits, planes[32 p ..]: bit i is bit p of word i.
template <class Team>
FZ_HD void transposeChunk(Team team, const std::uint32_t* words, std::uint32_t* planes) {
  team.each(kChunkWords, [&](std::uint32_t item) {
    const std::uint32_t plane = item / kPlaneWords;
    const std::uint32_t first = item % kPlaneWords * 32;
    std::uint32_t gathered = 0;
    for (std::uint32_t x = 0; x < 32; ++x) {
      gathered |= (words[first + x] >> plane & 1u) << x;
    }
    planes[item] = gathered;
  });
  team.sync();
}

template <class Team>
FZ_HD void untransposeChunk(Team team, const std::uint32_t* planes, std::uint32_t* words) {
  team.each(kChunkWords, [&](std::uint32_t i) {
    std::uint32_t gathered = 0;
    for (std::uint32_t plane = 0; plane < kPlanes; ++plane) {
      gathered |= (planes[plane * kPlaneWords + i / 32] >> i % 32 & 1u) << plane;
    }
    words[i] = gathered;
  });
  team.sync();
}

FZ_HD bool flagOf(const std::uint32_t* flags, std::uint32_t group) {
  return (flags[group / 32] >> group % 32 & 1u) != 0;
}

/// Groups stored before this one.
FZ_HD std::uint32_t groupRank(const std::uint32_t* flags, std::uint32_t group) {
  std::uint32_t rank = 0;
  for (std::uint32_t k = 0; k < group / 32; ++k) {
    rank += bits::popCount(flags[k]);
  }
  const std::uint32_t below = (1u << group % 32) - 1u;
  return group % 32 == 0 ? rank : rank + bits::popCount(flags[group / 32] & below);
}

/// Words that a chunk with these flags takes in the stream.
FZ_HD std::uint32_t storedWords(const std::uint32_t* flags) {
  std::uint32_t n_groups = 0;
  for (std::uint32_t k = 0; k < kFlagWords; ++k) {
    n_groups += bits::popCount(flags[k]);
  }
  return n_groups * kGroupWords;
}

/// Flag f says whether group f, which is planes[4 f .. 4 f + 3], has a bit set.
template <class Team>
FZ_HD void flagGroups(Team team, const std::uint32_t* planes, std::uint32_t* flags) {
  team.each(kFlagWords, [&](std::uint32_t k) {
    std::uint32_t gathered = 0;
    for (std::uint32_t j = 0; j < 32; ++j) {
      const std::uint32_t* group = planes + (32 * k + j) * kGroupWords;
      const std::uint32_t any = group[0] | group[1] | group[2] | group[3];
      gathered |= (any != 0 ? 1u : 0u) << j;
    }
    flags[k] = gathered;
  });
  team.sync();
}

template <class Team>
FZ_HD void packGroups(Team team,
                      const std::uint32_t* planes,
                      const std::uint32_t* flags,
                      std::uint32_t* stream) {
  team.each(kGroups, [&](std::uint32_t group) {
    if (!flagOf(flags, group)) {
      return;
    }
    const std::uint32_t at = groupRank(flags, group) * kGroupWords;
    for (std::uint32_t i = 0; i < kGroupWords; ++i) {
      stream[at + i] = planes[group * kGroupWords + i];
    }
  });
  team.sync();
}

/// `stream` must hold storedWords(flags) words.
template <class Team>
FZ_HD void unpackGroups(Team team,
                        const std::uint32_t* flags,
                        const std::uint32_t* stream,
                        std::uint32_t* planes) {
  team.each(kGroups, [&](std::uint32_t group) {
    const bool stored = flagOf(flags, group);
    const std::uint32_t at = stored ? groupRank(flags, group) * kGroupWords : 0;
    for (std::uint32_t i = 0; i < kGroupWords; ++i) {
      planes[group * kGroupWords + i] = stored ? stream[at + i] : 0u;
    }
  });
  team.sync();
}

}  // namespace fz::bitplane_rze
