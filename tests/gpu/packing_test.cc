// AdaptiveBitpack and Bitpack on the device: what the conformance cases do not reach.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/adaptive_bitpack/codec.h"
#include "coders/bitpack/bitpack_stage.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "gpu/device_stage.h"

namespace fz::test {
namespace {

class PackingDevice : public OnDevice<> {};

template <class F>
std::string messageOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(errorCodeName(e.code())) + ": " + e.what();
  }
  return "nothing was thrown";
}

/// Runs of values whose widths vary, with wide first values now and then.
template <class T>
std::vector<T> mixed(std::size_t n, std::mt19937_64& rng) {
  std::vector<T> values(n);
  unsigned width = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (rng() % 40 == 0) {
      width = static_cast<unsigned>(rng() % (8 * sizeof(T) + 1));
    }
    const unsigned wide = i % 8 == 0 && rng() % 4 == 0 ? 8 * sizeof(T) : width;
    const std::uint64_t magnitude = rng() & ((std::uint64_t{1} << wide) - 1);
    values[i] = static_cast<T>(rng() % 2 == 0 ? magnitude : 0 - magnitude);
  }
  return values;
}

template <class T>
void expectSameAsCpu(std::size_t block_size, bool outlier_selection, std::size_t n) {
  SCOPED_TRACE("block " + std::to_string(block_size) + (outlier_selection ? " outlier" : "") +
               ", " + std::to_string(n) + " values of " + std::to_string(sizeof(T)) + " bytes");
  std::mt19937_64 rng(block_size * 7 + n);
  const Bytes original = toBytes(mixed<T>(n, rng));
  AdaptiveBitpackStage<T> stage;
  stage.setBlockSize(block_size);
  stage.setOutlierSelection(outlier_selection);
  const Encoded cpu = encode(stage, original);
  const Encoded gpu = encodeOnDevice(stage, original);
  ASSERT_EQ(gpu.config, cpu.config);
  ASSERT_EQ(gpu.streams[0].size(), cpu.streams[0].size());
  ASSERT_TRUE(gpu.streams[0] == cpu.streams[0]);
  ASSERT_TRUE(decodeOnDevice(24, cpu) == original);
}

