#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "fz/axes.h"

namespace fz {
class CpuExecutor;
}

/// Lorenzo in two and three dimensions on the CPU. U is one of the unsigned integers and serves
/// the signed type of its width too.
namespace fz::lorenzo {

using Dims = std::array<std::size_t, 3>;

/// Extents, and the axes along which differences are taken.
struct Grid {
  Dims dims;
  Axes axes;
};

/// Encodes dims[0] x dims[1] x dims[2] values, x fastest.
template <class U>
void encodeGrid(const CpuExecutor& executor, const U* in, const Grid& grid, U* out);

/// Entries of working memory that decodeGrid needs.
std::size_t carryCount(const CpuExecutor& executor, const Dims& dims);

/// Decodes the same; `carries` has carryCount entries.
template <class U>
void decodeGrid(
    const CpuExecutor& executor, const U* in, const Grid& grid, std::span<U> carries, U* out);

}  // namespace fz::lorenzo
