// R12 without a device: a frame with several faults is refused with one code, whoever decodes it. A
// device plans the sizes of all stages before any of them runs, the CPU stage by stage; so what the
// header alone tells must be judged before both.
#include <random>
#include <string>

#include "backends/cpu/parallel_for.h"
#include "format/frame_header.h"
#include "format/header_places.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fzm_format.h"
#include "mem/mempool.h"
#include "pipeline/compressor.h"
#include "pipeline/frame/decode_plan.h"
#include "trust/corpus.h"
#include "trust/mutate.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

/// Name of the code; empty: decoded.
std::string decodeError(const Bytes& frame) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.setThreads(1);
  try {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompressFrame(frame, &out, &n_bytes);
  } catch (const Error& e) {
    return errorCodeName(e.code());
  }
  return "";
}

/// What planning all sizes beforehand refuses the frame with; empty: nothing.
std::string planError(const Bytes& frame) {
  MemoryPool pool;
  try {
    const FrameHeader header = readHeader(frame, frame.size());
    verifyPayload(header, ByteView(frame).subspan(header.core.header_size), CpuExecutor::serial());
    const auto plan = makeDecodePlan(header, {}, &pool, MemoryStrategy::MINIMAL);
    plan->configure(header);
    for (const FZMBufferEntry& entry : header.buffers) {
      const auto found = plan->segment_buffers.find(entry.dag_buffer_id);
      if (found != plan->segment_buffers.end()) {
        plan->engine.buffers.at(found->second).size = entry.data_size;
      }
    }
    static_cast<void>(estimateSizes(plan->engine.graph, plan->engine.buffers, false));
  } catch (const Error& e) {
    return errorCodeName(e.code());
  }
  return "";
}

void compare(const Bytes& frame, const std::string& where, Report& report) {
  const std::string planned = planError(frame);
  report.add("frames");
  report.add(planned.empty() ? "left to the stages" : "refused beforehand");
  if (!planned.empty()) {
    const std::string decoded = decodeError(frame);
    report.check(decoded == planned,
                 where + ": '" + decoded + "' stage by stage, '" + planned + "' beforehand");
  }
}

/// A stage of a version that nobody knows, and damage in what comes before it.
void unknownVersions(const Seed& seed, Report& report) {
  constexpr std::size_t kFirstVersions = 6;
  const FrameHeader header = readHeader(seed.frame, seed.frame.size());
  const HeaderPlaces places = placesIn(header);
  const std::size_t n_header = header.core.header_size;
  for (std::size_t s = 0; s < places.stages.size(); ++s) {
    for (std::uint16_t version = 0; version < kFirstVersions; ++version) {
      const std::size_t at = places.stages[s].version;
      for (std::size_t i = n_header; i < seed.frame.size(); i += 1 + seed.frame.size() / 50) {
        Bytes frame = seed.frame;
        ByteWriter({frame.data() + at, 2}).u16(version);
        frame[i] ^= 0x41;
        repairFrame(frame);
        compare(frame,
                seed.name + ", stage " + std::to_string(s) + " of version " +
                    std::to_string(version) + ", byte " + std::to_string(i) + " changed",
                report);
      }
    }
  }
}

const RegisterGoal kOneCode(
    "R12-order",
    "what the header alone tells is judged before any stage runs, so CPU and GPU give one code",
    [](const Settings& settings, Report& report) {
      const std::vector<Seed> pipelines = pipelineSeeds();
      const std::vector<Seed> seeds = mutationSeeds();
      const std::uint64_t n_mutants = settings.trials(30'000, 2'000'000);
      runInProcesses(
          pipelines.size() + n_mutants, settings, report, [&](std::uint64_t trial, Report& mine) {
            if (trial < pipelines.size()) {
              return unknownVersions(pipelines[trial], mine);
            }
            std::mt19937_64 rng(trialSeed(settings.seed, trial - pipelines.size()));
            const Mutant mutant = makeMutant(seeds, rng);
            compare(mutant.bytes,
                    "mutant " + std::to_string(trial - pipelines.size()) + " of seed " +
                        std::to_string(settings.seed) + " (" + seeds[mutant.seed_index].name + ")",
                    mine);
          });
    });

}  // namespace
}  // namespace fz::trust
