#pragma once

#include "fz/target.h"
#include "pipeline/bound_check.h"

namespace fz {

/// The values of an array that count for its range.
struct CountedRange {
  double width = 0.0;
  double largest = 0.0;  ///< magnitude
};

/// An array that is compressed with one bound after the other.
class TargetTrials {
 public:
  virtual ~TargetTrials() = default;
  virtual CountedRange range() const = 0;
  /// Whether a part of the array tells about all of it, for less time.
  virtual bool hasPart() const = 0;
  /// The PSNR, or the ratio, with an absolute bound. Infinite PSNR: nothing was lost.
  virtual double reached(double bound, bool on_part) = 0;
};

/// The bound that reaches a target, by a few trials. Throws TargetError.
TargetBound searchTarget(DataType type, const ResultTarget& target, TargetTrials& trials);

/// Throws for targets that no array can have, and for types that have no bounds.
void requireTarget(DataType type, const ResultTarget& target);

/// Throws FillValueError for a value that nobody declared and that sets the range: a bound that
/// suits it would lose the others. `finding` is that of a bound as large as the range.
[[noreturn]] void refuseFill(const ResultTarget& target, FillValueFinding finding);

/// Options that leave the bound open. Settings of it would come after it and replace it.
CompressOptions withoutBound(const CompressOptions& options);

/// What a PSNR is worked out from.
struct SquaredError {
  double mean = 0.0;
  bool has_values = false;  ///< finite ones
};
double psnrOf(const SquaredError& error, double range);

/// An array in memory, which must outlive it.
class MemoryTrials : public TargetTrials {
 public:
  MemoryTrials(DataType type,
               ByteView values,
               ResultTarget::Kind kind,
               const CompressOptions& options);
  CountedRange range() const override { return range_; }
  bool hasPart() const override;
  double reached(double bound, bool on_part) override;

 private:
  double psnrAfter(ByteView values, const Frame& frame) const;
  ByteView partOf(std::array<std::size_t, 3>& dims) const;

  DataType type_;
  ByteView values_;
  ResultTarget::Kind kind_;
  CompressOptions options_;
  CountedRange range_;
};

}  // namespace fz
