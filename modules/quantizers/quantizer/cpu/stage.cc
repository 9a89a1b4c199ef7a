// A run on the CPU, tile by tile: alone over all of the data, or as part of a fused group.
#include <algorithm>
#include <memory>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "quantizers/quantizer/codec_bound.h"
#include "quantizers/quantizer/state.h"

namespace fz::quantizer {

namespace {

double valueAt(const void* values, DataType type, std::size_t index) {
  return type == DataType::FLOAT32 ? static_cast<double>(static_cast<const float*>(values)[index])
                                   : static_cast<const double*>(values)[index];
}

}  // namespace

QuantizerBase::QuantizerBase(DataType value_type, DataType code_type)
    : value_type_(value_type), code_type_(code_type), state_(std::make_unique<State>(*this)) {
}
QuantizerBase::~QuantizerBase() = default;

CodeForm QuantizerBase::State::codeForm() const {
  return stage.linear_    ? CodeForm::kLinear
         : stage.inplace_ ? CodeForm::kInplace
         : stage.zigzag_  ? CodeForm::kZigzag
                          : CodeForm::kTwosComplement;
}

BinSettings QuantizerBase::State::binSettings(double range, unsigned rung_in_use) const {
  const bool is_float = stage.value_type_ == DataType::FLOAT32;
  const double absolute = absoluteBound(stage.error_bound_, range, is_float);
  return {boundOfRung(absolute, stage.isLadder(), rung_in_use, is_float),
          absolute,
          threshold(),
          stage.radius_,
          codeForm(),
          stage.codeBits()};
}

double QuantizerBase::State::threshold() const {
  return stage.linear_ ? std::numeric_limits<double>::infinity() : stage.threshold_;
}

void QuantizerBase::State::beginEncode(const CpuRun& run) {
  stage.requireValidCombination();
  stage.n_values_ = stage.checkedValues(run.inputs[0].size(), run.outputs[0].size());
  stage.n_outliers_ = 0;
  n_violations = 0;
  wants_rerun = false;
  stage.stored_version_ = 0;
  resolveBound(run);
  compares_ = false;
  n_refused_ = 0;
  first_refused_ = FirstIndex::kNone;
  are_refused_finite_ = true;
  if (stage.hasOutlierPorts()) {
    refused_ = masks_.get<std::uint64_t>(run.pool,
                                         bits::ceilDiv<std::size_t>(stage.n_values_, kMaskValues));
    const bool has_field = run.inputs[0].data() != nullptr;
    kept_ = has_field ? MutableByteView{} : run.outputs[1];
    n_kept_ = 0;
    kept_at_ = tile_places_.get<std::uint64_t>(run.pool, has_field ? 0 : cut_.tileCount());
  }
}

void QuantizerBase::State::encodeTile(const TileRange& range, const void* in, void* out) {
  encodePieces(range, {}, in, out);
}

bool QuantizerBase::State::encodeWatched(const TileRange& range,
                                         const SoughtValues& sought,
                                         const void* in,
                                         void* out) {
  const bool is_float = stage.value_type_ == DataType::FLOAT32;
  const std::size_t n_sought = is_float ? sought.of_float.size() : sought.of_double.size();
  if (n_sought != 1) {
    encodePieces(range, {}, in, out);
    return true;
  }
  return encodePieces(
      range, is_float ? static_cast<double>(sought.of_float[0]) : sought.of_double[0], in, out);
}

bool QuantizerBase::State::encodePieces(const TileRange& range,
                                        std::optional<double> sought,
                                        const void* in,
                                        void* out) {
  const std::size_t value_bytes = getDataTypeSize(stage.value_type_);
  const std::size_t code_bytes = getDataTypeSize(stage.code_type_);
  EncodedTile found = {0, false, false};
  for (std::size_t at = 0; at < range.n_values; at += kTileValues) {
    const EncodedTile piece =
        encodePiece({range.first + at, std::min(kTileValues, range.n_values - at)}, sought,
                    static_cast<const std::uint8_t*>(in) + at * value_bytes,
                    static_cast<std::uint8_t*>(out) + at * code_bytes);
    found.n_refused += piece.n_refused;
    found.may_have_sought = found.may_have_sought || piece.may_have_sought;
    if (piece.compares) {
      compares_.store(true, std::memory_order_relaxed);
    }
  }
  if (found.n_refused != 0 && !kept_at_.empty()) {
    keepOutliers(range, found.n_refused, in);
  }
  return found.may_have_sought;
}

EncodedTile QuantizerBase::State::encodePiece(const TileRange& range,
                                              std::optional<double> sought,
                                              const void* in,
                                              void* codes) {
  const Widths widths{getDataTypeSize(stage.value_type_), getDataTypeSize(stage.code_type_)};
  std::uint64_t masks_here[kTileValues / kMaskValues];
  const EncodeTileArgs args{
      in,     range.n_values,
      codes,  stage.hasOutlierPorts() ? refused_.data() + range.first / kMaskValues : masks_here,
      sought, compares_.load(std::memory_order_relaxed)};
  EncodedTile found = {0, true, false};
  if (stage.mode_ == ErrorBoundMode::REL) {
    found.n_refused = encodeRelTile(
        widths, {stage.error_bound_, stage.threshold_, stage.radius_, stage.codeBits()}, args);
  } else {
    found = encodeAbsTile(widths, rules_, args);
  }
  found.n_refused = settleRefused(range, found.n_refused, args);
  return found;
}

/// Of a piece; returns how many are left.
std::size_t QuantizerBase::State::settleRefused(const TileRange& range,
                                                std::size_t n_refused,
                                                const EncodeTileArgs& args) {
  if (n_refused == 0) {
    return 0;
  }
  if (stage.linear_ && stage.policy_ == LinearPolicy::Wrap) {
    wrapRefused(args.masks, range.n_values, args.in, args.codes);
    return 0;
  }
  if (stage.inplace_) {
    n_refused = keepRefused(args.masks, range.n_values, args.in, args.codes);
  }
  n_refused_.fetch_add(n_refused, std::memory_order_relaxed);
  if (!stage.hasOutlierPorts() && n_refused != 0) {
    recordViolations(range, args.masks, args.in);
  }
  return n_refused;
}

/// Linear codes that only agree with the value modulo their range.
void QuantizerBase::State::wrapRefused(const std::uint64_t* masks,
                                       std::size_t n,
                                       const void* in,
                                       void* codes) const {
  const auto wrap = [&]<class T, class C>(const BinRule<T>& rule, C /*code*/) {
    forEachRefused(masks, n, [&](std::size_t i) {
      static_cast<C*>(codes)[i] = wrappedCode<T, C>(static_cast<const T*>(in)[i], rule);
    });
  };
  const bool is_short = stage.codeBits() == 16;
  if (stage.value_type_ == DataType::FLOAT32) {
    is_short ? wrap(rules_.of_float, std::uint16_t{}) : wrap(rules_.of_float, std::uint32_t{});
  } else {
    is_short ? wrap(rules_.of_double, std::uint16_t{}) : wrap(rules_.of_double, std::uint32_t{});
  }
}

/// In place: a refused value stands for itself where its bits are not a code. Returns how many of
/// them cannot; the masks name those alone.
std::size_t QuantizerBase::State::keepRefused(std::uint64_t* masks,
                                              std::size_t n,
                                              const void* in,
                                              void* codes) const {
  std::size_t n_left = 0;
  forEachRefused(masks, n, [&](std::size_t i) {
    const std::uint32_t raw = static_cast<const std::uint32_t*>(in)[i];
    static_cast<std::uint32_t*>(codes)[i] = raw;
    if (isRawBits(raw, stage.radius_)) {
      masks[i / kMaskValues] &= ~(std::uint64_t{1} << (i % kMaskValues));
    } else {
      ++n_left;
    }
  });
  return n_left;
}

void QuantizerBase::State::recordViolations(const TileRange& range,
                                            const std::uint64_t* masks,
                                            const void* in) {
  bool is_finite = true;
  forEachRefused(masks, range.n_values, [&](std::size_t i) {
    const double value = valueAt(in, stage.value_type_, i);
    is_finite = is_finite && fp::isFinite(value);
    if (range.first + i < first_refused_.load(std::memory_order_relaxed)) {
      const std::lock_guard lock(first_refused_mutex_);
      if (range.first + i < first_refused_) {
        first_refused_ = range.first + i;
        first_refused_value_ = value;
      }
    }
  });
  if (!is_finite) {
    are_refused_finite_ = false;
  }
}

void QuantizerBase::State::settleViolations() {
  if (n_refused_ == 0) {
    return;
  }
  n_violations = n_refused_;
  first_violation = first_refused_;
  first_violating_value = first_refused_value_;
  // No step helps a NaN or an infinity, so they end the ladder at once.
  if (stage.isLadder() && are_refused_finite_ && rung < kLastRung) {
    ++rung;
    wants_rerun = true;
  }
}

void QuantizerBase::State::endEncode(const CpuRun& run) {
  const std::size_t value_bytes = getDataTypeSize(stage.value_type_);
  const std::size_t code_bytes = stage.n_values_ * getDataTypeSize(stage.code_type_);
  stage.setActualBytes(0, code_bytes);
  if (!stage.hasOutlierPorts()) {
    settleViolations();
    return;
  }
  const std::size_t n_refused = n_refused_;
  stage.n_outliers_ = static_cast<std::uint32_t>(n_refused);
  const std::size_t n_value_bytes = n_refused * value_bytes;
  const std::size_t n_index_bytes = n_refused * sizeof(std::uint32_t);
  if (run.outputs[1].size() < n_value_bytes || run.outputs[2].size() < n_index_bytes) {
    stage.requestOutputBytes(0, code_bytes);
    stage.requestOutputBytes(1, n_value_bytes);
    stage.requestOutputBytes(2, n_index_bytes);
    return;
  }
  writeOutliers(run, n_refused);
  stage.setActualBytes(1, n_value_bytes);
  stage.setActualBytes(2, n_index_bytes);
}

void QuantizerBase::State::beginDecode(const CpuRun& run) {
  std::size_t sizes[4] = {};
  const std::size_t n_inputs = std::min(run.inputs.size(), std::size_t{4});
  for (std::size_t i = 0; i < n_inputs; ++i) {
    sizes[i] = run.inputs[i].size();
  }
  const std::size_t n_bytes = stage.decodedBytes({sizes, n_inputs});
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "Quantizer: the values need {} bytes, got {}", n_bytes, run.outputs[0].size());
  if (stage.hasOutlierPorts()) {
    takeOutliers(run);
  }
}

