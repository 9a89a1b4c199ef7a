// R5 for fields with missing values: families of data that compressors get wrong, with masks of
// every kind, through every preset as fz::compress() runs it.
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "trust/bound_check.h"
#include "trust/combinations.h"
#include "trust/families.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

using Dims = std::array<std::size_t, 3>;

constexpr Dims kShapes[] = {{1, 1, 1},   {63, 1, 1},  {257, 1, 1}, {4099, 1, 1}, {33, 31, 1},
                            {70, 65, 1}, {200, 1, 9}, {17, 9, 7},  {64, 16, 16}, {65, 17, 18}};
constexpr double kBounds[] = {1e-3, 1e-6, 0.5, 1e-2, 0x1p-10, 1e-1, 1e-42, 1e10, 3e38, 1e-300};
constexpr ErrorBoundMode kModes[] = {ErrorBoundMode::ABS, ErrorBoundMode::REL, ErrorBoundMode::NOA};

struct MaskKind {
  const char* name;
  bool (*is_missing)(std::size_t i, const Dims& dims, std::mt19937_64& rng);
};

bool isCoast(std::size_t i, const Dims& dims, std::mt19937_64& /*rng*/) {
  const auto x = static_cast<double>(i % dims[0]);
  const std::size_t row = i / dims[0];
  const auto y = static_cast<double>(row % dims[1]);
  const std::size_t plane = row / dims[1];
  return std::sin(0.11 * x + 0.3 * std::sin(0.2 * y)) + std::cos(0.17 * y) +
             0.1 * static_cast<double>(plane) >
         0.5;
}

const MaskKind kMasks[] = {
    {"coast", isCoast},
    {"scattered", [](std::size_t, const Dims&, std::mt19937_64& rng) { return rng() % 100 == 0; }},
    {"checkerboard",
     [](std::size_t i, const Dims& dims, std::mt19937_64&) {
       return (i % dims[0] + i / dims[0]) % 2 == 0;
     }},
    {"blocks", [](std::size_t i, const Dims&, std::mt19937_64&) { return i / 300 % 3 == 1; }},
    {"90 %", [](std::size_t, const Dims&, std::mt19937_64& rng) { return rng() % 10 != 0; }},
    {"all but one",
     [](std::size_t i, const Dims& dims, std::mt19937_64&) {
       return i != dims[0] * dims[1] * dims[2] / 3;
     }},
    {"all", [](std::size_t, const Dims&, std::mt19937_64&) { return true; }},
};

/// What stands in missing places: NaN, NaN and infinities, fill values, or all of it.
template <class T>
T missingValue(std::size_t kind, const std::vector<double>& fill, std::mt19937_64& rng) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const bool is_filled = !fill.empty() && (kind == 2 || (kind == 3 && rng() % 2 == 0));
  if (is_filled) {
    return static_cast<T>(fill[rng() % fill.size()]);
  }
  if (kind == 0 || rng() % 3 == 0) {
    return kNan;
  }
  const T specials[] = {
      std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
      std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(kNan) | rng() % 500))};
  return specials[rng() % 3];
}

template <class T>
struct Field {
  std::vector<T> values;
  std::vector<double> fill;

  bool isMissing(T x) const {
    bool is_fill = false;
    for (const double value : fill) {
      is_fill = is_fill || x == static_cast<T>(value);
    }
    return is_fill || !fp::isFinite(x);
  }
};

template <class T>
void checkFrame(const Field<T>& field,
                const Frame& frame,
                const std::string& where,
                Report& report) {
  const FrameInfo info = inspect(frame);
  const Array decoded = decompress(frame, {.backend = Backend::CPU, .threads = 1});
  const std::span<const T> back = decoded.as<T>();
  if (back.size() != field.values.size()) {
    return report.fail(where + ": " + std::to_string(back.size()) + " values came back");
  }
  std::vector<T> valid;
  std::vector<T> valid_back;
  std::uint64_t n_missing = 0;
  std::uint64_t n_changed = 0;
  for (std::size_t i = 0; i < back.size(); ++i) {
    if (field.isMissing(field.values[i])) {
      ++n_missing;
      n_changed += fp::bits(field.values[i]) != fp::bits(back[i]) ? 1u : 0u;
    } else {
      valid.push_back(field.values[i]);
      valid_back.push_back(back[i]);
    }
  }
  report.add("missing values", n_missing);
  report.check(n_changed == 0,
               where + ": " + std::to_string(n_changed) + " missing values changed");
  report.check(!info.missing || info.missing->n_missing == n_missing,
               where + ": the frame counts other missing values");
  report.add(info.missing        ? "masked"
             : info.isFallback() ? "stored without loss"
                                 : "without a mask");
  checkResult(valid, info, valid_back, where, report);
}

template <class T>
void maskTrial(const Settings& settings, std::uint64_t trial, Report& report) {
  std::mt19937_64 rng(trialSeed(settings.seed, trial));
  // In turn: no preset, mask or family is left to chance.
  const auto& presets = allPresets();
  const std::uint64_t turn = trial / 2;
  const Preset& preset = presets[turn % presets.size()];
  const MaskKind& mask = kMasks[turn / presets.size() % std::size(kMasks)];
  const Family<T>& family = families<T>()[turn % families<T>().size()];
  const Dims& dims = kShapes[rng() % std::size(kShapes)];
  const double bound = kBounds[rng() % std::size(kBounds)];
  const std::size_t kind = rng() % 4;
  Field<T> field;
  if (kind >= 2) {
    field.fill = rng() % 2 == 0 ? std::vector<double>{-9999.0} : std::vector<double>{1e20, 0.0, -1};
  }
  field.values = makeFamily(family, dims[0] * dims[1] * dims[2], bound, rng());
  for (std::size_t i = 0; i < field.values.size(); ++i) {
    if (mask.is_missing(i, dims, rng)) {
      field.values[i] = missingValue<T>(kind, field.fill, rng);
    }
  }
  CompressOptions options;
  options.preset = preset.name;
  options.error_bound = bound;
  options.mode = kModes[rng() % std::size(kModes)];
  options.dims = dims;
  options.backend = Backend::CPU;
  options.threads = 1 + rng() % 3;
  options.fill = field.fill;
  options.suspect_fill = false;
  const std::string where = std::string(preset.name) + ", " + mask.name + ", " + family.name +
                            ", bound " + std::to_string(bound) + " (trial " +
                            std::to_string(trial) + ")";
  report.add("cases");
  try {
    checkFrame(field, compress(std::span<const T>(field.values), options), where, report);
  } catch (const Error& e) {
    report.add(std::string("refused: ") + errorCodeName(e.code()));
    report.check(isRefusal(e.code()), where + ": " + e.what());
  } catch (const InvalidArgument&) {
    report.add("refused: invalid argument");
  }
}

const RegisterGoal kMaskGoal(
    "R5-masks",
    "missing values of every kind keep their bits through every preset, all others the bound",
    [](const Settings& settings, Report& report) {
      report.add("families", familyCount());
      report.add("masks", std::size(kMasks));
      const std::uint64_t n = settings.trials(10'000, 200'000);
      runInProcesses(n, settings, report, [&](std::uint64_t trial, Report& mine) {
        trial % 2 == 0 ? maskTrial<float>(settings, trial, mine)
                       : maskTrial<double>(settings, trial, mine);
      });
    });

}  // namespace
}  // namespace fz::trust
