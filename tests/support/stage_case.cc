#include "support/stage_case.h"

#include <algorithm>
#include <cstring>

#include "support/stage_run.h"

namespace fz::test {

namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::uint8_t kGuard = 0xA5;

std::vector<StageCase>& cases() {
  static std::vector<StageCase> all;
  return all;
}

const StageDescriptor& descriptorOf(const StageCase& stage_case) {
  const StageDescriptor* found = findStage(std::string_view(stage_case.stage));
  if (found == nullptr) {
    throw std::logic_error("no stage named " + stage_case.stage);
  }
  return *found;
}

/// Buffer with a guard behind it, so that a stage that writes too far is caught.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t n_bytes, std::uint8_t poison)
      : n_bytes_(n_bytes), bytes_(n_bytes + kGuardBytes, poison) {
    std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(n_bytes), bytes_.end(), kGuard);
  }
  void* data() { return n_bytes_ == 0 ? nullptr : bytes_.data(); }
  std::size_t size() const { return n_bytes_; }
  Bytes take(std::size_t n_used) const {
    return {bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(n_used)};
  }
  bool isIntact() const {
    return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(n_bytes_), bytes_.end(),
                       [](std::uint8_t b) { return b == kGuard; });
  }

 private:
  std::size_t n_bytes_;
  Bytes bytes_;
};

template <class T, class F>
Bytes generate(std::size_t n, F f) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>(f(i));
  }
  return toBytes(values);
}

template <class F>
Bytes generateFor(DataType type, std::size_t n, F f) {
  switch (getDataTypeSize(type)) {
    case 1:
      return generate<std::uint8_t>(n, f);
    case 2:
      return generate<std::uint16_t>(n, f);
    case 4:
      return generate<std::uint32_t>(n, f);
    default:
      return generate<std::uint64_t>(n, f);
  }
}

}  // namespace

int registerStageCase(StageCase stage_case) {
  cases().push_back(std::move(stage_case));
  return 0;
}

const std::vector<StageCase>& stageCases() {
  return cases();
}

std::string StageSetup::text() const {
  std::string text = stage_case->stage + "<";
  for (const DataType type : types) {
    text += std::string(text.back() == '<' ? "" : ",") + std::string(dataTypeToString(type));
  }
  return text + "> " + config->label;
}

DataType StageSetup::inputType() const {
  if (stage_case->input_type) {
    return stage_case->input_type(types);
  }
  return types.empty() ? DataType::UINT8 : types[0];
}

std::unique_ptr<Stage> StageSetup::makeStage(std::size_t n_values) const {
  std::unique_ptr<Stage> stage = descriptorOf(*stage_case).make(types);
  for (const auto& [key, value] : config->params) {
    setParam(*stage, key, value);
  }
  if (config->dims) {
    stage->setDims(config->dims(n_values));
  }
  return stage;
}

std::vector<StageSetup> allSetups() {
  std::vector<StageSetup> setups;
  for (const StageCase& stage_case : cases()) {
    const StageDescriptor& descriptor = descriptorOf(stage_case);
    std::vector<std::vector<DataType>> combinations = descriptor.type_combinations;
    if (combinations.empty()) {
      combinations.emplace_back();
    }
    for (const auto& types : combinations) {
      for (const StageConfig& config : stage_case.configs) {
        if (!config.applies || config.applies(types)) {
          setups.push_back({&stage_case, types, &config});
        }
      }
    }
  }
  return setups;
}

std::vector<StageSetup> setupsOf(const std::string& stage) {
  std::vector<StageSetup> setups = allSetups();
  std::erase_if(setups, [&](const StageSetup& s) { return s.stage_case->stage != stage; });
  return setups;
}

std::vector<std::string> stageNames() {
  std::vector<std::string> names;
  for (const StageCase& stage_case : cases()) {
    if (std::find(names.begin(), names.end(), stage_case.stage) == names.end()) {
      names.push_back(stage_case.stage);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::size_t> conformanceSizes(const StageCase& stage_case) {
  const std::size_t tile = stage_case.tile_values;
  std::vector<std::size_t> sizes = {0, 1, 2, 31, 257, tile - 1, tile, tile + 1, 3 * tile + 7};
  sizes.insert(sizes.end(), stage_case.extra_sizes.begin(), stage_case.extra_sizes.end());
  sizes.push_back(stage_case.large_values);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Encoded encode(Stage& stage, ByteView input, const ExecContext* context, std::uint8_t poison) {
  return runEncoder<GuardedBuffer>(
      stage, {{const_cast<std::uint8_t*>(input.data())}, {input.size()}, context, nullptr}, poison);
}

Bytes decode(std::uint16_t stage_id, const Encoded& encoded, const ExecContext* context) {
  const std::unique_ptr<Stage> stage =
      makeStage(stage_id, encoded.config.data(), encoded.config.size(), encoded.version);
  StageInputs inputs{{}, {}, context, nullptr};
  std::vector<std::vector<std::uint64_t>> aligned;  // streams arrive aligned, as in a pipeline
  for (const Bytes& stream : encoded.streams) {
    aligned.emplace_back(stream.size() / 8 + 1);
    std::copy(stream.begin(), stream.end(), reinterpret_cast<std::uint8_t*>(aligned.back().data()));
    inputs.data.push_back(stream.empty() ? nullptr : aligned.back().data());
    inputs.n_bytes.push_back(stream.size());
  }
  return runDecoder<GuardedBuffer>(*stage, inputs);
}

InputCase zeros() {
  return {"zeros", [](DataType type, std::size_t n, std::mt19937_64& /*rng*/) {
            return generateFor(type, n, [](std::size_t) { return 0; });
          }};
}
InputCase ramp() {
  return {"ramp", [](DataType type, std::size_t n, std::mt19937_64& /*rng*/) {
            return generateFor(type, n, [](std::size_t i) { return i; });
          }};
}
InputCase constant() {
  return {"constant", [](DataType type, std::size_t n, std::mt19937_64& /*rng*/) {
            return generateFor(type, n, [](std::size_t) { return 5; });
          }};
}
InputCase smallNoise() {
  return {"small noise", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            return generateFor(
                type, n, [&](std::size_t) { return static_cast<std::int64_t>(rng() % 15) - 7; });
          }};
}
InputCase fullNoise() {
  return {"full noise", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            return generateFor(type, n, [&](std::size_t) { return rng(); });
          }};
}
InputCase sparse() {
  return {"sparse", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            return generateFor(type, n, [&](std::size_t) {
              const std::uint64_t r = rng();
              return r % 50 == 0 ? r >> 8 : 0;
            });
          }};
}
InputCase extremes() {
  return {"extremes", [](DataType type, std::size_t n, std::mt19937_64& /*rng*/) {
            const std::size_t n_bits = 8 * getDataTypeSize(type);
            return generateFor(type, n, [&](std::size_t i) -> std::uint64_t {
              const std::uint64_t top = std::uint64_t{1} << (n_bits - 1);
              const std::uint64_t values[] = {top, top - 1, 0, ~std::uint64_t{0}, 1};
              return values[i % 5];
            });
          }};
}

}  // namespace fz::test