void QuantizerBase::State::decodeTile(const TileRange& range, const void* in, void* out) {
  decodeCodes(range, in, out);
  if (stage.hasOutlierPorts() && stage.n_outliers_ != 0) {
    putOutliers(range, out);
  }
}

void QuantizerBase::State::decodeCodes(const TileRange& range, const void* in, void* out) const {
  const Widths widths{getDataTypeSize(stage.value_type_), getDataTypeSize(stage.code_type_)};
  const DecodeTileArgs args{in, range.n_values, out};
  if (stage.mode_ == ErrorBoundMode::REL) {
    decodeRelTile(
        widths, {stage.error_bound_, stage.getStageVersion(), logStepV1(stage.error_bound_)}, args);
    return;
  }
  const CodeForm form = stage.inplace_                    ? CodeForm::kInplace
                        : stage.zigzag_ && !stage.linear_ ? CodeForm::kZigzag
                                                          : CodeForm::kTwosComplement;
  decodeAbsTile(widths, {stage.bound_in_use_, stage.radius_, form}, args);
}

void QuantizerBase::State::beginTiles(const CpuRun& run, const TileCut& cut) {
  cut_ = cut;
  stage.isInverse() ? beginDecode(run) : beginEncode(run);
}

void QuantizerBase::State::endTiles(const CpuRun& run) {
  if (!stage.isInverse()) {
    endEncode(run);
    return;
  }
  stage.setActualBytes(0, stage.n_values_ * getDataTypeSize(stage.value_type_));
}

