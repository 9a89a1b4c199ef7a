// What the conformance cases of Huffman leave out: large books, deep trees, many partitions,
// streams of other writers, errors that the device finds.
#include <algorithm>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "coders/huffman/huffman_stage.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fz/backend.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "gpu/device_stage.h"

namespace fz::test {
namespace {

class HuffmanDevice : public OnDevice<> {
 protected:
  template <class T>
  static void expectSameBothWays(HuffmanStage<T>& stage, const std::vector<T>& values) {
    const Bytes input = toBytes(values);
    const Encoded cpu = encode(stage, input);
    const Encoded gpu = encodeOnDevice(stage, input);
    stage.setExecContext(nullptr);
    EXPECT_EQ(gpu.config, cpu.config);
    EXPECT_EQ(gpu.streams[0].size(), cpu.streams[0].size());
    EXPECT_TRUE(gpu.streams[0] == cpu.streams[0]);
    EXPECT_TRUE(decodeOnDevice(6, cpu) == input);
  }
};

template <class T>
std::vector<T> gaussian(std::size_t n, double spread, std::uint32_t bklen) {
  std::mt19937_64 rng(n);
  std::normal_distribution<> normal(bklen / 2.0, spread);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(std::clamp(normal(rng), 0.0, bklen - 1.0));
  }
  return values;
}

TEST_F(HuffmanDevice, ManyPartitionsOfEveryTypeAndMode) {
  const auto check = []<class T>(T, std::uint32_t bklen) {
    for (const auto mode : {HuffmanEncodeMode::Coarse, HuffmanEncodeMode::Fine}) {
      for (const double spread : {0.2, 3.0, 60.0}) {
        HuffmanStage<T> stage;
        stage.setBklen(bklen);
        stage.setEncodeMode(mode);
        expectSameBothWays(stage, gaussian<T>(3'000'001, spread, bklen));
      }
    }
  };
  check(std::uint8_t{}, 256);
  check(std::uint8_t{}, 255);  // the words are unaligned
  check(std::uint8_t{}, 2000);
  check(std::uint16_t{}, 1024);
  check(std::uint16_t{}, 1023);
  check(std::uint32_t{}, 1024);
}

TEST_F(HuffmanDevice, LargeBooks) {
  for (const std::uint32_t bklen : {4096u, 8193u, 60001u, 65536u}) {
    HuffmanStage<std::uint16_t> stage;
    stage.setBklen(bklen);
    expectSameBothWays(stage, gaussian<std::uint16_t>(700'003, bklen / 9.0, bklen));
    HuffmanStage<std::uint32_t> wide;
    wide.setBklen(bklen);
    expectSameBothWays(wide, gaussian<std::uint32_t>(700'003, bklen / 9.0, bklen));
  }
}

TEST_F(HuffmanDevice, CodesWouldPass27BitsAndAreLimited) {
  std::vector<std::uint32_t> counts = {1, 1};
  while (counts.size() < 30) {
    counts.push_back(counts[counts.size() - 1] + counts[counts.size() - 2]);
  }
  std::vector<std::uint16_t> values;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    values.insert(values.end(), counts[s], static_cast<std::uint16_t>(s));
  }
  HuffmanStage<std::uint16_t> stage;
  expectSameBothWays(stage, values);  // sorted: long partitions first, so offsets jump
  std::shuffle(values.begin(), values.end(), std::mt19937_64(1));
  expectSameBothWays(stage, values);
}

TEST_F(HuffmanDevice, AStreamOfOtherPartitionLengthsDecodes) {
  HuffmanStage<std::uint16_t> stage;
  const Bytes input = toBytes(gaussian<std::uint16_t>(700, 9, 1024));
  Encoded encoded = encode(stage, input);
  for (const std::uint32_t partition_values : {700u, 701u, 0xFFFFFFFFu}) {
    storeLe<std::uint32_t>(encoded.streams[0].data() + 4, partition_values);
    EXPECT_TRUE(decodeOnDevice(6, encoded) == input) << partition_values;
  }
}

TEST_F(HuffmanDevice, SymbolOutsideTheBookIsNamed) {
  HuffmanStage<std::uint16_t> stage;
  std::vector<std::uint16_t> values(200'000, 1);
  values[123'456] = 1024;
  values[150'000] = 2000;
  try {
    encodeOnDevice(stage, toBytes(values));
    FAIL() << "must throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
    EXPECT_NE(std::string(e.what()).find("symbol 1024 at index 123456"), std::string::npos)
        << e.what();
  }
}

TEST_F(HuffmanDevice, DamageInAnyPartitionIsFound) {
  HuffmanStage<std::uint16_t> stage;
  stage.setBklen(8);
  const Encoded good = encode(stage, toBytes(std::vector<std::uint16_t>(768 * 300, 3)));
  const std::size_t words = loadLe<std::uint32_t>(good.streams[0].data() + 56);
  const std::size_t bits = loadLe<std::uint32_t>(good.streams[0].data() + 48);
  const auto expectRefused = [&](std::size_t offset, std::uint32_t value) {
    Encoded damaged = good;
    storeLe(damaged.streams[0].data() + offset, value);
    EXPECT_THROW(decodeOnDevice(6, damaged), Error) << offset;
  };
  for (std::size_t p = 0; p < 300; p += 13) {
    expectRefused(words + 4 * (24 * p + 11), 0x00010000u);  // the one code is 0
    expectRefused(bits + 4 * p, 767);
    expectRefused(bits + 4 * p, 0xFFFFFFFFu);
    expectRefused(bits + 4 * (300 + p), 0xFFFFFFF0u);
  }
}

/// Device memory of a test.
class DeviceBlock {
 public:
  explicit DeviceBlock(std::size_t n_bytes) { FZ_CUDA_CHECK(cudaMalloc(&memory_, n_bytes)); }
  explicit DeviceBlock(ByteView bytes) : DeviceBlock(bytes.size()) {
    FZ_CUDA_CHECK(cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyDefault));
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() { cudaFree(memory_); }
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }
  Bytes take(std::size_t n_bytes) const {
    Bytes bytes(n_bytes);
    FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), memory_, n_bytes, cudaMemcpyDefault));
    return bytes;
  }

 private:
  void* memory_ = nullptr;
};

/// Runs the stage with an input whose exact size only the device knows, below `limit_bytes`.
StageRecord runWithUnknownSize(SimpleStage& stage,
                               const DeviceBlock& in,
                               std::size_t limit_bytes,
                               std::size_t exact_bytes,
                               const CudaOutput& out,
                               std::uint64_t n_values) {
  StageRecord record;
  cuda::initRecord(record);
  record.value[0] = stage.isInverse() ? n_values : 0;
  const DeviceBlock on_device(
      ByteView(reinterpret_cast<const std::uint8_t*>(&record), sizeof(record)));
  const std::uint64_t exact = exact_bytes;
  const DeviceBlock size(ByteView(reinterpret_cast<const std::uint8_t*>(&exact), sizeof(exact)));
  const CudaInput input{in.data(),
                        {limit_bytes, reinterpret_cast<const std::uint64_t*>(size.data())}};
  StageAccess::enqueueCuda(stage, {{&input, 1},
                                   {&out, 1},
                                   reinterpret_cast<StageRecord*>(on_device.data()),
                                   nullptr,
                                   &devicePool()});
  FZ_CUDA_CHECK(cudaMemcpy(&record, on_device.data(), sizeof(record), cudaMemcpyDefault));
  return record;
}

TEST_F(HuffmanDevice, SizesMayStandOnTheDevice) {
  HuffmanStage<std::uint16_t> stage;
  const Bytes input = toBytes(gaussian<std::uint16_t>(50'001, 5, 1024));
  const Encoded cpu = encode(stage, input);
  const Bytes& stream = cpu.streams[0];
  Bytes padded = input;
  padded.resize(input.size() + 30'000, 0xFF);  // no symbols there
  const DeviceBlock in{ByteView(padded)};
  const DeviceBlock out(stream.size());
  StageRecord record =
      runWithUnknownSize(stage, in, padded.size(), input.size(), {out.data(), stream.size()}, 0);
  EXPECT_EQ(record.error, 0u);
  EXPECT_EQ(record.value[0], 50'001u);
  EXPECT_EQ(record.n_bytes[0], stream.size());
  EXPECT_TRUE(out.take(stream.size()) == stream);

  for (const std::size_t capacity :
       {std::size_t{0}, std::size_t{200}, std::size_t{3000}, stream.size() - 1}) {
    record = runWithUnknownSize(stage, in, padded.size(), input.size(), {out.data(), capacity}, 0);
    EXPECT_EQ(record.needed_bytes[0], stream.size());
    EXPECT_EQ(record.n_bytes[0], capacity);
  }
  record = runWithUnknownSize(stage, in, padded.size(), 0, {out.data(), stream.size()}, 0);
  EXPECT_EQ(record.n_bytes[0], 0u);
  EXPECT_EQ(record.error, 0u);
  record = runWithUnknownSize(stage, in, padded.size(), 7, {out.data(), stream.size()}, 0);
  EXPECT_NE(record.error, 0u);

  stage.setInverse(true);
  Bytes long_stream = stream;
  long_stream.resize(stream.size() + 1000, 0xFF);
  const DeviceBlock encoded{ByteView(long_stream)};
  const DeviceBlock decoded(input.size());
  const auto decodeTo = [&](std::size_t n_bytes, std::size_t capacity) {
    return runWithUnknownSize(stage, encoded, long_stream.size(), n_bytes,
                              {decoded.data(), capacity}, 50'001);
  };
  record = decodeTo(stream.size(), input.size() - 1);
  EXPECT_EQ(record.needed_bytes[0], input.size());
  record = decodeTo(stream.size(), input.size());
  EXPECT_EQ(record.error, 0u);
  EXPECT_EQ(record.n_bytes[0], input.size());
  EXPECT_TRUE(decoded.take(input.size()) == input);
  EXPECT_NE(decodeTo(stream.size() - 4, input.size()).error, 0u);
  EXPECT_NE(decodeTo(0, input.size()).error, 0u);
}

}  // namespace
}  // namespace fz::test
