// What missing values cost in whole calls: a field with coastlines of NaN beside the same field
// with its gaps filled, and what a field without any pays for the question.
#include <ctime>
#include <fmt/format.h>

#include "bench_common.h"
#include "fz/host_api.h"
#include "fz/presets.h"

namespace fz::bench {

namespace {

constexpr double kNeverDeclared = -9999.0;  // in no field here

/// Of the processor where one thread does the work, so that others on the machine count less.
template <class F>
double secondsOf(std::size_t n_threads, F f) {
  if (n_threads == 1) {
    const std::clock_t start = std::clock();
    f();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Best times of calls that take turns, so that whatever else the machine does hits all alike.
class Rounds {
 public:
  explicit Rounds(std::size_t n_threads) : n_threads_(n_threads) {}
  template <class F>
  void run(std::size_t which, F f) {
    best_[which] = std::min(best_[which], secondsOf(n_threads_, f));
  }
  double milliseconds(std::size_t which) const { return 1e3 * best_[which]; }

 private:
  std::size_t n_threads_;
  std::array<double, 4> best_ = {1e9, 1e9, 1e9, 1e9};
};

MissingRow measure(const std::string& preset,
                   const CoastFields& fields,
                   const CompressOptions& compress_options,
                   const Options& options) {
  const DecompressOptions decompress_options{.threads = options.threads};
  CompressOptions declared_options = compress_options;
  declared_options.fill = {kNeverDeclared};
  MissingRow row{.name = fmt::format("{} {}:{}", preset,
                                     compress_options.mode == ErrorBoundMode::ABS ? "abs" : "range",
                                     *compress_options.error_bound)};
  Frame filled_frame;
  Frame missing_frame;
  Bytes out(fields.filled.size());
  const auto into = [&](std::size_t /*n_bytes*/) -> void* { return out.data(); };
  Rounds compressing(options.threads);
  Rounds decompressing(options.threads);
  Rounds asking(options.threads);
  for (int i = 0; i <= options.runs; ++i) {
    compressing.run(
        0, [&] { filled_frame = compress(DataType::FLOAT32, fields.filled, compress_options); });
    compressing.run(
        1, [&] { missing_frame = compress(DataType::FLOAT32, fields.missing, compress_options); });
    compressing.run(2, [&] { compress(DataType::FLOAT32, fields.filled, declared_options); });
    decompressing.run(0, [&] { decompressInto(filled_frame.bytes(), into, decompress_options); });
    decompressing.run(1, [&] { decompressInto(missing_frame.bytes(), into, decompress_options); });
    asking.run(0, [&] { hasMissing(DataType::FLOAT32, fields.filled); });
  }
  row.filled = {compressing.milliseconds(0), decompressing.milliseconds(0)};
  row.missing = {compressing.milliseconds(1), decompressing.milliseconds(1)};
  row.declared_ms = compressing.milliseconds(2);
  row.ask_ms = asking.milliseconds(0);
  row.filled_ratio =
      static_cast<double>(out.size()) / static_cast<double>(filled_frame.bytes().size());
  row.missing_ratio =
      static_cast<double>(out.size()) / static_cast<double>(missing_frame.bytes().size());
  return row;
}

}  // namespace

std::vector<MissingRow> benchMissing(const Options& options) {
  const CoastFields fields = makeCoasts(options.n_bytes);
  std::vector<MissingRow> rows;
  for (const Preset& preset : allPresets()) {
    const std::string name(preset.name);
    if (name.find(options.only) == std::string::npos) {
      continue;
    }
    for (const auto& [mode, bound] :
         {std::pair{ErrorBoundMode::ABS, 0.1}, std::pair{ErrorBoundMode::NOA, 1e-3}}) {
      rows.push_back(measure(name, fields,
                             {.preset = name,
                              .error_bound = bound,
                              .mode = mode,
                              .dims = fields.dims,
                              .backend = Backend::CPU,
                              .threads = options.threads},
                             options));
    }
  }
  return rows;
}

}  // namespace fz::bench
