// R11: independent pipelines in any threads, and in a child after fork().
#include <atomic>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/fields.h"
#include "trust/corpus.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr unsigned kThreads = 32;

/// A field, its frame and what that decodes to, computed alone.
struct Expected {
  std::string preset;
  test::Field field;
  Bytes frame;
  Bytes decoded;
};

CompressOptions optionsFor(const Expected& e, std::size_t n_threads) {
  CompressOptions options;
  options.preset = e.preset;
  options.dims = e.field.dims;
  options.backend = Backend::CPU;
  options.threads = n_threads;
  return options;
}

DecompressOptions withThreads(std::size_t n_threads) {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = n_threads;
  return options;
}

Bytes copyOf(ByteView bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<Expected> expectations() {
  std::vector<Expected> all;
  for (const Preset& preset : allPresets()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      Expected e{std::string(preset.name), test::smoothField(type, {37, 19, 3}), {}, {}};
      const Frame frame = compress(type, e.field.bytes, optionsFor(e, 1));
      e.frame = copyOf(frame.bytes());
      e.decoded = copyOf(decompress(frame, withThreads(1)).bytes());
      all.push_back(std::move(e));
    }
  }
  return all;
}

/// True when the call gave what it gives alone.
bool mixedCall(const std::vector<Expected>& all, std::mt19937_64& rng) {
  const Expected& e = all[rng() % all.size()];
  const std::size_t n_threads = 1 + rng() % 3;
  switch (rng() % 4) {
    case 0:
      return copyOf(compress(e.field.type, e.field.bytes, optionsFor(e, n_threads)).bytes()) ==
             e.frame;
    case 1:
      return copyOf(decompress(e.frame, withThreads(n_threads)).bytes()) == e.decoded;
    case 2:
      return inspect(e.frame).original_bytes == e.field.bytes.size();
    default: {
      Bytes damaged = e.frame;
      damaged[rng() % damaged.size()] ^= 1;
      try {
        static_cast<void>(decompress(damaged, withThreads(n_threads)));
      } catch (const Error&) {
        return true;
      }
      return false;
    }
  }
}

void manyThreads(const std::vector<Expected>& all, const Settings& settings, Report& report) {
  const std::uint64_t n_calls = settings.trials(1000, 10'000);
  std::atomic<std::uint64_t> n_wrong = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 rng(trialSeed(settings.seed, t));
      for (std::uint64_t i = 0; i < n_calls; ++i) {
        n_wrong += mixedCall(all, rng) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  report.add("threads", kThreads);
  report.add("calls", kThreads * n_calls);
  report.check(n_wrong == 0, std::to_string(n_wrong) + " calls gave another result");
}

/// What a child does with the library that its parent has used with threads.
int childWork(const std::vector<Expected>& all) {
  for (const Expected& e : all) {
    for (const std::size_t n_threads : {1u, 4u}) {
      if (copyOf(compress(e.field.type, e.field.bytes, optionsFor(e, n_threads)).bytes()) !=
              e.frame ||
          copyOf(decompress(e.frame, withThreads(n_threads)).bytes()) != e.decoded) {
        return 1;
      }
    }
  }
  return 0;
}

void forks(const std::vector<Expected>& all, Report& report) {
  constexpr unsigned kForks = 10;
  constexpr unsigned kSeconds = 30;
  for (unsigned i = 0; i < kForks; ++i) {
    static_cast<void>(childWork(all));  // with threads, so that there is something to inherit
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kSeconds);
      ::_exit(childWork(all));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    report.add("forks");
    report.check(status == 0, "a child ended with status " + std::to_string(status));
  }
}

const RegisterGoal kThreadsGoal(
    "R11",
    "independent pipelines work in any threads at once, and in a child after fork()",
    [](const Settings& settings, Report& report) {
      const std::vector<Expected> all = expectations();
      forks(all, report);
      manyThreads(all, settings, report);
    });

}  // namespace
}  // namespace fz::trust
