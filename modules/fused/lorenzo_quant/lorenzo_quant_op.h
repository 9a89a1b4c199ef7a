#pragma once

#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

namespace fz::lorenzo_quant {

/// Args of LorenzoQuantOp; one of the two is in use.
struct LorenzoQuantArgs {
  device::EncodeRun encode;
  device::DecodeRun decode;
};

}  // namespace fz::lorenzo_quant
