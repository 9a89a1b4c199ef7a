// BitplaneRZE as the coder of a fused group on the CPU.
#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fused/bitplane_rze/bitplane_rze_impl.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"

namespace fz {

namespace bp = bitplane_rze;

TileOp BitplaneRZEStage::cpuTileOp() const {
  return CoderOp{.tile_bytes = bp::kChunkBytes, .value_bytes = 2, .takes_bands = true};
}

void BitplaneRZEStage::beginTiles(const CpuRun& run, const TileCut& cut) {
  cut_ = cut;
  if (!isInverse()) {
    checkInput(run.inputs[0].size());
    n_symbols_ = run.inputs[0].size() / 2;
    FZ_ASSERT(run.outputs[0].size() >= encodedBytes(run.inputs[0].size())[0]);
    archive_ = run.outputs[0].data();
    return;
  }
  first_bad_chunk_.store(FirstIndex::kNone);
  stream_ = run.inputs[0];
  if (decodedBytes({{stream_.size()}}) != 0) {
    checkHeader(stream_);
  }
}

std::size_t BitplaneRZEStage::payloadOffset() const {
  return n_symbols_ == 0 ? 0 : static_cast<std::size_t>(bp::layoutOf(n_symbols_).stream_at);
}

std::size_t BitplaneRZEStage::maxTileBytes() const {
  return bits::roundUp(2 * cut_.maxTileValues(), std::size_t{bp::kChunkBytes});
}

/// Starts are counted from the tile until its place is known.
std::size_t BitplaneRZEStage::encodeTile(const TileRange& range,
                                         const void* in,
                                         std::uint8_t* out) {
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  const ByteView tile(static_cast<const std::uint8_t*>(in), 2 * range.n_values);
  const std::uint64_t first = range.first / bp::kChunkSymbols;
  std::uint32_t n_words = 0;
  for (std::size_t i = 0; i * bp::kChunkBytes < tile.size(); ++i) {
    std::uint8_t* flags = archive_ + layout.flagsAt(first + i);
    bp::withChunk(tile, i, [&](const std::uint8_t* words) {
      bp::flagChunk(words, flags);
      bp::encodeChunk(words, flags, out + std::size_t{4} * n_words);
    });
    storeLe(archive_ + layout.startAt(first + i), n_words);
    n_words += bp::storedWordsAt(flags);
  }
  return std::size_t{4} * n_words;
}

void BitplaneRZEStage::placeTile(const TileRange& range, std::uint64_t offset) {
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  const std::uint64_t first = range.first / bp::kChunkSymbols;
  for (std::size_t i = 0; i * bp::kChunkSymbols < range.n_values; ++i) {
    std::uint8_t* start = archive_ + layout.startAt(first + i);
    storeLe(start, loadLe<std::uint32_t>(start) + static_cast<std::uint32_t>(offset / 4));
  }
}

void BitplaneRZEStage::decodeTile(const TileRange& range, void* out) {
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  const MutableByteView tile(static_cast<std::uint8_t*>(out), 2 * range.n_values);
  const std::size_t first = range.first / bp::kChunkSymbols;
  for (std::size_t begin = 0; begin < tile.size(); begin += bp::kChunkBytes) {
    const MutableByteView chunk =
        tile.subspan(begin, std::min<std::size_t>(tile.size() - begin, bp::kChunkBytes));
    const std::size_t index = first + begin / bp::kChunkBytes;
    if (!bp::decodeChunkAt(stream_, layout, index, chunk)) {
      std::memset(chunk.data(), 0, chunk.size());
      noteFirst(first_bad_chunk_, index);
    }
  }
}

void BitplaneRZEStage::endTiles(const CpuRun& run) {
  if (isInverse()) {
    const bp::Layout layout = bp::layoutOf(n_symbols_);
    FZ_REQUIRE(first_bad_chunk_.load() == FirstIndex::kNone, ErrorCode::kCorrupt,
               "{}: chunk {} needs words outside the stream of {}", getName(),
               first_bad_chunk_.load(), (stream_.size() - layout.stream_at) / 4);
    return setActualBytes(0, static_cast<std::size_t>(2 * n_symbols_));
  }
  if (n_symbols_ != 0) {
    bp::writeHeader(n_symbols_, payloadBytes() / 4, run.outputs[0]);
  }
  setActualBytes(0, payloadOffset() + static_cast<std::size_t>(payloadBytes()));
}

}  // namespace fz
