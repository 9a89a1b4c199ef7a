// R5 on a device: all 2^32 floats through the quantiser, judged on the device by exact.h.
#include <algorithm>
#include <cstring>

#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "format/frame_header.h"
#include "fz/error.h"
#include "fz/presets.h"
#include "gpu/device_pipeline.h"
#include "trust/exact.h"
#include "trust/gpu/pattern_kernels.h"
#include "trust/trust.h"

namespace fz::trust {
namespace {

constexpr std::size_t kChunkValues = std::size_t{1} << 26;

struct Setup {
  const char* preset;  ///< null: the quantiser alone
  const char* mode;
  double bound;
  const char* codes;
};
constexpr Setup kSetups[] = {
    {nullptr, "ABS", 1e-3, "uint32"}, {nullptr, "ABS", 1e-38, "uint32"},
    {nullptr, "ABS", 1e20, "uint16"}, {nullptr, "ABS", 0x1p-20, "uint16"},
    {nullptr, "NOA", 1e-3, "uint16"}, {nullptr, "NOA", 1e-8, "uint32"},
    {nullptr, "REL", 1e-1, "uint16"}, {nullptr, "REL", 1e-3, "uint32"},
    {nullptr, "REL", 1e-6, "uint32"}, {nullptr, "REL", 0x1p-10, "uint32"},
    {"pfpl", "ABS", 1e-3, nullptr},   {"pfpl", "REL", 1e-3, nullptr},
};

std::string exactText(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17e", value);
  return text;
}

void build(Pipeline& pipeline, const Setup& setup) {
  pipeline.setBackend(Backend::CUDA);
  ConfigOverrides overrides;
  overrides.params = {{"error_bound", exactText(setup.bound)}, {"error_bound_mode", setup.mode}};
  if (setup.preset != nullptr) {
    pipeline.loadConfigText(std::string(findPreset(setup.preset)->toml), setup.preset, overrides);
    return;
  }
  pipeline.loadConfigText(
      std::string("[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\ninput_type = \"float32\"\n"
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

struct Judge {
  test::DeviceBytesBuffer values{kChunkValues * sizeof(float)};
  test::DeviceBytesBuffer counters{16};

  /// Values of this chunk that miss what their frame promises.
  void check(Pipeline& pipeline, const Setup& setup, std::uint64_t chunk, Report& report) {
    auto* input = reinterpret_cast<float*>(values.data());
    auto* n_misses = reinterpret_cast<unsigned long long*>(counters.data());
    auto* example = reinterpret_cast<unsigned*>(counters.data() + 8);
    enqueuePatterns(input, kChunkValues, static_cast<std::uint32_t>(chunk * kChunkValues), nullptr);
    const CompressedView view = pipeline.compress(input, values.size());
    const BoundInfo bound = boundOf(view);
    const bool relative = bound.mode == ErrorBoundMode::REL;
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompress(nullptr, 0, &out, &n_bytes);
    report.check(n_bytes == values.size(), "another number of values came back");
    FZ_CUDA_CHECK(cudaMemset(counters.data(), 0, counters.size()));
    enqueueMisses(input, static_cast<const float*>(out), kChunkValues,
                  relative ? bound.requested : bound.absolute, relative, n_misses, example,
                  nullptr);
    const std::vector<std::uint8_t> found = counters.get(16);
    unsigned long long n = 0;
    unsigned bits = 0;
    std::memcpy(&n, found.data(), 8);
    std::memcpy(&bits, found.data() + 8, 4);
    report.add("values", kChunkValues);
    report.add("violations", n);
    report.check(n == 0, std::string(setup.mode) + " " + exactText(setup.bound) + ": " +
                             std::to_string(n) + " values miss, one has the bits " +
                             std::to_string(bits));
  }
};

/// The judge must find what is there: values moved just out of the bound, one in each position
/// of a block.
void checkJudge(Report& report) {
  constexpr std::size_t kValues = 1000;
  std::vector<float> values(kValues);
  std::vector<float> decoded(kValues);
  std::uint64_t n_expected[2] = {0, 0};
  constexpr double kBound = 0x1p-10;
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = 1.0f + static_cast<float>(i) / 1024;
    decoded[i] = values[i] + static_cast<float>(kBound);
    decoded[i] = i % 3 == 0 ? std::nextafter(decoded[i], 10.0f) : decoded[i];
    n_expected[0] += keepsAbsolute(values[i], decoded[i], kBound) ? 0 : 1;
    n_expected[1] += keepsRelative(values[i], decoded[i], kBound) ? 0 : 1;
  }
  const auto view = [](const std::vector<float>& v) {
    return ByteView(reinterpret_cast<const std::uint8_t*>(v.data()), v.size() * sizeof(float));
  };
  const test::DeviceBytesBuffer on_device(view(values));
  const test::DeviceBytesBuffer decoded_on_device(view(decoded));
  const test::DeviceBytesBuffer counters(16);
  for (const bool relative : {false, true}) {
    FZ_CUDA_CHECK(cudaMemset(counters.data(), 0, counters.size()));
    enqueueMisses(reinterpret_cast<const float*>(on_device.data()),
                  reinterpret_cast<const float*>(decoded_on_device.data()), kValues, kBound,
                  relative, reinterpret_cast<unsigned long long*>(counters.data()),
                  reinterpret_cast<unsigned*>(counters.data() + 8), nullptr);
    unsigned long long n = 0;
    std::memcpy(&n, counters.get(16).data(), 8);
    report.check(n == n_expected[relative ? 1 : 0] && n > 0,
                 "the judge on the device counts " + std::to_string(n));
  }
}

const RegisterGoal kAllFloats("R5-gpu",
                              "all 2^32 floats keep their bound on the device, in exact arithmetic",
                              [](const Settings& settings, Report& report) {
                                checkJudge(report);
                                Judge judge;
                                const std::uint64_t n_chunks = settings.trials(4, 64);
                                for (const Setup& setup : kSetups) {
                                  Pipeline pipeline;
                                  build(pipeline, setup);
                                  for (std::uint64_t i = 0; i < n_chunks; ++i) {
                                    judge.check(pipeline, setup, i * (64 / n_chunks), report);
                                  }
                                  report.add("bounds and modes");
                                }
                              });

}  // namespace
}  // namespace fz::trust
