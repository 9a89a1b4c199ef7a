// R13: getMaxCompressedSize() is never exceeded, and how far above the input a frame can come.
#include <algorithm>
#include <random>

#include "fz/error.h"
#include "fz/presets.h"
#include "support/stage_case.h"
#include "trust/combinations.h"
#include "trust/families.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

/// One family through one preset; the counts are in thousandths of the input.
template <class T>
void measure(const Preset& preset, const Family<T>& family, const char* mode, Report& report) {
  constexpr std::size_t kValues = 50'000;
  const std::vector<T> values = makeFamily(family, kValues, 1e-3, 11);
  const std::size_t n_bytes = values.size() * sizeof(T);
  Combination c;
  c.name = std::string(preset.name) + ", " + family.name + ", " + mode;
  c.toml = preset.toml;
  c.overrides.input_type = sizeof(T) == 4 ? DataType::FLOAT32 : DataType::FLOAT64;
  c.overrides.params = {{"error_bound", "1e-3"}, {"error_bound_mode", mode}};
  report.add("cases");
  try {
    Pipeline pipeline;
    pipeline.setThreads(1);
    load(pipeline, c, Backend::CPU);
    const std::size_t most = pipeline.getMaxCompressedSize(n_bytes);
    const std::size_t n_frame = pipeline.compress(values.data(), n_bytes).n_bytes;
    report.check(n_frame <= most, c.name + ": larger than getMaxCompressedSize()");
    const std::string type = sizeof(T) == 4 ? " f32" : " f64";
    report.atLeast("largest frame, 1/1000 of input, " + std::string(preset.name) + type,
                   1000 * n_frame / n_bytes);
    report.atLeast("largest maximum, 1/1000 of input, " + std::string(preset.name) + type,
                   1000 * most / n_bytes);
  } catch (const Error& e) {
    report.add("refused");
    report.check(isRefusal(e.code()), c.name + ": " + e.what());
  } catch (const InvalidArgument&) {
    report.add("refused");
  }
}

const RegisterGoal kSizes("R13",
                          "no frame is larger than getMaxCompressedSize()",
                          [](const Settings& settings, Report& report) {
                            const auto presets = allPresets();
                            runInProcesses(
                                presets.size(), settings, report,
                                [&](std::uint64_t trial, Report& mine) {
                                  for (const char* mode : {"ABS", "REL", "NOA"}) {
                                    for (std::size_t f = 0; f < familyCount(); ++f) {
                                      measure(presets[trial], families<float>()[f], mode, mine);
                                      measure(presets[trial], families<double>()[f], mode, mine);
                                    }
                                  }
                                },
                                120);
                          });

}  // namespace
}  // namespace fz::trust
