#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "backends/cpu/field_watch.h"
#include "backends/cpu/missing.h"
#include "fz/data_type.h"
#include "fz/missing.h"
#include "fz/span.h"
#include "pipeline/compressor.h"

namespace fz {

/// As hasMissing(), but a sample is looked at whatever was declared.
bool hasMissingInSample(DataType type, ByteView values, std::span<const double> fill);
/// As hasMissing(), but all values are looked at whatever was declared.
bool hasAnyMissing(DataType type, ByteView values, std::span<const double> fill);

/// Looks for missing values in a run that has no Mask.
class MissingWatch final : public FieldWatch {
 public:
  MissingWatch(DataType type, std::span<const double> fill);

  SoughtValues sought() const noexcept override { return {fill_f32_, fill_f64_}; }

 private:
  bool isThereIn(ByteView part) const noexcept override;

  DataType type_;
  std::vector<float> fill_f32_;
  std::vector<double> fill_f64_;
};

/// Whether a pipeline, finalized or not, can have a Mask before its first stage: that takes
/// values of this type and loses something of them.
bool canBeMasked(Pipeline& pipeline, DataType type);

/// How missing places of one field are filled, and what the stages behind the Mask are told of it.
struct MaskSettings {
  std::array<std::size_t, 3> hold = {};  ///< as MaskStage::setHold() takes it
  double value_base = 0.0;               ///< range of the valid values; 0: the first stage finds it
  bool operator==(const MaskSettings&) const = default;
};
/// For a pipeline without the Mask, finalized or not. Precondition: canBeMasked().
MaskSettings maskSettingsFor(Pipeline& pipeline,
                             DataType type,
                             ByteView values,
                             std::span<const double> fill);

/// The same where the range of the valid values is found elsewhere, if it is asked for.
MaskSettings maskSettingsFor(Pipeline& pipeline, const std::function<ValidRange()>& range_of);

/// Throws InvalidArgument for more fill values than a frame can name.
void requireFewFills(std::span<const double> fill);

/// Puts a Mask before the stages of a pipeline that is not finalized. Throws InvalidArgument for
/// more fill values than a frame can name. Precondition: canBeMasked().
void addMask(Pipeline& pipeline,
             DataType type,
             std::span<const double> fill,
             const MaskSettings& settings);

}  // namespace fz
