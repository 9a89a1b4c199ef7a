#include "report/judgement.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "report/text.h"

namespace fz::report {

namespace {

// Below this an archive is hardly worth the time; headers alone decide about small fields.
constexpr double kPoorRatio = 1.2;
constexpr std::size_t kTinyBytes = 4096;
// Errors of gradients, relative to their size.
constexpr double kDoubtfulGradients = 0.25;
constexpr double kLostGradients = 1.0;
constexpr double kLostVariation = 0.5;

std::string percent(std::size_t part, std::size_t all) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::optional<Judgement> aboutVariation(const Summary& s) {
  if (s.n_valid < 2 || !(s.original.deviation > 0.0)) {
    return std::nullopt;
  }
  if (s.decoded.min == s.decoded.max) {
    return Judgement{Severity::kLoss, "constant",
                     fmt::format("All values came back as {}: the bound is wider than everything "
                                 "that the field has. Use a smaller one.",
                                 roundNumber(s.decoded.min, 6))};
  }
  if (s.decoded.deviation < kLostVariation * s.original.deviation) {
    return Judgement{
        Severity::kLoss, "variation",
        fmt::format("Most of the variation is gone: the standard deviation was {} and "
                    "is {}. Use a smaller bound.",
                    roundNumber(s.original.deviation, 4), roundNumber(s.decoded.deviation, 4))};
  }
  return std::nullopt;
}

/// The derivative of a wave is its frequency times the wave, so spectra know the error of
/// gradients. Bins are means over shells, which have more modes the farther out they are.
std::optional<Judgement> aboutGradients(const Spectrum& spectrum) {
  double of_field = 0.0;
  double of_error = 0.0;
  double finest_kept = 0.0;
  for (std::size_t i = 0; i < spectrum.frequency.size(); ++i) {
    const double f = spectrum.frequency[i];
    const double weight = f * f * std::pow(f, spectrum.ndim - 1);
    of_field += weight * spectrum.original[i];
    of_error += weight * spectrum.error[i];
    finest_kept = spectrum.error[i] < spectrum.original[i] ? std::max(finest_kept, f) : finest_kept;
  }
  if (!(of_field > 0.0)) {
    return std::nullopt;
  }
  const double relative = std::sqrt(of_error / of_field);
  if (!(relative > kDoubtfulGradients)) {
    return std::nullopt;
  }
  const std::string detail =
      finest_kept > 0.0 && finest_kept < 0.5
          ? fmt::format(" Waves shorter than {} samples are errors more than field.",
                        roundNumber(1.0 / finest_kept, 2))
          : std::string();
  const bool is_lost = relative >= kLostGradients;
  return Judgement{is_lost ? Severity::kLoss : Severity::kDoubt, "gradients",
                   fmt::format("{} Errors of gradients are {:.0f} % of the gradients "
                               "themselves.{}",
                               is_lost ? "Fine structure is lost." : "Fine structure suffers.",
                               100.0 * relative, detail)};
}

std::optional<Judgement> aboutRatio(const Input& input) {
  const double ratio = input.info.ratio();
  if (input.original.bytes.size() < kTinyBytes || ratio >= kPoorRatio) {
    return std::nullopt;
  }
  return Judgement{Severity::kDoubt, "ratio",
                   fmt::format("The archive saves next to nothing (ratio {:.2f}){}", ratio,
                               input.info.lossless
                                   ? "; every bit is kept. A bound, or a larger one, is what makes "
                                     "archives small."
                                   : ". Use a larger bound or another preset; 'fz suggest' ranks "
                                     "them.")};
}

std::optional<Judgement> aboutFill(const Summary& s) {
  if (s.n_fill == 0 || s.is_fill_declared) {
    return std::nullopt;
  }
  return Judgement{
      Severity::kDoubt, "fill",
      fmt::format("{} stands {} times far outside all other values, as fill values do, "
                  "and nothing declares it, so it counts as data. --fill {} keeps it "
                  "bit for bit.",
                  roundNumber(s.fill.front(), 6), groupedNumber(s.n_fill),
                  roundNumber(s.fill.front(), 6))};
}

std::optional<Judgement> aboutMissing(const Summary& s) {
  const std::size_t n_declared = s.is_fill_declared ? s.n_fill : 0;
  const std::size_t n_missing = s.n_nan + s.n_infinity + n_declared;
  if (n_missing == 0) {
    return std::nullopt;
  }
  return Judgement{s.n_valid == 0 ? Severity::kDoubt : Severity::kNote, "missing",
                   fmt::format("{} of {} values ({}) are missing: {} NaN, {} infinities, {} fill "
                               "values. They have no part in the bound.",
                               groupedNumber(n_missing), groupedNumber(s.n_values),
                               percent(n_missing, s.n_values), groupedNumber(s.n_nan),
                               groupedNumber(s.n_infinity), groupedNumber(n_declared))};
}

}  // namespace

std::string_view severityName(Severity severity) {
  switch (severity) {
    case Severity::kLoss:
      return "loss";
    case Severity::kDoubt:
      return "doubt";
    case Severity::kNote:
      break;
  }
  return "note";
}

std::vector<Judgement> judge(const Input& input, const Figures& figures) {
  std::vector<Judgement> found;
  const std::optional<Judgement> variation = aboutVariation(figures.summary);
  for (const std::optional<Judgement>& one :
       {variation, variation ? std::nullopt : aboutGradients(figures.spectrum), aboutRatio(input),
        aboutFill(figures.summary), aboutMissing(figures.summary)}) {
    if (one) {
      found.push_back(*one);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Judgement& a, const Judgement& b) { return a.severity > b.severity; });
  return found;
}

}  // namespace fz::report
