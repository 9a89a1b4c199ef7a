// Predictors on fields of many tiles, where sums pass from block to block.
#include <cstring>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fz/backend.h"
#include "fz/error.h"
#include "fz/simple_stage.h"
#include "fzm_format.h"
#include "gpu/device_stage.h"
#include "predictors/diff/diff.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"
#include "stage/stage_factory.h"

namespace fz::test {
namespace {

class DevicePredictors : public OnDevice<> {};

Bytes randomBytes(std::size_t n) {
  std::mt19937_64 rng(n);
  Bytes bytes(n + 8);
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint64_t value = rng();
    std::memcpy(bytes.data() + i, &value, 8);
  }
  bytes.resize(n);
  return bytes;
}

/// Both backends encode and decode; all must agree.
void expectSameAsCpu(Stage& stage, const Bytes& original) {
  const Encoded cpu = encode(stage, original);
  const Encoded gpu = encodeOnDevice(stage, original);
  EXPECT_EQ(gpu.config, cpu.config);
  ASSERT_EQ(gpu.streams[0].size(), cpu.streams[0].size());
  EXPECT_TRUE(gpu.streams[0] == cpu.streams[0]) << "encoding";
  EXPECT_TRUE(decodeOnDevice(stage.getStageTypeId(), cpu) == original) << "decoding";
}

struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, DeviceFree>;

DeviceMemory deviceMemory(std::size_t n_bytes) {
  void* memory = nullptr;
  FZ_CUDA_CHECK(cudaMalloc(&memory, n_bytes));
  FZ_CUDA_CHECK(cudaMemset(memory, 0xAB, n_bytes));
  return DeviceMemory(memory);
}

/// Runs the stage in its direction when only the device knows the size, up to `limit`.
Encoded runWithSizeOnDevice(SimpleStage& stage, ByteView input, std::size_t limit) {
  const std::size_t capacity = 2 * limit;  // also for dims that do not hold the limit
  const DeviceMemory in = deviceMemory(limit + 16);
  const DeviceMemory out = deviceMemory(capacity + 16);
  const DeviceMemory sizes = deviceMemory(sizeof(std::uint64_t));
  const DeviceMemory records = deviceMemory(sizeof(StageRecord));
  const std::uint64_t n_bytes = input.size();
  StageRecord record;
  cuda::initRecord(record);
  Bytes config(FZM_STAGE_CONFIG_SIZE);
  config.resize(stage.serializeHeader(0, config.data(), config.size()));
  if (stage.isInverse()) {
    cuda::loadFields(StageAccess::deviceFields(stage), config, stage.getStageVersion(), record);
  }
  FZ_CUDA_CHECK(cudaMemcpy(in.get(), input.data(), n_bytes, cudaMemcpyDefault));
  FZ_CUDA_CHECK(cudaMemcpy(sizes.get(), &n_bytes, sizeof(n_bytes), cudaMemcpyDefault));
  FZ_CUDA_CHECK(cudaMemcpy(records.get(), &record, sizeof(record), cudaMemcpyDefault));
  const CudaInput cuda_input = {static_cast<const std::uint8_t*>(in.get()),
                                {limit, static_cast<const std::uint64_t*>(sizes.get())}};
  const CudaOutput cuda_output = {static_cast<std::uint8_t*>(out.get()), capacity, false};
  StageAccess::enqueueCuda(stage, {{&cuda_input, 1},
                                   {&cuda_output, 1},
                                   static_cast<StageRecord*>(records.get()),
                                   nullptr,
                                   &devicePool()});
  FZ_CUDA_CHECK(cudaMemcpy(&record, records.get(), sizeof(record), cudaMemcpyDefault));
  StageAccess::finishCuda(stage, record, std::vector<std::size_t>{capacity});
  Encoded result;
  result.config.resize(FZM_STAGE_CONFIG_SIZE);
  result.config.resize(stage.serializeHeader(0, result.config.data(), result.config.size()));
  result.streams.emplace_back(record.n_bytes[0]);
  FZ_CUDA_CHECK(
      cudaMemcpy(result.streams[0].data(), out.get(), record.n_bytes[0], cudaMemcpyDefault));
  return result;
}

void expectSameWithSizeOnDevice(SimpleStage& stage, const Bytes& original) {
  const Encoded cpu = encode(stage, original);
  const Encoded gpu = runWithSizeOnDevice(stage, original, original.size() + 4096);
  EXPECT_EQ(gpu.config, cpu.config);
  EXPECT_TRUE(gpu.streams == cpu.streams) << "encoding";
  const auto decoder = makeStage(stage.getStageTypeId(), cpu.config.data(), cpu.config.size());
  decoder->setInverse(true);
  const Encoded decoded = runWithSizeOnDevice(dynamic_cast<SimpleStage&>(*decoder), cpu.streams[0],
                                              cpu.streams[0].size() + 4096);
  EXPECT_TRUE(decoded.streams[0] == original) << "decoding";
}

std::string textOf(const Dims& dims) {
  return std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " x " +
         std::to_string(dims[2]);
}

const Dims kGrids[] = {{1024, 700, 1}, {1001, 333, 1}, {70000, 9, 1},  {3, 40000, 1},
                       {256, 96, 40},  {301, 67, 45},  {512, 5, 300},  {1, 130, 140},
                       {17, 1, 9000},  {640, 300, 2},  {130, 33, 129}, {2048, 1, 130}};

template <class T>
void expectGrids() {
  for (const Dims& dims : kGrids) {
    SCOPED_TRACE(textOf(dims) + ", " + std::to_string(sizeof(T)) + " bytes");
    LorenzoStage<T> stage;
    stage.setDims(dims);
    const Bytes original = randomBytes(dims[0] * dims[1] * dims[2] * sizeof(T));
    for (int round = 0; round < 3; ++round) {  // what blocks wait for differs from run to run
      expectSameAsCpu(stage, original);
    }
  }
}

TEST_F(DevicePredictors, GridsOfManyTilesGiveTheBytesOfTheCpu) {
  expectGrids<std::int8_t>();
  expectGrids<std::int16_t>();
  expectGrids<std::int32_t>();
  expectGrids<std::int64_t>();
}

template <class T, class TOut = T>
void expectLongChunks() {
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{1} << 16, std::size_t{1} << 20}) {
    SCOPED_TRACE("chunk " + std::to_string(chunk) + ", " + std::to_string(sizeof(T)) + " bytes");
    DifferenceStage<T, TOut> stage;
    stage.setChunkSize(chunk);
    expectSameAsCpu(stage, randomBytes(3'000'007 * sizeof(T)));
  }
}

