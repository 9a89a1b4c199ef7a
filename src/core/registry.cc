#include <algorithm>
#include <cctype>
#include <mutex>
#include <vector>

#include "core/require.h"
#include "fz/stage_descriptor.h"
#include "fzm_format.h"
#include "stage/stage.h"
#include "stage/stage_factory.h"

namespace fz {

// Generated from modules/CMakeLists.txt.
std::span<const StageDescriptor* const> builtInStages();

namespace {

struct ExtraStages {
  std::mutex mutex;
  std::vector<const StageDescriptor*> stages;
};

ExtraStages& extraStages() {
  static ExtraStages extra;
  return extra;
}

bool equalsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

auto hasId(std::uint16_t id) {
  return [id](const StageDescriptor* stage) { return stage->id == id; };
}

auto isCalled(std::string_view name) {
  return [name](const StageDescriptor* stage) {
    return equalsIgnoringCase(stage->name, name) ||
           std::any_of(stage->aliases.begin(), stage->aliases.end(),
                       [name](std::string_view alias) { return equalsIgnoringCase(alias, name); });
  };
}

template <class Match>
const StageDescriptor* findAmong(std::span<const StageDescriptor* const> stages, Match match) {
  const auto found = std::find_if(stages.begin(), stages.end(), match);
  return found == stages.end() ? nullptr : *found;
}

template <class Match>
const StageDescriptor* findIf(Match match) {
  if (const StageDescriptor* stage = findAmong(allStages(), match)) {
    return stage;
  }
  ExtraStages& extra = extraStages();
  const std::lock_guard lock(extra.mutex);
  return findAmong(extra.stages, match);
}

}  // namespace

std::span<const StageDescriptor* const> allStages() {
  static const std::vector<const StageDescriptor*> kById = [] {
    const auto listed = builtInStages();
    std::vector<const StageDescriptor*> stages(listed.begin(), listed.end());
    std::sort(stages.begin(), stages.end(),
              [](const auto* a, const auto* b) { return a->id < b->id; });
    return stages;
  }();
  return kById;
}

const StageDescriptor* findStage(std::uint16_t id) {
  return findIf(hasId(id));
}

const StageDescriptor* findStage(std::string_view name) {
  return findIf(isCalled(name));
}

std::vector<DataType> defaultTypes(const StageDescriptor& descriptor) {
  std::vector<DataType> types;
  for (const TypeKey& key : descriptor.type_keys) {
    const bool as_first = key.default_type == DataType::UNKNOWN && !types.empty();
    types.push_back(as_first ? types.front() : key.default_type);
  }
  return types;
}

std::vector<std::string> defaultPorts(const StageDescriptor& descriptor) {
  const std::unique_ptr<Stage> stage = descriptor.make(defaultTypes(descriptor));
  FZ_ASSERT(stage != nullptr);
  return stage->getOutputNames();
}

void registerStage(const StageDescriptor& descriptor) {
  ExtraStages& extra = extraStages();
  // Held from the question on, so that of two threads with one id one is refused.
  const std::lock_guard lock(extra.mutex);
  const auto isTaken = [&](auto match) {
    return findAmong(allStages(), match) != nullptr || findAmong(extra.stages, match) != nullptr;
  };
  FZ_REQUIRE_ARG(!isTaken(hasId(descriptor.id)), "registerStage: id {} of '{}' is already in use",
                 descriptor.id, descriptor.name);
  FZ_REQUIRE_ARG(!isTaken(isCalled(descriptor.name)), "registerStage: name '{}' is already in use",
                 descriptor.name);
  extra.stages.push_back(&descriptor);
}

std::unique_ptr<Stage> makeStage(std::uint16_t type_id,
                                 const std::uint8_t* config,
                                 std::size_t config_bytes,
                                 std::uint16_t version) {
  const StageDescriptor* descriptor = findStage(type_id);
  FZ_REQUIRE(descriptor != nullptr, ErrorCode::kUnsupported, "archive: unknown stage type {}",
             type_id);
  const ByteView bytes(config, config_bytes);
  const StageTypes types = descriptor->types_from_config(bytes);
  std::unique_ptr<Stage> stage = descriptor->make(types);
  if (stage == nullptr) {
    std::string text;
    for (const DataType type : types) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", dataTypeToString(type));
    }
    detail::throwError(ErrorCode::kUnsupported,
                       fmt::format("{}: no instantiation for ({})", descriptor->name, text));
  }
  stage->setStageVersion(version);
  stage->deserializeHeader(config, config_bytes);
  return stage;
}

Stage* createStage(StageType type, const std::uint8_t* config, std::size_t config_bytes) {
  return makeStage(static_cast<std::uint16_t>(type), config, config_bytes).release();
}

std::string stageTypeToString(StageType type) {
  switch (type) {  // spellings that existing tools print and the registry does not have
    case StageType::BITPACK:
      return "BitPack";
    case StageType::SCALE:
      return "Scale";
    case StageType::PASSTHROUGH:
      return "PassThrough";
    case StageType::SPLIT:
      return "Split";
    case StageType::MERGE:
      return "Merge";
    default:
      break;
  }
  const StageDescriptor* stage = findStage(static_cast<std::uint16_t>(type));
  return stage == nullptr ? "Unknown" : std::string(stage->name);
}

}  // namespace fz
