#include "warnings.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "fzm_format.h"
#include "shared/byte_io.h"

namespace fz::cli {

namespace {

constexpr std::size_t kSampleValues = 4096;

/// Of the finite values that are not 0, from a sample; nothing when there are none.
template <class T>
std::optional<double> medianMagnitude(ByteView bytes) {
  const T* values = reinterpret_cast<const T*>(bytes.data());
  const std::size_t n = bytes.size() / sizeof(T);
  const std::size_t stride = std::max<std::size_t>(1, n / kSampleValues);
  std::vector<double> sample;
  for (std::size_t i = 0; i < n; i += stride) {
    if (std::isfinite(values[i]) && values[i] != T{0}) {
      sample.push_back(std::fabs(static_cast<double>(values[i])));
    }
  }
  if (sample.empty()) {
    return std::nullopt;
  }
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end());
  return *middle;
}

std::optional<std::string> aboutType(const Field& field) {
  const std::optional<DataType> named = typeFromName(field.name);
  if (!named || *named == field.type) {
    return std::nullopt;
  }
  return fmt::format("its name says {}, but it was read as {} (-t)", shortName(*named),
                     shortName(field.type));
}

std::optional<std::string> aboutContent(const Field& field) {
  if (field.bytes.size() < 4 || loadLe<std::uint32_t>(field.bytes.data()) != FZM_MAGIC) {
    return std::nullopt;
  }
  return "it begins like an fz archive, and was compressed as if it were an array";
}

std::optional<std::string> aboutBound(const Field& field, const FrameInfo& info) {
  const std::optional<double> median = field.type == DataType::FLOAT64
                                           ? medianMagnitude<double>(field.bytes)
                                           : medianMagnitude<float>(field.bytes);
  if (!info.bound || !median || info.bound->absolute <= *median) {
    return std::nullopt;
  }
  return fmt::format(
      "the bound {:.4g} is above half of the values (median |x| {:.4g}), which may all decode to "
      "0; {}",
      info.bound->absolute, *median,
      info.bound->mode == ErrorBoundMode::NOA
          ? "if fill values stretch the range, use -b abs or --set value_base=RANGE"
          : "is it in the unit of the data?");
}

std::optional<std::string> aboutSize(const FrameInfo& info) {
  if (info.original_bytes == 0 || info.frameBytes() <= info.original_bytes) {
    return std::nullopt;
  }
  const std::string larger =
      fmt::format("the archive is larger than the data (ratio {:.2f})", info.ratio());
  if (info.payload_bytes <= info.original_bytes) {
    return fmt::format("{}: its header alone takes {} bytes", larger, info.header_bytes);
  }
  const bool is_pointwise = info.bound && info.bound->mode == ErrorBoundMode::REL;
  return fmt::format("{}; {}", larger,
                     is_pointwise ? "rel stores zeros and denormals as they are, so use -b abs or "
                                    "-b range for fields that are full of them"
                                  : "use a larger -b or another preset (-p pfpl)");
}

}  // namespace

std::vector<std::string> warningsFor(const Field& field, const FrameInfo& info) {
  std::vector<std::string> warnings;
  for (const std::optional<std::string>& text :
       {aboutType(field), aboutContent(field), aboutBound(field, info), aboutSize(info)}) {
    if (text) {
      warnings.push_back(*text);
    }
  }
  return warnings;
}

}  // namespace fz::cli
