#include "coders/rze/rze_stage.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "coders/rze/rze_codec.h"
#include "coders/rze/rze_cpu.h"
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
// Chunks per thread that are planned before they are written: they and their plans stay in the
// second-level cache. Not part of the format.
constexpr std::size_t kBatchChunks = 16;

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

std::uint32_t entryAt(ByteView stream, std::size_t chunk) {
  return loadLe<std::uint32_t>(stream.data() + kHeaderBytes + kEntryBytes * chunk);
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
             "RZE: {} bytes in chunks of {} need a stream of {} bytes or more, {} came",
             original_bytes_, chunk_bytes_, n_least, n_stream);
  return original_bytes_;
}

void RZEStage::checkInput(std::size_t n_bytes) const {
  FZ_REQUIRE_SIZE(n_bytes <= kMaxInputBytes, getName(), "input of at most {} bytes needed, {} came",
                  kMaxInputBytes, n_bytes);
}

void RZEStage::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  checkInput(in.size());
  original_bytes_ = in.size();
  if (in.empty()) {
    return setActualBytes(0, 0);
  }
  if (const std::size_t n_most = encodedBytes(in.size())[0]; out.size() < n_most) {
    return requestOutputBytes(0, n_most);
  }
  const rze::ChunkFormat format = formatOf(chunk_bytes_, levels_);
  const std::size_t n_chunks = chunkCount(in.size(), chunk_bytes_);
  const std::size_t n_batch = std::min(n_chunks, kBatchChunks * run.executor.threadCount());
  const std::span<rze::ChunkPlan> plans = plans_.get<rze::ChunkPlan>(run.pool, n_batch);
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
  const std::size_t n_stream = bits::roundUp(at, kStreamAlign);
  std::memset(out.data() + at, 0, n_stream - at);
  setActualBytes(0, n_stream);
}

std::span<const std::uint64_t> RZEStage::checkedOffsets(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const std::size_t n_bytes = original_bytes_;
  const std::size_t n_chunks = chunkCount(n_bytes, chunk_bytes_);
  const std::size_t n_named = loadLe<std::uint32_t>(in.data());
  const std::size_t n_chunks_named = loadLe<std::uint32_t>(in.data() + 4);
  FZ_REQUIRE(n_named == n_bytes && n_chunks_named == n_chunks, ErrorCode::kCorrupt,
             "RZE: config has {} bytes in {} chunks, stream has {} in {}", n_bytes, n_chunks,
             n_named, n_chunks_named);
  const std::span<std::uint64_t> offsets = offsets_.get<std::uint64_t>(run.pool, n_chunks);
  std::uint64_t end_of_chunks = kHeaderBytes + kEntryBytes * n_chunks;
  for (std::size_t i = 0; i < n_chunks; ++i) {
    offsets[i] = end_of_chunks;
    end_of_chunks += entryAt(in, i) & ~rze::kRawFlag;
  }
  FZ_REQUIRE(bits::roundUp(end_of_chunks, std::uint64_t{kStreamAlign}) == in.size(),
             ErrorCode::kCorrupt, "RZE: chunks end at byte {} of a stream of {}", end_of_chunks,
             in.size());
  return offsets;
}

void RZEStage::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const std::size_t n_bytes = decodedBytes(std::array{in.size()});
  if (n_bytes == 0) {
    return setActualBytes(0, 0);
  }
  const std::span<const std::uint64_t> offsets = checkedOffsets(run);
  const rze::ChunkFormat format = formatOf(chunk_bytes_, levels_);
  const MutableByteView out = run.outputs[0].first(n_bytes);
  FirstIndex bad;
  parallelFor(run.executor, offsets.size(), [&](std::size_t i) {
    const MutableByteView chunk =
        out.subspan(i * chunk_bytes_, rze::chunkLength(format, n_bytes, i));
    if (!rze::readChunk(format, entryAt(in, i), in.data() + offsets[i], in.data() + in.size(),
                        chunk)) {
      bad.note(i);
    }
  });
  FZ_REQUIRE(!bad.found(), ErrorCode::kCorrupt, "RZE: chunk {} is damaged", bad.value());
  setActualBytes(0, n_bytes);
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
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "RZE: config of 9 bytes needed, {} came", n_config);
  FZ_REQUIRE(isChunkSize(chunk_bytes) && isLevels(levels), ErrorCode::kCorrupt,
             "RZE: config with chunks of {} bytes and {} levels", chunk_bytes, levels);
  chunk_bytes_ = chunk_bytes;
  levels_ = levels;
  original_bytes_ = original_bytes;
}

const ParamTable& RZEStage::paramTable() const {
  return descriptor().params();
}

namespace rze {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return types.empty() ? std::make_unique<RZEStage>() : nullptr;
}

const ParamTable& params() {
  static const ParamTable kTable = [] {
    Param chunk = intParam<RZEStage>(
        "chunk_size", 16384, {4096, 16384}, "bytes that are coded on their own",
        &RZEStage::getChunkSize,
        [](RZEStage& s, std::int64_t v) { s.setChunkSize(static_cast<std::size_t>(v)); });
    chunk.choices = {"4096", "8192", "16384"};
    return ParamTable({std::move(chunk),
                       intParam<RZEStage>(
                           "levels", 4, {1, kMaxLevels},
                           "bitmaps per chunk, each over the one before", &RZEStage::getLevels,
                           [](RZEStage& s, std::int64_t v) { s.setLevels(static_cast<int>(v)); })});
  }();
  return kTable;
}

StageTypes typesFromConfig(ByteView /*config*/) {
  return {};
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 18,
      .name = "RZE",
      .category = "coder",
      .summary = "removes zero bytes, and repeats from the bitmaps of where they were",
      .type_keys = {},
      .type_combinations = {},
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace rze
}  // namespace fz
