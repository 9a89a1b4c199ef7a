// BitplaneRZE on the CPU: alone, and as the coder of a fused group.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "fused/bitplane_rze/codec.h"
#include "fused/bitplane_rze/cpu/chunks.h"
#include "fz/byte_io.h"

namespace fz {

namespace bp = bitplane_rze;

namespace {

/// f(chunk bytes) with a whole chunk: the input itself, or its ragged end padded with zeros.
template <class F>
void withChunk(ByteView in, std::size_t chunk, F f) {
  const std::size_t begin = chunk * bp::kChunkBytes;
  const std::size_t n_bytes = in.size() - begin;
  if (n_bytes >= bp::kChunkBytes) {
    f(in.data() + begin);
    return;
  }
  std::uint8_t padded[bp::kChunkBytes] = {};
  std::memcpy(padded, in.data() + begin, n_bytes);
  f(static_cast<const std::uint8_t*>(padded));
}

std::uint32_t storedWordsAt(const std::uint8_t* flags) {
  std::uint32_t words[bp::kFlagWords];
  std::memcpy(words, flags, sizeof(words));
  return bp::storedWords(words);
}

void writeHeader(std::uint64_t n_symbols, std::uint64_t n_words, MutableByteView archive) {
  const bp::Layout layout = bp::layoutOf(n_symbols);
  ByteWriter out(archive.first(bp::kHeaderBytes));
  out.u64(n_symbols).u32(0).u32(bp::kHeaderBytes);
  out.u32(static_cast<std::uint32_t>(layout.starts_at));
  out.u32(static_cast<std::uint32_t>(layout.stream_at));
  out.u32(static_cast<std::uint32_t>(layout.stream_at + 4 * n_words));
  out.zeros(bp::kHeaderBytes - out.position());
}

/// Decodes a chunk, or what there is of the last one; false when its groups lie outside the stream.
bool decodeChunkAt(ByteView archive,
                   const bp::Layout& layout,
                   std::size_t chunk,
                   MutableByteView out) {
  const std::uint64_t n_words = (archive.size() - layout.stream_at) / 4;
  const std::uint8_t* flags = archive.data() + layout.flagsAt(chunk);
  const std::uint64_t start = loadLe<std::uint32_t>(archive.data() + layout.startAt(chunk));
  if (start + storedWordsAt(flags) > n_words) {
    return false;
  }
  const std::uint8_t* stream = archive.data() + layout.stream_at + 4 * start;
  if (out.size() >= bp::kChunkBytes) {
    bp::decodeChunk(flags, stream, out.data());
    return true;
  }
  std::uint8_t padded[bp::kChunkBytes];
  bp::decodeChunk(flags, stream, padded);
  std::memcpy(out.data(), padded, out.size());
  return true;
}

/// Turns the flags of all chunks into start positions; returns the words of the whole stream.
std::uint64_t writeStarts(const bp::Layout& layout, std::uint8_t* archive) {
  std::uint64_t n_words = 0;
  for (std::uint64_t chunk = 0; chunk < layout.n_chunks; ++chunk) {
    storeLe(archive + layout.startAt(chunk), static_cast<std::uint32_t>(n_words));
    n_words += storedWordsAt(archive + layout.flagsAt(chunk));
  }
  return n_words;
}

}  // namespace

/// What a run in a group needs, and the stage's part in it.
struct BitplaneRZEStage::State final : CpuCoder {
  explicit State(BitplaneRZEStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& tiles) override;
  std::size_t payloadOffset() const override;
  std::size_t maxTileBytes() const override;
  std::size_t encodeTile(const TileRange& range, const void* in, std::uint8_t* out) override;
  void placeTile(const TileRange& range, std::uint64_t offset) override;
  void decodeTile(const TileRange& range, void* out) override;
  void endTiles(const CpuRun& run) override;
  /// Throws Error(kCorrupt) unless the header says what the config and the size demand.
  void checkHeader(ByteView found) const;

