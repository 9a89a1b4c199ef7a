#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fz/data_type.h"
#include "fz/span.h"

namespace fz {

/// Missing values of a field: NaN, infinities, and values equal to a declared fill value.
struct MissingInfo {
  std::uint64_t n_missing = 0;
  std::uint64_t n_filled = 0;  ///< those of them that are finite, and so missing by declaration
  std::vector<double> fill;    ///< declared
};

/// Fill values that can be declared for one field, besides NaN and infinities.
inline constexpr std::size_t kMaxFillValues = 8;

/// Whether a field has missing values. Where nothing was declared, only a sample is looked at,
/// which costs next to nothing: compress() puts a Mask before its stages where this says so. Throws
/// InvalidArgument for more than kMaxFillValues.
bool hasMissing(DataType type, ByteView values, std::span<const double> fill = {});

}  // namespace fz
