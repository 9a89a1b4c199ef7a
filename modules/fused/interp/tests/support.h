#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fused/interp/interp_stage.h"
#include "shared/fp.h"
#include "support/stage_case.h"

namespace fz::test {

inline constexpr std::uint16_t kInterpId = 20483;

/// Every value within the bound on the real numbers, or the same bits. With `skips_missing` NaN may
/// have become anything.
template <class T>
void expectKept(const std::vector<T>& original,
                const std::vector<T>& decoded,
                double bound,
                bool skips_missing = false) {
  ASSERT_EQ(original.size(), decoded.size());
  for (std::size_t i = 0; i < original.size(); ++i) {
    ASSERT_TRUE(
        fp::bits(original[i]) == fp::bits(decoded[i]) ||
        (skips_missing && std::isnan(original[i])) ||
        fp::withinBound(static_cast<double>(original[i]), static_cast<double>(decoded[i]), bound))
        << "value " << i << ": " << original[i] << " became " << decoded[i] << ", bound " << bound;
  }
}

template <class Stage, class T>
Encoded encodeValues(Stage& stage, const std::vector<T>& values) {
  return encode(stage, toBytes(values));
}
template <class T>
std::vector<T> decodeValues(const Encoded& encoded, const ExecContext* context = nullptr) {
  return fromBytes<T>(decode(kInterpId, encoded, context));
}

/// A family whose value i is f(i, rng).
template <class F>
InputCase floats(std::string label, F f) {
  return {std::move(label), [f](DataType type, std::size_t n, std::mt19937_64& rng) {
            std::vector<float> singles(n);
            std::vector<double> doubles(n);
            for (std::size_t i = 0; i < n; ++i) {
              doubles[i] = f(i, rng);
              singles[i] = static_cast<float>(doubles[i]);
            }
            return type == DataType::FLOAT32 ? toBytes(singles) : toBytes(doubles);
          }};
}

/// Extents whose product is n, as even as its divisors allow.
inline Dims dimsOf(std::size_t n, std::size_t n_axes) {
  Dims dims = {n, 1, 1};
  for (std::size_t axis = n_axes - 1; axis > 0 && n != 0; --axis) {
    std::size_t best = 1;
    for (std::size_t d = 1; d * d <= dims[0] && (axis == 1 || d * d * d <= dims[0]); ++d) {
      best = dims[0] % d == 0 ? d : best;
    }
    dims[axis] = best;
    dims[0] /= best;
  }
  return dims;
}

}  // namespace fz::test
