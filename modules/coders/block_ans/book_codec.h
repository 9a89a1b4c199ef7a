#pragma once

#include <cstdint>

#include "coders/block_ans/codec.h"

/// Integer rules of tables and chunks that host and device share.
namespace fz::block_ans {

// A table as bytes.
inline constexpr std::uint32_t kMaxLength = kScaleBits + 1;  // bits of a frequency of kScale
inline constexpr std::uint32_t kFirstLength = 8;             // what the first one is compared with

/// Bits of the number of symbols of a table, less 1.
FZ_HD constexpr std::uint32_t countBits(std::uint32_t table) {
  return table < kSymbolTables ? 7 : 5;
}

/// Bits of fixed-point costs behind the point.
inline constexpr std::uint32_t kCostBits = 12;

/// -log2(freq / kScale) in units of 2^-kCostBits, rounded down, by integers alone.
FZ_HD constexpr std::uint32_t symbolCost(std::uint32_t freq) {
  std::uint32_t whole = 0;
  while (freq >> (whole + 1) != 0) {
    ++whole;
  }
  std::uint64_t mantissa = std::uint64_t{freq} << (30 - whole);  // 1 to 2 with 30 bits
  std::uint32_t log = whole;
  for (std::uint32_t i = 0; i < kCostBits; ++i) {
    mantissa = mantissa * mantissa >> 30;
    const auto bit = static_cast<std::uint32_t>(mantissa >> 31);
    mantissa >>= bit;
    log = log << 1 | bit;
  }
  return (kScaleBits << kCostBits) - log;
}

/// The share of a count in their total, as a frequency; all together may miss kScale by a little.
FZ_HD std::uint32_t shareOf(std::uint64_t count, std::uint64_t total) {
  if (count == 0) {
    return 0;
  }
  const auto rounded = static_cast<std::uint32_t>((count * (2 * kScale) + total) / (2 * total));
  return rounded != 0 ? rounded : 1;
}
/// What the largest frequency gives at a time where all together are too many.
FZ_HD std::uint32_t taken(std::uint32_t largest, std::uint32_t too_many) {
  const std::uint32_t quarter = largest / 4 != 0 ? largest / 4 : 1;
  return quarter < too_many ? quarter : too_many;
}

/// How a state takes in a symbol with n raw bits, without a division: with x below the threshold
/// (else a word is put), x + bias + floor(x * reciprocal / 2^(32 + shift)) * factor, and the raw
/// bits at kScaleBits. Exact for all such x.
struct EncodeStep {
  std::uint32_t reciprocal;
  std::uint32_t threshold;
  std::uint32_t factor;
  std::uint32_t shift;
  std::uint32_t bias;
};
FZ_HD EncodeStep encodeStep(std::uint32_t freq, std::uint32_t start, std::uint32_t n_raw) {
  const std::uint32_t scale = kScale << n_raw;
  // x < freq * 2^21, so that the reciprocal, rounded up, is wrong by too little to be seen. The one
  // of 1 does not fit: what then comes out is x - 1, which the bias puts right.
  const std::uint32_t shift = freq <= 1 ? 0 : bits::bitWidth(freq - 1) - 1;
  const std::uint64_t one = std::uint64_t{1} << (32 + shift);
  EncodeStep step;
  step.reciprocal = freq <= 1 ? 0xFFFFFFFF : static_cast<std::uint32_t>((one + freq - 1) / freq);
  step.threshold = freq << (kStateBits - kScaleBits - n_raw);
  step.factor = scale - freq;
  step.shift = shift;
  step.bias = freq == 1 ? start + scale - 1 : start;
  return step;
}

// How long chunks are where no setting says so: 4096 of them keep a large GPU busy.
inline constexpr std::uint64_t kWantedChunks = 4096;
inline constexpr std::uint64_t kLeastWeight = 12288;
inline constexpr std::uint64_t kMostWeight = 65536;
// Fixed tables: the weight of a group that is assumed without looking.
inline constexpr std::uint64_t kAssumedGroupWeight = 6144;

FZ_HD std::uint32_t chunkWeight(std::uint32_t setting, std::uint64_t total_weight) {
  if (setting != 0) {
    return setting;
  }
  const std::uint64_t share = bits::ceilDiv(total_weight, kWantedChunks);
  return static_cast<std::uint32_t>(share < kLeastWeight  ? kLeastWeight
                                    : share > kMostWeight ? kMostWeight
                                                          : share);
}

}  // namespace fz::block_ans
