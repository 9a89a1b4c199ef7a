// R13: no frame is larger than its data and the shortest header, getMaxCompressedSize() is never
// exceeded and is reached, a lossless frame takes the place of a larger one only, and frames that
// save half of their data are what the stages make.
#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fzm_format.h"
#include "trust/combinations.h"
#include "trust/families.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr const char* kModes[] = {"ABS", "REL", "NOA"};
constexpr std::size_t kSizes[] = {0, 1, 10, 63, 64, 65, 150, 500, 2'000, 5'000, 50'000};

/// input + 0.4 % + 512 bytes, and for fields below 20,000 bytes at most the shortest header, which
/// has 592.
std::size_t allowedBytes(std::size_t n_bytes) {
  return n_bytes + std::max(kStoredFrameBytes, 512 + n_bytes / 250);
}

Bytes frameOf(Pipeline& pipeline, const void* values, std::size_t n_bytes) {
  const CompressedView view = pipeline.compress(values, n_bytes);
  const auto* bytes = static_cast<const std::uint8_t*>(view.data);
  return {bytes, bytes + view.n_bytes};
}

/// A lossless frame gives the same bits, and says what they are.
template <class T>
void checkFallback(const Bytes& frame,
                   const FrameInfo& asked,
                   const std::vector<T>& values,
                   const std::string& where,
                   Report& report) {
  const FrameInfo info = inspect(frame);
  report.check(info.lossless && info.type == asked.type && info.dims == asked.dims &&
                   info.ndim == asked.ndim && info.original_bytes == values.size() * sizeof(T),
               where + ": the lossless frame tells another type or shape");
  const bool same_bound = info.bound.has_value() == asked.bound.has_value() &&
                          (!info.bound || (info.bound->mode == asked.bound->mode &&
                                           info.bound->requested == asked.bound->requested &&
                                           info.bound->absolute == asked.bound->absolute));
  report.check(same_bound, where + ": the lossless frame tells another bound");
  const Array back = decompress(frame, {.backend = Backend::CPU, .threads = 1});
  const ByteView bytes = back.bytes();
  report.check(bytes.size() == values.size() * sizeof(T) &&
                   (values.empty() || std::memcmp(bytes.data(), values.data(), bytes.size()) == 0),
               where + ": the lossless frame decodes to other bits");
}

/// One field through one preset, with and without the fallback.
template <class T>
void measure(Pipeline& pipeline,
             const std::vector<T>& values,
             const std::string& preset,
             const std::string& where,
             Report& report) {
  const std::size_t n_bytes = values.size() * sizeof(T);
  report.add("cases");
  pipeline.setLosslessFallback(false);
  const Bytes plain = frameOf(pipeline, values.data(), n_bytes);
  const std::size_t most_plain = pipeline.getMaxCompressedSize(n_bytes);
  report.check(plain.size() <= most_plain, where + ": larger than getMaxCompressedSize()");
  pipeline.setLosslessFallback(true);
  const std::size_t most = pipeline.getMaxCompressedSize(n_bytes);
  const Bytes frame = frameOf(pipeline, values.data(), n_bytes);
  report.check(most == std::min(most_plain, n_bytes + kStoredFrameBytes),
               where + ": getMaxCompressedSize() is " + std::to_string(most));
  report.check(frame.size() <= most, where + ": " + std::to_string(frame.size()) +
                                         " bytes, at most " + std::to_string(most) +
                                         " were promised");
  report.check(most <= allowedBytes(n_bytes), where + ": the promise allows too much");
  report.add(frame.size() == most ? "frames of exactly the maximum" : "frames below the maximum");
  const bool grew = plain.size() > n_bytes + kStoredFrameBytes;
  const bool is_fallback = pipeline.isLastFrameFallback();
  report.check(is_fallback || !grew, where + ": larger than its data");
  report.check(!is_fallback || savesLittle(plain.size(), n_bytes),
               where + ": stored for no reason");
  if (is_fallback) {
    report.add(grew ? "lossless instead of larger than the data" : "lossless instead of larger");
    report.check(frame.size() < plain.size(), where + ": lossless, and not smaller");
    checkFallback(frame, inspect(plain), values, where, report);
  } else {
    report.check(frame == plain, where + ": no fallback, but other bytes");
  }
  if (values.size() == kSizes[std::size(kSizes) - 1]) {
    const std::string name = preset + (sizeof(T) == 4 ? " f32" : " f64");
    report.atLeast("largest without fallback, 1/1000 of input, " + name,
                   1000 * plain.size() / n_bytes);
    report.atLeast("largest, 1/1000 of input, " + name, 1000 * frame.size() / n_bytes);
  }
}

/// All families and sizes through one preset and mode.
template <class T>
void measureAll(const Preset& preset, const char* mode, Report& report) {
  CompressOptions options;
  options.preset = preset.name;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.params = {{"error_bound", "1e-3"}, {"error_bound_mode", mode}};
  const DataType type = sizeof(T) == 4 ? DataType::FLOAT32 : DataType::FLOAT64;
  std::optional<Pipeline> pipeline;
  try {
    configure(pipeline.emplace(), type, options);
  } catch (const std::exception&) {
    return report.add("presets that do not take the mode");
  }
  for (const Family<T>& family : families<T>()) {
    const std::vector<T> all = makeFamily(family, kSizes[std::size(kSizes) - 1], 1e-3, 11);
    for (const std::size_t n_values : kSizes) {
      const std::vector<T> values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n_values));
      const std::string where = std::string(preset.name) + ", " + family.name + ", " + mode + ", " +
                                std::to_string(n_values) + (sizeof(T) == 4 ? " f32" : " f64");
      try {
        measure(*pipeline, values, std::string(preset.name), where, report);
      } catch (const Error& e) {
        report.add("refused");
        report.check(isRefusal(e.code()), where + ": " + e.what());
      }
    }
  }
}

