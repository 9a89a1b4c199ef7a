// RZE on the CPU: alone, and as the coder of a fused group.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "coders/rze/cpu/chunks.h"
#include "coders/rze/rze_stage.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "mem/scratch.h"
#include "shared/bits.h"

namespace fz {

using rze::kEntryBytes;
using rze::kHeaderBytes;

namespace {

// Chunks per thread that are planned before they are written: they and their plans stay in the
// second-level cache. Not part of the format.
constexpr std::size_t kBatchChunks = 16;

rze::ChunkFormat formatOf(const RZEStage& stage) {
  return {static_cast<std::uint32_t>(stage.getChunkSize()),
          static_cast<std::uint32_t>(stage.getLevels())};
}

std::size_t chunkCount(std::size_t n_bytes, std::size_t chunk_bytes) {
  return bits::ceilDiv(n_bytes, chunk_bytes);
}

std::uint32_t entryAt(ByteView stream, std::size_t chunk) {
  return loadLe<std::uint32_t>(stream.data() + kHeaderBytes + kEntryBytes * chunk);
}

}  // namespace

/// What a run needs, and the stage's part in groups.
struct RZEStage::State final : CpuCoder {
  explicit State(RZEStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& tiles) override;
  std::size_t payloadOffset() const override;
  std::size_t maxTileBytes() const override;
  std::size_t encodeTile(const TileRange& range, const void* in, std::uint8_t* out) override;
  void decodeTile(const TileRange& range, void* out) override;
  void endTiles(const CpuRun& run) override;
  /// Checks the header and the table of a stream. Throws Error(kCorrupt).
  std::span<const std::uint64_t> checkedOffsets(const CpuRun& run);

  RZEStage& stage;
  Scratch plans;
  Scratch offsets;
  // Of the group at hand.
  TileCut cut;
  std::uint8_t* stream_out = nullptr;
  ByteView stream_in;
  std::span<const std::uint64_t> chunk_at;
  std::atomic<std::uint64_t> first_bad_chunk = 0;
};

RZEStage::RZEStage() : state_(std::make_unique<State>(*this)) {
}
RZEStage::~RZEStage() = default;

TileOp RZEStage::cpuTileOp() const {
  return CoderOp{.tile_bytes = static_cast<std::uint32_t>(chunk_bytes_), .takes_bands = true};
}
CpuTilePart* RZEStage::cpuTilePart() {
  return state_.get();
}

void RZEStage::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  requireCountable(in.size());
  original_bytes_ = in.size();
  if (in.empty()) {
    return setActualBytes(0, 0);
  }
  if (const std::size_t n_most = encodedBytes(in.size())[0]; out.size() < n_most) {
    return requestOutputBytes(0, n_most);
  }
  const rze::ChunkFormat format = formatOf(*this);
  const std::size_t n_chunks = chunkCount(in.size(), chunk_bytes_);
  const std::size_t n_batch = std::min(n_chunks, kBatchChunks * run.executor.threadCount());
  const std::span<rze::ChunkPlan> plans = state_->plans.get<rze::ChunkPlan>(run.pool, n_batch);
  storeLe(out.data(), static_cast<std::uint32_t>(in.size()));
  storeLe(out.data() + 4, static_cast<std::uint32_t>(n_chunks));
  std::size_t at = kHeaderBytes + kEntryBytes * n_chunks;
  for (std::size_t first = 0; first < n_chunks; first += n_batch) {
    const std::size_t n_now = std::min(n_batch, n_chunks - first);
    parallelRanges(run.executor, n_now, [&](std::size_t begin, std::size_t end) {
      rze::planChunks(format, in, first + begin, end - begin, plans.data() + begin);
    });
    for (std::size_t i = 0; i < n_now; ++i) {
      plans[i].offset = at;
      at += plans[i].entry & ~rze::kRawFlag;
      storeLe(out.data() + kHeaderBytes + kEntryBytes * (first + i), plans[i].entry);
    }
    parallelRanges(run.executor, n_now, [&](std::size_t begin, std::size_t end) {
      rze::writeChunks(format, in, first + begin, end - begin, plans.data() + begin, out.data());
    });
  }
  const std::size_t n_stream = bits::roundUp(at, std::size_t{rze::kStreamAlign});
  std::memset(out.data() + at, 0, n_stream - at);
  setActualBytes(0, n_stream);
}

std::span<const std::uint64_t> RZEStage::State::checkedOffsets(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const std::size_t n_bytes = stage.original_bytes_;
  const std::size_t n_chunks = chunkCount(n_bytes, stage.chunk_bytes_);
  const std::size_t n_named = loadLe<std::uint32_t>(in.data());
  const std::size_t n_chunks_named = loadLe<std::uint32_t>(in.data() + 4);
  FZ_REQUIRE(n_named == n_bytes && n_chunks_named == n_chunks, ErrorCode::kCorrupt,
             "RZE: config has {} bytes in {} chunks, but the stream has {} in {}", n_bytes,
             n_chunks, n_named, n_chunks_named);
  const std::span<std::uint64_t> found = offsets.get<std::uint64_t>(run.pool, n_chunks);
  std::uint64_t end_of_chunks = kHeaderBytes + kEntryBytes * n_chunks;
  for (std::size_t i = 0; i < n_chunks; ++i) {
    found[i] = end_of_chunks;
    end_of_chunks += entryAt(in, i) & ~rze::kRawFlag;
  }
  FZ_REQUIRE(bits::roundUp(end_of_chunks, std::uint64_t{rze::kStreamAlign}) == in.size(),
             ErrorCode::kCorrupt, "RZE: chunks end at byte {} of a stream of {}", end_of_chunks,
             in.size());
  return found;
}

