// Bounds by what they lead to: which one to try next.
#include "api/target_search.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>

#include "core/require.h"
#include "pipeline/fill_check.h"

namespace fz {

namespace {

constexpr std::size_t kMaxTrials = 5;
constexpr std::size_t kMaxPartTrials = 2;
// Good enough: what is left to gain is less than another trial costs.
constexpr double kPsnrSlack = 0.25;
constexpr double kRatioSlack = 1.04;
constexpr double kFarRatio = 1.25;  // far from good
constexpr double kDecibelsPerOctave = 6.0205999132796239;

struct Trial {
  double bound = 0.0;
  double octave = 0.0;  ///< its log2, which does not lead back to the last bit of it
  double reached = 0.0;
};

/// With few significant bits, so that the last bits of a logarithm decide nothing; never larger.
double roundedBound(double octave) {
  int exponent = 0;
  const double mantissa = std::frexp(std::exp2(octave), &exponent);
  constexpr double kSteps = 4096;
  return std::ldexp(std::floor(mantissa * kSteps) / kSteps, exponent);
}

class Search {
 public:
  Search(DataType type, const ResultTarget& target, TargetTrials& trials)
      : type_(type), target_(target), trials_(trials), range_(trials.range()) {}

  TargetBound run() {
    double octave = firstOctave();
    while (part_trials_ < kMaxPartTrials && trials_.hasPart()) {
      const Trial trial = tryBound(octave, true);
      ++part_trials_;
      if (isClose(trial.reached)) {
        break;
      }
      octave = nextOctave(trial, trial);
    }
    while (n_trials_ < kMaxTrials) {
      const Trial trial = tryBound(octave, false);
      record(trial);
      if (isClose(trial.reached) || (!isReached(trial.reached) && octave >= lastOctave())) {
        break;
      }
      octave = std::min(nextOctave(trial, before_), lastOctave());
      before_ = trial;
      if (best_ && failed_ && std::fabs(best_->octave - failed_->octave) < 0.02) {
        break;
      }
    }
    return result();
  }

 private:
  bool isPsnr() const { return target_.kind == ResultTarget::Kind::kPsnr; }
  bool isReached(double value) const { return value >= target_.value; }
  bool isClose(double value) const {
    return isReached(value) &&
           value <= (isPsnr() ? target_.value + kPsnrSlack : target_.value * kRatioSlack);
  }

  /// With it everything within the range is one bin.
  double lastOctave() const {
    return range_.width > 0 ? std::log2(range_.width) : std::log2(std::max(range_.largest, 1.0));
  }
  /// Errors of rounding are uniform in their bin where a field is rough, and smaller where not.
  double firstOctave() const {
    if (!(range_.width > 0)) {
      return std::log2(std::max<double>(range_.largest, std::numeric_limits<float>::min())) - 40;
    }
    const double octave = isPsnr() ? std::log2(range_.width * std::sqrt(3.0)) -
                                         (target_.value + kPsnrSlack / 2) / kDecibelsPerOctave
                                   : std::log2(range_.width) - 10;
    return std::min(octave, lastOctave());
  }

  Trial tryBound(double octave, bool on_part) {
    ++n_trials_;
    const double bound = roundedBound(octave);
    return {bound, std::log2(bound), trials_.reached(bound, on_part)};
  }

  void record(const Trial& trial) {
    // The best is the largest bound for a PSNR, the smallest for a ratio.
    const double sign = isPsnr() ? 1.0 : -1.0;
    std::optional<Trial>& place = isReached(trial.reached) ? best_ : failed_;
    const double better = isReached(trial.reached) ? sign : -sign;
    if (!place || better * (trial.octave - place->octave) > 0) {
      place = trial;
    }
    if (trial.reached > nearest_.reached) {
      nearest_ = trial;
    }
  }

