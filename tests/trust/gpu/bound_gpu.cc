// R5 on a device: all 2^32 floats, and random doubles, compressed, decoded and judged there by
// exact.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "format/frame_header.h"
#include "fz/presets.h"
#include "gpu/device_pipeline.h"
#include "trust/exact.h"
#include "trust/gpu/pattern_kernels.h"
#include "trust/trust.h"

namespace fz::trust {
namespace {

struct Setup {
  const char* preset;  ///< null: the quantiser alone
  const char* mode;
  double bound;
  const char* codes = nullptr;  ///< of the quantiser alone
  bool near_one = false;        ///< random values; else any bit pattern
};
constexpr Setup kFloatSetups[] = {
    {nullptr, "ABS", 1e-3, "uint32"},
    {nullptr, "ABS", 1e-38, "uint32"},
    {nullptr, "ABS", 1e20, "uint16"},
    {nullptr, "ABS", 0x1p-20, "uint16"},
    {nullptr, "NOA", 1e-3, "uint16"},
    {nullptr, "NOA", 1e-8, "uint32"},
    {nullptr, "REL", 1e-1, "uint16"},
    {nullptr, "REL", 1e-3, "uint32"},
    {nullptr, "REL", 1e-6, "uint32"},
    {nullptr, "REL", 0x1p-10, "uint32"},
    {"pfpl", "ABS", 1e-3},
    {"pfpl", "REL", 1e-3},
    {"fzgpu", "ABS", 1e-3},
    {"fzgpu", "ABS", 1e20},
};
constexpr Setup kDoubleSetups[] = {
    {"pfpl", "ABS", 1e-3, nullptr, true},  {"pfpl", "ABS", 1e-6, nullptr, true},
    {"pfpl", "ABS", 1e-3, nullptr, false}, {"pfpl", "NOA", 1e-4, nullptr, true},
    {"pfpl", "NOA", 1e-3, nullptr, false}, {"pfpl", "REL", 1e-3, nullptr, true},
    {"pfpl", "REL", 1e-3, nullptr, false}, {"pfpl", "REL", 1e-6, nullptr, true},
    {"speed", "ABS", 1e-2, nullptr, true}, {"cusz", "NOA", 1e-3, nullptr, true},
    {"fzgpu", "ABS", 1e-3, nullptr, true}, {"fzgpu", "ABS", 1e-6, nullptr, true},
};

bool keeps(float x, float y, double bound, bool relative) {
  return relative ? keepsRelative(x, y, bound) : keepsAbsolute(x, y, bound);
}
bool keeps(double x, double y, double bound, bool relative) {
  return relative ? keepsRelative64(x, y, bound) : keepsAbsolute64(x, y, bound);
}

std::string exactText(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17e", value);
  return text;
}

void build(Pipeline& pipeline, const Setup& setup, DataType type) {
  pipeline.setBackend(Backend::CUDA);
  ConfigOverrides overrides;
  overrides.input_type = type;
  overrides.params = {{"error_bound", exactText(setup.bound)}, {"error_bound_mode", setup.mode}};
  if (setup.preset != nullptr) {
    pipeline.loadConfigText(std::string(findPreset(setup.preset)->toml), setup.preset, overrides);
    return;
  }
  pipeline.loadConfigText(std::string("[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\n"
                                      "code_type = \"") +
                              setup.codes + "\"\n",
                          "quantizer", overrides);
}

/// What the frame on the device promises.
BoundInfo boundOf(const CompressedView& view) {
  const std::size_t n_front = std::min<std::size_t>(view.n_bytes, 16'384);
  const std::vector<std::uint8_t> front = test::fromDevice(view.data, n_front);
  return readHeader(front, view.n_bytes).description.bound.value();
}

/// Counts on the device what misses a bound there.
template <class T>
class Judge {
 public:
  Misses count(const T* values, const T* decoded, std::size_t n, double bound, bool relative) {
    FZ_CUDA_CHECK(cudaMemset(counters_.data(), 0, counters_.size()));
    enqueueMisses(values, decoded, n, bound, relative, reinterpret_cast<Misses*>(counters_.data()),
                  nullptr);
    Misses found{};
    std::memcpy(&found, counters_.get(sizeof(found)).data(), sizeof(found));
    return found;
  }

  /// It must find what is there: values moved just out of the bound, in every third place.
  void checkItself(Report& report) {
    constexpr std::size_t kValues = 1000;
    constexpr double kBound = 0x1p-10;
    std::vector<T> values(kValues);
    std::vector<T> decoded(kValues);
    std::uint64_t n_expected[2] = {0, 0};
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = T{1} + static_cast<T>(i) / 1024;
      decoded[i] = values[i] + static_cast<T>(kBound);
      decoded[i] = i % 3 == 0 ? std::nextafter(decoded[i], T{10}) : decoded[i];
      for (const bool relative : {false, true}) {
        n_expected[relative ? 1 : 0] += keeps(values[i], decoded[i], kBound, relative) ? 0 : 1;
      }
    }
    const auto view = [](const std::vector<T>& v) {
      return ByteView(reinterpret_cast<const std::uint8_t*>(v.data()), v.size() * sizeof(T));
    };
    const test::DeviceBytesBuffer on_device(view(values));
    const test::DeviceBytesBuffer decoded_on_device(view(decoded));
    for (const bool relative : {false, true}) {
      const Misses found =
          count(reinterpret_cast<const T*>(on_device.data()),
                reinterpret_cast<const T*>(decoded_on_device.data()), kValues, kBound, relative);
      report.check(found.n == n_expected[relative ? 1 : 0] && found.n > 0,
                   "the judge on the device counts " + std::to_string(found.n));
    }
  }

  /// Values on the device, there and back, against what their frame promises.
  void check(
      Pipeline& pipeline, const Setup& setup, const T* values, std::size_t n, Report& report) {
    const BoundInfo bound = boundOf(pipeline.compress(values, n * sizeof(T)));
    const bool relative = bound.mode == ErrorBoundMode::REL;
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompress(nullptr, 0, &out, &n_bytes);
    report.check(n_bytes == n * sizeof(T), "another number of values came back");
    const Misses found = count(values, static_cast<const T*>(out), n,
                               relative ? bound.requested : bound.absolute, relative);
    report.add("values", n);
    report.add("violations", found.n);
    report.check(found.n == 0, std::string(setup.preset == nullptr ? "quantiser" : setup.preset) +
                                   " " + setup.mode + " " + exactText(setup.bound) + ": " +
                                   std::to_string(found.n) + " values miss, one has the bits " +
                                   std::to_string(found.example));
  }

 private:
  test::DeviceBytesBuffer counters_{sizeof(Misses)};
};

/// Every setup over n_chunks chunks of n_values; fill(values, setup, chunk) enqueues their making.
template <class T, class Fill>
void judgeChunks(std::span<const Setup> setups,
                 DataType type,
                 std::uint64_t n_chunks,
                 std::size_t n_values,
                 Report& report,
                 Fill fill) {
  Judge<T> judge;
  judge.checkItself(report);
  const test::DeviceBytesBuffer input(n_values * sizeof(T));
  auto* values = reinterpret_cast<T*>(input.data());
  for (const Setup& setup : setups) {
    Pipeline pipeline;
    build(pipeline, setup, type);
    for (std::uint64_t i = 0; i < n_chunks; ++i) {
      fill(values, setup, i);
      judge.check(pipeline, setup, values, n_values, report);
    }
    report.add("bounds and modes");
  }
}

const RegisterGoal kAllFloats("R5-gpu",
                              "all 2^32 floats keep their bound on the device, in exact arithmetic",
                              [](const Settings& settings, Report& report) {
                                constexpr std::uint64_t kChunks = 64;
                                constexpr std::size_t kChunkValues =
                                    (std::size_t{1} << 32) / kChunks;
                                const std::uint64_t n_chunks = settings.trials(4, kChunks);
                                judgeChunks<float>(
                                    kFloatSetups, DataType::FLOAT32, n_chunks, kChunkValues, report,
                                    [&](float* values, const Setup& /*setup*/, std::uint64_t i) {
                                      const std::uint64_t chunk = i * (kChunks / n_chunks);
                                      enqueuePatterns(
                                          values, kChunkValues,
                                          static_cast<std::uint32_t>(chunk * kChunkValues),
                                          nullptr);
                                    });
                              });

const RegisterGoal kDoubles(
    "R5-gpu-f64",
    "random doubles keep their bound on the device, in exact arithmetic",
    [](const Settings& settings, Report& report) {
      constexpr std::size_t kChunkValues = std::size_t{1} << 25;
      judgeChunks<double>(
          kDoubleSetups, DataType::FLOAT64, settings.trials(2, 30),  // 30: 10^10 values in all
          kChunkValues, report, [&](double* values, const Setup& setup, std::uint64_t i) {
            enqueueRandomDoubles(values, kChunkValues, settings.seed * 1'000'003 + i * kChunkValues,
                                 setup.near_one, nullptr);
          });
    });

}  // namespace
}  // namespace fz::trust
