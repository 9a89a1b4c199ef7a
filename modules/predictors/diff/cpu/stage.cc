// Difference on the CPU: alone, and in a fused group.
#include "backends/cpu/delta_cpu.h"
#include "core/require.h"
#include "mem/scratch.h"
#include "predictors/diff/codec.h"
#include "predictors/diff/cpu/sums.h"
#include "predictors/diff/diff.h"

namespace fz {

namespace {

template <class T>
std::span<const T> valuesOf(ByteView bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

/// What a run needs, and the stage's part in groups.
template <class T, class TOut>
struct DifferenceStage<T, TOut>::State final : CpuTileOp {
  using U = diff::UnsignedOf<T>;

  explicit State(DifferenceStage& owner) : stage(owner) {}

  /// Checks the input's size; nothing is lost yet.
  void begin(ByteView in) {
    stage.n_lost_ = 0;
    stage.n_values_ = in.size() / sizeof(T);
    stage.requireWholeValues(in.size());
  }
  void beginTiles(const CpuRun& run, const TileCut& /*cut*/) override { begin(run.inputs[0]); }
  void encodeTile(const TileRange& range, const void* in, void* out) override {
    delta::kernels<U>(diff::kCode<T, TOut>)
        .encode(static_cast<const U*>(in), range.n_values, stage.chunk_bytes_ / sizeof(T), 0,
                static_cast<U*>(out));
  }
  void decodeTile(const TileRange& range, const void* in, void* out) override {
    delta::kernels<U>(diff::kCode<T, TOut>)
        .decode(static_cast<const U*>(in), range.n_values, stage.chunk_bytes_ / sizeof(T), 0,
                static_cast<U*>(out));
  }
  void endTiles(const CpuRun& run) override { stage.setActualBytes(0, run.inputs[0].size()); }

  DifferenceStage& stage;
  Scratch tile_sums;
};

template <class T, class TOut>
DifferenceStage<T, TOut>::DifferenceStage() : state_(std::make_unique<State>(*this)) {
}
template <class T, class TOut>
DifferenceStage<T, TOut>::~DifferenceStage() = default;

template <class T, class TOut>
TileOp DifferenceStage<T, TOut>::cpuTileOp() const {
  if (std::is_floating_point_v<T>) {
    return NoOp{"must see all sums of floats before it can say that they are exact"};
  }
  if (chunk_bytes_ == 0) {
    return NoOp{"has one chunk, as long as the data"};
  }
  return RowsOp{.unit_values = static_cast<std::uint32_t>(chunk_bytes_ / sizeof(T))};
}

template <class T, class TOut>
CpuTilePart* DifferenceStage<T, TOut>::cpuTilePart() {
  return state_.get();
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  state_->begin(in);
  FZ_ASSERT(run.outputs[0].size() >= in.size());
  const std::size_t chunk = chunk_bytes_ / sizeof(T);
  if constexpr (std::is_floating_point_v<T>) {
    const diff::Losses losses = diff::encodeFloats(run.executor, valuesOf<T>(in), chunk,
                                                   reinterpret_cast<T*>(run.outputs[0].data()));
    n_lost_ = losses.n_values;
    first_lost_ = losses.first_index;
  } else {
    using U = diff::UnsignedOf<T>;
    delta::encodeBlocks(run.executor, valuesOf<U>(in), chunk, diff::kCode<T, TOut>,
                        reinterpret_cast<U*>(run.outputs[0].data()));
  }
  setActualBytes(0, in.size());
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  state_->begin(in);
  FZ_ASSERT(run.outputs[0].size() >= in.size());
  const std::size_t chunk = chunk_bytes_ / sizeof(T);
  if constexpr (std::is_floating_point_v<T>) {
    diff::decodeFloats(run.executor, valuesOf<T>(in), chunk,
                       reinterpret_cast<T*>(run.outputs[0].data()));
  } else {
    using U = diff::UnsignedOf<T>;
    const std::size_t n_tiles = in.size() / sizeof(T) / delta::kTileValues + 1;
    delta::decodeBlocks(run.executor, valuesOf<U>(in), chunk, diff::kCode<T, TOut>,
                        state_->tile_sums.template get<U>(run.pool, n_tiles),
                        reinterpret_cast<U*>(run.outputs[0].data()));
  }
  setActualBytes(0, in.size());
}

// NOLINTBEGIN(bugprone-macro-parentheses): these are types
#define FZ_DIFFERENCE_INSTANTIATE(...)                                  \
  template DifferenceStage<__VA_ARGS__>::DifferenceStage();             \
  template DifferenceStage<__VA_ARGS__>::~DifferenceStage();            \
  template TileOp DifferenceStage<__VA_ARGS__>::cpuTileOp() const;      \
  template CpuTilePart* DifferenceStage<__VA_ARGS__>::cpuTilePart();    \
  template void DifferenceStage<__VA_ARGS__>::encodeCpu(const CpuRun&); \
  template void DifferenceStage<__VA_ARGS__>::decodeCpu(const CpuRun&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_DIFFERENCE_INSTANTIATE(float);
FZ_DIFFERENCE_INSTANTIATE(double);
FZ_DIFFERENCE_INSTANTIATE(std::uint8_t);
FZ_DIFFERENCE_INSTANTIATE(std::uint16_t);
FZ_DIFFERENCE_INSTANTIATE(std::uint32_t);
FZ_DIFFERENCE_INSTANTIATE(std::uint64_t);
FZ_DIFFERENCE_INSTANTIATE(std::int8_t);
FZ_DIFFERENCE_INSTANTIATE(std::int16_t);
FZ_DIFFERENCE_INSTANTIATE(std::int32_t);
FZ_DIFFERENCE_INSTANTIATE(std::int64_t);
FZ_DIFFERENCE_INSTANTIATE(std::int8_t, std::uint8_t);
FZ_DIFFERENCE_INSTANTIATE(std::int16_t, std::uint16_t);
FZ_DIFFERENCE_INSTANTIATE(std::int32_t, std::uint32_t);
FZ_DIFFERENCE_INSTANTIATE(std::int64_t, std::uint64_t);
#undef FZ_DIFFERENCE_INSTANTIATE

}  // namespace fz
