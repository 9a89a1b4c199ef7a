#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fused/interp/codec.h"
#include "shared/bits.h"

/// What a block of codes will cost, from sums over it: the same text on all backends, in integers,
/// so that a search decides alike everywhere. Costs are in 1/1024 bit.
namespace fz::interp {

inline constexpr std::uint32_t kCostOfBit = 1024;
inline constexpr std::uint32_t kLogTableBits = 8;
/// 1024 log2(1 + i / 256).
using LogTable = std::array<std::uint16_t, (1u << kLogTableBits) + 1>;

/// By squaring: no library and no rounding has a say in it.
constexpr LogTable makeLogTable() {
  LogTable table = {};
  for (std::uint32_t i = 0; i < 1u << kLogTableBits; ++i) {
    std::uint64_t x = (std::uint64_t{1} << 31) + (std::uint64_t{i} << (31 - kLogTableBits));
    std::uint32_t bits = 0;
    for (int b = 0; b < 11; ++b) {
      x = x * x >> 31;
      bits <<= 1;
      if (x >> 32 != 0) {
        bits |= 1;
        x >>= 1;
      }
    }
    table[i] = static_cast<std::uint16_t>((bits + 1) / 2);
  }
  table.back() = kCostOfBit;
  return table;
}

/// What is added up of a block: its zigzag values, each at most kMostSized, and above kCountShift
/// bits how many are not 0.
inline constexpr int kCountShift = 25;
inline constexpr std::uint32_t kMostSized = 1u << 18;
FZ_HD constexpr std::uint32_t sizeOf(std::uint32_t zigzag) {
  const std::uint32_t least = zigzag < kMostSized ? zigzag : kMostSized;
  return least + (least == 0 ? 0u : 1u << kCountShift);
}

/// 1024 log2(v), rounded down somewhere in its last digit; v > 0. `logs` is a LogTable.
FZ_HD std::uint32_t log2By(const std::uint16_t* logs, std::uint32_t v) {
  const std::uint32_t exponent = bits::bitWidth(v) - 1;
  const std::uint32_t fraction = exponent == 0 ? 0 : v << (32 - exponent);
  return exponent * kCostOfBit + logs[fraction >> (32 - kLogTableBits)];
}
/// v log2(v)
FZ_HD std::uint64_t vLogV(const std::uint16_t* logs, std::uint32_t v) {
  return v == 0 ? 0 : std::uint64_t{v} * log2By(logs, v);
}

/// Of a block, by the sum of sizeOf(); product(v) is v log2(v). Halfway between magnitudes that are
/// geometric around their mean, and zeros apart from the others, of which only those are.
template <class Product>
FZ_HD std::uint64_t costOfSum(std::uint64_t sized, Product product) {
  constexpr std::uint64_t kZeroBlock = 410;
  constexpr std::uint64_t kBlockClass = 2 * kCostOfBit;
  constexpr std::uint32_t kCount = kBlockCodes;
  if (sized == 0) {
    return kZeroBlock;
  }
  const auto sum = static_cast<std::uint32_t>(sized & ((1u << kCountShift) - 1));
  const auto count = static_cast<std::uint32_t>(sized >> kCountShift);
  const std::uint64_t sparse = product(kCount) - 2 * product(count) - product(kCount - count) +
                               product(sum) - product(sum - count);
  const std::uint64_t even = product(kCount + sum) - product(sum) - product(kCount);
  return kBlockClass + (sparse + even) / 2;
}

}  // namespace fz::interp
