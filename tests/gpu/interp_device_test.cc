// What the common suite does not reach: plans of every kind on fields of many tiles, gaps and
// values that do not fit at every place, plans that are searched for, graphs.
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "fused/interp/interp_stage.h"
#include "fz/error.h"
#include "gpu/device_pipeline.h"
#include "gpu/device_stage.h"

namespace fz::test {
namespace {

constexpr std::uint16_t kId = 20483;

const char* const kPlans[] = {
    "iso",
    "lorenzo",
    "lorenzo:none",
    "lorenzo:x",
    "lorenzo:y",
    "lorenzo:yz",
    "lorenzo:xz x:l",
    "lorenzo:xy z:c z:n z:l",
    "y:n y:c y:l",
    "x:c x:n x:l x:c",
    "xy:lc:5 xy:cn:1 xy:nl:6",
    "alpha lorenzo:none xz:nc:2 xz:cc:3",
    "alpha yz:cl:4 yz:nn:6",
    "alpha lorenzo:x xyz:lcn:0123 xyz:ccc:456a xyz:nnn:012b xyz:cln:3607",
    "alpha lorenzo:y xz:nl:5 y:n x z:l xyz:lcn:612b",
    "lorenzo:x Nz:l(lorenzo:y xy:cc:2) Nx:n(yz:cc:1 y) xy",
    "alpha lorenzo:xyz Ny:c(lorenzo:xz xz:cc:0 xz:cc:0 x) Ny:n(lorenzo:none) xyz",
    "lorenzo Nz(lorenzo:xy) Nx:l(lorenzo:xyz) Ny(x x z z)",
};

enum class Kind : std::uint8_t {
  kSmooth,
  kGaps,    ///< NaN, infinities, and huge values now and then
  kBlocks,  ///< large parts are missing, the first value too
  kNone,    ///< no value is finite
  kWild,    ///< codes of 16 bits do not hold the differences
  kFar,     ///< far from zero for its bound, so that every value is tested
};

template <class T>
std::vector<T> fieldOf(const Dims& dims, Kind kind) {
  using L = std::numeric_limits<T>;
  std::mt19937_64 rng(dims[0] * 31 + dims[1] * 7 + dims[2]);
  std::vector<T> values;
  values.reserve(dims[0] * dims[1] * dims[2]);
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      for (std::size_t x = 0; x < dims[0]; ++x) {
        double v = 30.0 * std::sin(0.11 * static_cast<double>(x)) *
                       std::cos(0.07 * static_cast<double>(y)) +
                   std::sin(0.19 * static_cast<double>(z)) + 1e-3 * static_cast<double>(rng() % 64);
        if (kind == Kind::kFar) {
          v += sizeof(T) == 4 ? 3e5 : 1e14;
        }
        if (kind == Kind::kWild && rng() % 40 == 0) {
          v += static_cast<double>(rng() % 2'000'000) - 1e6;
        }
        auto made = static_cast<T>(v);
        if (kind == Kind::kGaps && rng() % 9 == 0) {
          const T specials[] = {L::quiet_NaN(), L::infinity(),         -L::infinity(),
                                L::max(),       static_cast<T>(-1e30), static_cast<T>(1e12)};
          made = specials[rng() % 6];
        }
        const bool is_missing = x < dims[0] / 3 || (y > dims[1] / 2 && x % 50 < 20);
        made = kind == Kind::kNone || (kind == Kind::kBlocks && is_missing) ? L::quiet_NaN() : made;
        values.push_back(made);
      }
    }
  }
  return values;
}

class InterpDevice : public OnDevice<> {};

struct Setting {
  std::string plan;
  Dims dims = {};
  double bound = 1e-3;
  bool skips_missing = false;
};

