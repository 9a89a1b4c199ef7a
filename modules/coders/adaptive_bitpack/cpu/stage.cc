// AdaptiveBitpack on the CPU: alone, and as the coder of a fused group.
#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/adaptive_bitpack/cpu/blocks.h"
#include "core/require.h"

namespace fz {

using adaptive_bitpack::BlockLayout;

namespace {

template <class T>
BlockLayout layoutOf(const AdaptiveBitpackStage<T>& stage) {
  return {static_cast<std::uint32_t>(stage.getBlockSize()), stage.getOutlierSelection()};
}

}  // namespace

/// What a run needs, and the stage's part in groups.
template <class T>
struct AdaptiveBitpackStage<T>::State final : CpuCoder {
  explicit State(AdaptiveBitpackStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& tiles) override;
  std::size_t payloadOffset() const override;
  std::size_t maxTileBytes() const override;
  std::size_t encodeTile(const TileRange& range, const void* in, std::uint8_t* out) override;
  void decodeTile(const TileRange& range, void* out) override;
  void endTiles(const CpuRun& run) override;

  AdaptiveBitpackStage& stage;
  adaptive_bitpack::CpuScratch scratch;
  // Of the group at hand.
  TileCut cut;
  std::uint8_t* archive = nullptr;         ///< when encoding
  ByteView stream;                         ///< when decoding: the whole archive
  std::span<const std::uint64_t> tile_at;  ///< likewise: payload of every tile
};

template <class T>
AdaptiveBitpackStage<T>::AdaptiveBitpackStage() : state_(std::make_unique<State>(*this)) {
}
template <class T>
AdaptiveBitpackStage<T>::~AdaptiveBitpackStage() = default;

template <class T>
CpuTilePart* AdaptiveBitpackStage<T>::cpuTilePart() {
  return state_.get();
}

template <class T>
TileOp AdaptiveBitpackStage<T>::cpuTileOp() const {
  return CoderOp{.tile_bytes = static_cast<std::uint32_t>(config_.block_size * sizeof(T)),
                 .value_bytes = sizeof(T)};
}

template <class T>
void AdaptiveBitpackStage<T>::encodeCpu(const CpuRun& run) {
  const std::size_t n_bytes = run.inputs[0].size();
  requireWholeValues(n_bytes);
  config_.n_values = n_bytes / sizeof(T);
  if (n_bytes == 0) {
    return setActualBytes(0, 0);
  }
  const std::size_t archive_bytes =
      adaptive_bitpack::encodeArchive<T>(run, layoutOf(*this), state_->scratch);
  if (archive_bytes == 0) {
    return requestOutputBytes(0, encodedBytes(n_bytes)[0]);
  }
  setActualBytes(0, archive_bytes);
}

template <class T>
void AdaptiveBitpackStage<T>::decodeCpu(const CpuRun& run) {
  const std::size_t encoded_bytes[] = {run.inputs[0].size()};
  const std::size_t n_bytes = decodedBytes(encoded_bytes);
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "AdaptiveBitpack: decoding needs {} bytes, got {}", n_bytes, run.outputs[0].size());
  if (n_bytes != 0) {
    adaptive_bitpack::decodeArchive<T>(run, layoutOf(*this), n_bytes / sizeof(T), state_->scratch);
  }
  setActualBytes(0, n_bytes);
}

template <class T>
void AdaptiveBitpackStage<T>::State::beginTiles(const CpuRun& run, const TileCut& tiles) {
  cut = tiles;
  const std::size_t n_bytes = run.inputs[0].size();
  if (!stage.isInverse()) {
    stage.requireWholeValues(n_bytes);
    stage.config_.n_values = n_bytes / sizeof(T);
    FZ_ASSERT(run.outputs[0].size() >= stage.encodedBytes(n_bytes)[0]);
    archive = run.outputs[0].data();
    return;
  }
  const std::size_t encoded_bytes[] = {n_bytes};
  stream = run.inputs[0];
  if (stage.decodedBytes(encoded_bytes) != 0) {
    tile_at = adaptive_bitpack::checkedOffsets<T>(run, layoutOf(stage), stage.config_.n_values,
                                                  cut.tile_values / stage.config_.block_size,
                                                  scratch.sizes);
  }
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::State::payloadOffset() const {
  return bits::ceilDiv<std::size_t>(stage.config_.n_values, stage.config_.block_size) *
         layoutOf(stage).metaBytes();
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::State::maxTileBytes() const {
  const BlockLayout layout = layoutOf(stage);
  return cut.tile_values / stage.config_.block_size *
             adaptive_bitpack::maxBlockCost<T>(layout.planeBytes()) +
         adaptive_bitpack::kEncodeSlackBytes;
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::State::encodeTile(const TileRange& range,
                                                       const void* in,
                                                       std::uint8_t* out) {
  const BlockLayout layout = layoutOf(stage);
  return adaptive_bitpack::kernelsFor<T>().encode(
      static_cast<const T*>(in), range.n_values, layout,
      archive + range.first / stage.config_.block_size * layout.metaBytes(), out);
}

template <class T>
void AdaptiveBitpackStage<T>::State::decodeTile(const TileRange& range, void* out) {
  const BlockLayout layout = layoutOf(stage);
  const std::size_t tile = range.first / cut.tile_values;
  adaptive_bitpack::kernelsFor<T>().decode(
      stream.data() + range.first / stage.config_.block_size * layout.metaBytes(),
      stream.subspan(payloadOffset() + tile_at[tile]), range.n_values, layout,
      static_cast<T*>(out));
}

template <class T>
void AdaptiveBitpackStage<T>::State::endTiles(const CpuRun& /*run*/) {
  stage.setActualBytes(0, stage.isInverse()
                              ? static_cast<std::size_t>(stage.config_.n_values) * sizeof(T)
                              : payloadOffset() + static_cast<std::size_t>(payloadBytes()));
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_INSTANTIATE(T)                                          \
  template AdaptiveBitpackStage<T>::AdaptiveBitpackStage();        \
  template AdaptiveBitpackStage<T>::~AdaptiveBitpackStage();       \
  template TileOp AdaptiveBitpackStage<T>::cpuTileOp() const;      \
  template CpuTilePart* AdaptiveBitpackStage<T>::cpuTilePart();    \
  template void AdaptiveBitpackStage<T>::encodeCpu(const CpuRun&); \
  template void AdaptiveBitpackStage<T>::decodeCpu(const CpuRun&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_INSTANTIATE(std::int16_t);
FZ_INSTANTIATE(std::int32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
