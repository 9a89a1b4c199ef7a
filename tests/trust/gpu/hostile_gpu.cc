// R12: the GPU decoder takes the mutants of R1, agrees with the CPU about them, and leaves the
// device usable.
#include <memory>
#include <random>

#include <cuda_runtime_api.h>

#include "fz/error.h"
#include "gpu/device_pipeline.h"
#include "trust/corpus.h"
#include "trust/mutate.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::uint64_t kLimits[] = {0, 64 * 1024, 1u << 20, 8u << 20};

struct Outcome {
  Bytes decoded;
  std::string error;    ///< name of the code; empty: decoded
  std::string message;  ///< of the error
};

Outcome decodeOn(Pipeline& pipeline, const Bytes& frame, std::uint64_t limit) {
  Outcome outcome;
  pipeline.setDecodeLimits({.max_output_bytes = limit, .max_memory_bytes = 0});
  try {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompressFrame(frame, &out, &n_bytes);
    outcome.decoded = n_bytes == 0 ? Bytes{} : test::fromDevice(out, n_bytes);
  } catch (const Error& e) {
    outcome.error = errorCodeName(e.code());
    outcome.message = e.what();
    if (e.code() == ErrorCode::kCuda || e.code() == ErrorCode::kInternal) {
      outcome.error += std::string(": ") + e.what();
    }
  } catch (const std::exception& e) {
    outcome.error = std::string("untyped: ") + e.what();
  }
  return outcome;
}

/// One pipeline per side, and the frames to start from. A process makes its own: CUDA, which even
/// a pipeline on the CPU asks about pointers, does not survive fork().
struct Sides {
  std::vector<Seed> seeds = mutationSeeds();
  Pipeline cpu;
  Pipeline gpu;

  Sides() {
    cpu.setThreads(1);
    cpu.setBackend(Backend::CPU);
    gpu.setThreads(1);
    gpu.setBackend(Backend::CUDA);
  }
};

void tryMutant(Sides& sides, const Settings& settings, std::uint64_t trial, Report& report) {
  std::mt19937_64 rng(trialSeed(settings.seed, trial));
  const Mutant mutant = makeMutant(sides.seeds, rng);
  const std::uint64_t limit = kLimits[rng() % std::size(kLimits)];
  const Outcome gpu = decodeOn(sides.gpu, mutant.bytes, limit);
  const Outcome cpu = decodeOn(sides.cpu, mutant.bytes, limit);
  const std::string where = "trial " + std::to_string(trial) + " of seed " +
                            std::to_string(settings.seed) + " (" +
                            sides.seeds[mutant.seed_index].name + ")";
  report.add("mutants");
  report.add(gpu.error.empty() ? "decoded" : "refused");
  const cudaError_t sticky = cudaDeviceSynchronize();
  report.check(sticky == cudaSuccess, where + ": " + cudaGetErrorString(sticky));
  report.check(cpu.error == gpu.error, where + ": CPU '" + cpu.error + "' (" + cpu.message +
                                           "), GPU '" + gpu.error + "' (" + gpu.message + ")");
  report.check(gpu.error.find(':') == std::string::npos, where + ": " + gpu.error);
  report.check(cpu.error != gpu.error || cpu.decoded == gpu.decoded, where + ": values differ");
}

const RegisterGoal kHostileDevice(
    "R12",
    "the GPU decodes or refuses mutated frames as the CPU does, without a sticky error",
    [](const Settings& settings, Report& report) {
      std::unique_ptr<Sides> sides;  // made in the child
      runInProcesses(
          settings.trials(20'000, 200'000), settings, report,
          [&](std::uint64_t trial, Report& mine) {
            if (sides == nullptr) {
              sides = std::make_unique<Sides>();
            }
            tryMutant(*sides, settings, trial, mine);
          },
          60);
    });

}  // namespace
}  // namespace fz::trust
