// Found by trying, so that no stage has to say it twice: a setting is recorded when another value
// of it makes another config.
#include "fz/recorded_params.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "format/frame_header.h"
#include "fz/error.h"
#include "fzm_format.h"
#include "pipeline/compressor.h"
#include "stage/stage.h"
#include "stage/stage_factory.h"

namespace fz {

namespace {

/// Values that a setting could have instead; some of them may be out of its range.
std::vector<ParamValue> otherValues(const Param& param) {
  std::vector<ParamValue> values;
  switch (param.kind) {
    case ParamKind::kBool:
      return {true, false};
    case ParamKind::kChoice:
      for (const std::string_view choice : param.choices) {
        values.emplace_back(std::string(choice));
      }
      return values;
    case ParamKind::kText:
      values.emplace_back(param.default_value);
      for (const std::string_view example : param.examples) {
        values.emplace_back(std::string(example));
      }
      return values;
    case ParamKind::kReal:
      return {0.25, 0.5, 2.0};
    case ParamKind::kInt:
      break;
  }
  for (const std::string_view choice : param.choices) {
    std::int64_t value = 0;
    std::from_chars(choice.data(), choice.data() + choice.size(), value);
    values.emplace_back(value);
  }
  for (std::int64_t value = 1; value <= 4096; value *= 2) {
    values.emplace_back(value);
  }
  return values;
}

bool set(Stage& stage, std::string_view key, const ParamValue& value) {
  try {
    setParam(stage, key, value);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

/// What a stage that is made from a frame has as this setting; nothing for settings that exclude
/// each other. What a frame holds may depend on a run, so there is one.
std::optional<ParamValue> restored(std::unique_ptr<Stage> stage, std::string_view key) {
  static constexpr std::array<std::uint8_t, 1024> kZeros = {};  // values of any type
  try {
    Pipeline pipeline;
    pipeline.setBackend(Backend::CPU);
    pipeline.setThreads(1);
    pipeline.addStage(std::move(stage));
    pipeline.finalize();
    const CompressedView frame = pipeline.compress(kZeros.data(), kZeros.size());
    const FrameHeader header =
        readHeader({static_cast<const std::uint8_t*>(frame.data), frame.n_bytes}, frame.n_bytes);
    const FZMStageInfo& record = header.stages.front();
    return getParam(*makeStage(record.stage_type, record.stage_config.data(), record.config_size,
                               record.stage_version),
                    key);
  } catch (const Error&) {
    return std::nullopt;
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

/// `switched` is another setting that is turned over first: a setting may matter in one mode only.
bool comesBack(const StageDescriptor& descriptor, const Param& param, const Param* switched) {
  std::optional<ParamValue> first;
  for (const ParamValue& value : otherValues(param)) {
    auto stage = descriptor.make(defaultTypes(descriptor));
    if (switched != nullptr &&
        !set(*stage, switched->key, !std::get<bool>(switched->get(*stage)))) {
      return false;
    }
    if (!set(*stage, param.key, value)) {
      continue;
    }
    const std::optional<ParamValue> now = restored(std::move(stage), param.key);
    if (first && now && *first != *now) {
      return true;
    }
    if (!first) {
      first = now;
    }
  }
  return false;
}

bool findOut(const StageDescriptor& descriptor, const Param& param) {
  if (comesBack(descriptor, param, nullptr)) {
    return true;
  }
  const std::vector<Param>& rows = descriptor.params().rows();
  return std::any_of(rows.begin(), rows.end(), [&](const Param& other) {
    return other.kind == ParamKind::kBool && other.key != param.key &&
           comesBack(descriptor, param, &other);
  });
}

}  // namespace

bool isRecorded(const StageDescriptor& descriptor, std::string_view key) {
  static std::mutex mutex;
  static std::map<std::pair<const StageDescriptor*, std::string>, bool> known;
  const Param* const param = descriptor.params().find(key);
  if (param == nullptr) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [at, is_new] = known.try_emplace({&descriptor, std::string(key)}, false);
  if (is_new) {
    at->second = findOut(descriptor, *param);
  }
  return at->second;
}

std::vector<std::pair<std::string, ParamValue>> recordedParams(const FrameStageInfo& stage) {
  const StageDescriptor* const descriptor = findStage(stage.id);
  std::vector<std::pair<std::string, ParamValue>> kept;
  std::copy_if(
      stage.params.begin(), stage.params.end(), std::back_inserter(kept),
      [&](const auto& row) { return descriptor != nullptr && isRecorded(*descriptor, row.first); });
  return kept;
}

}  // namespace fz
