// R5 on a device for doubles: random bit patterns, judged on the device by exact.h.
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

constexpr std::size_t kChunkValues = std::size_t{1} << 25;

struct Setup {
  const char* preset;
  const char* mode;
  double bound;
  bool near_one;  ///< else any bit pattern, of which most are outliers under an absolute bound
};
constexpr Setup kSetups[] = {
    {"pfpl", "ABS", 1e-3, true},  {"pfpl", "ABS", 1e-6, true},  {"pfpl", "ABS", 1e-3, false},
    {"pfpl", "NOA", 1e-4, true},  {"pfpl", "NOA", 1e-3, false}, {"pfpl", "REL", 1e-3, true},
    {"pfpl", "REL", 1e-3, false}, {"pfpl", "REL", 1e-6, true},  {"speed", "ABS", 1e-2, true},
    {"cusz", "NOA", 1e-3, true},
};

std::string exactText(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17e", value);
  return text;
}

void build(Pipeline& pipeline, const Setup& setup) {
  pipeline.setBackend(Backend::CUDA);
  ConfigOverrides overrides;
  overrides.input_type = DataType::FLOAT64;
  overrides.params = {{"error_bound", exactText(setup.bound)}, {"error_bound_mode", setup.mode}};
  pipeline.loadConfigText(std::string(findPreset(setup.preset)->toml), setup.preset, overrides);
}

BoundInfo boundOf(const CompressedView& view) {
  const std::size_t n_front = std::min<std::size_t>(view.n_bytes, 16'384);
  const std::vector<std::uint8_t> front = test::fromDevice(view.data, n_front);
  return readHeader(front, view.n_bytes).description.bound.value();
}

struct Found {
  unsigned long long n;
  unsigned long long example;
};

Found misses(const double* values,
             const double* decoded,
             std::size_t n,
             double bound,
             bool relative,
             const test::DeviceBytesBuffer& counters) {
  FZ_CUDA_CHECK(cudaMemset(counters.data(), 0, counters.size()));
  auto* at = reinterpret_cast<unsigned long long*>(counters.data());
  enqueueMisses(values, decoded, n, bound, relative, at, at + 1, nullptr);
  Found found{};
  std::memcpy(&found, counters.get(sizeof(found)).data(), sizeof(found));
  return found;
}

/// The judge must find what is there: values moved just out of the bound.
void checkJudge(const test::DeviceBytesBuffer& counters, Report& report) {
  constexpr std::size_t kValues = 1000;
  constexpr double kBound = 0x1p-10;
  std::vector<double> values(kValues);
  std::vector<double> decoded(kValues);
  std::uint64_t n_expected[2] = {0, 0};
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = 1.0 + static_cast<double>(i) / 1024;
    decoded[i] = values[i] + kBound;
    decoded[i] = i % 3 == 0 ? std::nextafter(decoded[i], 10.0) : decoded[i];
    n_expected[0] += keepsAbsolute64(values[i], decoded[i], kBound) ? 0 : 1;
    n_expected[1] += keepsRelative64(values[i], decoded[i], kBound) ? 0 : 1;
  }
  const auto view = [](const std::vector<double>& v) {
    return ByteView(reinterpret_cast<const std::uint8_t*>(v.data()), v.size() * sizeof(double));
  };
  const test::DeviceBytesBuffer on_device(view(values));
  const test::DeviceBytesBuffer decoded_on_device(view(decoded));
  for (const bool relative : {false, true}) {
    const Found found = misses(reinterpret_cast<const double*>(on_device.data()),
                               reinterpret_cast<const double*>(decoded_on_device.data()), kValues,
                               kBound, relative, counters);
    report.check(found.n == n_expected[relative ? 1 : 0] && found.n > 0,
                 "the judge on the device counts " + std::to_string(found.n));
  }
}

const RegisterGoal kDoubles(
    "R5-gpu-f64",
    "random doubles keep their bound on the device, in exact arithmetic",
    [](const Settings& settings, Report& report) {
      const test::DeviceBytesBuffer counters(sizeof(Found));
      checkJudge(counters, report);
      const test::DeviceBytesBuffer input(kChunkValues * sizeof(double));
      auto* values = reinterpret_cast<double*>(input.data());
      const std::uint64_t n_chunks = settings.trials(2, 30);  // 30: 10^10 values in all
      for (const Setup& setup : kSetups) {
        Pipeline pipeline;
        build(pipeline, setup);
        for (std::uint64_t i = 0; i < n_chunks; ++i) {
          enqueueRandomDoubles(values, kChunkValues, settings.seed * 1'000'003 + i * kChunkValues,
                               setup.near_one, nullptr);
          const BoundInfo bound = boundOf(pipeline.compress(values, input.size()));
          const bool relative = bound.mode == ErrorBoundMode::REL;
          void* out = nullptr;
          std::size_t n_bytes = 0;
          pipeline.decompress(nullptr, 0, &out, &n_bytes);
          report.check(n_bytes == input.size(), "another number of values came back");
          const Found found =
              misses(values, static_cast<const double*>(out), kChunkValues,
                     relative ? bound.requested : bound.absolute, relative, counters);
          report.add("values", kChunkValues);
          report.add("violations", found.n);
          report.check(found.n == 0, std::string(setup.preset) + " " + setup.mode + " " +
                                         exactText(setup.bound) + ": " + std::to_string(found.n) +
                                         " values miss, one has the bits " +
                                         std::to_string(found.example));
        }
        report.add("bounds and modes");
      }
    });

}  // namespace
}  // namespace fz::trust
