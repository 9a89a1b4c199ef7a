// What the generic suite does not reach: many tiles, the ladder, old archives, sizes that only the
// device knows.
#include <cmath>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fz/backend.h"
#include "fz/error.h"
#include "gpu/device_pipeline.h"
#include "gpu/device_stage.h"
#include "quantizers/quantizer/quantizer.h"

namespace fz::test {
namespace {

using quantizer::QuantizerBase;
using QConfig = QuantizerBase::Config;
constexpr std::uint16_t kId = 14;

class DeviceQuantizer : public OnDevice<> {};

template <class F>
std::string messageOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

/// Encodes on both sides with stages from make(); the results, or the errors' texts, must agree.
template <class Make>
void expectSameEncoding(Make make, const Bytes& input) {
  auto on_cpu = make();
  auto on_device = make();
  Encoded cpu;
  Encoded gpu;
  const std::string cpu_error = messageOf([&] { cpu = encode(*on_cpu, input); });
  const std::string gpu_error = messageOf([&] { gpu = encodeOnDevice(*on_device, input); });
  EXPECT_EQ(gpu_error, cpu_error);
  EXPECT_EQ(gpu.config, cpu.config);
  ASSERT_EQ(gpu.streams.size(), cpu.streams.size());
  for (std::size_t i = 0; i < cpu.streams.size(); ++i) {
    EXPECT_EQ(gpu.streams[i].size(), cpu.streams[i].size()) << "port " << i;
    EXPECT_TRUE(gpu.streams[i] == cpu.streams[i]) << "port " << i;
  }
  EXPECT_EQ(on_device->getAbsErrorBound(), on_cpu->getAbsErrorBound());
  EXPECT_EQ(on_device->getBoundInUse(), on_cpu->getBoundInUse());
  EXPECT_EQ(on_device->getOutlierCount(), on_cpu->getOutlierCount());
  if (!cpu_error.empty() || testing::Test::HasFailure()) {
    return;
  }
  EXPECT_TRUE(decodeOnDevice(kId, gpu) == decode(kId, cpu));
}

void expectSameDecoding(const Encoded& e) {
  Bytes cpu;
  Bytes gpu;
  const std::string cpu_error = messageOf([&] { cpu = decode(kId, e); });
  const std::string gpu_error = messageOf([&] { gpu = decodeOnDevice(kId, e); });
  EXPECT_EQ(gpu_error, cpu_error);
  EXPECT_TRUE(gpu == cpu);
}

/// Smooth values; every value whose draw is below `rate` is far away.
template <class T>
std::vector<T> withOutliers(std::size_t n, double rate) {
  std::mt19937_64 rng(n);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(i % 5000) * 0.001;
    const bool far = static_cast<double>(rng() >> 11) * 0x1p-53 < rate;
    values[i] = static_cast<T>(far ? 1e20 * (t - 2.0) : t * (5.0 - t));
  }
  return values;
}

template <class T, class C>
auto maker(const QConfig& config) {
  return [config] { return std::make_unique<QuantizerStage<T, C>>(config); };
}

TEST_F(DeviceQuantizer, OutliersOfManyTilesStandInIndexOrder) {
  for (const double rate : {0.0, 1e-6, 1e-4, 0.02, 1.0}) {
    SCOPED_TRACE(rate);
    const QConfig config(1e-3);
    expectSameEncoding(maker<float, std::uint16_t>(config),
                       toBytes(withOutliers<float>(3'000'001, rate)));
    expectSameEncoding(maker<double, std::uint32_t>(config),
                       toBytes(withOutliers<double>(1'000'003, rate)));
  }
}

TEST_F(DeviceQuantizer, OutliersOfALargeFieldStandInIndexOrder) {
  expectSameEncoding(maker<float, std::uint16_t>(QConfig(1e-3)),
                     toBytes(withOutliers<float>(34'000'001, 1e-4)));
}

TEST_F(DeviceQuantizer, RelOfManyTiles) {
  for (const double bound : {1e-2, 1e-5, 1e-8, 2.0}) {
    SCOPED_TRACE(bound);
    const QConfig config(bound, ErrorBoundMode::REL);
    expectSameEncoding(maker<float, std::uint32_t>(config),
                       toBytes(withOutliers<float>(1'000'001, 1e-3)));
    expectSameEncoding(maker<double, std::uint32_t>(config),
                       toBytes(withOutliers<double>(500'003, 1e-3)));
  }
}

TEST_F(DeviceQuantizer, NoaFindsTheRangeOfTheFiniteValues) {
  std::vector<float> values = withOutliers<float>(2'000'003, 0.0);
  values[17] = NAN;
  values[1'999'999] = -INFINITY;
  values[1'234'567] = 123.0f;
  values[2'000'002] = -77.0f;
  const QConfig config(1e-4, ErrorBoundMode::NOA);
  expectSameEncoding(maker<float, std::uint16_t>(config), toBytes(values));
  expectSameEncoding(maker<float, std::uint32_t>(config), toBytes(std::vector<float>(9000, NAN)));
  expectSameEncoding(maker<double, std::uint16_t>(config),
                     toBytes(std::vector<double>{-1.7e308, 1.7e308, 1.0}));
  QConfig with_base = config;
  with_base.precomputed_value_base = 10.0;
  expectSameEncoding(maker<float, std::uint16_t>(with_base), toBytes(values));
}

QConfig linear(double bound, LinearPolicy policy, ErrorBoundMode mode = ErrorBoundMode::ABS) {
  QConfig config(bound, mode);
  config.linear_mode = true;
  config.linear_policy = policy;
  return config;
}

std::vector<float> hardValues(std::size_t n) {
  std::mt19937_64 rng(2);
  std::vector<float> values(n);
  for (float& v : values) {
    v = 16000.0f + static_cast<float>(static_cast<double>(rng() >> 11) * 0x1p-53 * 400.0);
  }
  return values;
}

TEST_F(DeviceQuantizer, LinearPoliciesEndAsOnTheCpu) {
  std::vector<float> values = hardValues(1'000'001);
  for (const auto policy : {LinearPolicy::Throw, LinearPolicy::Wrap, LinearPolicy::Guarantee}) {
    SCOPED_TRACE(linearPolicyName(policy));
    for (const double bound : {0.1001, 0.25, 3e-4, 1e-7, 1e-12}) {
      SCOPED_TRACE(bound);
      expectSameEncoding(maker<float, std::uint32_t>(linear(bound, policy)), toBytes(values));
      expectSameEncoding(maker<float, std::uint16_t>(linear(bound, policy)), toBytes(values));
    }
    expectSameEncoding(maker<float, std::uint32_t>(linear(1e-5, policy, ErrorBoundMode::NOA)),
                       toBytes(values));
    std::vector<float> with_nan = values;
    with_nan[777'777] = NAN;
    with_nan[888'888] = INFINITY;
    expectSameEncoding(maker<float, std::uint32_t>(linear(0.1001, policy)), toBytes(with_nan));
    const std::vector<double> doubles(values.begin(), values.end());
    expectSameEncoding(maker<double, std::uint32_t>(linear(1e-16, policy)), toBytes(doubles));
    expectSameEncoding(maker<double, std::uint16_t>(linear(0.3, policy)), toBytes(doubles));
  }
}

TEST_F(DeviceQuantizer, InplaceNamesTheFirstValueThatLooksLikeACode) {
  QConfig config(1e-3);
  config.zigzag_codes = true;
  config.inplace_outliers = true;
  std::vector<float> values = withOutliers<float>(500'000, 0.01);
  expectSameEncoding(maker<float, std::uint32_t>(config), toBytes(values));
  config.outlier_threshold = 0.0;
  values[400'000] = 1e-43f;
  values[450'000] = 2e-43f;
  expectSameEncoding(maker<float, std::uint32_t>(config), toBytes(values));
}

template <class T>
void checkListsInAnyOrder() {
  const std::vector<T> values = withOutliers<T>(20'000, 0.3);
  QuantizerStage<T, std::uint16_t> stage(QConfig(1e-3));
  Encoded e = encode(stage, toBytes(values));
  auto indices = fromBytes<std::uint32_t>(e.streams[2]);
  ASSERT_GT(indices.size(), 5000u);
  std::mt19937_64 rng(3);
  std::shuffle(indices.begin(), indices.end(), rng);
  e.streams[2] = toBytes(indices);
  expectSameDecoding(e);
  for (std::uint32_t& index : indices) {
    index = static_cast<std::uint32_t>(rng() % 700);  // most of them several times
  }
  e.streams[2] = toBytes(indices);
  expectSameDecoding(e);
  indices[4001] = 20'000;
  indices[4444] = ~0u;
  e.streams[2] = toBytes(indices);
  expectSameDecoding(e);
}

TEST_F(DeviceQuantizer, ListsInAnyOrderDecodeAsOnTheCpu) {
  checkListsInAnyOrder<float>();
  checkListsInAnyOrder<double>();
}

TEST_F(DeviceQuantizer, OldArchivesDecodeAsOnTheCpu) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.1f));
  const Encoded good = encode(stage, toBytes(withOutliers<float>(10'000, 0.01)));
  for (const std::size_t n_bytes : {28u, 36u, 48u, 52u}) {
    Encoded e = good;
    e.config.resize(n_bytes);
    expectSameDecoding(e);
  }
  Encoded reserves = good;
  reserves.streams[1].resize(8000, 0xAB);
  reserves.streams[2].resize(8000, 0xCD);
  reserves.streams.push_back({2, 0, 0, 0});
  expectSameDecoding(reserves);
  QuantizerStage<double, std::uint32_t> rel({0.01f, ErrorBoundMode::REL});
  Encoded e = encode(rel, toBytes(withOutliers<double>(10'000, 0.01)));
  e.version = 1;
  e.config.resize(36);
  expectSameDecoding(e);
}

/// One run with sizes that stand on the device, below what the host believes.
class SizesOnDevice {
 public:
  explicit SizesOnDevice(const std::vector<std::size_t>& sizes) {
    const std::vector<std::uint64_t> exact(sizes.begin(), sizes.end());
    FZ_CUDA_CHECK(cudaMalloc(&sizes_, exact.size() * 8));
    FZ_CUDA_CHECK(cudaMemcpy(sizes_, exact.data(), exact.size() * 8, cudaMemcpyDefault));
    FZ_CUDA_CHECK(cudaMalloc(&record_, sizeof(StageRecord)));
  }
  ~SizesOnDevice() {
    cudaFree(sizes_);
    cudaFree(record_);
  }
  DeviceSize size(std::size_t i, std::size_t limit) const {
    return {limit, static_cast<const std::uint64_t*>(sizes_) + i};
  }
  StageRecord run(SimpleStage& stage,
                  const std::vector<CudaInput>& inputs,
                  const std::vector<CudaOutput>& outputs,
                  const Bytes& config = {}) {
    StageRecord record;
    cuda::initRecord(record);
    cuda::loadFields(StageAccess::deviceFields(stage), config, stage.getStageVersion(), record);
    FZ_CUDA_CHECK(cudaMemcpy(record_, &record, sizeof(record), cudaMemcpyDefault));
    StageAccess::enqueueCuda(
        stage, {inputs, outputs, static_cast<StageRecord*>(record_), nullptr, &devicePool()});
    FZ_CUDA_CHECK(cudaMemcpy(&record, record_, sizeof(record), cudaMemcpyDefault));
    return record;
  }

 private:
  void* sizes_ = nullptr;
  void* record_ = nullptr;
};

TEST_F(DeviceQuantizer, SizesMayStandOnTheDevice) {
  constexpr std::size_t kN = 100'003;
  constexpr std::size_t kLimit = 150'000;
  const std::vector<float> values = withOutliers<float>(kN, 0.01);
  const auto make = maker<float, std::uint16_t>({1e-4, ErrorBoundMode::NOA});
  auto on_cpu = make();
  const Encoded cpu = encode(*on_cpu, toBytes(values));

  void* block = nullptr;
  constexpr std::size_t kBuffer = std::size_t{1} << 20;
  FZ_CUDA_CHECK(cudaMalloc(&block, 5 * kBuffer));
  auto* memory = static_cast<std::uint8_t*>(block);
  FZ_CUDA_CHECK(cudaMemcpy(memory, values.data(), kN * 4, cudaMemcpyDefault));
  const auto buffer = [&](std::size_t i) { return memory + i * kBuffer; };
  const auto stage = make();
  SizesOnDevice encode_run({kN * 4});
  const std::vector<CudaOutput> outputs = {
      {buffer(1), kLimit * 2, false}, {buffer(2), kBuffer, false}, {buffer(3), kBuffer, false}};
  const StageRecord record =
      encode_run.run(*stage, {{memory, encode_run.size(0, kLimit * 4)}}, outputs);
  const std::vector<std::size_t> capacities = {kLimit * 2, kBuffer, kBuffer};
  StageAccess::finishCuda(*stage, record, capacities);
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 3; ++i) {
    Bytes stream(record.n_bytes[i]);
    FZ_CUDA_CHECK(cudaMemcpy(stream.data(), buffer(i + 1), stream.size(), cudaMemcpyDefault));
    EXPECT_TRUE(stream == cpu.streams[i]) << "port " << i;
    sizes.push_back(stream.size());
  }
  Bytes config(72);
  config.resize(stage->serializeHeader(0, config.data(), config.size()));
  EXPECT_EQ(config, cpu.config);

  stage->setInverse(true);
  SizesOnDevice decode_run(sizes);
  const StageRecord decoded = decode_run.run(*stage,
                                             {{buffer(1), decode_run.size(0, kLimit * 2)},
                                              {buffer(2), decode_run.size(1, kBuffer)},
                                              {buffer(3), decode_run.size(2, kBuffer)}},
                                             {{buffer(4), kBuffer, false}}, config);
  StageAccess::finishCuda(*stage, decoded, std::vector<std::size_t>{kBuffer});
  Bytes result(decoded.n_bytes[0]);
  FZ_CUDA_CHECK(cudaMemcpy(result.data(), buffer(4), result.size(), cudaMemcpyDefault));
  EXPECT_TRUE(result == decode(kId, cpu));

  stage->setInverse(false);
  SizesOnDevice odd_run({kN * 4 - 1});
  const StageRecord odd = odd_run.run(*stage, {{memory, odd_run.size(0, kLimit * 4)}}, outputs);
  try {
    StageAccess::finishCuda(*stage, odd, capacities);
    ADD_FAILURE() << "the input size is not a multiple of a value";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
  }
  cudaFree(memory);
}

/// Everything the data decides (ranges, rungs, counts) is found inside the graph.
TEST_F(DeviceQuantizer, EveryModeCanBeCapturedAndReplayedOnOtherData) {
  constexpr std::size_t kN = 50'000;
  QConfig inplace(1e-3);
  inplace.zigzag_codes = true;
  inplace.inplace_outliers = true;
  const QConfig configs[] = {QConfig(1e-3),
                             {1e-4, ErrorBoundMode::NOA},
                             {1e-3, ErrorBoundMode::REL},
                             inplace,
                             linear(0.1001, LinearPolicy::Guarantee),
                             linear(1e-5, LinearPolicy::Guarantee, ErrorBoundMode::NOA),
                             linear(1e-2, LinearPolicy::Wrap)};
  for (const QConfig& config : configs) {
    SCOPED_TRACE(testing::Message() << errorBoundModeName(config.eb_mode) << config.linear_mode
                                    << linearPolicyName(config.linear_policy));
    const DeviceStream stream;
    Pipeline pipeline(kN * sizeof(float), MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    pipeline.enableGraphMode(true);
    pipeline.addStage<QuantizerStage<float, std::uint32_t>>(config);
    pipeline.finalize();
    pipeline.warmup(stream);
    pipeline.captureGraph(stream);
    Pipeline cpu;
    cpu.setBackend(Backend::CPU);
    cpu.addStage<QuantizerStage<float, std::uint32_t>>(config);
    cpu.finalize();
    for (int i = 0; i < 5; ++i) {
      std::vector<float> values = i % 2 == 0 ? withOutliers<float>(kN, 0.0) : hardValues(kN);
      for (std::size_t k = 0; k < kN; k += static_cast<std::size_t>(7 + 100 * i)) {
        values[k] *= static_cast<float>(1 + i);
      }
      const DeviceBytesBuffer input{ByteView(toBytes(values))};
      FrameBytes expected;
      FrameBytes frame;
      const std::string cpu_error = messageOf([&] { expected = frameOf(cpu, values); });
      const std::string error =
          messageOf([&] { frame = frameOnDevice(pipeline, input, kN * sizeof(float), stream); });
      EXPECT_EQ(error, cpu_error) << "replay " << i;
      EXPECT_TRUE(frame == expected) << "replay " << i;
    }
  }
}

}  // namespace
}  // namespace fz::test
