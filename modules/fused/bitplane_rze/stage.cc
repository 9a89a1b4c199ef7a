#include "core/require.h"
#include "core/size_limit.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "fused/bitplane_rze/codec.h"
#include "fz/byte_io.h"

namespace fz {

namespace bp = bitplane_rze;

SimpleStage::PortBytes BitplaneRZEStage::encodedBytes(std::size_t input_bytes) const {
  if (input_bytes == 0) {
    return {0};
  }
  return {static_cast<std::size_t>(bp::layoutOf((input_bytes + 1) / 2).maxBytes())};
}

std::size_t BitplaneRZEStage::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::size_t n_bytes = encoded_bytes[0];
  if (n_symbols_ == 0) {
    FZ_REQUIRE(n_bytes == 0, ErrorCode::kCorrupt, "{}: no symbols need 0 bytes, got {}", getName(),
               n_bytes);
    return 0;
  }
  FZ_REQUIRE(n_symbols_ <= bp::kMaxSymbols, ErrorCode::kCorrupt,
             "{}: expected at most {} symbols, got {}", getName(), bp::kMaxSymbols, n_symbols_);
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  FZ_REQUIRE(n_bytes >= layout.stream_at && (n_bytes - layout.stream_at) % 4 == 0,
             ErrorCode::kCorrupt, "{}: {} symbols need {} bytes plus a multiple of 4, got {} bytes",
             getName(), n_symbols_, layout.stream_at, n_bytes);
  return static_cast<std::size_t>(2 * n_symbols_);
}

void BitplaneRZEStage::checkInput(std::uint64_t n_bytes) const {
  FZ_REQUIRE(n_bytes % 2 == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of 2 bytes", getName(), n_bytes);
  FZ_REQUIRE_SIZE(n_bytes / 2 <= bp::kMaxSymbols, getName(),
                  "at most {} values because of 32-bit offsets, got {}", bp::kMaxSymbols,
                  n_bytes / 2);
}

void BitplaneRZEStage::writeConfig(ByteWriter& out) const {
  out.u64(n_symbols_);
}

void BitplaneRZEStage::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  const std::uint64_t n_symbols = in.u64();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "{}: expected a config of 8 bytes, got {}",
             getName(), n_bytes);
  n_symbols_ = n_symbols;
}

}  // namespace fz
