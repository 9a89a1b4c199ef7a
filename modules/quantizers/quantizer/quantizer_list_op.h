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
  RelRule rel;
  RelFloatRule rel_float;
};

}  // namespace fz::quantizer