/// The entry points agree with each other, in two and three dimensions too.
void checkEntryPoints(const Preset& preset, Report& report) {
  std::mt19937_64 rng(5);
  for (const std::array<std::size_t, 3>& dims :
       {std::array<std::size_t, 3>{7, 5, 3}, {40, 30, 1}, {33, 17, 11}}) {
    std::vector<float> values(dims[0] * dims[1] * dims[2]);
    for (float& v : values) {
      v = static_cast<float>(rng() % 1000);
    }
    CompressOptions options;
    options.preset = preset.name;
    options.backend = Backend::CPU;
    options.threads = 1;
    options.dims = dims;
    options.error_bound = 1e-6;
    const std::string where = std::string(preset.name) + ", " + std::to_string(dims[0]) + " wide";
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * 4);
    try {
      const Frame frame = compress(DataType::FLOAT32, bytes, options);
      const std::size_t most = compressBound(DataType::FLOAT32, bytes.size(), options);
      report.check(frame.size() <= most && most <= bytes.size() + kStoredFrameBytes,
                   where + ": larger than compressBound()");
      const FrameInfo info = inspect(frame);
      report.check(info.dims == dims && info.type == DataType::FLOAT32,
                   where + ": another shape or type");
      options.lossless_fallback = false;
      const Frame plain = compress(DataType::FLOAT32, bytes, options);
      report.check(plain.size() <= compressBound(DataType::FLOAT32, bytes.size(), options),
                   where + ": larger than compressBound() without the fallback");
      if (info.isFallback()) {
        checkFallback(Bytes(frame.bytes().begin(), frame.bytes().end()), inspect(plain), values,
                      where, report);
      }
      report.add("shapes");
    } catch (const Error& e) {
      report.add("refused");
      report.check(isRefusal(e.code()), where + ": " + e.what());
    }
  }
}

const RegisterGoal kSizesGoal(
    "R13",
    "no frame exceeds its data by more than 592 bytes, nor getMaxCompressedSize()",
    [](const Settings& settings, Report& report) {
      const auto presets = allPresets();
      constexpr int kSeconds = 120;
      runInProcesses(
          std::size(kModes) * presets.size(), settings, report,
          [&](std::uint64_t trial, Report& mine) {
            const Preset& preset = presets[trial / std::size(kModes)];
            const char* const mode = kModes[trial % std::size(kModes)];
            measureAll<float>(preset, mode, mine);
            measureAll<double>(preset, mode, mine);
            if (trial % std::size(kModes) == 0) {
              checkEntryPoints(preset, mine);
            }
          },
          kSeconds);
      report.check(report.counts().count("frames of exactly the maximum") != 0,
                   "the maximum is never reached, so it is not exact");
    });

}  // namespace
}  // namespace fz::trust
