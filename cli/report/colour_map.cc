#include "report/colour_map.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numbers>

namespace fz::report {

namespace {

/// Lightness and two colour axes of the Oklab space, in which distances are as they are seen.
using Lab = std::array<double, 3>;

constexpr std::size_t kSamples = 4096;

Lab fromPolar(double lightness, double chroma, double hue_degrees) {
  const double hue = hue_degrees * std::numbers::pi / 180.0;
  return {lightness, chroma * std::cos(hue), chroma * std::sin(hue)};
}

std::array<double, 3> toLinearRgb(const Lab& lab) {
  const double l = lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2];
  const double m = lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2];
  const double s = lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2];
  const double l3 = l * l * l;
  const double m3 = m * m * m;
  const double s3 = s * s * s;
  return {4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3,
          -1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3,
          -0.0041960863 * l3 - 0.7034186147 * m3 + 1.7076147010 * s3};
}

bool isShown(const std::array<double, 3>& linear) {
  return std::all_of(linear.begin(), linear.end(),
                     [](double part) { return part >= 0.0 && part <= 1.0; });
}

/// Less colourful until a screen can show it; lightness and hue stay.
Lab intoGamut(Lab lab) {
  for (int i = 0; i < 200 && !isShown(toLinearRgb(lab)); ++i) {
    lab[1] *= 0.98;
    lab[2] *= 0.98;
  }
  return lab;
}

Rgb toRgb(const Lab& lab) {
  Rgb rgb{};
  const std::array<double, 3> linear = toLinearRgb(lab);
  for (std::size_t i = 0; i < 3; ++i) {
    const double part = std::clamp(linear[i], 0.0, 1.0);
    const double coded =
        part <= 0.0031308 ? 12.92 * part : 1.055 * std::pow(part, 1.0 / 2.4) - 0.055;
    rgb[i] = static_cast<std::uint8_t>(std::lround(255.0 * coded));
  }
  return rgb;
}

/// `n` colours at equal distances along the path t = 0..1.
std::vector<Rgb> alongPath(const std::function<Lab(double)>& path, std::size_t n) {
  std::vector<Lab> points(kSamples);
  std::vector<double> length(kSamples, 0.0);
  for (std::size_t i = 0; i < kSamples; ++i) {
    points[i] = intoGamut(path(static_cast<double>(i) / (kSamples - 1)));
    if (i > 0) {
      const Lab& a = points[i - 1];
      const Lab& b = points[i];
      length[i] = length[i - 1] + std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    }
  }
  std::vector<Rgb> colours;
  for (std::size_t i = 0; i < n; ++i) {
    const double wanted = length.back() * static_cast<double>(i) / static_cast<double>(n - 1);
    const auto found = std::lower_bound(length.begin(), length.end(), wanted) - length.begin();
    colours.push_back(toRgb(points[std::min(static_cast<std::size_t>(found), kSamples - 1)]));
  }
  return colours;
}

Lab sequentialPath(double t) {
  const double chroma = 0.085 + 0.075 * std::sin(std::numbers::pi * std::min(1.0, 0.15 + t));
  return fromPolar(0.20 + 0.74 * t, chroma + 0.03 * t, 292.0 - 190.0 * t);
}

Lab divergingSide(double t, double hue_degrees) {
  return fromPolar(0.965 - 0.585 * t, 0.175 * std::pow(t, 0.85), hue_degrees);
}

std::vector<Rgb> makeDiverging() {
  constexpr std::size_t kSide = kMapColours / 2 + 1;
  const auto blue = alongPath([](double t) { return divergingSide(t, 255.0); }, kSide);
  const auto red = alongPath([](double t) { return divergingSide(t, 32.0); }, kSide);
  std::vector<Rgb> map(blue.rbegin(), blue.rend());
  map.insert(map.end(), red.begin() + 1, red.end());
  return map;
}

}  // namespace

const std::vector<Rgb>& sequentialMap() {
  static const std::vector<Rgb> kMap = alongPath(sequentialPath, kMapColours);
  return kMap;
}

const std::vector<Rgb>& divergingMap() {
  static const std::vector<Rgb> kMap = makeDiverging();
  return kMap;
}

std::string hexColour(const Rgb& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2]);
}

}  // namespace fz::report
