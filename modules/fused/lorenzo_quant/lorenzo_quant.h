#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fz/axes.h"
#include "fz/bound.h"
#include "fz/simple_stage.h"
#include "fz/stage_dims.h"

namespace fz {

namespace lorenzo_quant {
template <class TInput, class TCode>
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace lorenzo_quant

/// The stored config, field by field; SPEC.md has the layout.
struct LorenzoQuantConfig {
  float abs_error_bound = 0.0f;
  std::uint32_t quant_radius = 0;
  std::uint32_t num_elements = 0;
  std::uint32_t outlier_count = 0;  ///< range outliers; exact entries follow them in the lists
  std::uint8_t input_type = 0;
  std::uint8_t code_type = 0;
  std::uint8_t ndim = 1;
  std::uint8_t eb_mode = 0;
  std::uint32_t dim_x = 0;
  std::uint32_t dim_y = 1;
  std::uint32_t dim_z = 1;
  float user_error_bound = 0.0f;
  float value_base = 0.0f;
  std::uint8_t zigzag_codes = 0;
  std::uint8_t left_out = 0;  ///< axes without differences, see Axes::leftOut
  std::array<std::uint8_t, 2> reserved = {};
};
static_assert(sizeof(LorenzoQuantConfig) == 44);

/// Quantises to a grid of twice the error bound and predicts each value from its neighbours in one
/// pass. Three ports: codes TCode[n], outlier_errors TInput[k], outlier_indices u32[k].
///
/// |x - x'| <= bound holds for every finite value, on the real numbers; what the grid cannot keep
/// (NaN and infinities included) is stored bit for bit. Outlier lists grow as needed.
template <class TInput = float, class TCode = std::uint16_t>
class LorenzoQuantStage final : public SimpleStage {
 public:
  /// Largest radius: beyond it two deltas would share a code.
  static constexpr int kMaxRadius = static_cast<int>(std::min<std::int64_t>(
      std::int64_t{1} << (8 * sizeof(TCode) - 1), std::numeric_limits<int>::max()));
  static constexpr int kDefaultRadius = std::min(32768, kMaxRadius);

  struct Config {
    double error_bound = 1e-3;
    int quant_radius = kDefaultRadius;
    double outlier_capacity = 0.2;
    std::array<std::size_t, 3> dims = {0, 1, 1};  ///< x of 0: inferred from the input
    ErrorBoundMode eb_mode = ErrorBoundMode::ABS;
    double precomputed_value_base = 0.0;
    bool zigzag_codes = false;

    Config() = default;
    explicit Config(double eb,
                    int radius = kDefaultRadius,
                    double capacity = 0.2,
                    const std::array<std::size_t, 3>& extents = {0, 1, 1})
        : error_bound(eb), quant_radius(radius), outlier_capacity(capacity), dims(extents) {}
  };

  LorenzoQuantStage();
  /// Throws InvalidArgument like the setters. Dims other than {0, 1, 1} are the stage's own.
  explicit LorenzoQuantStage(const Config& config);
  ~LorenzoQuantStage() override;

  /// Positive and finite. The bound in use is the largest float not above the resolved bound.
  void setErrorBound(double error_bound);
  /// ABS: eb; NOA: eb * (max - min); REL: eb * max|x|, one bound for the whole field. Extremes are
  /// over finite values; without any, or when they come to 0, eb itself.
  void setErrorBoundMode(ErrorBoundMode mode) { mode_ = mode; }
  /// 1 to kMaxRadius.
  void setQuantRadius(int radius);
  /// Share of the values, 0 to 1, for which outlier entries are reserved; the lists grow past it.
  void setOutlierCapacity(double share);
  /// max - min (NOA) or max|x| (REL) when known, so that the scan is skipped; 0 means unknown.
  void setValueBase(double value_base);
  void setZigzagCodes(bool zigzag) { zigzag_codes_ = zigzag; }
  /// Axes along which values are predicted; all by default. In one dimension that is x.
  void setAxes(const Axes& axes) { axes_ = axes; }
  void setDims(std::size_t x, std::size_t y = 1, std::size_t z = 1) { dims_.setOwn({x, y, z}); }
  void setDims(const std::array<std::size_t, 3>& dims) override { dims_.setOwn(dims); }
  void setPipelineDims(const std::array<std::size_t, 3>& dims) override {
    dims_.setFromPipeline(dims);
  }
  std::optional<std::array<std::size_t, 3>> ownDims() const override { return dims_.own(); }

  double getErrorBound() const { return error_bound_; }
  ErrorBoundMode getErrorBoundMode() const { return mode_; }
  int getQuantRadius() const { return static_cast<int>(quant_radius_); }
  double getOutlierCapacity() const { return outlier_capacity_; }
  double getValueBase() const { return value_base_; }
  bool getZigzagCodes() const { return zigzag_codes_; }
  const Axes& getAxes() const { return axes_; }
  const std::array<std::size_t, 3>& getDims() const { return dims_.get(); }
  int ndim() const { return dims_.ndim(); }

  bool isGraphCompatible() const override {
    return axes_.leftOut(ndim()) == 0 && SimpleStage::isGraphCompatible();
  }
  std::optional<BoundInfo> boundInfo() const override;
  std::array<std::size_t, 3> localTile() const override;
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override {
    return {kDataTypeOf<TInput>, kDataTypeOf<TCode>};
  }
  const StageDescriptor& descriptor() const override { return lorenzo_quant::descriptor(); }

 protected:
  DataType inputType() const override { return kDataTypeOf<TInput>; }
  Ports outputPorts() const override {
    return {{"codes", kDataTypeOf<TCode>},
            {"outlier_errors", kDataTypeOf<TInput>},
            {"outlier_indices", DataType::UINT32}};
  }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  PortBytes maxEncodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t port) const override { return port == 0; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class lorenzo_quant::CudaSide<TInput, TCode>;
  struct State;

  LorenzoQuantConfig configFromSettings() const;
  /// Throws Error(kBadSize) unless n_bytes are whole values and not too many.
  std::uint32_t checkedCount(std::size_t n_bytes) const;

  double error_bound_ = 1e-3;
  std::uint32_t quant_radius_ = kDefaultRadius;
  double outlier_capacity_ = 0.2;
  StageDims dims_;
  ErrorBoundMode mode_ = ErrorBoundMode::ABS;
  double value_base_ = 0.0;
  bool zigzag_codes_ = false;
  Axes axes_;
  /// Of the last encode, or of the stream to decode.
  std::optional<LorenzoQuantConfig> config_;
  std::unique_ptr<State> state_;
};

extern template class LorenzoQuantStage<float, std::uint16_t>;
extern template class LorenzoQuantStage<float, std::uint8_t>;
extern template class LorenzoQuantStage<double, std::uint16_t>;
extern template class LorenzoQuantStage<double, std::uint32_t>;

}  // namespace fz
