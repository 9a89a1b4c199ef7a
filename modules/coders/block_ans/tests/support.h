#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "coders/block_ans/block_ans_stage.h"
#include "support/stage_case.h"

namespace fz::test {

/// Residuals as a predictor leaves them: of both signs, small ones most often, in stretches that
/// reach up to 2^max_bits or to a half or a quarter of it.
template <class T>
std::vector<T> residuals(std::size_t n, std::uint32_t max_bits, std::mt19937_64& rng) {
  std::vector<T> values(n);
  std::uint32_t n_bits = max_bits;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 100 == 0) {
      n_bits = max_bits - std::min<std::uint32_t>(max_bits, static_cast<std::uint32_t>(rng() % 3));
    }
    const std::uint64_t mask = (std::uint64_t{1} << n_bits) - 1;
    const std::uint64_t magnitude = (rng() & mask) * (rng() & mask) >> n_bits;
    values[i] = static_cast<T>(rng() % 2 == 0 ? magnitude : 0 - magnitude);
  }
  return values;
}

template <class T>
Encoded encodeValues(BlockAnsStage<T>& stage, const std::vector<T>& values) {
  return encode(stage, toBytes(values));
}

inline Bytes decodeBlockAns(const Encoded& encoded) {
  return decode(20482, encoded);
}

}  // namespace fz::test