TEST_F(PackingDevice, EveryKindOfBlockSizeGivesTheBytesOfTheCpu) {
  for (const std::size_t block :
       {1u,  2u,  3u,  5u,  8u,   9u,   15u,  16u,  17u,  24u,  31u,   32u,  33u,
        63u, 64u, 65u, 96u, 128u, 255u, 256u, 257u, 500u, 512u, 1023u, 1024u}) {
    for (const bool outlier_selection : {false, true}) {
      for (const std::size_t n : {4097u, 8192u, 40'961u}) {
        expectSameAsCpu<std::int16_t>(block, outlier_selection, n);
        expectSameAsCpu<std::int32_t>(block, outlier_selection, n);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

TEST_F(PackingDevice, EveryAlignmentOfThePayloadIsWrittenExactly) {
  for (std::size_t n_blocks = 250; n_blocks < 268; ++n_blocks) {
    for (const bool outlier_selection : {false, true}) {
      expectSameAsCpu<std::int32_t>(32, outlier_selection, 32 * n_blocks - n_blocks % 5);
      expectSameAsCpu<std::int16_t>(64, outlier_selection, 64 * n_blocks - n_blocks % 5);
    }
  }
}

TEST_F(PackingDevice, ManyTilesAreScannedInOrder) {
  expectSameAsCpu<std::int32_t>(32, false, 9'000'001);
  expectSameAsCpu<std::int32_t>(32, true, 9'000'033);
  expectSameAsCpu<std::int16_t>(32, false, 9'000'065);
  expectSameAsCpu<std::int32_t>(7, true, 3'000'001);
}

/// A stream that no encoder wrote: every form that a decoder must take.
template <class T>
Encoded forgedStream(std::uint32_t block_size, std::size_t n_blocks, std::mt19937_64& rng) {
  const adaptive_bitpack::BlockLayout layout{block_size, true};
  Encoded encoded;
  encoded.config.resize(16);
  ByteWriter config(encoded.config);
  config.u8(static_cast<std::uint8_t>(kDataTypeOf<T>)).u8(1).u16(0).u32(block_size);
  config.u64(n_blocks * block_size - (block_size > 1 ? 1 : 0));
  Bytes stream(2 * n_blocks);
  std::size_t n_bytes = stream.size();
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const auto rate = static_cast<std::uint32_t>(b < 40 ? 8 * sizeof(T) : rng() % (8 * sizeof(T)));
    const auto outlier = static_cast<std::uint32_t>(b < 40 ? sizeof(T) : rng() % (sizeof(T) + 1));
    adaptive_bitpack::putForm({rate, outlier}, layout, stream.data() + 2 * b);
    n_bytes += adaptive_bitpack::blockCost({rate, outlier}, layout.planeBytes());
  }
  while (stream.size() < n_bytes) {
    stream.push_back(static_cast<std::uint8_t>(rng()));
  }
  encoded.streams.push_back(std::move(stream));
  return encoded;
}

TEST_F(PackingDevice, StreamsThatNoEncoderWroteDecodeAlike) {
  std::mt19937_64 rng(3);
  for (const std::uint32_t block : {1u, 7u, 16u, 32u, 64u, 100u, 1024u}) {
    SCOPED_TRACE(block);
    const Encoded wide = forgedStream<std::int32_t>(block, 150, rng);
    EXPECT_TRUE(decodeOnDevice(24, wide) == decode(24, wide));
    const Encoded narrow = forgedStream<std::int16_t>(block, 150, rng);
    EXPECT_TRUE(decodeOnDevice(24, narrow) == decode(24, narrow));
  }
}

TEST_F(PackingDevice, DamageIsReportedInTheWordsOfTheCpu) {
  std::mt19937_64 rng(9);
  AdaptiveBitpackStage<std::int32_t> stage;
  stage.setOutlierSelection(true);
  const Encoded good = encode(stage, toBytes(mixed<std::int32_t>(200'000, rng)));
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4001},
                               std::size_t{8002}, good.streams[0].size()}) {
    Encoded bad = good;
    if (at == bad.streams[0].size()) {
      bad.streams[0].push_back(0);
    } else {
      bad.streams[0][at] = 0xEE;
      bad.streams[0][at / 2 + 4096] = 0xEE;
    }
    EXPECT_EQ(messageOf([&] { decodeOnDevice(24, bad); }), messageOf([&] { decode(24, bad); }));
  }
}

TEST_F(PackingDevice, AValueThatIsTooWideIsNamedAsOnTheCpu) {
  for (const std::uint32_t n_bits : {1u, 2u, 4u, 8u, 16u}) {
    for (const std::size_t index : {0u, 3u, 6u, 70'001u, 99'998u}) {
      std::vector<std::uint32_t> values(100'000, 1);
      values[index] = 0x12345u + static_cast<std::uint32_t>(index);
      values.back() = ~0u;
      BitpackStage<std::uint32_t> stage;
      stage.setNBits(n_bits);
      EXPECT_EQ(messageOf([&] { encodeOnDevice(stage, toBytes(values)); }),
                messageOf([&] { encode(stage, toBytes(values)); }));
    }
  }
  std::vector<std::uint8_t> bytes(77, 3);
  BitpackStage<std::uint8_t> stage;
  stage.setNBits(1);
  EXPECT_EQ(messageOf([&] { encodeOnDevice(stage, bytes); }),
            messageOf([&] { encode(stage, bytes); }));
}

/// Device memory of one test.
struct DeviceBuffer {
  explicit DeviceBuffer(std::size_t n_bytes) { FZ_CUDA_CHECK(cudaMalloc(&data, n_bytes + 16)); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data); }
  std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(data); }
  void set(const void* from, std::size_t n_bytes) const {
    FZ_CUDA_CHECK(cudaMemcpy(data, from, n_bytes, cudaMemcpyDefault));
  }
  void* data = nullptr;
};

/// Captures the encoding of up to n bytes whose number only the device knows, and replays it.
void expectReplaysGive(SimpleStage& stage, const std::vector<Bytes>& inputs, std::size_t n) {
  const DeviceBuffer in(n);
  const std::size_t capacity = stage.estimateOutputSizes({n})[0];
  const DeviceBuffer out(capacity);
  const DeviceBuffer record(sizeof(StageRecord));
  const DeviceBuffer size(8);
  const CudaInput input{in.bytes(), {n, reinterpret_cast<const std::uint64_t*>(size.data)}};
  const CudaOutput output{out.bytes(), capacity, false};
  cudaStream_t stream = nullptr;
  FZ_CUDA_CHECK(cudaStreamCreate(&stream));
  const CudaRun run{
      {&input, 1}, {&output, 1}, static_cast<StageRecord*>(record.data), stream, &devicePool()};
  StageRecord initial{};
  initial.error_index = ~std::uint64_t{0};
  const std::uint64_t nothing = 0;
  size.set(&nothing, 8);
  record.set(&initial, sizeof(initial));
  StageAccess::enqueueCuda(stage, run);
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  FZ_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  StageAccess::enqueueCuda(stage, run);
  FZ_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  FZ_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (const Bytes& bytes : inputs) {
    const std::uint64_t n_bytes = bytes.size();
    in.set(bytes.data(), bytes.size());
    size.set(&n_bytes, 8);
    record.set(&initial, sizeof(initial));
    FZ_CUDA_CHECK(cudaGraphLaunch(executable, stream));
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    StageRecord result;
    FZ_CUDA_CHECK(cudaMemcpy(&result, record.data, sizeof(result), cudaMemcpyDefault));
    const std::size_t capacities[] = {capacity};
    StageAccess::finishCuda(stage, result, capacities);
    Encoded gpu;
    gpu.config.resize(64);
    gpu.config.resize(stage.serializeHeader(0, gpu.config.data(), gpu.config.size()));
    gpu.streams.emplace_back(result.n_bytes[0]);
    FZ_CUDA_CHECK(
        cudaMemcpy(gpu.streams[0].data(), out.data, result.n_bytes[0], cudaMemcpyDefault));
    const Encoded cpu = encode(stage, bytes);
    EXPECT_EQ(gpu.config, cpu.config);
    EXPECT_TRUE(gpu.streams == cpu.streams) << bytes.size() << " bytes";
    for (const DeviceField& field : StageAccess::deviceFields(stage)) {
      std::uint64_t value = 0;
      std::copy_n(cpu.config.data() + field.config_offset, field.n_bytes,
                  reinterpret_cast<std::uint8_t*>(&value));
      EXPECT_EQ(result.value[field.slot], value);
    }
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_F(PackingDevice, ACapturedEncoderTakesOtherSizesAndData) {
  std::mt19937_64 rng(4);
  std::vector<Bytes> inputs;
  for (const std::size_t n : {100'000u, 0u, 1u, 8191u, 99'999u, 33u}) {
    inputs.push_back(toBytes(mixed<std::int32_t>(n, rng)));
  }
  for (const std::size_t block : {32u, 128u, 100u}) {
    AdaptiveBitpackStage<std::int32_t> stage;
    stage.setBlockSize(block);
    expectReplaysGive(stage, inputs, 400'000);
  }
  inputs.clear();
  for (const std::uint32_t limit : {1u, 60'000u, 200u, 3u}) {
    std::vector<std::uint16_t> values(50'000 - limit % 1000);
    std::generate(values.begin(), values.end(),
                  [&] { return static_cast<std::uint16_t>(rng() % (limit + 1)); });
    inputs.push_back(toBytes(values));
  }
  BitpackStage<std::uint16_t> stage;
  stage.setAutoDetect(true);
  expectReplaysGive(stage, inputs, 100'000);
}

TEST_F(PackingDevice, AnOutputThatIsTooSmallIsAskedForAndNotOverrun) {
  std::mt19937_64 rng(12);
  const Bytes values = toBytes(mixed<std::int32_t>(20'000, rng));
  for (const std::size_t block : {32u, 100u}) {
    AdaptiveBitpackStage<std::int32_t> stage;
    stage.setBlockSize(block);
    const Encoded expected = encode(stage, values);
    const std::size_t n_bytes = expected.streams[0].size();
    for (const std::size_t capacity : {std::size_t{1}, n_bytes / 50, n_bytes / 2, n_bytes - 1}) {
      const DeviceBuffer in(values.size());
      const DeviceBuffer out(n_bytes);
      in.set(values.data(), values.size());
      FZ_CUDA_CHECK(cudaMemset(out.data, 0xA5, n_bytes));
      encodeOnDevice(stage, values);  // sets the device up
      stage.setOutputCapacities({capacity});
      stage.execute(nullptr, &devicePool(), {in.data}, {out.data}, {values.size()});
      ASSERT_FALSE(stage.neededOutputSizes().empty());
      EXPECT_EQ(stage.neededOutputSizes()[0], n_bytes);
      Bytes behind(n_bytes - capacity);
      FZ_CUDA_CHECK(
          cudaMemcpy(behind.data(), out.bytes() + capacity, behind.size(), cudaMemcpyDefault));
      EXPECT_EQ(behind, Bytes(behind.size(), 0xA5));
    }
  }
}

}  // namespace
}  // namespace fz::test
