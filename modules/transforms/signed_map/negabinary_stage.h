#pragma once

#include <type_traits>

#include "transforms/signed_map/signed_map_stage.h"

namespace fz {

namespace negabinary {
const StageDescriptor& descriptor();
}  // namespace negabinary

/// Signed integers to their digits in base -2: small magnitudes of either sign keep the high bits
/// zero. Lossless, size preserving. One port, "output".
template <class TIn, class TOut = std::make_unsigned_t<TIn>>
class NegabinaryStage final : public SignedMapStage {
  static_assert(std::is_same_v<TOut, std::make_unsigned_t<TIn>>);

 public:
  NegabinaryStage()
      : SignedMapStage(signed_map::Kind::kNegabinary, kDataTypeOf<TIn>, kDataTypeOf<TOut>) {}
  const StageDescriptor& descriptor() const override { return negabinary::descriptor(); }
};

}  // namespace fz
