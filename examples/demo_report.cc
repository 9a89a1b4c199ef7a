#include "demo_report.h"

#include <algorithm>
#include <fmt/format.h>

#include "fz/host_api.h"
#include "pipeline/bound_check.h"

namespace fz::demo {

std::string tableHead() {
  return fmt::format("{:<26} {:>8} {:>11} {:>11} {:>7} {:>11} {:>9} {:>9}\n", "preset", "ratio",
                     "bound", "max error", "PSNR", "violations", "comp GB/s", "dec GB/s");
}

std::string tableLine(const Row& row) {
  return fmt::format("{:<26} {:>8.2f} {:>11.4e} {:>11.4e} {:>7.1f} {:>11} {:>9.2f} {:>9.2f}\n",
                     row.name, row.ratio, row.bound, row.max_error, row.psnr, row.n_violations,
                     row.compress_gbs, row.decompress_gbs);
}

std::string htmlPage(const Field& field,
                     double bound,
                     std::size_t threads,
                     const std::vector<Row>& rows) {
  const auto best = std::max_element(rows.begin(), rows.end(),
                                     [](const Row& a, const Row& b) { return a.ratio < b.ratio; });
  CompressOptions options;
  options.preset = best->name;
  options.error_bound = bound;
  options.mode = ErrorBoundMode::NOA;
  options.dims = field.dims;
  options.backend = Backend::CPU;
  options.threads = threads;
  const Frame frame = compress(field.type, field.bytes, options);
  report::Input input;
  input.decode = {.backend = Backend::CPU, .threads = threads};
  const Array decoded = decompress(frame, input.decode);
  input.command = fmt::format("fz_demo --bound {}", bound);
  input.original_name = field.name;
  input.archive_name = fmt::format("in memory, preset {}", best->name);
  input.original = {field.type, field.dims, field.bytes};
  input.decoded = decoded.bytes();
  input.frame = frame.bytes();
  input.info = inspect(frame);
  input.check = checkValues(field.type, field.bytes, decoded.bytes(), *ruleOfFrame(input.info));
  input.options = options;
  input.sweep_bounds = report::parseSweep("auto", input.info);
  input.presets = rows;
  return report::makePage(input);
}

}  // namespace fz::demo
