#pragma once

#include <cstdint>

#include "fz/device_types.h"
#include "quantizers/quantizer/quantizer_bound_codec.h"
#include "quantizers/quantizer/quantizer_codec.h"

/// In place and linear as part of a fused group.
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

}  // namespace fz::quantizer
