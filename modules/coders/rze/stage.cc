#include <algorithm>

#include "coders/rze/codec.h"
#include "coders/rze/rze_stage.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "fz/byte_io.h"
#include "shared/bits.h"

namespace fz {

namespace {

using rze::kEntryBytes;
using rze::kHeaderBytes;
using rze::kMaxInputBytes;
constexpr std::size_t kStreamAlign = rze::kStreamAlign;

bool isChunkSize(std::size_t n_bytes) {
  return n_bytes == 4096 || n_bytes == 8192 || n_bytes == 16384;
}
bool isLevels(int levels) {
  return levels >= 1 && levels <= static_cast<int>(rze::kMaxLevels);
}

rze::ChunkFormat formatOf(std::size_t chunk_bytes, int levels) {
  return {static_cast<std::uint32_t>(chunk_bytes), static_cast<std::uint32_t>(levels)};
}

std::size_t chunkCount(std::size_t n_bytes, std::size_t chunk_bytes) {
  return bits::ceilDiv(n_bytes, chunk_bytes);
}

/// Bytes a chunk of n_bytes can take at most.
///
/// With limits other than the classic ones a chunk that does not shrink is stored raw, so n_bytes.
/// Under the classic limits a chunk that is not raw keeps at most its own n bytes and all bytes of
/// the first three bitmaps, plus 4 + 2 behind them; and it has fewer than 16378 kept bytes, hence
/// at most 16383 in all. A whole chunk (16384) therefore never grows; a shorter one may.
std::size_t maxStoredBytes(const rze::ChunkFormat& format, std::uint32_t n_bytes) {
  const bool is_classic =
      format.chunk_bytes == rze::kMaxChunkBytes && format.levels == rze::kMaxLevels;
  if (!is_classic) {
    return n_bytes;
  }
  const rze::ChunkShape shape = rze::shapeOf(n_bytes, format.levels);
  const std::uint32_t all_kept =
      n_bytes + shape.n_bytes[1] + shape.n_bytes[2] + shape.n_bytes[3] + 6;
  return std::max(n_bytes, std::min(all_kept, 16383u));
}

}  // namespace

void RZEStage::setChunkSize(std::size_t n_bytes) {
  FZ_REQUIRE_ARG(isChunkSize(n_bytes), "RZE: chunk_size must be 4096, 8192 or 16384, not {}",
                 n_bytes);
  chunk_bytes_ = n_bytes;
}

void RZEStage::setLevels(int levels) {
  FZ_REQUIRE_ARG(isLevels(levels), "RZE: levels must be 1 to 4, not {}", levels);
  levels_ = levels;
}

SimpleStage::PortBytes RZEStage::encodedBytes(std::size_t input_bytes) const {
  if (input_bytes == 0) {
    return {0};
  }
  const rze::ChunkFormat format = formatOf(chunk_bytes_, levels_);
  const std::size_t n_chunks = chunkCount(input_bytes, chunk_bytes_);
  const std::size_t n_whole = (n_chunks - 1) * chunk_bytes_;
  const std::size_t n_last =
      maxStoredBytes(format, static_cast<std::uint32_t>(input_bytes - n_whole));
  return {bits::roundUp(kHeaderBytes + kEntryBytes * n_chunks + n_whole + n_last, kStreamAlign)};
}

std::size_t RZEStage::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::size_t n_stream = encoded_bytes[0];
  const std::size_t n_chunks = chunkCount(original_bytes_, chunk_bytes_);
  const std::size_t n_least = rze::minStreamBytes(n_chunks);
  FZ_REQUIRE((n_stream == 0) == (n_chunks == 0) && n_stream >= n_least, ErrorCode::kCorrupt,
             "RZE: {} bytes in chunks of {} need a stream of {} bytes or more, got {}",
             original_bytes_, chunk_bytes_, n_least, n_stream);
  return original_bytes_;
}

void RZEStage::requireCountable(std::size_t n_bytes) const {
  FZ_REQUIRE_SIZE(n_bytes <= kMaxInputBytes, getName(), "input must be at most {} bytes, got {}",
                  kMaxInputBytes, n_bytes);
}

void RZEStage::writeConfig(ByteWriter& out) const {
  out.u32(static_cast<std::uint32_t>(chunk_bytes_))
      .u8(static_cast<std::uint8_t>(levels_))
      .u32(static_cast<std::uint32_t>(original_bytes_));
}

void RZEStage::readConfig(ByteReader& in) {
  if (in.remaining() == 0) {   // files without a config mean the defaults
    const RZEStage untouched;  // and not what the frame before has left here
    chunk_bytes_ = untouched.chunk_bytes_;
    levels_ = untouched.levels_;
    original_bytes_ = untouched.original_bytes_;
    return;
  }
  const std::size_t n_config = in.remaining();
  const std::size_t chunk_bytes = in.u32();
  const int levels = in.u8();
  const std::size_t original_bytes = in.u32();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "RZE: expected a config of 9 bytes, got {}",
             n_config);
  FZ_REQUIRE(isChunkSize(chunk_bytes) && isLevels(levels), ErrorCode::kCorrupt,
             "RZE: config with chunks of {} bytes and {} levels", chunk_bytes, levels);
  chunk_bytes_ = chunk_bytes;
  levels_ = levels;
  original_bytes_ = original_bytes;
}

}  // namespace fz
