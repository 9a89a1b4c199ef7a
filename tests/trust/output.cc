// R2: decoding into a caller's buffer writes inside it and nowhere else, whatever its size.
#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "fz/error.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"
#include "trust/corpus.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::uint8_t kCanary = 0xA5;

/// Memory whose end is followed by a page that nobody may touch.
class GuardedRoom {
 public:
  explicit GuardedRoom(std::size_t n_bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    n_bytes_ = (n_bytes + page - 1) / page * page;
    n_mapped_ = n_bytes_ + page;
    memory_ = static_cast<std::uint8_t*>(
        ::mmap(nullptr, n_mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(memory_ + n_bytes_, page, PROT_NONE);
  }
  GuardedRoom(const GuardedRoom&) = delete;
  GuardedRoom& operator=(const GuardedRoom&) = delete;
  ~GuardedRoom() { ::munmap(memory_, n_mapped_); }

  /// The last n bytes before the guard; all others hold the canary.
  std::uint8_t* tail(std::size_t n) {
    std::memset(memory_, kCanary, n_bytes_);
    return memory_ + n_bytes_ - n;
  }
  /// Whether everything in front of the tail still holds the canary.
  bool isIntactBefore(const std::uint8_t* tail) const {
    return std::all_of(static_cast<const std::uint8_t*>(memory_), tail,
                       [](std::uint8_t b) { return b == kCanary; });
  }

 private:
  std::uint8_t* memory_;
  std::size_t n_bytes_;
  std::size_t n_mapped_;
};

void trySize(
    Pipeline& pipeline, GuardedRoom& room, const Seed& seed, std::size_t n_room, Report& report) {
  const std::string where = seed.name + ", room for " + std::to_string(n_room);
  // At the very end of the memory, so its start may be unaligned as well.
  std::uint8_t* buffer = room.tail(n_room);
  const bool fits = n_room >= seed.original.size();
  std::size_t n_bytes = 0;
  report.add("sizes");
  try {
    pipeline.decompress(seed.frame.data(), seed.frame.size(), buffer, n_room, &n_bytes);
    report.check(fits && n_bytes == seed.original.size(), where + ": accepted");
    report.add("decoded");
  } catch (const Error& e) {
    report.check(!fits && e.code() == ErrorCode::kBufferTooSmall, where + ": " + e.what());
    report.check(std::all_of(buffer, buffer + n_room, [](std::uint8_t b) { return b == kCanary; }),
                 where + ": written to although it is too small");
    report.add("refused");
  }
  report.check(room.isIntactBefore(buffer), where + ": written to in front of it");
}

const RegisterGoal kOutput(
    "R2",
    "decoding never writes outside the caller's buffer, of any size, and says when it is too small",
    [](const Settings& settings, Report& report) {
      std::vector<Seed> seeds = stageSeeds(70);
      std::vector<Seed> pipelines = pipelineSeeds();
      std::move(pipelines.begin(), pipelines.end(), std::back_inserter(seeds));
      report.add("archives", seeds.size());
      const std::size_t n_sizes = settings.trials(200, 1u << 30);
      runInProcesses(seeds.size(), settings, report, [&](std::uint64_t trial, Report& mine) {
        const Seed& seed = seeds[trial];
        const std::size_t n_most = seed.original.size() + 64;
        GuardedRoom room(n_most);
        Pipeline pipeline;
        pipeline.setBackend(Backend::CPU);
        pipeline.setThreads(1);
        pipeline.loadConfigText(std::string(findPreset("pfpl")->toml), "pfpl");
        const std::size_t n_tried = std::min(n_sizes, n_most + 1);
        for (std::size_t i = 0; i < n_tried; ++i) {
          // The last sizes one by one, the others spread evenly.
          const std::size_t n_dense = std::min<std::size_t>(n_tried, 128);
          const std::size_t n_room =
              i < n_dense ? n_most - i : (n_most - n_dense) * (i - n_dense) / (n_tried - n_dense);
          trySize(pipeline, room, seed, n_room, mine);
        }
      });
    });

}  // namespace
}  // namespace fz::trust
