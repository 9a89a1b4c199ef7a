#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/span.h"

namespace fz {

/// 16 bytes that have the remainder of a longer message, and how many bytes they stand for.
struct FoldedCrc {
  std::uint8_t bytes[16] = {};
  std::size_t n_bytes = 0;  ///< 0: nothing was folded
};

/// Folds the front of a message on processors that multiply four pairs of polynomials at a time.
/// `crc` is the checksum of what comes before it. The checksum of a register that begins with 0 and
/// takes `bytes`, then the rest of the message, is that of the whole.
FoldedCrc foldCrc(ByteView message, std::uint32_t crc);

}  // namespace fz
