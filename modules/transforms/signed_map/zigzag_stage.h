#pragma once

#include <type_traits>

#include "transforms/signed_map/signed_map_stage.h"

namespace fz {

namespace zigzag {
const StageDescriptor& descriptor();
}  // namespace zigzag

/// Signed integers to unsigned codes that are small for small magnitudes. Lossless, size
/// preserving. One port, "output".
template <class TIn, class TOut = std::make_unsigned_t<TIn>>
class ZigzagStage final : public SignedMapStage {
  static_assert(std::is_same_v<TOut, std::make_unsigned_t<TIn>>);

 public:
  ZigzagStage() : SignedMapStage(signed_map::Kind::kZigzag, kDataTypeOf<TIn>, kDataTypeOf<TOut>) {}
  const StageDescriptor& descriptor() const override { return zigzag::descriptor(); }
};

}  // namespace fz
