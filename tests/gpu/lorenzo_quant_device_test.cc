// What the common suite does not reach: fields of many blocks, lists of the original system, sizes
// that only the device knows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fz/backend.h"
#include "fz/error.h"
#include "gpu/device_stage.h"

namespace fz::test {
namespace {

using F32 = LorenzoQuantStage<float, std::uint16_t>;
using F32Narrow = LorenzoQuantStage<float, std::uint8_t>;
using F64 = LorenzoQuantStage<double, std::uint32_t>;
constexpr std::uint16_t kId = 1;

class LorenzoQuantDevice : public OnDevice<> {};

/// Smooth, with noise from `noise_begin` on and values of every kind in between.
template <class T>
std::vector<T> field(std::size_t n, std::size_t noise_begin) {
  std::mt19937_64 rng(n);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double smooth = 20.0 * std::sin(1e-3 * static_cast<double>(i));
    const double noise = i >= noise_begin ? static_cast<double>(rng() % 100'000) : 0.0;
    values[i] = static_cast<T>(smooth + noise);
    if (rng() % 5000 == 0) {
      values[i] = rng() % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(1e30);
    }
  }
  return values;
}

template <class S, class T>
void expectSame(const std::vector<T>& values, const Dims& dims, ErrorBoundMode mode) {
  const auto make = [&] {
    auto stage = std::make_unique<S>();
    stage->setErrorBound(1e-3);
    stage->setErrorBoundMode(mode);
    stage->setDims(dims);
    return stage;
  };
  SCOPED_TRACE(std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " x " +
               std::to_string(dims[2]));
  const Bytes bytes = toBytes(values);
  const Encoded cpu = encode(*make(), bytes);
  const Encoded gpu = encodeOnDevice(*make(), bytes);
  EXPECT_TRUE(cpu.config == gpu.config);
  EXPECT_EQ(cpu.version, gpu.version);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(cpu.streams[i] == gpu.streams[i]) << "port " << i;
  }
  EXPECT_TRUE(decode(kId, cpu) == decodeOnDevice(kId, cpu));
}

TEST_F(LorenzoQuantDevice, LargeFieldsGiveTheBytesOfTheCpu) {
  constexpr std::size_t kN = 1500 * 1400;
  const auto singles = field<float>(kN, kN - 300'000);
  const auto doubles = field<double>(kN, kN - 300'000);
  for (const Dims& dims : {Dims{kN, 1, 1}, Dims{1500, 1400, 1}, Dims{1400, 1500, 1},
                           Dims{100, 150, 140}, Dims{75, 100, 280}, Dims{3, 7, 100'000}}) {
    expectSame<F32>(singles, dims, ErrorBoundMode::ABS);
    expectSame<F32Narrow>(singles, dims, ErrorBoundMode::NOA);
    expectSame<F64>(doubles, dims, ErrorBoundMode::REL);
  }
}

void expectSameDecoded(const Encoded& e, const char* what) {
  SCOPED_TRACE(what);
  std::string cpu_error;
  std::string gpu_error;
  Bytes cpu;
  Bytes gpu;
  try {
    cpu = decode(kId, e);
  } catch (const Error& error) {
    cpu_error = errorCodeName(error.code());
  }
  try {
    gpu = decodeOnDevice(kId, e);
  } catch (const Error& error) {
    gpu_error = errorCodeName(error.code());
  }
  EXPECT_EQ(cpu_error, gpu_error);
  EXPECT_TRUE(cpu == gpu);
}

/// An encoded field with range entries and exact values, its lists taken apart.
struct Lists {
  Encoded e;
  std::vector<float> values;
  std::vector<std::uint32_t> indices;
  std::size_t n_range;

  explicit Lists(const Dims& dims) {
    F32 stage(F32::Config(1e-3, 64));
    stage.setDims(dims);
    e = encode(stage, toBytes(field<float>(dims[0] * dims[1] * dims[2], 9000)));
    values = fromBytes<float>(e.streams[1]);
    indices = fromBytes<std::uint32_t>(e.streams[2]);
    n_range = fromBytes<std::uint32_t>(ByteView(e.config).subspan(12, 4))[0];
  }
  Encoded put() const {
    Encoded changed = e;
    changed.streams[1] = toBytes(values);
    changed.streams[2] = toBytes(indices);
    return changed;
  }
};

TEST_F(LorenzoQuantDevice, ListsOfTheOriginalSystemDecodeAsOnTheCpu) {
  for (const Dims& dims : {Dims{10'000, 1, 1}, Dims{100, 100, 1}, Dims{20, 25, 20}}) {
    SCOPED_TRACE(std::to_string(dims[2]) + " planes");
    Lists lists(dims);
    ASSERT_GT(lists.n_range, 100u);
    ASSERT_GT(lists.indices.size(), lists.n_range);
    std::reverse(lists.values.begin(), lists.values.begin() + 90);
    std::reverse(lists.indices.begin(), lists.indices.begin() + 90);
    expectSameDecoded(lists.put(), "no order");
    EXPECT_TRUE(decodeOnDevice(kId, lists.put()) == decode(kId, lists.e));
    Lists doubled = lists;
    doubled.indices[3] = doubled.indices[50];
    expectSameDecoded(doubled.put(), "two of one index");
    Lists beyond = lists;
    beyond.indices[3] = 10'000;
    expectSameDecoded(beyond.put(), "beyond the values");
    Lists mixed = lists;
    std::swap(mixed.indices.back(), mixed.indices[lists.n_range]);
    expectSameDecoded(mixed.put(), "exact values in no order");
    for (const float delta : {1e12f, -3e38f, INFINITY, -NAN, 2147483648.0f, 0.75f}) {
      Lists wide = lists;
      wide.values[7] = delta;
      wide.values[60] = -delta;
      wide.values[61] = 1e10f;
      expectSameDecoded(wide.put(), "deltas that no integer holds");
    }
    Encoded old = lists.put();
    old.version = 1;
    expectSameDecoded(old, "version 1");
    old.streams[1].resize(old.streams[1].size() - 2);
    expectSameDecoded(old, "ragged list");
    old.version = 2;
    expectSameDecoded(old, "ragged list of version 2");
  }
}

TEST_F(LorenzoQuantDevice, ValuesBeyondTheDimsDecodeAsOnTheCpu) {
  Lists lists({100, 100, 1});
  Encoded e = lists.e;
  const std::uint32_t n = 10'077;
  std::memcpy(e.config.data() + 8, &n, 4);
  e.streams[0].resize(2 * n, 0x55);
  expectSameDecoded(e, "more values than the dims");
  lists.e = e;
  lists.indices[5] = 10'050;
  expectSameDecoded(lists.put(), "an entry there");
  lists.indices[6] = 10'050;
  expectSameDecoded(lists.put(), "two entries there");
  e.config[20] = 101;
  expectSameDecoded(e, "dims that hold more");
}

/// A run whose input size stands on the device only.
StageRecord encodeOfUnknownSize(F32& stage, const std::vector<float>& values, std::size_t n_limit) {
  std::vector<void*> memory;
  const auto onDevice = [&](const void* from, std::size_t n_bytes, std::size_t n_copied) {
    void* p = nullptr;
    FZ_CUDA_CHECK(cudaMalloc(&p, n_bytes));
    FZ_CUDA_CHECK(cudaMemset(p, 0xCD, n_bytes));
    FZ_CUDA_CHECK(cudaMemcpy(p, from, n_copied, cudaMemcpyDefault));
    memory.push_back(p);
    return static_cast<std::uint8_t*>(p);
  };
  StageRecord record;
  cuda::initRecord(record);
  const std::uint64_t n_bytes = values.size() * sizeof(float);
  const auto* size = reinterpret_cast<const std::uint64_t*>(onDevice(&n_bytes, 8, 8));
  const CudaInput input{onDevice(values.data(), 4 * n_limit, n_bytes), {4 * n_limit, size}};
  const std::vector<std::size_t> limits = stage.maxOutputSizes({4 * n_limit});
  std::vector<CudaOutput> outputs;
  outputs.reserve(limits.size());
  for (const std::size_t n : limits) {
    outputs.push_back({onDevice(nullptr, n, 0), n, false});
  }
  auto* on_device =
      reinterpret_cast<StageRecord*>(onDevice(&record, sizeof(record), sizeof(record)));
  StageAccess::enqueueCuda(stage, {{&input, 1}, outputs, on_device, nullptr, &devicePool()});
  FZ_CUDA_CHECK(cudaMemcpy(&record, on_device, sizeof(record), cudaMemcpyDefault));
  for (void* p : memory) {
    FZ_CUDA_CHECK(cudaFree(p));
  }
  StageAccess::finishCuda(stage, record, limits);
  return record;
}

TEST_F(LorenzoQuantDevice, SizesOnTheDeviceGiveTheConfigOfTheCpu) {
  const std::vector<float> values = field<float>(12'345, 12'000);
  F32 cpu;
  F32 gpu;
  const Encoded expected = encode(cpu, toBytes(values));
  const StageRecord record = encodeOfUnknownSize(gpu, values, 20'000);
  Bytes config(256);
  config.resize(gpu.serializeHeader(0, config.data(), config.size()));
  EXPECT_EQ(config, expected.config);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(record.n_bytes[i], expected.streams[i].size());
  }
  F32 wrong;
  wrong.setDims(100, 200);
  EXPECT_THROW(encodeOfUnknownSize(wrong, values, 20'000), Error);
}

}  // namespace
}  // namespace fz::test
