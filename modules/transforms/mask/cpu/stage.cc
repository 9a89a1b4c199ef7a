// A run on the CPU, tile by tile: alone over all of the data, or as part of a fused group.
#include <algorithm>
#include <numeric>

#include "backends/cpu/parallel_for.h"
#include "transforms/mask/cpu/state.h"

namespace fz::mask {

MaskBase::MaskBase(DataType type) : type_(type), state_(std::make_unique<State>(*this)) {
}
MaskBase::~MaskBase() = default;

void MaskBase::State::beginTiles(const CpuRun& run, const TileCut& cut) {
  tile_values = cut.tile_values;
  stage.isInverse() ? beginDecode(run) : beginEncode(run);
}

void MaskBase::State::encodeTile(const TileRange& range, const void* in, void* out) {
  withType(stage.type_, [&]<class T>(T /*type*/) {
    encodeValues(range, static_cast<const T*>(in), static_cast<T*>(out));
  });
}

void MaskBase::State::decodeTile(const TileRange& range, const void* in, void* out) {
  withType(stage.type_, [&]<class T>(T /*type*/) {
    decodeValues(range, static_cast<const T*>(in), static_cast<T*>(out));
  });
}

void MaskBase::State::endTiles(const CpuRun& run) {
  stage.setActualBytes(0, n_values * stage.valueBytes());
  if (!stage.isInverse()) {
    if (fillsTiles()) {
      fillTiles(run);
    }
    endEncode(run);
  }
}

std::size_t MaskBase::State::unitValues() const {
  const std::size_t filled_together = stage.isInverse() || fillsTiles() ? 1 : stage.hold_[0];
  return std::lcm(kWordValues, std::max<std::size_t>(1, filled_together));
}

TileOp MaskBase::cpuTileOp() const {
  if (!isInverse() && state_->fillsTiles()) {
    return NoOp{"fills missing values in tiles of more than one row"};
  }
  return RowsOp{.unit_values = static_cast<std::uint32_t>(state_->unitValues()), .is_first = true};
}

CpuTilePart* MaskBase::cpuTilePart() {
  return state_.get();
}

void MaskBase::encodeCpu(const CpuRun& run) {
  const TileCut cut{.n_values = run.inputs[0].size() / valueBytes(),
                    .tile_values = bits::roundUp(kTileValues, state_->unitValues())};
  state_->beginTiles(run, cut);
  parallelFor(run.executor, cut.tileCount(), [&](std::size_t tile) {
    const TileRange range = cut.at(tile);
    state_->encodeTile(range, run.inputs[0].data() + range.first * valueBytes(),
                       run.outputs[0].data() + range.first * valueBytes());
  });
  state_->endTiles(run);
}

void MaskBase::decodeCpu(const CpuRun& run) {
  const TileCut cut{.n_values = run.inputs[0].size() / valueBytes(), .tile_values = kTileValues};
  state_->beginTiles(run, cut);
  parallelFor(run.executor, cut.tileCount(), [&](std::size_t tile) {
    const TileRange range = cut.at(tile);
    state_->decodeTile(range, run.inputs[0].data() + range.first * valueBytes(),
                       run.outputs[0].data() + range.first * valueBytes());
  });
  state_->endTiles(run);
}

}  // namespace fz::mask
