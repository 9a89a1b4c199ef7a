#include "transforms/zigzag/zigzag_stage.h"

namespace fz::zigzag {

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = signedMapDescriptor<ZigzagStage>(
      15, "Zigzag", "signed integers to unsigned codes, small for small magnitudes");
  return kDescriptor;
}

}  // namespace fz::zigzag
