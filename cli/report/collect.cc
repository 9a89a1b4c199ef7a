#include <algorithm>

#include "format/crc32.h"
#include "report/digest.h"
#include "report/figures.h"

namespace fz::report {

namespace {

/// Values of a series that the detail shows: few enough to tell them apart.
constexpr std::size_t kDetailValues = 128;

}  // namespace

Figures collectFigures(const Input& input) {
  Figures figures;
  const FieldView& original = input.original;
  const FieldView decoded{original.type, original.dims, input.decoded};
  const ErrorScale scale(input.check.rule);
  figures.summary = summarize(original, decoded, input.check.rule.fill);
  figures.histograms = countValues(original, decoded, figures.summary, scale);
  figures.spectrum = measureSpectrum(original, decoded, figures.summary);
  const std::size_t n = original.count();
  if (axisCount(original.dims) >= 2 && n > 0) {
    figures.slice = cutSlice(original, decoded, figures.summary, scale);
  } else if (n > 0) {
    figures.series = readSeries(original, decoded, figures.summary, scale, {0, n});
    if (n > 2 * kDetailValues) {
      const std::size_t begin = (n - kDetailValues) / 2;
      figures.detail =
          readSeries(original, decoded, figures.summary, scale, {begin, begin + kDetailValues});
    }
  }
  figures.stages = measureStages(input);
  figures.sweep = runSweep(input);
  figures.archive_sha256 = sha256Hex(input.frame);
  figures.original_crc = crc32(original.bytes);
  return figures;
}

}  // namespace fz::report
