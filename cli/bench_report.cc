#include "bench_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fz/bound_kind.h"
#include "options.h"

namespace fz::cli {

namespace {

using Json = nlohmann::ordered_json;

double gbPerSecond(std::size_t n_bytes, double seconds) {
  return seconds > 0.0 ? static_cast<double>(n_bytes) / seconds * 1e-9 : 0.0;
}

/// "8.35 (7.90-8.61)": the slowest of the usual runs first.
std::string speedText(std::size_t n_bytes, const Spread& spread) {
  return fmt::format("{} ({}-{})", speedNumber(gbPerSecond(n_bytes, spread.median)),
                     speedNumber(gbPerSecond(n_bytes, spread.p95)),
                     speedNumber(gbPerSecond(n_bytes, spread.p5)));
}

std::string stageLines(const char* direction, const BenchTimes& times, std::size_t field_bytes) {
  double all = 0.0;
  for (const BenchStage& stage : times.stages) {
    all += stage.seconds;
  }
  std::string text;
  for (const BenchStage& stage : times.stages) {
    text += fmt::format(
        "    {:<11}{:<44}{:>9.3f} ms {:>8.2f} GB/s {:>5.1f} % {:>13} -> {} bytes\n", direction,
        stage.name, stage.seconds * 1e3, gbPerSecond(field_bytes, stage.seconds),
        all > 0.0 ? 100.0 * stage.seconds / all : 0.0, stage.input_bytes, stage.output_bytes);
  }
  return text;
}

Json spreadJson(std::size_t n_bytes, const Spread& spread) {
  return {{"median_s", spread.median},
          {"p5_s", spread.p5},
          {"p95_s", spread.p95},
          {"gb_per_s", gbPerSecond(n_bytes, spread.median)}};
}

Json timesJson(std::size_t n_bytes, const BenchTimes& times) {
  Json stages = Json::array();
  for (const BenchStage& stage : times.stages) {
    stages.push_back({{"name", stage.name},
                      {"median_s", stage.seconds},
                      {"input_bytes", stage.input_bytes},
                      {"output_bytes", stage.output_bytes}});
  }
  return {{"call", spreadJson(n_bytes, times.call)},
          {"with_transfers", spreadJson(n_bytes, times.with_transfers)},
          {"stages", stages}};
}

}  // namespace

std::string speedNumber(double gb_per_s) {
  constexpr double kSlow = 0.1;
  return gb_per_s < kSlow ? fmt::format("{:.4f}", gb_per_s) : fmt::format("{:.2f}", gb_per_s);
}

std::string boundOption(const FrameInfo& info) {
  return info.bound ? fmt::format("{}:{}", boundKindName(*info.bound), info.bound->requested)
                    : "lossless";
}

std::string benchTable(const std::vector<BenchRow>& rows, const BenchPlan& plan, bool per_stage) {
  std::size_t name_width = 8;
  std::size_t bound_width = 5;
  for (const BenchRow& row : rows) {
    name_width = std::max(name_width, row.pipeline.size());
    bound_width = std::max(bound_width, row.bound.size());
  }
  std::string text =
      fmt::format("{:<{}}  {:<{}}  {:>8}  {:>21}  {:>8}  {:>21}  {:>8}  {:>9}\n", "pipeline",
                  name_width, "bound", bound_width, "ratio", "compress GB/s", "of copy",
                  "decompress GB/s", "of copy", "copy GB/s");
  std::string file;
  for (const BenchRow& row : rows) {
    const BenchResult& r = row.result;
    const bool several = rows.front().file != rows.back().file;
    if (several && row.file != file) {
      file = row.file;
      text += file + "\n";
    }
    if (!row.error.empty()) {
      text += fmt::format("{:<{}}  {:<{}}  failed, see its error\n", row.pipeline, name_width,
                          row.bound, bound_width);
      continue;
    }
    text += fmt::format(
        "{:<{}}  {:<{}}  {:>8.2f}  {:>21}  {:>6.0f} %  {:>21}  {:>6.0f} %  {:>9.2f}\n",
        row.pipeline, name_width, row.bound, bound_width, r.frame.ratio(),
        speedText(r.field_bytes, r.compress.call), 100.0 * r.copy.median / r.compress.call.median,
        speedText(r.field_bytes, r.decompress.call),
        100.0 * r.copy.median / r.decompress.call.median,
        gbPerSecond(r.field_bytes, r.copy.median));
    if (r.backend == Backend::CUDA) {
      text += fmt::format("{:<{}}  {:<{}}  {:>8}  {:>21}  {:>8}  {:>21}\n", "", name_width, "",
                          bound_width, "moved", speedText(r.field_bytes, r.compress.with_transfers),
                          "", speedText(r.field_bytes, r.decompress.with_transfers));
    }
    if (per_stage) {
      text += stageLines("compress", r.compress, r.field_bytes);
      text += stageLines("decompress", r.decompress, r.field_bytes);
    }
  }
  for (const BenchRow& row : rows) {
    if (row.error.empty()) {
      text += fmt::format(
          "{} runs after {} to warm up; backend {}{}; median (5th-95th percentile)\n", plan.n_runs,
          plan.n_warmups, backendName(row.result.backend),
          row.result.backend == Backend::CPU ? fmt::format(", {} threads", row.result.n_threads)
                                             : std::string());
      break;
    }
  }
  return text;
}

void addBenchRows(const std::vector<BenchRow>& rows, const BenchPlan& plan, JsonRows& out) {
  for (const BenchRow& row : rows) {
    Json json = {{"pipeline", row.pipeline},
                 {"bound", row.bound},
                 {"runs", plan.n_runs},
                 {"warmup", plan.n_warmups}};
    if (!row.error.empty()) {
      out.addFailure(row.file, Failure(row.error_code, row.error), json.dump());
      continue;
    }
    const BenchResult& r = row.result;
    json["backend"] = backendName(r.backend);
    json["threads"] = r.n_threads;
    json["original_bytes"] = r.field_bytes;
    json["archive_bytes"] = r.frame.frameBytes();
    json["ratio"] = r.frame.ratio();
    json["max_error"] = r.check.stats.max_error;
    json["violations"] = r.check.n_violations;
    json["copy"] = spreadJson(r.field_bytes, r.copy);
    json["compress"] = timesJson(r.field_bytes, r.compress);
    json["decompress"] = timesJson(r.field_bytes, r.decompress);
    if (r.check.passed()) {
      out.add(row.file, json.dump());
    } else {
      out.addFailure(row.file, Failure(ExitCode::kBound, violationText(r.check)), json.dump());
    }
  }
}

}  // namespace fz::cli
