#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/delta.h"

/// The codes of a Difference; their arithmetic is in shared/delta.h.
namespace fz::diff {

/// The unsigned integer of the same width; of no use for floats.
template <class T>
using UnsignedOf = std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>;

template <class T, class TOut>
inline constexpr delta::Code kCode =
    std::is_same_v<T, TOut> ? delta::Code::kPlain : delta::Code::kNegabinary;

/// Args of DiffOp.
struct DiffArgs {
  std::uint64_t chunk_values;  ///< a power of two; 0: one chunk, only when encoding
};

}  // namespace fz::diff
