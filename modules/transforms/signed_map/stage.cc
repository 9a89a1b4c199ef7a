#include "core/require.h"
#include "fz/byte_io.h"
#include "transforms/signed_map/signed_map_stage.h"

namespace fz {

std::size_t SignedMapStage::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(signed_type_);
  FZ_REQUIRE(encoded_bytes[0] % value_bytes == 0, ErrorCode::kCorrupt,
             "{}: input size {} is not a multiple of {} bytes", getName(), encoded_bytes[0],
             value_bytes);
  return encoded_bytes[0];
}

void SignedMapStage::requireWholeValues(std::size_t n_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(signed_type_);
  FZ_REQUIRE(n_bytes % value_bytes == 0, isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", getName(), n_bytes, value_bytes);
}

void SignedMapStage::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(signed_type_)).u8(static_cast<std::uint8_t>(unsigned_type_));
}

void SignedMapStage::readConfig(ByteReader& in) {
  if (in.remaining() == 0) {
    return;  // files without a config mean int32, which is how the stage was made
  }
  const std::uint8_t signed_type = in.u8();
  const std::uint8_t unsigned_type = in.u8();
  FZ_REQUIRE(!in.failed() && signed_type == static_cast<std::uint8_t>(signed_type_) &&
                 unsigned_type == static_cast<std::uint8_t>(unsigned_type_),
             ErrorCode::kCorrupt, "{}: config with types {} and {}", getName(), signed_type,
             unsigned_type);
}

}  // namespace fz
