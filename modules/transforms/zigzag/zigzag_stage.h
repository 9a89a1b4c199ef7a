#pragma once

#include <cstdint>
#include <type_traits>

#include "fz/signed_map_stage.h"

namespace fz {

namespace zigzag {
const StageDescriptor& descriptor();
}  // namespace zigzag

/// Signed integers to unsigned codes that are small for small magnitudes. Lossless, size
/// preserving. One port, "output".
template <class TIn, class TOut = std::make_unsigned_t<TIn>>
class ZigzagStage final : public SignedMapStage {
 public:
  ZigzagStage() : SignedMapStage(kDataTypeOf<TIn>, kDataTypeOf<TOut>) {}
  const StageDescriptor& descriptor() const override { return zigzag::descriptor(); }

 protected:
  void encodeValues(const void* in, std::size_t n_values, void* out) const override;
  void decodeValues(const void* in, std::size_t n_values, void* out) const override;
};

extern template class ZigzagStage<std::int8_t, std::uint8_t>;
extern template class ZigzagStage<std::int16_t, std::uint16_t>;
extern template class ZigzagStage<std::int32_t, std::uint32_t>;
extern template class ZigzagStage<std::int64_t, std::uint64_t>;

}  // namespace fz
