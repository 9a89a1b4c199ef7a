#pragma once

#include <cstddef>

/// Launch shapes; no byte depends on them.
namespace fz::bitpack {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kPiecesPerThread =
    4;  ///< 16-byte pieces of values, all in flight at once
inline constexpr unsigned kBlockPieces = kThreads * kPiecesPerThread;
inline constexpr std::size_t kBlockBytes = std::size_t{16} * kBlockPieces;

/// Thread blocks of the pass that finds the width: as many as are resident.
constexpr unsigned residentBlocks(unsigned n_processors) {
  return n_processors * (2048 / kThreads);
}

}  // namespace fz::bitpack
