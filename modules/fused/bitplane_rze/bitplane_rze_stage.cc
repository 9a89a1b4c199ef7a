#include "fused/bitplane_rze/bitplane_rze_stage.h"

#include <algorithm>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "fused/bitplane_rze/bitplane_rze_codec.h"
#include "fused/bitplane_rze/bitplane_rze_cpu.h"
#include "fused/bitplane_rze/bitplane_rze_impl.h"
#include "fz/byte_io.h"

namespace fz {

namespace bp = bitplane_rze;

namespace {

/// Turns the flags of all chunks into start positions; returns the words of the whole stream.
std::uint64_t writeStarts(const bp::Layout& layout, std::uint8_t* archive) {
  std::uint64_t n_words = 0;
  for (std::uint64_t chunk = 0; chunk < layout.n_chunks; ++chunk) {
    storeLe(archive + layout.startAt(chunk), static_cast<std::uint32_t>(n_words));
    n_words += bp::storedWordsAt(archive + layout.flagsAt(chunk));
  }
  return n_words;
}

}  // namespace

SimpleStage::PortBytes BitplaneRZEStage::encodedBytes(std::size_t input_bytes) const {
  if (input_bytes == 0) {
    return {0};
  }
  return {static_cast<std::size_t>(bp::layoutOf((input_bytes + 1) / 2).maxBytes())};
}

std::size_t BitplaneRZEStage::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::size_t n_bytes = encoded_bytes[0];
  if (n_symbols_ == 0) {
    FZ_REQUIRE(n_bytes == 0, ErrorCode::kCorrupt, "{}: 0 bytes needed for no symbols, {} came",
               getName(), n_bytes);
    return 0;
  }
  FZ_REQUIRE(n_symbols_ <= bp::kMaxSymbols, ErrorCode::kCorrupt,
             "{}: at most {} symbols needed, {} came", getName(), bp::kMaxSymbols, n_symbols_);
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  FZ_REQUIRE(n_bytes >= layout.stream_at && (n_bytes - layout.stream_at) % 4 == 0,
             ErrorCode::kCorrupt,
             "{}: {} symbols need {} bytes and a whole number of words, {} bytes came", getName(),
             n_symbols_, layout.stream_at, n_bytes);
  return static_cast<std::size_t>(2 * n_symbols_);
}

void BitplaneRZEStage::checkInput(std::uint64_t n_bytes) const {
  FZ_REQUIRE(n_bytes % 2 == 0, ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of 2-byte values", getName(), n_bytes);
  FZ_REQUIRE_SIZE(n_bytes / 2 <= bp::kMaxSymbols, getName(),
                  "at most {} values needed because of 32-bit offsets, {} came", bp::kMaxSymbols,
                  n_bytes / 2);
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
    bp::withChunk(in, chunk, [&](const std::uint8_t* words) {
      bp::flagChunk(words, archive + layout.flagsAt(chunk));
    });
  });
  const std::uint64_t n_words = writeStarts(layout, archive);
  const auto n_bytes = static_cast<std::size_t>(layout.stream_at + 4 * n_words);
  if (out.size() < n_bytes) {
    requestOutputBytes(0, n_bytes);
    return;
  }
  bp::writeHeader(n_symbols_, n_words, out);
  parallelFor(run.executor, layout.n_chunks, [&](std::size_t chunk) {
    const std::uint64_t start = loadLe<std::uint32_t>(archive + layout.startAt(chunk));
    bp::withChunk(in, chunk, [&](const std::uint8_t* words) {
      bp::encodeChunk(words, archive + layout.flagsAt(chunk),
                      archive + layout.stream_at + 4 * start);
    });
  });
  setActualBytes(0, n_bytes);
}

void BitplaneRZEStage::checkHeader(ByteView archive) const {
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  ByteReader in(archive.first(bp::kHeaderBytes));
  const std::uint64_t n_symbols = in.u64();
  FZ_REQUIRE(n_symbols == n_symbols_, ErrorCode::kCorrupt,
             "{}: header with {} symbols needed, {} came", getName(), n_symbols_, n_symbols);
  const std::uint64_t entries[5] = {0, bp::kHeaderBytes, layout.starts_at, layout.stream_at,
                                    archive.size()};
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t entry = in.u32();
    FZ_REQUIRE(entry == entries[i], ErrorCode::kCorrupt,
               "{}: offset {} in header entry {} needed, {} came", getName(), entries[i], i, entry);
  }
}

void BitplaneRZEStage::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  const std::size_t n_decoded = decodedBytes({{in.size()}});
  FZ_REQUIRE(out.size() >= n_decoded, ErrorCode::kBufferTooSmall, "{}: {} bytes needed, {} came",
             getName(), n_decoded, out.size());
  setActualBytes(0, n_decoded);
  if (n_decoded == 0) {
    return;
  }
  checkHeader(in);
  const bp::Layout layout = bp::layoutOf(n_symbols_);
  const std::uint64_t n_words = (in.size() - layout.stream_at) / 4;
  FirstIndex bad_chunk;
  parallelFor(run.executor, layout.n_chunks, [&](std::size_t chunk) {
    const std::size_t begin = chunk * bp::kChunkBytes;
    const std::size_t n_here = std::min<std::size_t>(n_decoded - begin, bp::kChunkBytes);
    if (!bp::decodeChunkAt(in, layout, chunk, out.subspan(begin, n_here))) {
      bad_chunk.note(chunk);
    }
  });
  FZ_REQUIRE(!bad_chunk.found(), ErrorCode::kCorrupt,
             "{}: chunk {} needs words outside the stream of {}", getName(), bad_chunk.value(),
             n_words);
}

void BitplaneRZEStage::writeConfig(ByteWriter& out) const {
  out.u64(n_symbols_);
}

void BitplaneRZEStage::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  const std::uint64_t n_symbols = in.u64();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "{}: config of 8 bytes needed, {} came", getName(),
             n_bytes);
  n_symbols_ = n_symbols;
}

namespace bitplane_rze {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return types.empty() ? std::make_unique<BitplaneRZEStage>() : nullptr;
}

StageTypes typesFromConfig(ByteView /*config*/) {
  return {};
}

const ParamTable& params() {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 23,
      .name = "BitplaneRZE",
      .category = "fused",
      .summary = "bit planes of uint16 codes with groups of zeros left out",
      .type_keys = {},
      .type_combinations = {},
      .aliases = {"bprze"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace bitplane_rze
}  // namespace fz
