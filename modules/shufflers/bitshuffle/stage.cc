#include "core/require.h"
#include "fz/byte_io.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "shufflers/bitshuffle/codec.h"

namespace fz {

namespace {

bool isElementWidth(std::size_t n_bytes) {
  return n_bytes == 1 || n_bytes == 2 || n_bytes == 4 || n_bytes == 8;
}

bool isWholeUnits(std::size_t block_bytes, std::size_t element_bytes) {
  return block_bytes > 0 && block_bytes % (bitshuffle::kUnitElements * element_bytes) == 0;
}

}  // namespace

void BitshuffleStage::setBlockSize(std::size_t n_bytes) {
  FZ_REQUIRE_ARG(isWholeUnits(n_bytes, 1) && n_bytes <= bitshuffle::kMaxBlockBytes,
                 "Bitshuffle: block_size must be a positive multiple of 1024 up to {}, not {}",
                 bitshuffle::kMaxBlockBytes, n_bytes);
  block_bytes_ = n_bytes;
}

void BitshuffleStage::setElementWidth(std::size_t n_bytes) {
  FZ_REQUIRE_ARG(isElementWidth(n_bytes), "Bitshuffle: element_width must be 1, 2, 4 or 8, not {}",
                 n_bytes);
  element_bytes_ = n_bytes;
}

bool BitshuffleStage::hasWholeUnits() const {
  return isWholeUnits(block_bytes_, element_bytes_);
}

void BitshuffleStage::requireWholeUnits() const {
  FZ_REQUIRE_ARG(
      hasWholeUnits(),
      "Bitshuffle: block_size must be a multiple of {} (1024 elements of {} bytes), not {}",
      bitshuffle::kUnitElements * element_bytes_, element_bytes_, block_bytes_);
}

void BitshuffleStage::writeConfig(ByteWriter& out) const {
  out.u32(static_cast<std::uint32_t>(block_bytes_)).u8(static_cast<std::uint8_t>(element_bytes_));
}

void BitshuffleStage::readConfig(ByteReader& in) {
  if (in.remaining() == 0) {          // files without a config mean the defaults
    const BitshuffleStage untouched;  // and not what the frame before has left here
    block_bytes_ = untouched.block_bytes_;
    element_bytes_ = untouched.element_bytes_;
    return;
  }
  const std::size_t block_bytes = in.u32();
  const std::size_t element_bytes = in.u8();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "Bitshuffle: expected a config of 5 bytes, got {}",
             in.position());
  FZ_REQUIRE(isElementWidth(element_bytes) && isWholeUnits(block_bytes, element_bytes),
             ErrorCode::kCorrupt, "Bitshuffle: config with blocks of {} bytes, elements of {}",
             block_bytes, element_bytes);
  block_bytes_ = block_bytes;
  element_bytes_ = element_bytes;
}

}  // namespace fz
