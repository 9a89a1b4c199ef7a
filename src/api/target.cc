// Bounds by what they lead to.
#include "fz/target.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "api/missing_values.h"
#include "archive/chunk_grid.h"
#include "backends/cpu/missing.h"
#include "core/require.h"
#include "pipeline/bound_check.h"

namespace fz {

namespace {

constexpr std::size_t kMaxTrials = 5;
constexpr std::size_t kMaxPartTrials = 2;
// Fields above this are tried on a part first.
constexpr std::size_t kWholeBytes = std::size_t{64} << 20;
constexpr std::size_t kPartBytes = std::size_t{16} << 20;
// Good enough: what is left to gain is less than another trial costs.
constexpr double kPsnrSlack = 0.25;
constexpr double kRatioSlack = 1.04;
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

ValidRange rangeOf(DataType type, ByteView values, const std::vector<double>& fill) {
  const auto of = [&]<class T>(T /*type*/) {
    std::vector<T> own;
    for (const double value : fill) {
      addFill(value, own);
    }
    return rangeOfValid(
        std::span(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T)), own);
  };
  return type == DataType::FLOAT32 ? of(float{}) : of(double{});
}

class Search {
 public:
  Search(DataType type, ByteView values, const ResultTarget& target, const CompressOptions& options)
      : type_(type), values_(values), target_(target), options_(options) {
    options_.mode = ErrorBoundMode::ABS;
    options_.progress = nullptr;
    if (options_.extents && valueCount(*options_.extents) > 0) {
      options_.dims = foldedDims(*options_.extents);  // parts have other extents
    }
    options_.extents.reset();
    // Settings come after the bound, and would replace the one that is tried.
    std::erase_if(options_.params, [](const auto& param) {
      return param.first.ends_with("error_bound") || param.first.ends_with("error_bound_mode");
    });
    const ValidRange range = rangeOf(type, values, options.fill);
    if (!range.isEmpty()) {
      range_ = std::min(range.high - range.low, std::numeric_limits<double>::max());
      largest_ = std::max(std::fabs(range.low), std::fabs(range.high));
    }
  }

  TargetBound run() {
    double octave = firstOctave();
    while (part_trials_ < kMaxPartTrials && usesPart()) {
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
  bool usesPart() const { return values_.size() > kWholeBytes; }

  /// With it everything within the range is one bin.
  double lastOctave() const {
    return range_ > 0 ? std::log2(range_) : std::log2(std::max(largest_, 1.0));
  }
  /// Errors of rounding are uniform in their bin where a field is rough, and smaller where not.
  double firstOctave() const {
    if (!(range_ > 0)) {
      return std::log2(std::max<double>(largest_, std::numeric_limits<float>::min())) - 40;
    }
    const double octave = isPsnr() ? std::log2(range_ * std::sqrt(3.0)) -
                                         (target_.value + kPsnrSlack / 2) / kDecibelsPerOctave
                                   : std::log2(range_) - 10;
    return std::min(octave, lastOctave());
  }

  Trial tryBound(double octave, bool on_part) {
    ++n_trials_;
    CompressOptions options = options_;
    const double bound = roundedBound(octave);
    options.error_bound = bound;
    ByteView values = values_;
    if (on_part) {
      values = partOf(options.dims);
    }
    const Frame frame = compress(type_, values, options);
    const double ratio = static_cast<double>(values.size()) /
                         static_cast<double>(std::max<std::size_t>(frame.size(), 1));
    return {bound, std::log2(bound), isPsnr() ? psnrOf(values, frame) : ratio};
  }

  double psnrOf(ByteView values, const Frame& frame) const {
    DecompressOptions decode;
    decode.backend = options_.backend;
    decode.threads = options_.threads;
    const Array decoded = decompress(frame, decode);
    const CheckReport report =
        checkValues(type_, values, decoded.bytes(), {BoundRule::Kind::kBits, 0.0, options_.fill});
    if (report.stats.mse == 0.0 || report.n_finite == 0) {
      return std::numeric_limits<double>::infinity();
    }
    const double psnr = report.psnr();
    return std::isnan(psnr) ? -std::numeric_limits<double>::infinity() : psnr;
  }

  /// Whole planes, or rows, from the middle.
  ByteView partOf(std::array<std::size_t, 3>& dims) const {
    const std::size_t value_bytes = getDataTypeSize(type_);
    const std::size_t slowest = dims[2] > 1 ? 2 : dims[1] > 1 ? 1 : 0;
    if (dims[0] == 0) {
      dims[0] = values_.size() / value_bytes;
    }
    const std::size_t unit_bytes = values_.size() / std::max<std::size_t>(dims[slowest], 1);
    const std::size_t n = std::clamp<std::size_t>(kPartBytes / std::max<std::size_t>(unit_bytes, 1),
                                                  1, dims[slowest]);
    const std::size_t first = (dims[slowest] - n) / 2;
    dims[slowest] = n;
    return values_.subspan(first * unit_bytes, n * unit_bytes);
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
    if (isPsnr() && range_ > 0) {
      // No error exceeds the bound, so that their mean square does not either.
      const double octave = std::log2(range_) - target_.value / kDecibelsPerOctave;
      return {roundedBound(octave - 1e-3), target_.value, n_trials_};
    }
    throw TargetError(target_, {nearest_.bound, nearest_.reached, n_trials_});
  }

  DataType type_;
  ByteView values_;
  ResultTarget target_;
  CompressOptions options_;
  double range_ = 0.0;  // of the values that are not missing
  double largest_ = 0.0;
  std::size_t n_trials_ = 0;
  std::size_t part_trials_ = 0;
  std::optional<Trial> best_;
  std::optional<Trial> failed_;  // nearest to the best
  Trial before_;
  Trial nearest_ = {0.0, 0.0, -std::numeric_limits<double>::infinity()};
};

}  // namespace

std::string_view targetKindName(ResultTarget::Kind kind) {
  return kind == ResultTarget::Kind::kPsnr ? "psnr" : "ratio";
}

std::optional<ResultTarget::Kind> targetKindFromName(std::string_view text) {
  for (const auto kind : {ResultTarget::Kind::kPsnr, ResultTarget::Kind::kRatio}) {
    if (text == targetKindName(kind)) {
      return kind;
    }
  }
  return std::nullopt;
}

TargetError::TargetError(const ResultTarget& target, const TargetBound& best)
    : Error(ErrorCode::kTarget,
            fmt::format("no bound reaches {}:{}; the best was {}:{:.4g}, with abs:{:.4g}",
                        targetKindName(target.kind),
                        target.value,
                        targetKindName(target.kind),
                        best.reached,
                        best.absolute)),
      best_(best) {
}

TargetBound findBound(DataType type,
                      ByteView values,
                      const ResultTarget& target,
                      const CompressOptions& options) try {
  FZ_REQUIRE_ARG(std::isfinite(target.value) && target.value > 0,
                 "the target {}:{} must be a number above 0", targetKindName(target.kind),
                 target.value);
  FZ_REQUIRE(type == DataType::FLOAT32 || type == DataType::FLOAT64, ErrorCode::kUnsupported,
             "targets are for float32 and float64, not {}", dataTypeToString(type));
  return Search(type, values, target, options).run();
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