template <class T, class TCode>
void expectSame(const std::vector<T>& values, const Setting& setting) {
  SCOPED_TRACE(fmt::format("{} on {} x {} x {}, bound {}, {} / {} bytes", setting.plan,
                           setting.dims[0], setting.dims[1], setting.dims[2], setting.bound,
                           sizeof(T), sizeof(TCode)));
  const auto make = [&] {
    auto stage = std::make_unique<InterpStage<T, TCode>>();
    stage->setPlan(setting.plan);
    stage->setErrorBound(setting.bound);
    stage->setDims(setting.dims);
    stage->setSkipsMissing(setting.skips_missing);
    return stage;
  };
  const Bytes bytes = toBytes(values);
  const auto on_cpu = make();
  const auto on_gpu = make();
  const Encoded cpu = encode(*on_cpu, bytes);
  const Encoded gpu = encodeOnDevice(*on_gpu, bytes);
  ASSERT_EQ(on_gpu->usedPlan(), on_cpu->usedPlan());
  ASSERT_EQ(on_gpu->runNote(), on_cpu->runNote());
  ASSERT_TRUE(gpu.config == cpu.config);
  for (std::size_t port = 0; port < 2; ++port) {
    ASSERT_EQ(gpu.streams[port].size(), cpu.streams[port].size()) << "port " << port;
    const auto differ = std::mismatch(cpu.streams[port].begin(), cpu.streams[port].end(),
                                      gpu.streams[port].begin());
    ASSERT_TRUE(gpu.streams[port] == cpu.streams[port])
        << "port " << port << ", byte " << differ.first - cpu.streams[port].begin();
  }
  ASSERT_TRUE(decodeOnDevice(kId, cpu) == decode(kId, cpu));
}

const Dims kShapes[] = {{70, 45, 37},  {33, 100, 9}, {130, 2, 65}, {3, 5, 200}, {100, 21, 90},
                        {513, 120, 1}, {64, 64, 64}, {2, 3, 2},    {5000, 1, 1}};

std::vector<Dims> shapes() {
  return isSmallRun() ? std::vector<Dims>{{35, 18, 11}}
                      : std::vector<Dims>(std::begin(kShapes), std::end(kShapes));
}

