// Bitshuffle on the CPU: alone, and in a fused group.
#include <bit>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "shufflers/bitshuffle/cpu/blocks.h"

namespace fz {

namespace {

// Outputs from this size on will not be in a cache when the next stage reads them.
constexpr std::size_t kStreamBytes = std::size_t{16} << 20;

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

/// The stage's part in groups.
struct BitshuffleStage::State final : CpuTileOp {
  explicit State(BitshuffleStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& /*run*/, const TileCut& cut) override {
    stage.requireWholeUnits();
    value_bytes = cut.value_bytes;
  }
  void encodeTile(const TileRange& range, const void* in, void* out) override {
    runTile(layout(), range.n_values * value_bytes, in, out, &bitshuffle::encodeUnits);
  }
  void decodeTile(const TileRange& range, const void* in, void* out) override {
    runTile(layout(), range.n_values * value_bytes, in, out, &bitshuffle::decodeUnits);
  }
  void endTiles(const CpuRun& run) override { stage.setActualBytes(0, run.inputs[0].size()); }

  bitshuffle::BlockLayout layout() const { return {stage.block_bytes_, stage.element_bytes_}; }

  BitshuffleStage& stage;
  std::size_t value_bytes = 1;  // of the group at hand
};

BitshuffleStage::BitshuffleStage() : state_(std::make_unique<State>(*this)) {
}
BitshuffleStage::~BitshuffleStage() = default;

TileOp BitshuffleStage::cpuTileOp() const {
  return PlanesOp{.block_bytes = static_cast<std::uint32_t>(block_bytes_)};
}
CpuTilePart* BitshuffleStage::cpuTilePart() {
  return state_.get();
}

void BitshuffleStage::encodeCpu(const CpuRun& run) {
  requireWholeUnits();
  runBlocks(run, state_->layout(), &bitshuffle::encodeUnits);
  setActualBytes(0, run.inputs[0].size());
}

void BitshuffleStage::decodeCpu(const CpuRun& run) {
  requireWholeUnits();
  runBlocks(run, state_->layout(), &bitshuffle::decodeUnits);
  setActualBytes(0, run.inputs[0].size());
}

}  // namespace fz