  /// Where a trial, and the one before it, say that the target is met with a little to spare.
  double nextOctave(const Trial& trial, const Trial& before) const {
    double octave = trial.octave;
    if (isPsnr()) {
      const double distance = trial.reached - (target_.value + kPsnrSlack / 3);
      octave += std::isfinite(distance) ? distance / kDecibelsPerOctave : distance > 0 ? 4 : -4;
    } else {
      octave += ratioStep(trial, before);
    }
    if (best_ && failed_) {  // stay between what is known
      const auto [low, high] = std::minmax(best_->octave, failed_->octave);
      const double margin = (high - low) / 10;
      octave = std::clamp(octave, low + margin, high - margin);
      // Ratios bend, and a line through them may stay short of the target until no trial is left.
      const bool is_far = !isPsnr() && best_->reached > kFarRatio * target_.value &&
                          failed_->reached * kFarRatio < target_.value;
      if (is_far && n_trials_ + 1 >= kMaxTrials) {
        octave = (low + high) / 2;
      }
    }
    return octave;
  }

  /// One bit less for every value an octave further, until two trials tell better.
  double ratioStep(const Trial& trial, const Trial& before) const {
    constexpr double kSpare = 1.015;
    const double wanted = target_.value * kSpare;
    const double steps = std::log2(wanted / trial.reached);
    if (before.octave != trial.octave && before.reached > 0) {
      const double slope =
          std::log2(trial.reached / before.reached) / (trial.octave - before.octave);
      if (slope > 0.02) {
        return std::clamp(steps / slope, -6.0, 6.0);
      }
    }
    const auto n_bits = static_cast<double>(8 * getDataTypeSize(type_));
    return std::clamp(n_bits / trial.reached - n_bits / wanted, -8.0, 8.0);
  }

  TargetBound result() const {
    if (best_) {
      return {best_->bound, best_->reached, n_trials_};
    }
    if (isPsnr() && range_.width > 0) {
      // No error exceeds the bound, so that their mean square does not either.
      const double octave = std::log2(range_.width) - target_.value / kDecibelsPerOctave;
      return {roundedBound(octave - 1e-3), target_.value, n_trials_};
    }
    throw TargetError(target_, {nearest_.bound, nearest_.reached, n_trials_});
  }

  DataType type_;
  ResultTarget target_;
  TargetTrials& trials_;
  CountedRange range_;
  std::size_t n_trials_ = 0;
  std::size_t part_trials_ = 0;
  std::optional<Trial> best_;
  std::optional<Trial> failed_;  // nearest to the best
  Trial before_;
  Trial nearest_ = {0.0, 0.0, -std::numeric_limits<double>::infinity()};
};

}  // namespace

TargetBound searchTarget(DataType type, const ResultTarget& target, TargetTrials& trials) {
  return Search(type, target, trials).run();
}

void requireTarget(DataType type, const ResultTarget& target) {
  FZ_REQUIRE_ARG(std::isfinite(target.value) && target.value > 0,
                 "the target {}:{} must be a number above 0", targetKindName(target.kind),
                 target.value);
  FZ_REQUIRE(type == DataType::FLOAT32 || type == DataType::FLOAT64, ErrorCode::kUnsupported,
             "targets are for float32 and float64, not {}", dataTypeToString(type));
}

void refuseFill(const ResultTarget& target, FillValueFinding finding) {
  // The bound to name instead: errors of rounding for a PSNR, a common one for a ratio.
  constexpr double kCommonBound = 1e-3;
  finding.bound_without *= target.kind == ResultTarget::Kind::kPsnr
                               ? std::sqrt(3.0) * std::pow(10.0, -target.value / 20)
                               : kCommonBound;
  throw FillValueError(finding, fmt::format("{}:{} is refused: {}", targetKindName(target.kind),
                                            target.value, describeFill(finding)));
}

CompressOptions withoutBound(const CompressOptions& options) {
  CompressOptions open = options;
  open.mode = ErrorBoundMode::ABS;
  open.progress = nullptr;
  std::erase_if(open.params, [](const auto& param) {
    return param.first.ends_with("error_bound") || param.first.ends_with("error_bound_mode");
  });
  return open;
}

double psnrOf(const SquaredError& error, double range) {
  if (error.mean == 0.0 || !error.has_values) {
    return std::numeric_limits<double>::infinity();
  }
  return range > 0 ? 20 * std::log10(range) - 10 * std::log10(error.mean)
                   : -std::numeric_limits<double>::infinity();
}

}  // namespace fz