  BitplaneRZEStage& stage;
  // Of the group at hand.
  TileCut cut;
  std::uint8_t* archive = nullptr;  ///< encoding
  ByteView stream;                  ///< decoding: the whole archive
  std::atomic<std::uint64_t> first_bad_chunk = 0;
};

BitplaneRZEStage::BitplaneRZEStage() : state_(std::make_unique<State>(*this)) {
}
BitplaneRZEStage::~BitplaneRZEStage() = default;

TileOp BitplaneRZEStage::cpuTileOp() const {
  return CoderOp{.tile_bytes = bp::kChunkBytes, .value_bytes = 2, .takes_bands = true};
}
CpuTilePart* BitplaneRZEStage::cpuTilePart() {
  return state_.get();
}

void BitplaneRZEStage::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  checkInput(in.size());
  n_symbols_ = in.size() / 2;
  if (n_symbols_ == 0) {
    setActualBytes(0, 0);
    return;
  }
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  const MutableByteView out = run.outputs[0];
  if (out.size() < layout.stream_at) {
    requestOutputBytes(0, static_cast<std::size_t>(layout.maxBytes()));
    return;
  }
  std::uint8_t* archive = out.data();
  parallelFor(run.executor, layout.n_chunks, [&](std::size_t chunk) {
    withChunk(in, chunk, [&](const std::uint8_t* words) {
      bp::flagChunk(words, archive + layout.flagsAt(chunk));
    });
  });
  const std::uint64_t n_words = writeStarts(layout, archive);
  const auto n_bytes = static_cast<std::size_t>(layout.stream_at + 4 * n_words);
  if (out.size() < n_bytes) {
    requestOutputBytes(0, n_bytes);
    return;
  }
  writeHeader(n_symbols_, n_words, out);
  parallelFor(run.executor, layout.n_chunks, [&](std::size_t chunk) {
    const std::uint64_t start = loadLe<std::uint32_t>(archive + layout.startAt(chunk));
    withChunk(in, chunk, [&](const std::uint8_t* words) {
      bp::encodeChunk(words, archive + layout.flagsAt(chunk),
                      archive + layout.stream_at + 4 * start);
    });
  });
  setActualBytes(0, n_bytes);
}

void BitplaneRZEStage::State::checkHeader(ByteView found) const {
  const bp::Layout layout = bp::layoutOf(stage.n_symbols_);
  ByteReader in(found.first(bp::kHeaderBytes));
  const std::uint64_t n_symbols = in.u64();
  FZ_REQUIRE(n_symbols == stage.n_symbols_, ErrorCode::kCorrupt,
             "{}: expected {} symbols in the header, got {}", stage.getName(), stage.n_symbols_,
             n_symbols);
  const std::uint64_t entries[5] = {0, bp::kHeaderBytes, layout.starts_at, layout.stream_at,
                                    found.size()};
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t entry = in.u32();
    FZ_REQUIRE(entry == entries[i], ErrorCode::kCorrupt,
               "{}: expected offset {} in header entry {}, got {}", stage.getName(), entries[i], i,
               entry);
  }
}

void BitplaneRZEStage::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  const std::size_t n_decoded = decodedBytes({{in.size()}});
  FZ_REQUIRE(out.size() >= n_decoded, ErrorCode::kBufferTooSmall, "{}: expected {} bytes, got {}",
             getName(), n_decoded, out.size());
  setActualBytes(0, n_decoded);
  if (n_decoded == 0) {
    return;
  }
  state_->checkHeader(in);
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  const std::uint64_t n_words = (in.size() - layout.stream_at) / 4;
  FirstIndex bad_chunk;
  parallelFor(run.executor, layout.n_chunks, [&](std::size_t chunk) {
    const std::size_t begin = chunk * bp::kChunkBytes;
    const std::size_t n_here = std::min<std::size_t>(n_decoded - begin, bp::kChunkBytes);
    if (!decodeChunkAt(in, layout, chunk, out.subspan(begin, n_here))) {
      bad_chunk.record(chunk);
    }
  });
  FZ_REQUIRE(!bad_chunk.found(), ErrorCode::kCorrupt,
             "{}: chunk {} needs words outside the stream of {}", getName(), bad_chunk.value(),
             n_words);
}