TEST_F(InterpDevice, PlansOfEveryKindGiveTheBytesOfTheCpu) {
  for (const Dims& dims : shapes()) {
    const auto singles = fieldOf<float>(dims, Kind::kSmooth);
    const auto doubles = fieldOf<double>(dims, Kind::kSmooth);
    for (const char* plan : kPlans) {
      expectSame<float, std::int16_t>(singles, {plan, dims});
      expectSame<double, std::int32_t>(doubles, {plan, dims});
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_F(InterpDevice, GapsAndValuesThatDoNotFitGiveTheBytesOfTheCpu) {
  for (const Dims& dims : shapes()) {
    for (const Kind kind : {Kind::kGaps, Kind::kBlocks, Kind::kNone, Kind::kWild}) {
      SCOPED_TRACE(static_cast<int>(kind));
      const auto singles = fieldOf<float>(dims, kind);
      const auto doubles = fieldOf<double>(dims, kind);
      for (const char* plan : kPlans) {
        expectSame<float, std::int16_t>(singles, {plan, dims, 1e-2, kind == Kind::kBlocks});
        expectSame<double, std::int16_t>(doubles, {plan, dims, 1e-4});
        expectSame<float, std::int32_t>(singles, {plan, dims, 1e-3, true});
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST_F(InterpDevice, ValuesThatMustBeTestedGiveTheBytesOfTheCpu) {
  for (const Dims& dims : shapes()) {
    const auto singles = fieldOf<float>(dims, Kind::kFar);
    const auto doubles = fieldOf<double>(dims, Kind::kFar);
    for (const char* plan : kPlans) {
      expectSame<float, std::int16_t>(singles, {plan, dims, 0.02});
      expectSame<double, std::int32_t>(doubles, {plan, dims, 0.011});
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_F(InterpDevice, PlansThatAreSearchedForAreThoseOfTheCpu) {
  const Dims dims = isSmallRun() ? Dims{40, 30, 20} : Dims{150, 120, 90};
  for (const Kind kind : {Kind::kSmooth, Kind::kBlocks}) {
    const auto values = fieldOf<float>(dims, kind);
    for (const char* plan : {"auto", "lorenzo:auto"}) {
      expectSame<float, std::int32_t>(values, {plan, dims});
      expectSame<float, std::int16_t>(values, {plan, dims, 1e-2, true});
    }
  }
}

// Kernels for rows that can be copied in pieces: blocks of codes at once, tiles of levels.
void expectSameWithWholeFours(std::span<const char* const> plans) {
  const std::vector<Dims> all = {{132, 37, 70}, {520, 30, 23}, {96, 65, 129}, {2052, 9, 17}};
  for (const Dims& dims : isSmallRun() ? std::vector<Dims>{{68, 24, 20}} : all) {
    for (const Kind kind : {Kind::kSmooth, Kind::kWild, Kind::kGaps, Kind::kFar}) {
      if (isSmallRun() && kind != Kind::kWild) {
        continue;
      }
      const auto singles = fieldOf<float>(dims, kind);
      const auto doubles = fieldOf<double>(dims, kind);
      for (const char* plan : plans) {
        expectSame<float, std::int16_t>(singles, {plan, dims});
        expectSame<float, std::int32_t>(singles, {plan, dims, 1e-2});
        expectSame<double, std::int16_t>(doubles, {plan, dims});
        if (::testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST_F(InterpDevice, LevelsOnRowsOfWholeFoursGiveTheBytesOfTheCpu) {
  const char* const plans[] = {"iso", "alpha lorenzo:xy xyz:lcn:0123 xyz:ncl:456a xyz:cln:3607",
                               "Nz(xy xy) xyz"};
  expectSameWithWholeFours(plans);
}

TEST_F(InterpDevice, EndsOnRowsOfWholeFoursGiveTheBytesOfTheCpu) {
  const char* const plans[] = {"lorenzo",    "lorenzo:none", "lorenzo:x",
                               "lorenzo:y",  "lorenzo:z",    "lorenzo:xy",
                               "lorenzo:xz", "lorenzo:yz",   "lorenzo:auto"};
  expectSameWithWholeFours(plans);
}

template <class T, class TCode>
void expectSameOfAnyCodes(const Dims& dims, const char* plan) {
  SCOPED_TRACE(fmt::format("{} on {} x {} x {}", plan, dims[0], dims[1], dims[2]));
  InterpStage<T, TCode> stage;
  stage.setPlan(plan);
  stage.setErrorBound(1e-2);
  stage.setDims(dims);
  Encoded e = encode(stage, toBytes(fieldOf<T>(dims, Kind::kSmooth)));
  std::mt19937_64 rng(dims[0]);
  for (std::uint8_t& byte : e.streams[0]) {
    byte = static_cast<std::uint8_t>(rng());
  }
  ASSERT_TRUE(decodeOnDevice(kId, e) == decode(kId, e));
}

// What fills blocks up too.
TEST_F(InterpDevice, AnyCodesDecodeAsOnTheCpu) {
  const std::vector<Dims> all = {{132, 37, 70}, {520, 30, 23}, {97, 65, 129}, {66, 25, 31}};
  for (const Dims& dims : isSmallRun() ? std::vector<Dims>{{68, 25, 19}} : all) {
    for (const char* plan : {"iso", "alpha lorenzo:xy xyz:lcn:0123 xyz:ncl:456a xyz:cln:3607",
                             "lorenzo", "lorenzo:y", "lorenzo:z", "lorenzo:xy", "lorenzo:xz"}) {
      expectSameOfAnyCodes<float, std::int16_t>(dims, plan);
      expectSameOfAnyCodes<float, std::int32_t>(dims, plan);
      expectSameOfAnyCodes<double, std::int16_t>(dims, plan);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_F(InterpDevice, LargeFieldsGiveTheBytesOfTheCpu) {
  if (isSmallRun()) {
    GTEST_SKIP();
  }
  for (const Dims& dims : {Dims{320, 257, 130}, Dims{4096, 2047, 1}, Dims{7'000'001, 1, 1}}) {
    const auto smooth = fieldOf<float>(dims, Kind::kSmooth);
    const auto gaps = fieldOf<float>(dims, Kind::kBlocks);
    for (const char* plan : {"iso", "lorenzo", "lorenzo:y y:c y:c y:c", "Nx(lorenzo:yz) xyz"}) {
      expectSame<float, std::int16_t>(smooth, {plan, dims});
      expectSame<float, std::int32_t>(gaps, {plan, dims, 1e-3, true});
    }
  }
}

TEST_F(InterpDevice, ListsThatAreOutOfOrderAreRefused) {
  const Dims dims = {40, 30, 20};
  InterpStage<float, std::int16_t> stage;
  stage.setDims(dims);
  const Encoded e = encode(stage, toBytes(fieldOf<float>(dims, Kind::kGaps)));
  const std::size_t n = e.streams[1].size() / 8;
  ASSERT_GT(n, 100u);
  const auto expectRefused = [&](std::size_t entry, std::uint32_t index) {
    Encoded damaged = e;
    std::memcpy(damaged.streams[1].data() + 4 * entry, &index, 4);
    try {
      decodeOnDevice(kId, damaged);
      ADD_FAILURE() << "entry " << entry << " at " << index << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  };
  expectRefused(n - 1, 24'000);
  expectRefused(n - 1, 0xffffffffu);
  expectRefused(50, 0);
  std::uint32_t before = 0;
  std::memcpy(&before, e.streams[1].data() + 4 * 49, 4);
  expectRefused(50, before);
}

// ---- graphs

constexpr std::size_t kGraphValues = 48 * 40 * 30;

std::vector<float> graphField(int i) {
  const Dims dims = {48, 40, 30};
  std::vector<float> values = fieldOf<float>(dims, i % 3 == 0   ? Kind::kSmooth
                                                   : i % 3 == 1 ? Kind::kGaps
                                                                : Kind::kFar);
  for (float& v : values) {
    v *= static_cast<float>(1 + i);
  }
  return values;
}

void buildChain(Pipeline& pipeline, const char* plan) {
  auto* interp = pipeline.addStage<InterpStage<float, std::int16_t>>();
  interp->setErrorBound(0.01);
  interp->setPlan(plan);
  interp->setDims({48, 40, 30});
  auto* coder = pipeline.addStage<AdaptiveBitpackStage<std::int16_t>>();
  pipeline.connect(coder, interp, "codes");
  pipeline.finalize();
}

FrameBytes chainOnCpu(const char* plan, const std::vector<float>& values) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  buildChain(pipeline, plan);
  return frameOf(pipeline, values);
}

TEST_F(InterpDevice, EncodingCanBeCapturedAndReplayedOnOtherData) {
  for (const char* plan : {"iso", "alpha lorenzo:x Nz:l(lorenzo:y xy:cc:2) xyz"}) {
    SCOPED_TRACE(plan);
    const DeviceStream stream;
    Pipeline pipeline(kGraphValues * sizeof(float), MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    pipeline.enableGraphMode(true);
    buildChain(pipeline, plan);
    pipeline.warmup(stream);
    pipeline.captureGraph(stream);
    const DeviceBytesBuffer input(kGraphValues * sizeof(float));
    for (int i = 0; i < 7; ++i) {
      const std::vector<float> values = graphField(i);
      input.put(toBytes(values));
      const FrameBytes gpu = frameOnDevice(pipeline, input, input.size(), stream);
      ASSERT_TRUE(gpu == chainOnCpu(plan, values)) << "replay " << i;
    }
  }
}

TEST_F(InterpDevice, DecodingCanBeCapturedAndReplayedOnOtherFrames) {
  const char* const plan = "alpha lorenzo:x Nz:l(lorenzo:y xy:cc:2) xyz";
  const DeviceStream stream;
  constexpr std::size_t kBytes = kGraphValues * sizeof(float);
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  buildChain(pipeline, plan);
  const DeviceBytesBuffer frame(4 * kBytes + (1 << 16));
  const DeviceBytesBuffer out(kBytes);
  const DeviceBytesBuffer length(sizeof(std::uint64_t));
  const FrameBytes first = chainOnCpu(plan, graphField(0));
  frame.put(first);
  void* ignored = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompress(frame.data(), first.size(), &ignored, &n_bytes, stream);
  const auto enqueue = [&] {
    pipeline.decompressAsync(frame.data(), frame.size(), out.data(), kBytes,
                             reinterpret_cast<std::uint64_t*>(length.data()), stream);
  };
  enqueue();  // takes the memory
  ASSERT_EQ(pipeline.finishAsync(stream), kBytes);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  FZ_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  FZ_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  FZ_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 5; ++i) {
    const FrameBytes bytes = chainOnCpu(plan, graphField(i));
    frame.put(bytes);
    FZ_CUDA_CHECK(cudaGraphLaunch(exec, stream));
    ASSERT_EQ(pipeline.finishAsync(stream), kBytes);
    Pipeline cpu;
    cpu.setBackend(Backend::CPU);
    buildChain(cpu, plan);
    void* result = nullptr;
    std::size_t n_result = 0;
    cpu.decompress(bytes.data(), bytes.size(), &result, &n_result);
    ASSERT_EQ(n_result, kBytes);
    EXPECT_EQ(std::memcmp(out.get(kBytes).data(), result, kBytes), 0) << "frame " << i;
  }
  FZ_CUDA_CHECK(cudaGraphExecDestroy(exec));
  FZ_CUDA_CHECK(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace fz::test
