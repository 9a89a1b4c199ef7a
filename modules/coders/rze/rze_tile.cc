// RZE as the coder of a fused group on the CPU.
#include <array>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "coders/rze/rze_cpu.h"
#include "coders/rze/rze_stage.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/bits.h"

namespace fz {

using rze::kEntryBytes;
using rze::kHeaderBytes;

TileOp RZEStage::cpuTileOp() const {
  return {.role = TileRole::kCoder,
          .tile_bytes = static_cast<std::uint32_t>(chunk_bytes_),
          .has_bands = true};
}

void RZEStage::beginTiles(const CpuRun& run, const TileCut& cut) {
  cut_ = cut;
  if (!isInverse()) {
    checkInput(run.inputs[0].size());
    original_bytes_ = run.inputs[0].size();
    FZ_ASSERT(run.outputs[0].size() >= encodedBytes(original_bytes_)[0]);
    stream_out_ = run.outputs[0].data();
    return;
  }
  first_bad_chunk_.store(FirstIndex::kNone);
  stream_in_ = run.inputs[0];
  if (decodedBytes(std::array{stream_in_.size()}) != 0) {
    chunk_at_ = checkedOffsets(run);
  }
}

std::size_t RZEStage::payloadOffset() const {
  return kHeaderBytes + kEntryBytes * bits::ceilDiv(original_bytes_, chunk_bytes_);
}

std::size_t RZEStage::maxTileBytes() const {
  // A chunk that is shorter than the others may grow, but not beyond what they have.
  return bits::roundUp(cut_.maxTileValues() * cut_.value_bytes, chunk_bytes_);
}

std::size_t RZEStage::encodeTile(const TileRange& range, const void* in, std::uint8_t* out) {
  const rze::ChunkFormat format{static_cast<std::uint32_t>(chunk_bytes_),
                                static_cast<std::uint32_t>(levels_)};
  const ByteView tile(static_cast<const std::uint8_t*>(in), range.n_values * cut_.value_bytes);
  const std::size_t first = range.first * cut_.value_bytes / chunk_bytes_;
  rze::ChunkPlan plan;
  std::size_t at = 0;
  for (std::size_t i = 0; i * chunk_bytes_ < tile.size(); ++i) {
    rze::planChunks(format, tile, i, 1, &plan);
    plan.offset = at;
    at += plan.entry & ~rze::kRawFlag;
    storeLe(stream_out_ + kHeaderBytes + kEntryBytes * (first + i), plan.entry);
    rze::writeChunks(format, tile, i, 1, &plan, out);
  }
  return at;
}

void RZEStage::decodeTile(const TileRange& range, void* out) {
  const rze::ChunkFormat format{static_cast<std::uint32_t>(chunk_bytes_),
                                static_cast<std::uint32_t>(levels_)};
  const MutableByteView tile(static_cast<std::uint8_t*>(out), range.n_values * cut_.value_bytes);
  const std::size_t first = range.first * cut_.value_bytes / chunk_bytes_;
  for (std::size_t i = 0; i * chunk_bytes_ < tile.size(); ++i) {
    const MutableByteView chunk =
        tile.subspan(i * chunk_bytes_, rze::chunkLength(format, tile.size(), i));
    const auto entry =
        loadLe<std::uint32_t>(stream_in_.data() + kHeaderBytes + kEntryBytes * (first + i));
    if (!rze::readChunk(format, entry, stream_in_.data() + chunk_at_[first + i],
                        stream_in_.data() + stream_in_.size(), chunk)) {
      std::memset(chunk.data(), 0, chunk.size());
      noteFirst(first_bad_chunk_, first + i);
    }
  }
}

void RZEStage::endTiles(const CpuRun& run) {
  if (isInverse()) {
    FZ_REQUIRE(first_bad_chunk_.load() == FirstIndex::kNone, ErrorCode::kCorrupt,
               "RZE: chunk {} is damaged", first_bad_chunk_.load());
    return setActualBytes(0, original_bytes_);
  }
  if (original_bytes_ == 0) {
    return setActualBytes(0, 0);
  }
  const MutableByteView out = run.outputs[0];
  const std::size_t n_chunks = bits::ceilDiv(original_bytes_, chunk_bytes_);
  const std::size_t end = payloadOffset() + static_cast<std::size_t>(payloadBytes());
  const std::size_t n_stream = bits::roundUp(end, std::size_t{rze::kStreamAlign});
  if (out.size() < n_stream) {
    return requestOutputBytes(0, encodedBytes(original_bytes_)[0]);
  }
  storeLe(out.data(), static_cast<std::uint32_t>(original_bytes_));
  storeLe(out.data() + 4, static_cast<std::uint32_t>(n_chunks));
  std::memset(out.data() + end, 0, n_stream - end);
  setActualBytes(0, n_stream);
}

}  // namespace fz
