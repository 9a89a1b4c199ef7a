#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fz/params.h"
#include "fz/span.h"
#include "fz/stage_descriptor.h"
#include "stage/stage.h"

/// What a stage supplies so that the conformance suites can do the rest.
namespace fz::test {

using Bytes = std::vector<std::uint8_t>;
using Dims = std::array<std::size_t, 3>;

/// One way to set the stage up.
struct StageConfig {
  std::string label;
  std::vector<std::pair<std::string, ParamValue>> params = {};
  /// Dims for n values; null means one dimension. Called with every size that is tested.
  std::function<Dims(std::size_t n_values)> dims = nullptr;
  /// Combinations of element types this config applies to; null means all.
  std::function<bool(const std::vector<DataType>& types)> applies = nullptr;
};

/// A family of inputs.
struct InputCase {
  std::string label;
  /// n_values values of the stage's input type (types[0] for most stages), as bytes.
  std::function<Bytes(DataType type, std::size_t n_values, std::mt19937_64& rng)> make;
  /// Configs this input is for; null means all. (A bit width that the values do not fit, say.)
  std::function<bool(const StageConfig& config, const std::vector<DataType>& types)> applies =
      nullptr;
};

struct StageCase {
  std::string stage;  ///< descriptor name
  /// The size at which the stage's layout changes; sizes around it are tested.
  std::size_t tile_values = 1024;
  std::vector<StageConfig> configs = {{"default"}};
  std::vector<InputCase> inputs;
  /// Checks decoded against original; null means bit-equal. `encoder` has just encoded.
  std::function<void(const Stage& encoder, ByteView original, ByteView decoded)> verify = nullptr;
  /// DataType of the forward input for a type combination; null means types[0]. Needed for
  /// byte-transparent stages without type keys (UINT8).
  std::function<DataType(const std::vector<DataType>& types)> input_type = nullptr;
  /// Further sizes, besides the common ones.
  std::vector<std::size_t> extra_sizes = {};
  /// Largest size of the "large" runs; keeps slow stages inside the time of a test run.
  std::size_t large_values = 100'003;
};

/// Called by FZ_STAGE_CASE.
int registerStageCase(StageCase stage_case);
const std::vector<StageCase>& stageCases();

/// Defines the case of a stage: FZ_STAGE_CASE(Rle, {.stage = "RLE", ...}).
#define FZ_STAGE_CASE(name, ...) \
  static const int kFzStageCase##name = ::fz::test::registerStageCase(__VA_ARGS__)

/// One combination of everything, small enough to name in a failure message.
struct StageSetup {
  const StageCase* stage_case;
  std::vector<DataType> types;
  const StageConfig* config;

  std::string text() const;
  DataType inputType() const;
  std::unique_ptr<Stage> makeStage(std::size_t n_values) const;
};

/// Every combination of case, types and config that applies.
std::vector<StageSetup> allSetups();
/// The same for one stage only.
std::vector<StageSetup> setupsOf(const std::string& stage);
/// Names of the stages that have a case, for suites with one test per stage.
std::vector<std::string> stageNames();
std::vector<std::size_t> conformanceSizes(const StageCase& stage_case);

/// What an encoder produced: the stored config and one stream per output port.
struct Encoded {
  Bytes config;
  std::uint16_t version = 1;
  std::vector<Bytes> streams;
  bool operator==(const Encoded&) const = default;
};

/// Encodes on the CPU with the given executor (null: one thread). Output buffers are poisoned with
/// `poison` and guarded; a write past a buffer's end fails the current test.
Encoded encode(Stage& stage,
               ByteView input,
               const ExecContext* context = nullptr,
               std::uint8_t poison = 0xCD);

/// Decodes with a stage made from the stored config alone. Throws what the stage throws.
Bytes decode(std::uint16_t stage_id, const Encoded& encoded, const ExecContext* context = nullptr);

// Input families that suit most integer stages.
InputCase zeros();
InputCase ramp();
InputCase constant();
InputCase smallNoise();  ///< magnitudes up to 7
InputCase fullNoise();   ///< every bit pattern
InputCase sparse();      ///< one value in 50 is not zero
InputCase extremes();    ///< smallest, largest, 0, -1, 1 in turn

/// Bytes of a vector of values.
template <class T>
Bytes toBytes(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}
template <class T>
std::vector<T> fromBytes(ByteView bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.data(), values.size() * sizeof(T),
              reinterpret_cast<std::uint8_t*>(values.data()));
  return values;
}

}  // namespace fz::test
