#pragma once

#include "quantizers/quantizer/quantizer_cuda.h"
#include "quantizers/quantizer/quantizer_rel_quick_codec.h"

namespace fz::quantizer {

/// How the op with outlier lists codes: bins of equal width, or REL by one of its shortcuts. All
/// forms of REL decode alike.
enum class ListForm : std::uint8_t { kPlain, kZigzag, kRelFloat, kRelDouble, kRelSlow };

/// Args of ListOp.
struct ListArgs {
  device::EncodeJob encode;
  device::DecodeJob decode;
  // Encoding, where the host knows the bound; else prepareKernel has noted it.
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
