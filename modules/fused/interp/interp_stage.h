#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fz/bound.h"
#include "fz/simple_stage.h"
#include "fz/stage_dims.h"

namespace fz {

namespace interp {
const StageDescriptor& descriptor();
class CudaSide;

/// InterpStage, whatever its element types.
class InterpBase : public SimpleStage {
 public:
  ~InterpBase() override;

  /// Positive and finite.
  void setErrorBound(double error_bound);
  double getErrorBound() const { return error_bound_; }
  /// ABS: eb; NOA: eb * (max - min) of the finite values, or eb where that is 0. Throws
  /// InvalidArgument for REL.
  void setErrorBoundMode(ErrorBoundMode mode);
  ErrorBoundMode getErrorBoundMode() const { return mode_; }
  /// max - min when it is known, for NOA; 0 means that the data are looked at.
  void setValueBase(double value_base);
  double getValueBase() const { return value_base_; }

  /// How the field is predicted: "iso" (interpolation along all axes), "lorenzo", or a plan:
  /// words from coarse to fine, such as "lorenzo:xyz xyz:ccc:0000 z:l Nz:c(lorenzo:xy xy)". What
  /// the extents do not allow is left out of it. Throws InvalidArgument.
  void setPlan(const std::string& text);
  const std::string& getPlan() const { return plan_; }

  /// NaN is stored exactly, or comes back as any number: for use behind a Mask, which puts it back.
  void setSkipsMissing(bool skips) { skips_missing_ = skips; }
  bool getSkipsMissing() const { return skips_missing_; }

  /// Dims of the data, x fastest; they win over those of the pipeline.
  void setDims(const std::array<std::size_t, 3>& dims) override { dims_.setOwn(dims); }
  void setDims(std::size_t x, std::size_t y = 1, std::size_t z = 1) { dims_.setOwn({x, y, z}); }
  void setPipelineDims(const std::array<std::size_t, 3>& dims) override {
    dims_.setFromPipeline(dims);
  }
  std::optional<std::array<std::size_t, 3>> ownDims() const override { return dims_.own(); }
  const std::array<std::size_t, 3>& getDims() const { return dims_.get(); }

  /// The plan of the last run in either direction, as text.
  std::string usedPlan() const;
  /// Of an encode that searched for its plan: the plan, and what it and others would cost.
  std::string runNote() const override;
  std::vector<std::pair<std::string, std::string>> foundSettings() const override;

  std::optional<BoundInfo> boundInfo() const override;
  /// False where the plan is searched for.
  bool isGraphCompatible() const override;
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {input_type_, code_type_}; }
  const StageDescriptor& descriptor() const override { return interp::descriptor(); }

 protected:
  InterpBase(DataType input_type, DataType code_type);

  DataType inputType() const override { return input_type_; }
  Ports outputPorts() const override {
    return {{"codes", code_type_}, {"outliers", DataType::UINT8}};
  }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  PortBytes maxEncodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  bool hasFixedEncodedBytes(std::size_t port) const override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class CudaSide;
  struct State;

  DataType input_type_;
  DataType code_type_;
  double error_bound_ = 1e-3;
  ErrorBoundMode mode_ = ErrorBoundMode::ABS;
  double value_base_ = 0.0;
  std::string plan_ = "iso";
  bool skips_missing_ = false;
  StageDims dims_;
  std::unique_ptr<State> state_;
};

}  // namespace interp

/// Predicts a field from lattices of growing density, each interpolated from the one before, and
/// quantises what is left. Ports: "codes", integers in blocks of 64 that belong together, and
/// "outliers", the values that no code keeps within the bound, exactly.
///
/// |x - x'| <= bound holds for every finite value, on the real numbers; NaN and infinities are
/// outliers. TInput is float or double, TCode std::int16_t or std::int32_t.
template <class TInput = float, class TCode = std::int16_t>
class InterpStage final : public interp::InterpBase {
 public:
  InterpStage() : InterpBase(kDataTypeOf<TInput>, kDataTypeOf<TCode>) {}
};

}  // namespace fz
