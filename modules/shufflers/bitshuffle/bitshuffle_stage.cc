#include "shufflers/bitshuffle/bitshuffle_stage.h"

#include <bit>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shufflers/bitshuffle/bitshuffle_codec.h"
#include "shufflers/bitshuffle/bitshuffle_cpu.h"

namespace fz {

namespace {

constexpr std::size_t kMaxBlockBytes = 0xFFFFFC00u;  // largest multiple of 1024 in the u32 field

// Outputs from this size on will not be in a cache when the next stage reads them.
constexpr std::size_t kStreamBytes = std::size_t{16} << 20;

bool isElementWidth(std::size_t n_bytes) {
  return n_bytes == 1 || n_bytes == 2 || n_bytes == 4 || n_bytes == 8;
}

bool isWholeUnits(std::size_t block_bytes, std::size_t element_bytes) {
  return block_bytes > 0 && block_bytes % (bitshuffle::kUnitElements * element_bytes) == 0;
}

/// One tile of a group: whole blocks, then the tail.
template <class F>
void runTile(const bitshuffle::BlockLayout& layout,
             std::size_t n_bytes,
             const void* from,
             void* to,
             F units) {
  const auto* in = static_cast<const std::uint8_t*>(from);
  auto* out = static_cast<std::uint8_t*>(to);
  const std::size_t n_shuffled = n_bytes / layout.block_bytes * layout.block_bytes;
  units({layout, in, out, 0, n_shuffled / layout.unitBytes(), false});
  std::memcpy(out + n_shuffled, in + n_shuffled, n_bytes - n_shuffled);
}

/// Runs the units of all whole blocks, then copies the tail.
template <class F>
void runBlocks(const CpuRun& run, const bitshuffle::BlockLayout& layout, F units) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  const std::size_t n_shuffled = in.size() / layout.block_bytes * layout.block_bytes;
  const bool streams =
      n_shuffled >= kStreamBytes && std::bit_cast<std::uintptr_t>(out.data()) % 64 == 0;
  parallelRanges(run.executor, n_shuffled / layout.unitBytes(),
                 [&](std::size_t begin, std::size_t end) {
                   units({layout, in.data(), out.data(), begin, end, streams});
                 });
  if (n_shuffled < in.size()) {
    std::memcpy(out.data() + n_shuffled, in.data() + n_shuffled, in.size() - n_shuffled);
  }
}

}  // namespace

void BitshuffleStage::setBlockSize(std::size_t n_bytes) {
  FZ_REQUIRE_ARG(isWholeUnits(n_bytes, 1) && n_bytes <= kMaxBlockBytes,
                 "Bitshuffle: block_size must be a positive multiple of 1024 up to {}, not {}",
                 kMaxBlockBytes, n_bytes);
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

void BitshuffleStage::encodeCpu(const CpuRun& run) {
  requireWholeUnits();
  runBlocks(run, {block_bytes_, element_bytes_}, &bitshuffle::encodeUnits);
  setActualBytes(0, run.inputs[0].size());
}

void BitshuffleStage::decodeCpu(const CpuRun& run) {
  requireWholeUnits();
  runBlocks(run, {block_bytes_, element_bytes_}, &bitshuffle::decodeUnits);
  setActualBytes(0, run.inputs[0].size());
}

TileOp BitshuffleStage::cpuTileOp() const {
  return PlanesOp{.block_bytes = static_cast<std::uint32_t>(block_bytes_)};
}

void BitshuffleStage::beginTiles(const CpuRun& /*run*/, const TileCut& cut) {
  requireWholeUnits();
  tile_value_bytes_ = cut.value_bytes;
}
void BitshuffleStage::encodeTile(const TileRange& range, const void* in, void* out) {
  runTile({block_bytes_, element_bytes_}, range.n_values * tile_value_bytes_, in, out,
          &bitshuffle::encodeUnits);
}
void BitshuffleStage::decodeTile(const TileRange& range, const void* in, void* out) {
  runTile({block_bytes_, element_bytes_}, range.n_values * tile_value_bytes_, in, out,
          &bitshuffle::decodeUnits);
}
void BitshuffleStage::endTiles(const CpuRun& run) {
  setActualBytes(0, run.inputs[0].size());
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
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "Bitshuffle: config of 5 bytes needed, {} came",
             in.position());
  FZ_REQUIRE(isElementWidth(element_bytes) && isWholeUnits(block_bytes, element_bytes),
             ErrorCode::kCorrupt, "Bitshuffle: config with blocks of {} bytes, elements of {}",
             block_bytes, element_bytes);
  block_bytes_ = block_bytes;
  element_bytes_ = element_bytes;
}

const ParamTable& BitshuffleStage::paramTable() const {
  return descriptor().params();
}

namespace bitshuffle {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return types.empty() ? std::make_unique<BitshuffleStage>() : nullptr;
}

const ParamTable& params() {
  static const ParamTable kTable = [] {
    Param width = intParam<BitshuffleStage>(
        "element_width", 4, {1, 8}, "bytes of an element", &BitshuffleStage::getElementWidth,
        [](BitshuffleStage& s, std::int64_t v) { s.setElementWidth(static_cast<std::size_t>(v)); });
    width.choices = {"1", "2", "4", "8"};
    return ParamTable({intParam<BitshuffleStage>("block_size", 16384, {1024, kMaxBlockBytes},
                                                 "bytes of a block, a multiple of 1024 elements",
                                                 &BitshuffleStage::getBlockSize,
                                                 [](BitshuffleStage& s, std::int64_t v) {
                                                   s.setBlockSize(static_cast<std::size_t>(v));
                                                 }),
                       std::move(width)});
  }();
  return kTable;
}

StageTypes typesFromConfig(ByteView /*config*/) {
  return {};
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 17,
      .name = "Bitshuffle",
      .category = "shuffler",
      .summary = "equal bits of the elements of a block side by side, highest bits first",
      .type_keys = {},
      .type_combinations = {},
      .aliases = {"bshuf"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace bitshuffle
}  // namespace fz
