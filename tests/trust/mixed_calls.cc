#include "trust/mixed_calls.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <random>
#include <thread>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

CompressOptions optionsFor(const Expected& e, Backend backend, std::size_t n_threads) {
  CompressOptions options;
  options.preset = e.preset;
  options.config_toml = findPreset(e.preset)->toml;
  options.dims = e.field.dims;
  options.backend = backend;
  options.threads = n_threads;
  return options;
}

DecompressOptions decoding(Backend backend, std::size_t n_threads) {
  DecompressOptions options;
  options.backend = backend;
  options.threads = n_threads;
  return options;
}

Bytes copyOf(ByteView bytes) {
  return {bytes.begin(), bytes.end()};
}

bool compressesRightly(const Expected& e, Backend backend, std::size_t n_threads) {
  const Frame frame = compress(e.field.type, e.field.bytes, optionsFor(e, backend, n_threads));
  return copyOf(frame.bytes()) == e.frame;
}

bool decodesRightly(const Expected& e, Backend backend, std::size_t n_threads) {
  return copyOf(decompress(e.frame, decoding(backend, n_threads)).bytes()) == e.decoded;
}

bool refusesDamage(const Expected& e, Backend backend, std::size_t n_threads, std::uint64_t at) {
  Bytes damaged = e.frame;
  damaged[at % damaged.size()] ^= 1;
  try {
    static_cast<void>(decompress(damaged, decoding(backend, n_threads)));
  } catch (const Error&) {
    return true;
  }
  return false;
}

/// True when the call gave what it gives alone.
bool mixedCall(const std::vector<Expected>& all, Backend backend, std::mt19937_64& rng) {
  const Expected& e = all[rng() % all.size()];
  const std::size_t n_threads = 1 + rng() % 3;
  switch (rng() % 4) {
    case 0:
      return compressesRightly(e, backend, n_threads);
    case 1:
      return decodesRightly(e, backend, n_threads);
    case 2:
      return inspect(e.frame).original_bytes == e.field.bytes.size();
    default:
      return refusesDamage(e, backend, n_threads, rng());
  }
}

}  // namespace

std::vector<Expected> expectations() {
  std::vector<Expected> all;
  for (const Preset& preset : allPresets()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      Expected e{std::string(preset.name), test::smoothField(type, {37, 19, 3}), {}, {}};
      const Frame frame = compress(type, e.field.bytes, optionsFor(e, Backend::CPU, 1));
      e.frame = copyOf(frame.bytes());
      e.decoded = copyOf(decompress(frame, decoding(Backend::CPU, 1)).bytes());
      all.push_back(std::move(e));
    }
  }
  return all;
}

bool roundTrip(const Expected& e, Backend backend, std::size_t n_threads) {
  return compressesRightly(e, backend, n_threads) && decodesRightly(e, backend, n_threads);
}

void mixedCalls(const std::vector<Expected>& all,
                Backend backend,
                unsigned n_threads,
                std::uint64_t n_calls_each,
                std::uint64_t seed,
                Report& report) {
  std::atomic<std::uint64_t> n_wrong = 0;
  std::mutex mutex;
  std::string first_error;
  std::vector<std::thread> threads;
  threads.reserve(n_threads);
  for (unsigned t = 0; t < n_threads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 rng(trialSeed(seed, t));
      for (std::uint64_t i = 0; i < n_calls_each; ++i) {
        try {
          n_wrong += mixedCall(all, backend, rng) ? 0 : 1;
        } catch (const std::exception& e) {
          ++n_wrong;
          const std::lock_guard lock(mutex);
          first_error = first_error.empty() ? e.what() : first_error;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  report.add("threads", n_threads);
  report.add("calls", n_threads * n_calls_each);
  report.check(n_wrong == 0, std::to_string(n_wrong) + " calls gave another result " + first_error);
}

}  // namespace fz::trust