TEST_F(DevicePredictors, ChunksOfManyTilesGiveTheBytesOfTheCpu) {
  expectLongChunks<std::uint8_t>();
  expectLongChunks<std::int16_t>();
  expectLongChunks<std::int32_t>();
  expectLongChunks<std::uint64_t>();
  expectLongChunks<std::int32_t, std::uint32_t>();
  expectLongChunks<std::int64_t, std::uint64_t>();
}

template <class T>
Bytes wholeNumbers(std::size_t n, std::uint64_t range) {
  std::mt19937_64 rng(n);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(static_cast<std::int64_t>(rng() % (2 * range)) -
                       static_cast<std::int64_t>(range));
  }
  return toBytes(values);
}

TEST_F(DevicePredictors, FloatsInLongChunksAreWholeAgain) {
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 18}) {
    DifferenceStage<float> floats;
    floats.setChunkSize(chunk);
    expectSameAsCpu(floats, wholeNumbers<float>(700'001, 1'000'000));
    DifferenceStage<double> doubles;
    doubles.setChunkSize(chunk);
    expectSameAsCpu(doubles, wholeNumbers<double>(700'001, 1'000'000'000));
  }
}

/// Streams that no encoder writes: rounding in every step, and NaNs.
template <class T>
void expectAnyFloats(const std::vector<T>& codes, std::size_t chunk) {
  DifferenceStage<T> stage;
  stage.setChunkSize(chunk);
  Encoded encoded = encode(stage, wholeNumbers<T>(64, 5));
  encoded.streams[0] = toBytes(codes);
  EXPECT_TRUE(decodeOnDevice(2, encoded) == decode(2, encoded)) << chunk;
}

TEST_F(DevicePredictors, FloatsThatRoundAreSummedFromLeftToRight) {
  std::mt19937_64 rng(3);
  std::vector<float> floats(50'001);
  std::vector<double> doubles(20'001);
  for (float& v : floats) {
    v = static_cast<float>(rng() % 2000) * 0.001f - 1.0f;
  }
  for (double& v : doubles) {
    v = static_cast<double>(rng() % 2000) * 0.001 - 1.0;
  }
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 15}) {
    expectAnyFloats(floats, chunk);
    expectAnyFloats(doubles, chunk);
  }
  floats[0] = -0.0f;
  floats[1] = -0.0f;
  floats[20'000] = std::numeric_limits<float>::infinity();
  floats[30'000] = -std::numeric_limits<float>::infinity();
  expectAnyFloats(floats, 0);
  floats[10'000] = std::numeric_limits<float>::quiet_NaN();
  expectAnyFloats(floats, 0);
}

TEST_F(DevicePredictors, FloatsThatWouldChangeAreRefused) {
  Bytes original = wholeNumbers<float>(100'000, 1000);
  const float bad = 0.1f;
  std::memcpy(original.data() + 4 * 77'777, &bad, 4);
  DifferenceStage<float> stage;
  try {
    encodeOnDevice(stage, original);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBoundViolation);
    EXPECT_NE(std::string(e.what()).find("index 77777"), std::string::npos) << e.what();
  }
}

TEST_F(DevicePredictors, TilesOfLargeFieldsGiveTheBytesOfTheCpu) {
  for (const Dims& dims : kGrids) {
    SCOPED_TRACE(textOf(dims));
    TiledLorenzoStage<std::int32_t> wide;
    wide.setDims(dims);
    expectSameAsCpu(wide, randomBytes(dims[0] * dims[1] * dims[2] * 4));
    TiledLorenzoStage<std::int16_t> narrow;
    narrow.setDims(dims);
    expectSameAsCpu(narrow, randomBytes(dims[0] * dims[1] * dims[2] * 2));
    narrow.setTileShape(1, 32, 32);
    expectSameAsCpu(narrow, randomBytes(dims[0] * dims[1] * dims[2] * 2));
    wide.setTileShape(128, 2, 4);
    expectSameAsCpu(wide, randomBytes(dims[0] * dims[1] * dims[2] * 4));
  }
}

TEST_F(DevicePredictors, SizesThatOnlyTheDeviceKnowsChangeNothing) {
  for (const std::size_t block : {0u, 3u, 32u, 1024u}) {
    LorenzoStage<std::int16_t> line;
    line.setBlockSize(block);
    expectSameWithSizeOnDevice(line, randomBytes(2 * 50'001));
  }
  for (const Dims& dims : {Dims{0, 30, 40}, Dims{0, 300, 1}, Dims{52, 30, 40}, Dims{101, 300, 1}}) {
    SCOPED_TRACE(textOf(dims));
    const std::size_t nx = dims[0] == 0 ? 133 : dims[0];
    LorenzoStage<std::int32_t> grid;
    grid.setDims(dims);
    expectSameWithSizeOnDevice(grid, randomBytes(4 * nx * dims[1] * dims[2]));
    TiledLorenzoStage<std::int32_t> tiles;
    tiles.setDims(dims);
    expectSameWithSizeOnDevice(tiles, randomBytes(4 * nx * dims[1] * dims[2]));
  }
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{64}, std::size_t{1} << 20}) {
    DifferenceStage<std::int32_t, std::uint32_t> integers;
    integers.setChunkSize(chunk);
    expectSameWithSizeOnDevice(integers, randomBytes(4 * 300'001));
    DifferenceStage<float> floats;
    floats.setChunkSize(chunk);
    expectSameWithSizeOnDevice(floats, wholeNumbers<float>(300'001, 1000));
  }
}

ErrorCode codeOf(SimpleStage& stage, std::size_t n_bytes) {
  try {
    runWithSizeOnDevice(stage, randomBytes(n_bytes), n_bytes + 4096);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kInternal;
}

TEST_F(DevicePredictors, WrongSizesThatOnlyTheDeviceKnowsAreRefused) {
  LorenzoStage<std::int32_t> grid;
  grid.setDims(10, 10);
  EXPECT_EQ(codeOf(grid, 404), ErrorCode::kBadSize);
  LorenzoStage<std::int32_t> line;
  line.setDims(10);
  EXPECT_EQ(codeOf(line, 44), ErrorCode::kBadSize);
  EXPECT_EQ(codeOf(line, 41), ErrorCode::kBadSize);
  TiledLorenzoStage<std::int32_t> tiles;
  tiles.setDims(0, 10);
  EXPECT_EQ(codeOf(tiles, 44), ErrorCode::kBadSize);
  DifferenceStage<std::int32_t> difference;
  EXPECT_EQ(codeOf(difference, 41), ErrorCode::kBadSize);
}

}  // namespace
}  // namespace fz::test
