#include "trust/combinations.h"

#include <array>
#include <cstdio>
#include <random>

#include "support/fusion_chains.h"
#include "support/stage_case.h"
#include "trust/families.h"
#include "trust/workers.h"

namespace fz::trust {

namespace {

using Dims = std::array<std::size_t, 3>;

constexpr Dims kShapes[] = {{0, 1, 1},    {1, 1, 1},   {2, 1, 1},  {31, 1, 1}, {257, 1, 1},
                            {1025, 1, 1}, {33, 31, 1}, {17, 9, 7}, {1, 63, 1}, {64, 1, 33},
                            {4099, 1, 1}, {70, 65, 1}, {12, 8, 40}};
constexpr double kBounds[] = {1e-3, 1e-6, 0.5, 1e-2, 0x1p-10, 1e-1, 1e-42, 1e10, 3e38, 1e-300};
constexpr const char* kModes[] = {"ABS", "REL", "NOA"};

const std::vector<test::FusionChain>& chains() {
  static const std::vector<test::FusionChain> kAll = test::fusionChains();
  return kAll;
}

std::string exactText(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

}  // namespace

std::size_t pipelineCount() {
  return chains().size();
}
std::size_t familyCount() {
  return families<float>().size();
}

Combination combination(std::uint64_t seed, std::uint64_t trial) {
  std::mt19937_64 rng(trialSeed(seed, trial));
  const test::FusionChain& chain = chains()[rng() % chains().size()];
  const Dims& dims = kShapes[rng() % std::size(kShapes)];
  const double bound = kBounds[rng() % std::size(kBounds)];
  const std::string mode = kModes[rng() % std::size(kModes)];
  const std::size_t family = trial % families<float>().size();  // in turn: none is left to chance
  const bool is_f64 = chain.takes_f64 && rng() % 2 == 0;
  const std::size_t n = dims[0] * dims[1] * dims[2];

  Combination c;
  c.toml = chain.toml;
  c.type = is_f64 ? DataType::FLOAT64 : DataType::FLOAT32;
  c.bytes = is_f64 ? test::toBytes(makeFamily(families<double>()[family], n, bound, rng()))
                   : test::toBytes(makeFamily(families<float>()[family], n, bound, rng()));
  c.overrides.input_type = c.type;
  c.overrides.dims = dims;
  c.overrides.params = {{"error_bound", exactText(bound)}, {"error_bound_mode", mode}};
  c.name = chain.name + ", " + families<float>()[family].name + ", " + std::to_string(dims[0]) +
           "x" + std::to_string(dims[1]) + "x" + std::to_string(dims[2]) +
           (is_f64 ? " f64 " : " f32 ") + mode + " " + exactText(bound) + " (trial " +
           std::to_string(trial) + ")";
  return c;
}

bool isRefusal(ErrorCode code) {
  return code == ErrorCode::kBoundViolation || code == ErrorCode::kInvalidArgument ||
         code == ErrorCode::kConfig;
}

void load(Pipeline& pipeline, const Combination& combination, Backend backend) {
  pipeline.setBackend(backend);
  pipeline.loadConfigText(combination.toml, combination.name, combination.overrides);
}

}  // namespace fz::trust
