#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/simple_stage.h"

namespace fz {

namespace quantizer {
class CudaSide;
const StageDescriptor& descriptor();

/// QuantizerStage, whatever its element types.
class QuantizerBase : public SimpleStage {
 public:
  ~QuantizerBase() override;

  /// The settings as one value.
  struct Config {
    double error_bound = 1e-4;
    int quant_radius = 32768;
    double outlier_capacity = 0.05;
    ErrorBoundMode eb_mode = ErrorBoundMode::ABS;
    double precomputed_value_base = 0.0;
    bool zigzag_codes = false;
    double outlier_threshold = std::numeric_limits<double>::infinity();
    bool inplace_outliers = false;
    bool linear_mode = false;
    LinearPolicy linear_policy = LinearPolicy::Throw;

    Config() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): existing callers convert
    Config(double eb,
           ErrorBoundMode mode = ErrorBoundMode::ABS,
           int radius = 32768,
           double capacity = 0.05)
        : error_bound(eb), quant_radius(radius), outlier_capacity(capacity), eb_mode(mode) {}
  };

  // Setters throw InvalidArgument for a value outside the stated range. Combinations that exclude
  // each other are refused by the first compress(), so the order of the calls does not matter.

  /// Applies every field through its setter.
  void setConfig(const Config& config);

  /// The bound, > 0 and finite; kept as given, in double, for every element type.
  void setErrorBound(double eb);
  double getErrorBound() const { return error_bound_; }
  void setErrorBoundMode(ErrorBoundMode mode);
  ErrorBoundMode getErrorBoundMode() const { return mode_; }
  /// ABS and NOA: bins lie strictly between -r and r. REL: bins of log2|x| do. From 1 to half the
  /// code's range.
  void setQuantRadius(int radius);
  int getQuantRadius() const { return static_cast<int>(radius_); }
  /// Part of the values, 0 to 1, for which the outlier ports are sized at first; they grow when the
  /// data needs it.
  void setOutlierCapacity(double fraction);
  double getOutlierCapacity() const { return outlier_capacity_; }
  /// Small magnitudes of either sign become small codes. No effect in REL.
  void setZigzagCodes(bool enable) { zigzag_ = enable; }
  bool getZigzagCodes() const { return zigzag_; }
  /// Values with |x| >= t are outliers; infinity (the default) means none. No effect in linear
  /// mode.
  void setOutlierThreshold(double threshold);
  double getOutlierThreshold() const { return threshold_; }
  /// ABS and NOA: outliers stand in the codes as their own bits; only the port "codes" remains.
  /// Needs zigzag codes and codes as wide as the values.
  void setInplaceOutliers(bool enable) { inplace_ = enable; }
  bool getInplaceOutliers() const { return inplace_; }
  /// ABS and NOA: signed codes over the whole range of their type, no outliers, only "codes".
  void setLinearMode(bool enable) { linear_ = enable; }
  bool getLinearMode() const { return linear_; }
  /// Linear mode: what happens to a value that no code keeps within the bound.
  void setLinearPolicy(LinearPolicy policy) { policy_ = policy; }
  LinearPolicy getLinearPolicy() const { return policy_; }
  /// NOA: the value range to use instead of scanning the data; 0 means scan.
  void setValueBase(double base);
  double getValueBase() const { return value_base_; }

  // Valid after a compress().

  std::size_t getOutlierCount() const { return n_outliers_; }
  /// The absolute bound that every value was checked against; 0 for REL.
  double getAbsErrorBound() const { return abs_bound_; }
  /// Half the quantisation step: at most getAbsErrorBound(), and a number of the data's type.
  double getBoundInUse() const { return bound_in_use_; }

  std::optional<BoundInfo> boundInfo() const override;
  std::array<std::size_t, 3> localTile() const override { return {1, 1, 1}; }
  void beginRun() override;
  bool wantsRerun() const override;
  /// Throws Error(kBoundViolation) with the count, the first index, its value and the bound.
  void checkResult() const override;
  std::uint16_t getStageVersion() const override;
  void setStageVersion(std::uint16_t version) override { stored_version_ = version; }
  const StageDescriptor& descriptor() const override { return quantizer::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {value_type_, code_type_}; }

 protected:
  QuantizerBase(DataType value_type, DataType code_type);

  DataType inputType() const override { return value_type_; }
  Ports outputPorts() const override;
  std::string decodedPortName() const override { return "reconstructed"; }
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
  friend class CudaSide;
  struct State;

  bool hasOutlierPorts() const { return !inplace_ && !linear_; }
  /// Linear mode that tries smaller steps before it gives up.
  bool isLadder() const { return linear_ && policy_ == LinearPolicy::Guarantee; }
  std::uint32_t codeBits() const;
  void requireValidCombination() const;
  /// Number of values in an input of n_bytes. Throws when they cannot be encoded.
  std::uint32_t checkedValues(std::size_t n_bytes, std::size_t codes_capacity_bytes) const;
  void checkStoredFields(std::uint8_t value_type, std::uint8_t code_type) const;

  DataType value_type_;
  DataType code_type_;
  double error_bound_ = 1e-4;
  ErrorBoundMode mode_ = ErrorBoundMode::ABS;
  std::uint32_t radius_ = 32768;
  double outlier_capacity_ = 0.05;
  bool zigzag_ = false;
  double threshold_ = std::numeric_limits<double>::infinity();
  bool inplace_ = false;
  bool linear_ = false;
  LinearPolicy policy_ = LinearPolicy::Throw;
  double value_base_ = 0.0;

  // What the last encode found or the last config said.
  std::uint32_t n_values_ = 0;
  std::uint32_t n_outliers_ = 0;
  double abs_bound_ = 0.0;
  double bound_in_use_ = 0.0;
  double range_in_use_ = 0.0;
  std::uint16_t stored_version_ = 0;  ///< 0: not from an archive
  std::unique_ptr<State> state_;
};

}  // namespace quantizer

/// Floating-point values to integer codes with an error bound that holds for every value. Ports
/// "codes", "outlier_vals", "outlier_idxs"; in place and linear only "codes". Decoded port
/// "reconstructed".
///
/// A value is coded only when decoding the code keeps the bound exactly; all others (NaN, infinity,
/// too large, ...) are stored bit for bit.
template <class TInput = float, class TCode = std::uint16_t>
class QuantizerStage final : public quantizer::QuantizerBase {
 public:
  using Config = quantizer::QuantizerBase::Config;

  QuantizerStage() : QuantizerBase(kDataTypeOf<TInput>, kDataTypeOf<TCode>) {}
  explicit QuantizerStage(const Config& config) : QuantizerStage() { setConfig(config); }
};

}  // namespace fz
