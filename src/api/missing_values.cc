#include "api/missing_values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/missing.h"
#include "core/require.h"
#include "fz/params.h"
#include "fz/stage_descriptor.h"
#include "shared/field_sample.h"
#include "shared/fp.h"

namespace fz {

namespace {

constexpr std::string_view kMask = "Mask";
constexpr std::string_view kSkip = "skip";
using field_sample::kWordValues;

/// Values of a caller, who need not have aligned them.
template <class T>
class Words {
 public:
  Words(ByteView values, std::span<const double> fill) : values_(values) {
    for (const double value : fill) {
      addFill(value, fill_);
    }
  }
  std::size_t count() const { return (size() + kWordValues - 1) / kWordValues; }
  bool isAligned() const {
    return reinterpret_cast<std::uintptr_t>(values_.data()) % alignof(T) == 0;
  }
  /// Precondition: isAligned().
  bool hasAnyMissing() const {
    return anyMissing(std::span<const T>(reinterpret_cast<const T*>(values_.data()), size()),
                      std::span<const T>(fill_));
  }
  bool hasMissing(std::size_t word) const {
    T copied[kWordValues];
    const std::size_t n = std::min(kWordValues, size() - word * kWordValues);
    std::memcpy(copied, values_.data() + word * kWordValues * sizeof(T), n * sizeof(T));
    std::uint64_t missing = 0;
    return findMissing(copied, n, fill_, &missing);
  }
  ValidRange range() const {
    if (isAligned()) {
      return rangeOfValid({reinterpret_cast<const T*>(values_.data()), size()}, fill_);
    }
    std::vector<T> copied(size());
    std::memcpy(copied.data(), values_.data(), size() * sizeof(T));
    return rangeOfValid(copied, fill_);
  }

 private:
  std::size_t size() const { return values_.size() / sizeof(T); }