void BitplaneRZEStage::State::beginTiles(const CpuRun& run, const TileCut& tiles) {
  cut = tiles;
  if (!stage.isInverse()) {
    stage.checkInput(run.inputs[0].size());
    stage.n_symbols_ = run.inputs[0].size() / 2;
    FZ_ASSERT(run.outputs[0].size() >= stage.encodedBytes(run.inputs[0].size())[0]);
    archive = run.outputs[0].data();
    return;
  }
  first_bad_chunk.store(FirstIndex::kNone);
  stream = run.inputs[0];
  if (stage.decodedBytes({{stream.size()}}) != 0) {
    checkHeader(stream);
  }
}

std::size_t BitplaneRZEStage::State::payloadOffset() const {
  return stage.n_symbols_ == 0 ? 0
                               : static_cast<std::size_t>(bp::layoutOf(stage.n_symbols_).stream_at);
}

std::size_t BitplaneRZEStage::State::maxTileBytes() const {
  return bits::roundUp(2 * cut.maxTileValues(), std::size_t{bp::kChunkBytes});
}

/// Starts are counted from the tile until its place is known.
std::size_t BitplaneRZEStage::State::encodeTile(const TileRange& range,
                                                const void* in,
                                                std::uint8_t* out) {
  const bp::Layout layout = bp::layoutOf(stage.n_symbols_);
  const ByteView tile(static_cast<const std::uint8_t*>(in), 2 * range.n_values);
  const std::uint64_t first = range.first / bp::kChunkSymbols;
  std::uint32_t n_words = 0;
  for (std::size_t i = 0; i * bp::kChunkBytes < tile.size(); ++i) {
    std::uint8_t* flags = archive + layout.flagsAt(first + i);
    withChunk(tile, i, [&](const std::uint8_t* words) {
      bp::flagChunk(words, flags);
      bp::encodeChunk(words, flags, out + std::size_t{4} * n_words);
    });
    storeLe(archive + layout.startAt(first + i), n_words);
    n_words += storedWordsAt(flags);
  }
  return std::size_t{4} * n_words;
}

void BitplaneRZEStage::State::placeTile(const TileRange& range, std::uint64_t offset) {
  const bp::Layout layout = bp::layoutOf(stage.n_symbols_);
  const std::uint64_t first = range.first / bp::kChunkSymbols;
  for (std::size_t i = 0; i * bp::kChunkSymbols < range.n_values; ++i) {
    std::uint8_t* start = archive + layout.startAt(first + i);
    storeLe(start, loadLe<std::uint32_t>(start) + static_cast<std::uint32_t>(offset / 4));
  }
}

void BitplaneRZEStage::State::decodeTile(const TileRange& range, void* out) {
  const bp::Layout layout = bp::layoutOf(stage.n_symbols_);
  const MutableByteView tile(static_cast<std::uint8_t*>(out), 2 * range.n_values);
  const std::size_t first = range.first / bp::kChunkSymbols;
  for (std::size_t begin = 0; begin < tile.size(); begin += bp::kChunkBytes) {
    const MutableByteView chunk =
        tile.subspan(begin, std::min<std::size_t>(tile.size() - begin, bp::kChunkBytes));
    const std::size_t index = first + begin / bp::kChunkBytes;
    if (!decodeChunkAt(stream, layout, index, chunk)) {
      std::memset(chunk.data(), 0, chunk.size());
      recordFirst(first_bad_chunk, index);
    }
  }
}

void BitplaneRZEStage::State::endTiles(const CpuRun& run) {
  if (stage.isInverse()) {
    const bp::Layout layout = bp::layoutOf(stage.n_symbols_);
    FZ_REQUIRE(first_bad_chunk.load() == FirstIndex::kNone, ErrorCode::kCorrupt,
               "{}: chunk {} needs words outside the stream of {}", stage.getName(),
               first_bad_chunk.load(), (stream.size() - layout.stream_at) / 4);
    return stage.setActualBytes(0, static_cast<std::size_t>(2 * stage.n_symbols_));
  }
  if (stage.n_symbols_ != 0) {
    writeHeader(stage.n_symbols_, payloadBytes() / 4, run.outputs[0]);
  }
  stage.setActualBytes(0, payloadOffset() + static_cast<std::size_t>(payloadBytes()));
}

}  // namespace fz
