#pragma once

#include <cstddef>
#include <span>

#include "shared/delta.h"

namespace fz {
class CpuExecutor;
}

/// Block-local integer differences on the CPU, with the widest vectors of this machine. U is one
/// of the unsigned integers and serves the signed type of its width too.
namespace fz::delta {

/// Kernels over consecutive values; `before` stands left of in[0] (0 at the start of a block), and
/// a new block starts at every multiple of `block`, counted from in[0].
template <class U>
struct Kernels {
  void (*encode)(const U* in, std::size_t n_values, std::size_t block, U before, U* out);
  /// Returns the last value decoded.
  U (*decode)(const U* in, std::size_t n_values, std::size_t block, U before, U* out);
  /// Sum of the differences behind the codes.
  U (*sum)(const U* in, std::size_t n_values);
};

template <class U>
const Kernels<U>& kernels(Code code);

/// Work per task; not part of the format.
inline constexpr std::size_t kTileValues = 16384;

/// Encodes `in` in blocks of `block` values. A block longer than kTileValues must be a multiple of
/// it; 0 means one block.
template <class U>
void encodeBlocks(
    const CpuExecutor& executor, std::span<const U> in, std::size_t block, Code code, U* out);

/// Decodes the same. `tile_sums` has one entry per kTileValues values or part of that.
template <class U>
void decodeBlocks(const CpuExecutor& executor,
                  std::span<const U> in,
                  std::size_t block,
                  Code code,
                  std::span<U> tile_sums,
                  U* out);

}  // namespace fz::delta