  ByteView values_;
  std::vector<T> fill_;
};

/// f(words) for the values of a field; nothing for other types than float and double.
template <class F>
void withWords(DataType type, ByteView values, std::span<const double> fill, F f) {
  if (type == DataType::FLOAT32) {
    f(Words<float>(values, fill));
  } else if (type == DataType::FLOAT64) {
    f(Words<double>(values, fill));
  }
}

bool hasMissingIn(DataType type, ByteView values, std::span<const double> fill, bool all) {
  bool found = false;
  withWords(type, values, fill, [&](const auto& words) {
    if (all && words.isAligned()) {
      found = words.hasAnyMissing();
      return;
    }
    const std::size_t n =
        all ? words.count() : static_cast<std::size_t>(field_sample::count(words.count()));
    for (std::size_t i = 0; i < n && !found; ++i) {
      found = words.hasMissing(
          all ? i : static_cast<std::size_t>(field_sample::word(i, words.count())));
    }
  });
  return found;
}

const DAGNode* onlySource(Pipeline& pipeline) {
  const DAGNode* source = nullptr;
  for (const auto& node : pipeline.getDAG()->getNodes()) {
    if (node->dependencies.empty()) {
      if (source != nullptr) {
        return nullptr;
      }
      source = node.get();
    }
  }
  return source;
}

/// The tiles of the first stage behind the field that sees more than one value.
std::array<std::size_t, 3> tileOf(const Pipeline& pipeline) {
  constexpr std::array<std::size_t, 3> kOne = {1, 1, 1};
  for (Stage* stage : pipeline.getStages()) {
    stage->setPipelineDims(pipeline.getDims());
    const std::array<std::size_t, 3> tile = stage->localTile();
    if (tile != kOne) {
      return tile;
    }
  }
  return {};
}

/// Whether a stage can be told to take no notice of NaN.
bool canSkipMissing(const Stage& stage) {
  const Param* const param = stage.paramTable().find("missing");
  return param != nullptr &&
         std::find(param->choices.begin(), param->choices.end(), kSkip) != param->choices.end();
}

std::string tileText(const std::array<std::size_t, 3>& tile) {
  return tile[0] == 0 ? std::string() : fmt::format("{}x{}x{}", tile[0], tile[1], tile[2]);
}

}  // namespace

MissingWatch::MissingWatch(DataType type, std::span<const double> fill) : type_(type) {
  for (const double value : fill) {
    addFill(value, fill_f32_);
    addFill(value, fill_f64_);
  }
  // Two declarations of one value, as many files have them, take the time of one.
  const auto dropRepeats = [](auto& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  };
  dropRepeats(fill_f32_);
  dropRepeats(fill_f64_);
}

bool MissingWatch::isThereIn(ByteView part) const noexcept {
  const auto has_missing = [&]<class T>(const std::vector<T>& fill) {
    return anyMissing(
        std::span<const T>(reinterpret_cast<const T*>(part.data()), part.size() / sizeof(T)),
        std::span<const T>(fill));
  };
  return type_ == DataType::FLOAT32 ? has_missing(fill_f32_) : has_missing(fill_f64_);
}

void requireFewFills(std::span<const double> fill) {
  const auto n_finite = static_cast<std::size_t>(
      std::count_if(fill.begin(), fill.end(), [](double value) { return fp::isFinite(value); }));
  FZ_REQUIRE_ARG(n_finite <= kMaxFillValues, "at most {} fill values can be declared, not {}",
                 kMaxFillValues, n_finite);
}

bool hasMissing(DataType type, ByteView values, std::span<const double> fill) {
  requireFewFills(fill);
  return hasMissingIn(type, values, fill, !fill.empty());
}

bool hasMissingInSample(DataType type, ByteView values, std::span<const double> fill) {
  requireFewFills(fill);
  return hasMissingIn(type, values, fill, false);
}

bool hasAnyMissing(DataType type, ByteView values, std::span<const double> fill) {
  return hasMissingIn(type, values, fill, true);
}

bool canBeMasked(Pipeline& pipeline, DataType type) {
  const DAGNode* const source = onlySource(pipeline);
  const auto stages = pipeline.getStages();
  return source != nullptr && source->stage->getName() != kMask &&
         static_cast<DataType>(source->stage->getInputDataType(0)) == type &&
         std::any_of(stages.begin(), stages.end(), [](const Stage* stage) {
           return stage->paramTable().find("error_bound") != nullptr;
         });
}

MaskSettings maskSettingsFor(Pipeline& pipeline,
                             DataType type,
                             ByteView values,
                             std::span<const double> fill) {
  return maskSettingsFor(pipeline, [&] {
    ValidRange range;
    withWords(type, values, fill, [&](const auto& words) { range = words.range(); });
    return range;
  });
}

MaskSettings maskSettingsFor(Pipeline& pipeline, const std::function<ValidRange()>& range_of) {
  const Stage& first = *onlySource(pipeline)->stage;
  if (canSkipMissing(first)) {
    return {};
  }
  MaskSettings settings = {.hold = tileOf(pipeline)};
  const Param* const base = first.paramTable().find("value_base");
  const Param* const mode = first.paramTable().find("error_bound_mode");
  const bool is_relative =
      mode != nullptr && std::get<std::string>(mode->get(first)) ==
                             std::string(errorBoundModeName(ErrorBoundMode::NOA));
  const bool is_open = base != nullptr && std::get<double>(base->get(first)) == 0.0;
  if (is_relative && is_open) {
    // Zeros must not be part of the range, and a stage that need not look for it can work on tiles
    // from the Mask.
    const ValidRange range = range_of();
    if (range.low < range.high) {
      settings.value_base =
          std::min(fp::sub(range.high, range.low), std::numeric_limits<double>::max());
    } else {
      settings.hold = {};
    }
  }
  return settings;
}

void addMask(Pipeline& pipeline,
             DataType type,
             std::span<const double> fill,
             const MaskSettings& settings) {
  Stage* const first = onlySource(pipeline)->stage;
  const StageDescriptor* const descriptor = findStage(kMask);
  FZ_ASSERT(descriptor != nullptr);
  std::string text;
  for (const double value : fill) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", value);
  }
  if (settings.value_base > 0.0) {
    setParam(*first, "value_base", settings.value_base);
  }
  Stage* const mask = pipeline.addStage(descriptor->make(std::vector<DataType>{type}), "mask");
  setParam(*mask, "fill", text);
  if (canSkipMissing(*first)) {
    setParam(*first, "missing", std::string(kSkip));
    setParam(*mask, "hold", std::string("nan"));
  } else {
    setParam(*mask, "hold", tileText(settings.hold));
  }
  pipeline.connect(first, mask, "output");
}

}  // namespace fz
