#pragma once

#include <cstdint>
#include <type_traits>

#include "fz/signed_map_stage.h"

namespace fz {

namespace negabinary {
const StageDescriptor& descriptor();
}  // namespace negabinary

/// Signed integers to their digits in base -2: small magnitudes of either sign keep the high bits
/// zero. Lossless, size preserving. One port, "output".
template <class TIn, class TOut = std::make_unsigned_t<TIn>>
class NegabinaryStage final : public SignedMapStage {
 public:
  NegabinaryStage() : SignedMapStage(kDataTypeOf<TIn>, kDataTypeOf<TOut>) {}
  const StageDescriptor& descriptor() const override { return negabinary::descriptor(); }

 protected:
  void encodeValues(const void* in, std::size_t n_values, void* out) const override;
  void decodeValues(const void* in, std::size_t n_values, void* out) const override;
};

extern template class NegabinaryStage<std::int8_t, std::uint8_t>;
extern template class NegabinaryStage<std::int16_t, std::uint16_t>;
extern template class NegabinaryStage<std::int32_t, std::uint32_t>;
extern template class NegabinaryStage<std::int64_t, std::uint64_t>;

}  // namespace fz
