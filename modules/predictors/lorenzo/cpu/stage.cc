// Lorenzo on the CPU: alone, and in a fused group.
#include <cstring>

#include "backends/cpu/delta_cpu.h"
#include "core/require.h"
#include "mem/scratch.h"
#include "predictors/lorenzo/cpu/grid.h"
#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz {

/// What a run needs, and the stage's part in groups.
template <class T>
struct LorenzoStage<T>::State final : CpuTileOp {
  using U = std::make_unsigned_t<T>;

  explicit State(LorenzoStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& /*cut*/) override {
    const std::size_t n_bytes = run.inputs[0].size();
    if (stage.isInverse()) {
      stage.dimsFor(n_bytes, ErrorCode::kCorrupt);
    } else {
      stage.inferred_x_ = stage.encodeDimsFor(n_bytes)[0];
    }
  }
  void encodeTile(const TileRange& range, const void* in, void* out) override {
    if (stage.leftOut() != 0) {
      std::memcpy(out, in, range.n_values * sizeof(T));
      return;
    }
    delta::kernels<U>(delta::Code::kPlain)
        .encode(static_cast<const U*>(in), range.n_values, stage.blockValues(), 0,
                static_cast<U*>(out));
  }
  void decodeTile(const TileRange& range, const void* in, void* out) override {
    if (stage.leftOut() != 0) {
      std::memcpy(out, in, range.n_values * sizeof(T));
      return;
    }
    delta::kernels<U>(delta::Code::kPlain)
        .decode(static_cast<const U*>(in), range.n_values, stage.blockValues(), 0,
                static_cast<U*>(out));
  }
  void endTiles(const CpuRun& run) override { stage.setActualBytes(0, run.inputs[0].size()); }

  LorenzoStage& stage;
  Scratch carries;
};

template <class T>
LorenzoStage<T>::LorenzoStage() : state_(std::make_unique<State>(*this)) {
}
template <class T>
LorenzoStage<T>::~LorenzoStage() = default;

template <class T>
TileOp LorenzoStage<T>::cpuTileOp() const {
  if (shape().ndim() != 1) {
    return NoOp{"looks at rows that lie far apart"};
  }
  return RowsOp{.unit_values = static_cast<std::uint32_t>(blockValues())};
}

template <class T>
CpuTilePart* LorenzoStage<T>::cpuTilePart() {
  return state_.get();
}

template <class T>
void LorenzoStage<T>::encodeCpu(const CpuRun& run) {
  using U = std::make_unsigned_t<T>;
  const std::size_t n_bytes = run.inputs[0].size();
  const std::array<std::size_t, 3> dims = encodeDimsFor(n_bytes);
  FZ_ASSERT(run.outputs[0].size() >= n_bytes);
  inferred_x_ = dims[0];
  const auto* in = reinterpret_cast<const U*>(run.inputs[0].data());
  auto* out = reinterpret_cast<U*>(run.outputs[0].data());
  if (shape().ndim() == 1 && leftOut() == 0) {
    delta::encodeBlocks<U>(run.executor, {in, dims[0]}, blockValues(), delta::Code::kPlain, out);
  } else {
    lorenzo::encodeGrid(run.executor, in, {dims, axes_}, out);
  }
  setActualBytes(0, n_bytes);
}

template <class T>
void LorenzoStage<T>::decodeCpu(const CpuRun& run) {
  using U = std::make_unsigned_t<T>;
  const std::size_t n_bytes = run.inputs[0].size();
  const std::array<std::size_t, 3> dims = dimsFor(n_bytes, ErrorCode::kCorrupt);
  FZ_ASSERT(run.outputs[0].size() >= n_bytes);
  const auto* in = reinterpret_cast<const U*>(run.inputs[0].data());
  auto* out = reinterpret_cast<U*>(run.outputs[0].data());
  if (shape().ndim() == 1 && leftOut() == 0) {
    delta::decodeBlocks<U>(run.executor, {in, dims[0]}, blockValues(), delta::Code::kPlain, {},
                           out);
  } else {
    const std::size_t n_carries = lorenzo::carryCount(run.executor, dims);
    lorenzo::decodeGrid(run.executor, in, {dims, axes_},
                        state_->carries.template get<U>(run.pool, n_carries), out);
  }
  setActualBytes(0, n_bytes);
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_LORENZO_INSTANTIATE(T)                          \
  template LorenzoStage<T>::LorenzoStage();                \
  template LorenzoStage<T>::~LorenzoStage();               \
  template TileOp LorenzoStage<T>::cpuTileOp() const;      \
  template CpuTilePart* LorenzoStage<T>::cpuTilePart();    \
  template void LorenzoStage<T>::encodeCpu(const CpuRun&); \
  template void LorenzoStage<T>::decodeCpu(const CpuRun&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_LORENZO_INSTANTIATE(std::int8_t);
FZ_LORENZO_INSTANTIATE(std::int16_t);
FZ_LORENZO_INSTANTIATE(std::int32_t);
FZ_LORENZO_INSTANTIATE(std::int64_t);
#undef FZ_LORENZO_INSTANTIATE

}  // namespace fz
