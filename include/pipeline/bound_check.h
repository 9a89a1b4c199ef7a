#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/host_api.h"
#include "fz/span.h"
#include "pipeline/stat.h"

/// Whether values keep to their bound: decided on the real numbers, the same for every front end.
namespace fz {

/// A bound that somebody asks for.
struct BoundRequest {
  ErrorBoundMode mode = ErrorBoundMode::ABS;
  double value = 0.0;
};

/// The condition that every value has to meet.
struct BoundRule {
  enum class Kind {
    kBits,       ///< equal bit for bit
    kAbsolute,   ///< |x - x'| <= value
    kPointwise,  ///< |x - x'| <= value * |x|
  };
  Kind kind = Kind::kBits;
  double value = 0.0;
  /// Values that mean "missing": they must be equal bit for bit, and count in no statistic.
  std::vector<double> fill = {};
};

/// Values of a special kind in the original, and how many the archive gives back bit for bit.
struct KeptCount {
  std::size_t n_values = 0;
  std::size_t n_kept = 0;
};

struct CheckReport {
  BoundRule rule;
  std::size_t n_values = 0;
  std::size_t n_violations = 0;
  /// Of the first violation, when there is one.
  std::size_t first_index = 0;
  double first_original = 0.0;
  double first_decoded = 0.0;
  ReconstructionStats stats;
  /// Pairs of finite values: what the sums in `stats` are over.
  std::size_t n_finite = 0;
  /// The largest |x - x'| / |x| of the finite pairs; infinite where a zero became something else.
  double max_relative = 0.0;
  std::size_t max_relative_index = 0;
  KeptCount nan;
  KeptCount infinity;
  KeptCount negative_zero;
  KeptCount fill;

  bool passed() const { return n_violations == 0; }
  /// NaN where there is none: no finite values, no known type, or errors but no range.
  double psnr() const;
  double nrmse() const;
};

/// The rule that a frame promises to meet; nothing when it is lossy and promises none.
std::optional<BoundRule> ruleOfFrame(const FrameInfo& info);
/// The rule that a request means for these values; range takes max - min of the finite ones that
/// are not one of `fill`. Its number is always finite.
BoundRule ruleOfRequest(const BoundRequest& request,
                        DataType type,
                        ByteView original,
                        const std::vector<double>& fill = {});

/// Compares without any rounding. NaN and infinities must be equal bit for bit. Types other than
/// f32 and f64 are compared as bytes. Precondition: equal lengths.
/// `on_bytes` is told of every part that is begun, with its length; it may be empty.
CheckReport checkValues(DataType type,
                        ByteView original,
                        ByteView decoded,
                        const BoundRule& rule,
                        const std::function<void(std::size_t n_bytes)>& on_bytes = {});

std::string ruleText(const BoundRule& rule);
/// "0.5" or, where the rule is about it, "0.5, relative 0.001".
std::string largestErrorText(const CheckReport& report);
/// "violations 3, first at index 7: 1.5 became 2" - the reason in an error message.
std::string violationText(const CheckReport& report);

}  // namespace fz
