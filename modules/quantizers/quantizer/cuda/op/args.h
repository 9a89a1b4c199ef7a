#pragma once

#include <cstdint>

#include "quantizers/quantizer/codec_bound.h"
#include "quantizers/quantizer/codec_rel_fast.h"
#include "quantizers/quantizer/cuda/kernels.h"

/// Arguments of the ops in fused groups.
namespace fz::quantizer {

/// What the kernels of one encode share; in a group also what stays from kernel to kernel, all zero
/// before the first one.
template <class T>
struct EncodeState {
  BinRule<T> rules[kRungs];
  double in_use[kRungs];
  unsigned long long n_violations[kRungs];
  unsigned long long first_violation[kRungs];  ///< its complement; 0: none
  unsigned has_nonfinite;
  unsigned n_blocks_done;  ///< group only
  unsigned wanted_rung;    ///< group only: the pass that the one before asks for
};

/// Bound in use as a stage's record holds it; a double that is 0, or absent from an old config,
/// leaves it to the float.
FZ_HD double storedBound(const std::uint64_t* slots) {
  const auto wide = fp::bitCast<double>(slots[device::kSlotBound]);
  const auto narrow = fp::bitCast<float>(static_cast<std::uint32_t>(slots[device::kSlotBoundF32]));
  return wide != 0.0 ? wide : static_cast<double>(narrow);
}
FZ_HD void recordBound(std::uint64_t* slots, double in_use) {
  slots[device::kSlotBound] = fp::bits(in_use);
  slots[device::kSlotBoundF32] = fp::bits(nearestFloat(in_use));
}
FZ_HD void recordRange(std::uint64_t* slots, double range, double absolute) {
  slots[device::kSlotRange] = fp::bits(range);
  slots[device::kSlotRangeF32] = fp::bits(nearestFloat(range));
  slots[device::kSlotAbsBound] = fp::bits(absolute);
}

/// Args of FlatOp: in place and linear.
template <class T>
struct alignas(16) FlatArgs {
  StageRecord* record;
  EncodeState<T>* state;  ///< encoding
  // Encoding, where the host knows the bound; else they stand in the state.
  bool has_rule;
  bool wrap;            ///< linear, policy Wrap
  bool is_ladder;       ///< linear, policy Guarantee
  bool is_conditional;  ///< a pass after the first does nothing unless it is asked for
  std::uint32_t rung;
  std::uint32_t radius;
  double in_use;
  double absolute;
  double range;
  BinRule<T> rule;
  // Decoding.
  bool publishes;
  std::uint64_t capacity_bytes;
};

/// How the op with outlier lists codes: bins of equal width, or REL by one of its shortcuts. All
/// forms of REL decode alike.
enum class ListForm : std::uint8_t { kPlain, kZigzag, kRelFloat, kRelDouble, kRelSlow };

/// Args of ListOp.
struct ListArgs {
  device::EncodeJob encode;
  device::DecodeJob decode;
  // Encoding, where the host knows the bound; else prepareKernel has recorded it.
  bool is_known;
  double in_use;
  double absolute;
  double range;
  BinRule<float> rule_float;  ///< bins: that of the values' type
  BinRule<double> rule_double;
  RelRule rel;
  RelFloatRule rel_float;
};

}  // namespace fz::quantizer
