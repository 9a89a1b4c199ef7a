#pragma once

#include <optional>
#include <string>

#include "report/histogram.h"
#include "report/report.h"
#include "report/slice.h"
#include "report/spectrum.h"
#include "report/stage_figures.h"
#include "report/summary.h"
#include "report/sweep.h"

namespace fz::report {

/// All that was measured for a page.
struct Figures {
  Summary summary;
  std::optional<Slice> slice;    ///< fields of two and three axes
  std::optional<Series> series;  ///< fields of one axis, whole
  std::optional<Series> detail;  ///< and a part from the middle
  Histograms histograms;
  Spectrum spectrum;
  StageFigures stages;
  Sweep sweep;
  std::string archive_sha256;
  std::uint32_t original_crc = 0;
};

Figures collectFigures(const Input& input);

// Parts of the page, as HTML.
std::string drawField(const Input& input, const Figures& figures);
/// The part of it for fields of one axis.
std::string drawSeries(const Input& input, const Figures& figures);
std::string drawHistograms(const Input& input, const Figures& figures);
std::string drawSpectrum(const Figures& figures);
std::string drawSweep(const Input& input, const Figures& figures);
std::string drawPipeline(const Input& input, const Figures& figures);
std::string drawPresets(const Input& input);
std::string drawTables(const Input& input, const Figures& figures);

/// The figures for programs, as JSON.
std::string figuresJson(const Input& input, const Figures& figures);

}  // namespace fz::report
