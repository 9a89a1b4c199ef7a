#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fz/bound_kind.h"
#include "report/figures.h"
#include "report/judgement.h"
#include "report/text.h"

namespace fz::report {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json momentsJson(const Moments& m) {
  return {{"min", m.min}, {"max", m.max}, {"mean", m.mean}, {"deviation", m.deviation}};
}

Json histogramJson(const Histogram& histogram) {
  return {{"low", histogram.low}, {"high", histogram.high}, {"counts", histogram.counts}};
}

Json judgementsJson(const std::vector<Judgement>& judgements) {
  Json list = Json::array();
  for (const Judgement& one : judgements) {
    list.push_back({{"severity", std::string(severityName(one.severity))},
                    {"about", one.about},
                    {"text", one.text}});
  }
  return list;
}

Json fieldJson(const Input& input, const Figures& figures) {
  const Summary& s = figures.summary;
  return {{"name", input.original_name},
          {"type", std::string(dataTypeToString(input.original.type))},
          {"dims", input.original.dims},
          {"values", s.n_values},
          {"bytes", input.original.bytes.size()},
          {"crc32", fmt::format("{:08x}", figures.original_crc)},
          {"finite_without_fill", s.n_valid},
          {"nan", s.n_nan},
          {"infinite", s.n_infinity},
          {"fill_value", s.fill.empty() || s.is_fill_declared ? nlohmann::json()
                                                              : nlohmann::json(s.fill.front())},
          {"declared_fill_values", s.is_fill_declared ? s.fill : std::vector<double>{}},
          {"fill", s.n_fill},
          {"psnr_without_fill", s.valid_psnr},
          {"original", momentsJson(s.original)},
          {"reconstruction", momentsJson(s.decoded)}};
}

Json errorJson(const Input& input) {
  const CheckReport& check = input.check;
  Json json = {{"rule", ruleText(check.rule)},
               {"violations", check.n_violations},
               {"max_error", check.stats.max_error},
               {"max_error_index", check.stats.max_error_index},
               {"max_relative_error", nullptr},
               {"max_relative_error_index", nullptr},
               {"mse", check.stats.mse},
               {"nrmse", check.nrmse()},
               {"psnr", check.psnr()},
               {"bound", nullptr}};
  if (check.n_finite > 0) {
    json["max_relative_error"] = check.max_relative;
    json["max_relative_error_index"] = check.max_relative_index;
  }
  if (input.info.bound) {
    json["bound"] = {{"mode", boundKindName(*input.info.bound)},
                     {"requested", input.info.bound->requested},
                     {"absolute", orNull(absoluteBound(*input.info.bound))}};
  }
  return json;
}

Json stagesJson(const Figures& figures) {
  Json list = Json::array();
  for (const StageRow& stage : figures.stages.stages) {
    list.push_back({{"name", stage.name},
                    {"types", stage.types},
                    {"settings", stage.settings},
                    {"reads", stage.sources},
                    {"bytes_in", orNull(stage.input_bytes)},
                    {"bytes_out", orNull(stage.output_bytes)},
                    {"compress_ms", orNull(stage.compress_ms)},
                    {"decompress_ms", orNull(stage.decompress_ms)}});
  }
  return list;
}

Json sweepJson(const Sweep& sweep) {
  Json list = Json::array();
  for (const SweepPoint& point : sweep.points) {
    if (!point.refused.empty()) {
      list.push_back({{"bound", point.requested}, {"refused", point.refused}});
      continue;
    }
    list.push_back({{"bound", point.requested},
                    {"absolute", point.absolute},
                    {"ratio", point.ratio},
                    {"bits_per_value", point.bits_per_value},
                    {"psnr", point.psnr},
                    {"max_error", point.max_error},
                    {"violations", point.n_violations}});
  }
  return {{"values", sweep.n_values}, {"points", list}};
}

}  // namespace

std::string figuresJson(const Input& input, const Figures& figures) {
  const Spectrum& s = figures.spectrum;
  const Json json = {{"command", input.command},
                     {"archive",
                      {{"name", input.archive_name},
                       {"bytes", input.frame.size()},
                       {"chunks", input.chunk ? input.chunk->n_chunks : 1},
                       {"sha256", figures.archive_sha256},
                       {"ratio", input.info.ratio()}}},
                     {"judgements", judgementsJson(judge(input, figures))},
                     {"field", fieldJson(input, figures)},
                     {"error", errorJson(input)},
                     {"value_histogram",
                      {{"original", histogramJson(figures.histograms.original)},
                       {"reconstruction", histogramJson(figures.histograms.decoded)}}},
                     {"error_histogram",
                      {{"in_bounds", histogramJson(figures.histograms.error)},
                       {"below", figures.histograms.n_below},
                       {"above", figures.histograms.n_above}}},
                     {"spectrum",
                      {{"axes", s.ndim},
                       {"extents", s.extents},
                       {"start", s.start},
                       {"segments", s.n_segments},
                       {"frequency", s.frequency},
                       {"original", s.original},
                       {"reconstruction", s.decoded},
                       {"error", s.error}}},
                     {"stages", stagesJson(figures)},
                     {"stages_values", figures.stages.n_values},
                     {"sweep", sweepJson(figures.sweep)}};
  // Names of files are bytes, not always UTF-8.
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) {
    // Inside a page nothing may look like the end of a script.
    safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : c == '&' ? "\\u0026" : std::string(1, c);
  }
  return safe;
}

}  // namespace fz::report