TileOp QuantizerBase::cpuTileOp() const {
  const bool scans = !isInverse() && mode_ == ErrorBoundMode::NOA && value_base_ == 0.0;
  if (!hasOutlierPorts()) {
    return MapOp{.is_first = scans};
  }
  // Outliers are marked in words of bits, so tiles begin where words do and come in the field's
  // order.
  return RowsOp{.unit_values = kMaskValues, .is_first = scans};
}

CpuTilePart* QuantizerBase::cpuTilePart() {
  return state_.get();
}

void QuantizerBase::encodeCpu(const CpuRun& run) {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  const std::size_t code_bytes = getDataTypeSize(code_type_);
  const TileCut cut{.n_values = run.inputs[0].size() / value_bytes, .tile_values = kTileValues};
  state_->beginTiles(run, cut);
  parallelFor(run.executor, cut.tileCount(), [&](std::size_t tile) {
    const TileRange range = cut.at(tile);
    state_->encodeTile(range, run.inputs[0].data() + range.first * value_bytes,
                       run.outputs[0].data() + range.first * code_bytes);
  });
  state_->endTiles(run);
}

void QuantizerBase::decodeCpu(const CpuRun& run) {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  const std::size_t code_bytes = getDataTypeSize(code_type_);
  const TileCut cut{.n_values = n_values_, .tile_values = kTileValues};
  state_->beginTiles(run, cut);
  parallelFor(run.executor, cut.tileCount(), [&](std::size_t tile) {
    const TileRange range = cut.at(tile);
    state_->decodeTile(range, run.inputs[0].data() + range.first * code_bytes,
                       run.outputs[0].data() + range.first * value_bytes);
  });
  state_->endTiles(run);
}

}  // namespace fz::quantizer