void RZEStage::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const std::size_t n_bytes = decodedBytes(std::array{in.size()});
  if (n_bytes == 0) {
    return setActualBytes(0, 0);
  }
  const std::span<const std::uint64_t> offsets = state_->checkedOffsets(run);
  const rze::ChunkFormat format = formatOf(*this);
  const MutableByteView out = run.outputs[0].first(n_bytes);
  FirstIndex bad;
  parallelFor(run.executor, offsets.size(), [&](std::size_t i) {
    const MutableByteView chunk =
        out.subspan(i * chunk_bytes_, rze::chunkLength(format, n_bytes, i));
    if (!rze::readChunk(format, entryAt(in, i), in.data() + offsets[i], in.data() + in.size(),
                        chunk)) {
      bad.record(i);
    }
  });
  FZ_REQUIRE(!bad.found(), ErrorCode::kCorrupt, "RZE: chunk {} is damaged", bad.value());
  setActualBytes(0, n_bytes);
}

void RZEStage::State::beginTiles(const CpuRun& run, const TileCut& tiles) {
  cut = tiles;
  if (!stage.isInverse()) {
    stage.requireCountable(run.inputs[0].size());
    stage.original_bytes_ = run.inputs[0].size();
    FZ_ASSERT(run.outputs[0].size() >= stage.encodedBytes(stage.original_bytes_)[0]);
    stream_out = run.outputs[0].data();
    return;
  }
  first_bad_chunk.store(FirstIndex::kNone);
  stream_in = run.inputs[0];
  if (stage.decodedBytes(std::array{stream_in.size()}) != 0) {
    chunk_at = checkedOffsets(run);
  }
}

std::size_t RZEStage::State::payloadOffset() const {
  return kHeaderBytes + kEntryBytes * bits::ceilDiv(stage.original_bytes_, stage.chunk_bytes_);
}

std::size_t RZEStage::State::maxTileBytes() const {
  // A chunk that is shorter than the others may grow, but not beyond what they have.
  return bits::roundUp(cut.maxTileValues() * cut.value_bytes, stage.chunk_bytes_);
}

std::size_t RZEStage::State::encodeTile(const TileRange& range, const void* in, std::uint8_t* out) {
  const rze::ChunkFormat format = formatOf(stage);
  const ByteView tile(static_cast<const std::uint8_t*>(in), range.n_values * cut.value_bytes);
  const std::size_t first = range.first * cut.value_bytes / stage.chunk_bytes_;
  rze::ChunkPlan plan;
  std::size_t at = 0;
  for (std::size_t i = 0; i * stage.chunk_bytes_ < tile.size(); ++i) {
    rze::planChunks(format, tile, i, 1, &plan);
    plan.offset = at;
    at += plan.entry & ~rze::kRawFlag;
    storeLe(stream_out + kHeaderBytes + kEntryBytes * (first + i), plan.entry);
    rze::writeChunks(format, tile, i, 1, &plan, out);
  }
  return at;
}

void RZEStage::State::decodeTile(const TileRange& range, void* out) {
  const rze::ChunkFormat format = formatOf(stage);
  const MutableByteView tile(static_cast<std::uint8_t*>(out), range.n_values * cut.value_bytes);
  const std::size_t first = range.first * cut.value_bytes / stage.chunk_bytes_;
  for (std::size_t i = 0; i * stage.chunk_bytes_ < tile.size(); ++i) {
    const MutableByteView chunk =
        tile.subspan(i * stage.chunk_bytes_, rze::chunkLength(format, tile.size(), i));
    if (!rze::readChunk(format, entryAt(stream_in, first + i),
                        stream_in.data() + chunk_at[first + i], stream_in.data() + stream_in.size(),
                        chunk)) {
      std::memset(chunk.data(), 0, chunk.size());
      recordFirst(first_bad_chunk, first + i);
    }
  }
}

void RZEStage::State::endTiles(const CpuRun& run) {
  if (stage.isInverse()) {
    FZ_REQUIRE(first_bad_chunk.load() == FirstIndex::kNone, ErrorCode::kCorrupt,
               "RZE: chunk {} is damaged", first_bad_chunk.load());
    return stage.setActualBytes(0, stage.original_bytes_);
  }
  if (stage.original_bytes_ == 0) {
    return stage.setActualBytes(0, 0);
  }
  const MutableByteView out = run.outputs[0];
  const std::size_t n_chunks = bits::ceilDiv(stage.original_bytes_, stage.chunk_bytes_);
  const std::size_t end = payloadOffset() + static_cast<std::size_t>(payloadBytes());
  const std::size_t n_stream = bits::roundUp(end, std::size_t{rze::kStreamAlign});
  if (out.size() < n_stream) {
    return stage.requestOutputBytes(0, stage.encodedBytes(stage.original_bytes_)[0]);
  }
  storeLe(out.data(), static_cast<std::uint32_t>(stage.original_bytes_));
  storeLe(out.data() + 4, static_cast<std::uint32_t>(n_chunks));
  std::memset(out.data() + end, 0, n_stream - end);
  stage.setActualBytes(0, n_stream);
}

}  // namespace fz
