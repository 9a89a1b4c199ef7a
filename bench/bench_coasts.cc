// Fields with coastlines.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench_common.h"

namespace fz::bench {

namespace {

constexpr double kMissingShare = 0.35;
constexpr std::size_t kWaves = 48;
constexpr double kTwoPi = 6.283185307179586;

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

}  // namespace

CoastFields makeCoasts(std::size_t n_bytes) {
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
  CoastFields fields{{edge, edge, 1}, makeField(DataType::FLOAT32, {edge, edge, 1}), {}};
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

}  // namespace fz::bench
