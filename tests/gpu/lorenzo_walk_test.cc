// Grids of Lorenzo can be decoded in two ways; which one a stage takes depends on the grid and the
// device, so both are called here.
#include <gtest/gtest.h>
#include <random>
#include <span>

#include "backends/cuda/record.h"
#include "gpu/device_pipeline.h"
#include "gpu/device_stage.h"
#include "predictors/lorenzo/cuda/kernels.h"
#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz::test {
namespace {

using lorenzo::DecodeWay;
using Dims = std::array<std::size_t, 3>;

class DeviceLorenzoWays : public OnDevice<> {};

template <class T>
Bytes randomGrid(const Dims& dims) {
  std::mt19937_64 rng(dims[0] + dims[1] + dims[2]);
  std::vector<T> values(dims[0] * dims[1] * dims[2]);
  for (T& v : values) {
    v = static_cast<T>(rng());
  }
  return toBytes(values);
}

template <class T>
Bytes encodedGrid(const Bytes& original, const Dims& dims) {
  LorenzoStage<T> stage;
  stage.setDims(dims);
  return encode(stage, original).streams[0];
}

/// Decodes on the device. With `n_spare` the host knows only that rows are no longer than that
/// much more.
template <class T>
Bytes decodeGrid(const Bytes& codes, const Dims& dims, DecodeWay way, std::size_t n_spare) {
  using U = std::make_unsigned_t<T>;
  StageRecord record;
  cuda::initRecord(record);
  record.value[lorenzo::kExtentSlot] = dims[0];
  const std::uint64_t n_bytes = codes.size();
  const DeviceBytesBuffer in{ByteView(codes)};
  const DeviceBytesBuffer out{ByteView(Bytes(codes.size() + 16, 0xAB))};
  const DeviceBytesBuffer size{ByteView(reinterpret_cast<const std::uint8_t*>(&n_bytes), 8)};
  const DeviceBytesBuffer records{
      ByteView(reinterpret_cast<const std::uint8_t*>(&record), sizeof(record))};
  const bool is_open = n_spare > 0;
  const std::size_t limit = (dims[0] + n_spare) * dims[1] * dims[2] * sizeof(T);
  const lorenzo::CudaGrid grid = {
      {in.data(), {limit, is_open ? reinterpret_cast<std::uint64_t*>(size.data()) : nullptr}},
      {out.data(), codes.size(), false},
      {dims[0] + n_spare, dims[1], dims[2]},
      is_open ? lorenzo::ExtentFrom::kRecord : lorenzo::ExtentFrom::kHost,
      reinterpret_cast<StageRecord*>(records.data()),
      nullptr};
  if (way == DecodeWay::kWalk && !lorenzo::canWalk<U>(grid)) {
    way = DecodeWay::kTwoPasses;
  }
  const std::size_t n_scratch = lorenzo::decodeScratchBytes<U>(grid, way);
  const DeviceBytesBuffer scratch{ByteView(Bytes(n_scratch + 16, 0xCD))};
  lorenzo::decodeGrid<U>(grid, way, scratch.data());
  FZ_CUDA_CHECK(cudaDeviceSynchronize());
  const Bytes rest = out.get(codes.size() + 16);
  EXPECT_TRUE(std::all_of(rest.end() - 16, rest.end(), [](auto b) { return b == 0xAB; }));
  return out.get(codes.size());
}

/// Rows that are aligned and such that are not, several strips and bands, layers that end inside a
/// step; and what has only one of each. The first ones are for small runs.
const Dims kGrids[] = {{64, 16, 9},   {700, 37, 11}, {701, 20, 9},  {2048, 17, 9},
                       {701, 50, 19}, {1031, 3, 70}, {1, 40, 33},   {130, 65, 1},
                       {256, 1, 24},  {5, 300, 2},   {2048, 33, 17}};
constexpr std::size_t kSmallGrids = 4;

template <class T>
void expectBothWays() {
  for (const Dims& dims : std::span(kGrids, isSmallRun() ? kSmallGrids : std::size(kGrids))) {
    const Bytes original = randomGrid<T>(dims);
    const Bytes codes = encodedGrid<T>(original, dims);
    for (const DecodeWay way : {DecodeWay::kTwoPasses, DecodeWay::kWalk}) {
      for (const std::size_t n_spare : {0, 300}) {
        EXPECT_TRUE(decodeGrid<T>(codes, dims, way, n_spare) == original)
            << dims[0] << " x " << dims[1] << " x " << dims[2] << ", way " << static_cast<int>(way)
            << ", " << n_spare << " spare, " << sizeof(T) << " bytes";
      }
    }
  }
}

TEST_F(DeviceLorenzoWays, GiveTheSameValuesForEveryGrid) {
  expectBothWays<std::int8_t>();
  expectBothWays<std::int16_t>();
  expectBothWays<std::int32_t>();
  expectBothWays<std::int64_t>();
}

template <class T>
void expectLargeGrid(const Dims& dims) {
  const Bytes original = randomGrid<T>(dims);
  const Bytes codes = encodedGrid<T>(original, dims);
  for (int round = 0; round < 3; ++round) {  // what blocks wait for differs from run to run
    EXPECT_TRUE(decodeGrid<T>(codes, dims, DecodeWay::kWalk, 0) == original) << sizeof(T);
  }
}

// More blocks than run at once: the later ones wait for some that have long ended.
TEST_F(DeviceLorenzoWays, WalkThroughGridsOfManyTiles) {
  if (isSmallRun()) {
    GTEST_SKIP() << "large";
  }
  expectLargeGrid<std::int32_t>({1024, 640, 20});
  expectLargeGrid<std::int64_t>({512, 640, 20});
  expectLargeGrid<std::int32_t>({1030, 640, 20});
  expectLargeGrid<std::int64_t>({513, 640, 20});
  expectLargeGrid<std::int16_t>({2056, 500, 17});
  expectLargeGrid<std::int8_t>({8192, 160, 17});
}

TEST_F(DeviceLorenzoWays, TheWalkIsForGridsThatFillTheDevice) {
  const auto wayOf = [](const Dims& dims) {
    const lorenzo::CudaGrid grid = {{}, {}, {dims[0], dims[1], dims[2]}, {}, nullptr, nullptr};
    return lorenzo::fasterWay<std::uint32_t>(grid);
  };
  EXPECT_EQ(wayOf({8192, 16384, 1}), DecodeWay::kTwoPasses);
  EXPECT_EQ(wayOf({64, 64, 64}), DecodeWay::kTwoPasses);
  EXPECT_EQ(wayOf({64, 64, 4096}), DecodeWay::kTwoPasses);
  const lorenzo::CudaGrid large = {{}, {}, {4096, 4096, 512}, {}, nullptr, nullptr};
  EXPECT_EQ(wayOf({4096, 4096, 512}),
            lorenzo::canWalk<std::uint32_t>(large) ? DecodeWay::kWalk : DecodeWay::kTwoPasses);
}

}  // namespace
}  // namespace fz::test
