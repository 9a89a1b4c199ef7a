#include "transforms/negabinary/negabinary_stage.h"

namespace fz::negabinary {

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = signedMapDescriptor<NegabinaryStage>(
      16, "Negabinary", "signed integers to their digits in base -2, small for small magnitudes");
  return kDescriptor;
}

}  // namespace fz::negabinary
