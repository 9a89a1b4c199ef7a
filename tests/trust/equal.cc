// R6 and R7: one input and one set of options give one result, however it is computed.
#include <algorithm>
#include <array>
#include <random>

#include "backends/cpu/exec_context.h"
#include "fz/error.h"
#include "support/each_target.h"
#include "support/shuffled.h"
#include "support/stage_case.h"
#include "trust/combinations.h"
#include "trust/families.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

/// What a pipeline makes of a combination: its frame and what that decodes to, or its error.
struct Outcome {
  Bytes frame;
  Bytes decoded;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome outcomeOf(const Combination& c, Fusion fusion, std::size_t n_threads) {
  Outcome outcome;
  try {
    Pipeline pipeline;
    pipeline.setThreads(n_threads);
    pipeline.setFusion(fusion);
    load(pipeline, c, Backend::CPU);
    const CompressedView view = pipeline.compress(c.bytes.data(), c.bytes.size());
    const auto* frame = static_cast<const std::uint8_t*>(view.data);
    outcome.frame.assign(frame, frame + view.n_bytes);
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompress(nullptr, 0, &out, &n_bytes);
    const auto* decoded = static_cast<const std::uint8_t*>(out);
    outcome.decoded.assign(decoded, decoded + n_bytes);
  } catch (const Error& e) {
    outcome.error = e.what();
  } catch (const InvalidArgument& e) {
    outcome.error = e.what();
  }
  return outcome;
}

void pipelineTrial(const Settings& settings, std::uint64_t trial, Report& report) {
  const Combination c = combination(settings.seed + 100, trial);
  const Outcome staged = outcomeOf(c, Fusion::Off, 1);
  report.add("combinations of pipeline, data and shape");
  report.add(staged.error.empty() ? "of them compressed" : "of them refused alike");
  report.check(staged == outcomeOf(c, Fusion::Auto, 1), c.name + ": fused differs");
  report.check(staged == outcomeOf(c, Fusion::Auto, 3), c.name + ": three threads differ");
}

/// A stage with its tiles in random order, which is how a GPU's blocks come.
void shuffledTrial(const std::vector<test::StageSetup>& setups,
                   const Settings& settings,
                   std::uint64_t trial,
                   Report& report) {
  std::mt19937_64 rng(trialSeed(settings.seed + 200, trial));
  const test::StageSetup& s = setups[trial % setups.size()];
  const auto& inputs = s.stage_case->inputs;
  const test::InputCase& input = inputs[rng() % inputs.size()];
  if (input.applies && !input.applies(*s.config, s.types)) {
    return;
  }
  const std::vector<std::size_t> sizes = test::conformanceSizes(*s.stage_case);
  const std::size_t n = sizes[rng() % (sizes.size() - 1)];
  const Bytes original = input.make(s.inputType(), n, rng);
  const test::ShuffledExecutor shuffled(rng());
  const ExecContext context{Backend::CPU, &shuffled};
  const std::unique_ptr<Stage> stage = s.makeStage(n);
  const test::Encoded in_order = test::encode(*stage, original);
  report.add("stages with shuffled tiles");
  report.check(in_order == test::encode(*s.makeStage(n), original, &context, 0x5A),
               s.text() + ", " + input.label + ": shuffled tiles give other bytes");
  report.check(test::decode(stage->getStageTypeId(), in_order) ==
                   test::decode(stage->getStageTypeId(), in_order, &context),
               s.text() + ", " + input.label + ": shuffled tiles decode otherwise");
}

const RegisterGoal kOrder(
    "R6",
    "fused, staged, threaded and shuffled execution give the same bytes, values and errors",
    [](const Settings& settings, Report& report) {
      const std::vector<test::StageSetup> setups = test::allSetups();
      const std::uint64_t n = settings.trials(2000, 20'000);
      runInProcesses(2 * n, settings, report, [&](std::uint64_t trial, Report& mine) {
        if (trial < n) {
          pipelineTrial(settings, trial, mine);
        } else {
          shuffledTrial(setups, settings, trial - n, mine);
        }
      });
    });

/// A combination that compresses and is large enough for several threads.
Combination largeCombination(std::uint64_t seed, std::uint64_t trial) {
  Combination c = combination(seed, trial);
  const std::array<std::size_t, 3> shapes[] = {{40'009, 1, 1}, {211, 190, 1}, {41, 33, 29}};
  c.overrides.dims = shapes[trial % 3];
  const std::size_t n = c.overrides.dims[0] * c.overrides.dims[1] * c.overrides.dims[2];
  const std::size_t family = trial % familyCount();
  c.bytes = c.type == DataType::FLOAT64
                ? test::toBytes(makeFamily(families<double>()[family], n, 1e-3, trial))
                : test::toBytes(makeFamily(families<float>()[family], n, 1e-3, trial));
  c.overrides.params = {{"error_bound", "1e-3"}};
  return c;
}

void threadsTrial(const Settings& settings, std::uint64_t trial, Report& report) {
  const Combination c = largeCombination(settings.seed + 300, trial);
  const Outcome expected = outcomeOf(c, Fusion::Off, 1);
  report.add("pipelines");
  report.add(expected.error.empty() ? "of them compressed" : "of them refused alike");
  test::forEachVectorTarget([&] {
    for (const std::size_t n_threads : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 16u}) {
      report.add("runs");
      report.check(expected == outcomeOf(c, Fusion::Auto, n_threads),
                   c.name + ": " + std::to_string(n_threads) + " threads differ");
    }
  });
}

const RegisterGoal kDeterminism(
    "R7",
    "threads 1 to 16, every vector target and repeats give the same bytes",
    [](const Settings& settings, Report& report) {
      constexpr int kSeconds = 60;
      runInProcesses(
          settings.trials(50, 500), settings, report,
          [&](std::uint64_t trial, Report& mine) { threadsTrial(settings, trial, mine); },
          kSeconds);
    });

}  // namespace
}  // namespace fz::trust
