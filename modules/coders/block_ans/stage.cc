#include <algorithm>
#include <array>

#include "coders/block_ans/block_ans_stage.h"
#include "coders/block_ans/stream.h"
#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::block_ans {

namespace {

constexpr std::size_t kConfigBytes = 16;
constexpr std::array<std::uint32_t, 6> kChunkWeights = {0, 12288, 16384, 32768, 65536, 262144};

// A chunk of zeros takes a few bytes, so damaged ones could claim gigabytes. What is beyond a
// generous reserve is asked for once the directory has confirmed it.
constexpr std::uint64_t kReserveBytes = 64 * 1024;
constexpr std::uint64_t kReserveFactor = 256;

bool isChunkWeight(std::uint32_t weight) {
  return std::find(kChunkWeights.begin(), kChunkWeights.end(), weight) != kChunkWeights.end();
}

}  // namespace

void BlockAnsBase::setMap(BlockAnsMap map) {
  FZ_REQUIRE_ARG(map == BlockAnsMap::Zigzag || map == BlockAnsMap::None,
                 "BlockANS: map must be Zigzag or None, not {}", static_cast<int>(map));
  settings_.map = map;
}

void BlockAnsBase::setTables(BlockAnsTables tables) {
  FZ_REQUIRE_ARG(tables == BlockAnsTables::Counted || tables == BlockAnsTables::Fixed,
                 "BlockANS: tables must be Counted or Fixed, not {}", static_cast<int>(tables));
  settings_.tables = tables;
}

void BlockAnsBase::setChunk(std::uint32_t weight) {
  FZ_REQUIRE_ARG(isChunkWeight(weight),
                 "BlockANS: chunk must be 0, 12288, 16384, 32768, 65536 or 262144, not {}", weight);
  settings_.chunk_weight = weight;
}

SimpleStage::PortBytes BlockAnsBase::encodedBytes(std::size_t input_bytes) const {
  return {input_bytes == 0 ? 0 : input_bytes + kMaxExtraBytes};
}

void BlockAnsBase::checkSize(std::size_t stream_bytes) const {
  const std::uint64_t n_values = settings_.n_values;
  FZ_REQUIRE((n_values == 0) == (stream_bytes == 0), ErrorCode::kCorrupt,
             "BlockANS: {} values in a stream of {} bytes", n_values, stream_bytes);
  // Each chunk has an entry, and the states of its lanes or the values themselves.
  constexpr std::uint64_t kChunkValues = std::uint64_t{kMaxChunkGroups} * kGroupValues;
  FZ_REQUIRE(n_values <= kMaxPackedValues ||
                 (stream_bytes > kHeaderBytes && bits::ceilDiv(n_values, kChunkValues) <=
                                                     (stream_bytes - kHeaderBytes) / kEntryBytes),
             ErrorCode::kCorrupt, "BlockANS: a stream of {} bytes cannot hold {} values",
             stream_bytes, n_values);
}

std::size_t BlockAnsBase::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  checkSize(encoded_bytes[0]);
  const std::uint64_t reserve =
      (kReserveBytes + kReserveFactor * encoded_bytes[0]) / valueBytes() * valueBytes();
  return static_cast<std::size_t>(std::min(settings_.n_values * valueBytes(), reserve));
}

void BlockAnsBase::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(type_)).u8(static_cast<std::uint8_t>(settings_.map));
  out.u8(static_cast<std::uint8_t>(settings_.tables)).u8(0);
  out.u32(settings_.chunk_weight).u64(settings_.n_values);
}

void BlockAnsBase::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  const std::uint8_t type = in.u8();
  const std::uint8_t map = in.u8();
  const std::uint8_t tables = in.u8();
  in.skip(1);
  Settings settings;
  settings.chunk_weight = in.u32();
  settings.n_values = in.u64();
  FZ_REQUIRE(n_bytes == kConfigBytes && type == static_cast<std::uint8_t>(type_),
             ErrorCode::kCorrupt,
             "BlockANS: expected a config of {} bytes for {}, got {} for type {}", kConfigBytes,
             dataTypeToString(type_), n_bytes, type);
  FZ_REQUIRE(map <= 1 && tables <= 1 && isChunkWeight(settings.chunk_weight), ErrorCode::kCorrupt,
             "BlockANS: config with map {}, tables {} and chunk {}", map, tables,
             settings.chunk_weight);
  settings.map = static_cast<BlockAnsMap>(map);
  settings.tables = static_cast<BlockAnsTables>(tables);
  settings_ = settings;
}

}  // namespace fz::block_ans
