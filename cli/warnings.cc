#include "warnings.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "failure.h"
#include "fz/byte_io.h"
#include "fzm_format.h"
#include "pipeline/fill_check.h"
#include "pipeline_options.h"

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

/// All finite values are one, and there is one.
template <class T>
bool isConstant(ByteView bytes) {
  const std::span values(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
  const auto is_finite = [](T x) { return std::isfinite(x); };
  const auto first = std::find_if(values.begin(), values.end(), is_finite);
  return first != values.end() &&
         std::all_of(first, values.end(), [&](T x) { return x == *first || !is_finite(x); });
}

/// max - min is 0, and the stages take E itself then.
bool hasNoRange(const Field& field, const FrameInfo& info) {
  constexpr double kSingleRounding = 1e-6;  // some stages round the bound to f32
  if (!info.bound || info.bound->mode != ErrorBoundMode::NOA ||
      std::fabs(info.bound->absolute - info.bound->requested) >
          kSingleRounding * info.bound->requested) {
    return false;
  }
  return field.type == DataType::FLOAT64 ? isConstant<double>(field.bytes)
                                         : isConstant<float>(field.bytes);
}

std::optional<std::string> aboutRange(bool has_no_range) {
  if (!has_no_range) {
    return std::nullopt;
  }
  return "the field is constant, so range:E means an absolute E; use abs: for another bound";
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

/// Bounds relative to the range are refused then; others keep the value within the bound.
std::optional<std::string> aboutFill(const Field& field, const FrameInfo& info) {
  if (!info.bound || info.lossless || info.bound->mode == ErrorBoundMode::NOA) {
    return std::nullopt;
  }
  const auto found = suspectedFill(field.type, field.bytes, fillOf(info), CpuExecutor::serial());
  if (!found) {
    return std::nullopt;
  }
  return fmt::format(
      "{}; it is kept within the bound, with --fill {} bit for bit (--fill none: it "
      "is data)",
      describeFill(*found), found->text);
}

std::optional<std::string> aboutBound(const Field& field,
                                      const FrameInfo& info,
                                      bool has_no_range) {
  const std::optional<double> median = field.type == DataType::FLOAT64
                                           ? medianMagnitude<double>(field.bytes)
                                           : medianMagnitude<float>(field.bytes);
  if (!info.bound || info.lossless || !median || info.bound->absolute <= *median) {
    return std::nullopt;
  }
  return fmt::format(
      "the bound {:.4g} is above half of the values (median |x| {:.4g}), which may all decode to "
      "0; {}",
      info.bound->absolute, *median,
      info.bound->mode == ErrorBoundMode::NOA && !has_no_range
          ? "if fill values stretch the range, use -b abs or --set value_base=N, N being the range "
            "of the other values"
          : "is it in the unit of the data?");
}

std::optional<std::string> aboutSize(const FrameInfo& info, std::string_view pipeline) {
  if (info.original_bytes == 0 || info.frameBytes() <= info.original_bytes) {
    return std::nullopt;
  }
  const std::string larger =
      fmt::format("the archive is larger than the data (ratio {:.2f})", info.ratio());
  // What was stored as it is did not suit the bound, unless it is too little for any pipeline.
  constexpr std::uint64_t kFewBytes = 8 * kStoredFrameBytes;
  const bool is_unsuited = info.isFallback() && info.original_bytes > kFewBytes;
  if (info.payload_bytes <= info.original_bytes && !is_unsuited) {
    return fmt::format("{}: its header alone takes {} bytes", larger, info.header_bytes);
  }
  const bool is_pointwise = info.bound && info.bound->mode == ErrorBoundMode::REL;
  return fmt::format(
      "{}; {}", larger,
      (pipeline == "pfpl" || isByPurpose(pipeline)) && !is_pointwise ? "use a larger -b"
      : is_pointwise ? "rel stores zeros and denormals as they are, so use -b abs or "
                       "-b range for fields that are full of them"
                     : "use a larger -b or another preset (-p pfpl)");
}

}  // namespace

FieldWarnings findWarnings(const Field& field,
                           const FrameInfo& info,
                           std::string_view pipeline,
                           bool suspects_fill) {
  FieldWarnings found;
  const bool has_no_range = hasNoRange(field, info);
  const auto add = [](std::vector<std::string>& list, const std::optional<std::string>& text) {
    if (text) {
      list.push_back(*text);
    }
  };
  add(found.of_doubt, aboutType(field));
  add(found.of_doubt, aboutContent(field));
  add(found.of_doubt, suspects_fill ? aboutFill(field, info) : std::nullopt);
  add(found.of_loss, aboutRange(has_no_range));
  add(found.of_loss, aboutBound(field, info, has_no_range));
  add(found.others, aboutSize(info, pipeline));
  return found;
}

void refuseLoss(const FieldWarnings& warnings) {
  for (const std::vector<std::string>* list : {&warnings.of_loss, &warnings.of_doubt}) {
    if (!list->empty()) {
      throw Failure(ExitCode::kBound, "--strict: " + list->front());
    }
  }
}

void printWarnings(const Field& field,
                   const FrameInfo& info,
                   std::string_view pipeline,
                   bool is_quiet,
                   bool suspects_fill) {
  const FieldWarnings found = findWarnings(field, info, pipeline, suspects_fill);
  const auto print = [&](const std::vector<std::string>& list) {
    for (const std::string& text : list) {
      printWarning(field.name, text);
    }
  };
  if (!is_quiet) {
    print(found.of_doubt);
  }
  print(found.of_loss);
  if (!is_quiet) {
    print(found.others);
  }
}

}  // namespace fz::cli
