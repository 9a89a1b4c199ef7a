// What missing values cost in whole calls: a field with coastlines of NaN beside the same field
// with its gaps filled, and what a field without any pays for the question.
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "bench_common.h"
#include "fz/host_api.h"
#include "fz/presets.h"

namespace fz::bench {

namespace {

constexpr double kMissingShare = 0.35;
constexpr double kNeverDeclared = -9999.0;  // in no field here
constexpr std::size_t kWaves = 48;
constexpr double kTwoPi = 6.283185307179586;

struct Fields {
  std::array<std::size_t, 3> dims;
  Bytes filled;
  Bytes missing;
};

/// A landscape of waves from a quarter of the field down to a few values long, whose higher parts
/// are land.
std::vector<float> makeHeights(std::size_t edge) {
  std::vector<float> heights(edge * edge, 0.0F);
  std::uint64_t state = 7;
  const auto uniform = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  };
  std::vector<float> cosines(edge);
  std::vector<float> sines(edge);
  for (std::size_t wave = 0; wave < kWaves; ++wave) {
    const double octave = 8.0 * static_cast<double>(wave) / static_cast<double>(kWaves);
    const double frequency = kTwoPi * 4.0 * std::exp2(octave) / static_cast<double>(edge);
    const auto amplitude = static_cast<float>(std::exp2(-1.2 * octave));
    const double angle = kTwoPi * uniform();
    const double phase = kTwoPi * uniform();
    for (std::size_t x = 0; x < edge; ++x) {
      const double at = frequency * std::cos(angle) * static_cast<double>(x) + phase;
      cosines[x] = static_cast<float>(std::cos(at));
      sines[x] = static_cast<float>(std::sin(at));
    }
    for (std::size_t y = 0; y < edge; ++y) {
      const double at = frequency * std::sin(angle) * static_cast<double>(y);
      const auto cosine = amplitude * static_cast<float>(std::cos(at));
      const auto sine = amplitude * static_cast<float>(std::sin(at));
      float* const row = heights.data() + y * edge;
      for (std::size_t x = 0; x < edge; ++x) {
        row[x] += cosine * sines[x] + sine * cosines[x];
      }
    }
  }
  return heights;
}

/// Noise is on the sea only: gaps are filled smoothly.
Fields makeFields(std::size_t n_bytes) {
  std::size_t edge = 64;
  while (4 * edge * edge * sizeof(float) <= n_bytes) {
    edge *= 2;
  }
  const std::vector<float> heights = makeHeights(edge);
  std::vector<float> sorted = heights;
  const auto place =
      static_cast<std::ptrdiff_t>((1.0 - kMissingShare) * static_cast<double>(sorted.size()));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  const float shore = sorted[static_cast<std::size_t>(place)];
  Fields fields{{edge, edge, 1}, makeField(DataType::FLOAT32, {edge, edge, 1}), {}};
  fields.missing = fields.filled;
  auto* const filled = reinterpret_cast<float*>(fields.filled.data());
  auto* const missing = reinterpret_cast<float*>(fields.missing.data());
  float sea = filled[0];
  for (std::size_t i = 0; i < heights.size(); ++i) {
    const bool is_land = heights[i] >= shore;
    sea = is_land ? sea : filled[i];
    filled[i] = is_land ? 0.9F * sea + 0.1F * heights[i] : filled[i];
    missing[i] = is_land ? std::numeric_limits<float>::quiet_NaN() : missing[i];
  }
  return fields;
}

template <class F>
double secondsOf(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Best times of calls that take turns, so that whatever else the machine does hits all alike.
class Rounds {
 public:
  template <class F>
  void run(std::size_t which, F f) {
    best_[which] = std::min(best_[which], secondsOf(f));
  }
  double milliseconds(std::size_t which) const { return 1e3 * best_[which]; }

 private:
  std::array<double, 4> best_ = {1e9, 1e9, 1e9, 1e9};
};

MissingRow measure(const std::string& preset,
                   const Fields& fields,
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
  Rounds compressing;
  Rounds decompressing;
  Rounds asking;
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
  const Fields fields = makeFields(options.n_bytes);
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
