#pragma once

#include <string>
#include <vector>

#include "bench_run.h"
#include "failure.h"
#include "json_rows.h"

namespace fz::cli {

struct BenchRow {
  std::string file;
  std::string pipeline;
  std::string bound;
  BenchResult result;
  std::string error;  ///< why there is no result; empty when there is one
  ExitCode error_code = ExitCode::kOk;
};

/// Two decimals, and four where those would say little.
std::string speedNumber(double gb_per_s);
/// The bound of a frame as -b writes it.
std::string boundOption(const FrameInfo& info);
std::string benchTable(const std::vector<BenchRow>& rows, const BenchPlan& plan, bool per_stage);
void addBenchRows(const std::vector<BenchRow>& rows, const BenchPlan& plan, JsonRows& out);

}  // namespace fz::cli
