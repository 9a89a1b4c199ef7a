// What the conformance cases of BlockANS leave out: many chunks of every kind, streams at any
// address, sizes that only the device knows, damage in every part.
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "coders/block_ans/tests/support.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fz/error.h"
#include "gpu/device_pipeline.h"
#include "gpu/device_stage.h"
#include "pipeline/compressor.h"

namespace fz::test {
namespace {

constexpr std::uint16_t kId = 20482;

class BlockAnsDevice : public OnDevice<> {
 protected:
  template <class T>
  static void expectSameBothWays(BlockAnsStage<T>& stage, const std::vector<T>& values) {
    const Bytes input = toBytes(values);
    const Encoded cpu = encode(stage, input);
    const Encoded gpu = encodeOnDevice(stage, input);
    stage.setExecContext(nullptr);
    EXPECT_EQ(gpu.config, cpu.config);
    ASSERT_EQ(gpu.streams[0].size(), cpu.streams[0].size());
    const auto differs =
        std::mismatch(gpu.streams[0].begin(), gpu.streams[0].end(), cpu.streams[0].begin());
    ASSERT_TRUE(gpu.streams[0] == cpu.streams[0])
        << "form " << int{cpu.streams[0][0]} << ", first at byte "
        << differs.first - gpu.streams[0].begin() << " of " << cpu.streams[0].size();
    EXPECT_TRUE(decodeOnDevice(kId, cpu) == input) << "form " << int{cpu.streams[0][0]};
  }
};

template <class F>
void forEachType(F f) {
  f(std::int16_t{});
  f(std::int32_t{});
  f(std::uint16_t{});
  f(std::uint32_t{});
}

/// f(stage) with every setting that changes the bytes.
template <class T, class F>
void forEachSetting(F f) {
  for (const auto map : {BlockAnsMap::Zigzag, BlockAnsMap::None}) {
    for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
      for (const std::uint32_t weight : {0u, 12288u, 16384u, 32768u, 65536u, 262144u}) {
        if (isSmallRun() && weight != 0 && weight != 16384) {
          continue;
        }
        BlockAnsStage<T> stage;
        stage.setMap(map);
        stage.setTables(tables);
        stage.setChunk(weight);
        SCOPED_TRACE(testing::Message()
                     << sizeof(T) << " bytes, map " << static_cast<int>(map) << ", tables "
                     << static_cast<int>(tables) << ", chunk " << weight);
        f(stage);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

/// Residuals of every width, zeros, and noise that is stored by chunks.
template <class T>
std::vector<T> allKinds(std::size_t n_of_each) {
  std::mt19937_64 rng(7);
  std::vector<T> values;
  for (const std::uint32_t max_bits : {0u, 1u, 2u, 3u, 5u, 8u, 12u, 15u, 24u, 31u}) {
    const std::vector<T> part = residuals<T>(n_of_each + max_bits, max_bits, rng);
    values.insert(values.end(), part.begin(), part.end());
  }
  for (std::size_t i = 0; i < n_of_each; ++i) {
    values.push_back(static_cast<T>(rng()));
  }
  values.resize(values.size() + n_of_each);
  return values;
}

TEST_F(BlockAnsDevice, ManyChunksOfEveryKindAndSetting) {
  forEachType([]<class T>(T /*type*/) {
    const std::vector<T> values = allKinds<T>(isSmallRun() ? 3000 : 60'011);
    forEachSetting<T>([&](BlockAnsStage<T>& stage) { expectSameBothWays(stage, values); });
  });
}

TEST_F(BlockAnsDevice, ResidualsOfEveryWidth) {
  forEachType([]<class T>(T /*type*/) {
    BlockAnsStage<T> stage;
    std::mt19937_64 rng(1);
    for (std::uint32_t max_bits = 0; max_bits < 32; max_bits += isSmallRun() ? 9 : 1) {
      expectSameBothWays(stage, residuals<T>(isSmallRun() ? 9001 : 40'003, max_bits, rng));
    }
  });
}

TEST_F(BlockAnsDevice, NoiseAndFewValuesOfEveryLength) {
  forEachType([]<class T>(T /*type*/) {
    std::mt19937_64 rng(2);
    for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
      BlockAnsStage<T> stage;
      stage.setTables(tables);
      for (const std::size_t n : {1, 2, 3, 63, 64, 65, 100, 4095, 4096, 4097, 8191, 30001}) {
        if (isSmallRun() && n > 100 && n != 4097) {
          continue;
        }
        std::vector<T> noise(n);
        for (T& v : noise) {
          v = static_cast<T>(rng());
        }
        expectSameBothWays(stage, noise);
        expectSameBothWays(stage, residuals<T>(n, 6, rng));
        expectSameBothWays(stage, std::vector<T>(n));
      }
    }
  });
}

TEST_F(BlockAnsDevice, MoreChunksThanWarpsOfTheDevice) {
  if (isSmallRun()) {
    GTEST_SKIP() << "long";
  }
  std::mt19937_64 rng(3);
  std::vector<std::int32_t> values = residuals<std::int32_t>(40'000'001, 4, rng);
  for (std::size_t i = 0; i < values.size(); i += 3'000'000) {
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(i),
                std::min<std::size_t>(700'000, values.size() - i), 0);
  }
  for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
    for (const std::uint32_t weight : {0u, 12288u, 262144u}) {
      BlockAnsStage<std::int32_t> stage;
      stage.setTables(tables);
      stage.setChunk(weight);
      expectSameBothWays(stage, values);
    }
  }
}

TEST_F(BlockAnsDevice, OneStageEncodesAndDecodesInTurn) {
  BlockAnsStage<std::int32_t> stage;
  std::mt19937_64 rng(4);
  for (const std::size_t n : {300'000, 5, 20'000, 0, 70'001, 300'000}) {
    expectSameBothWays(stage, residuals<std::int32_t>(n, 7, rng));
  }
}

/// Runs the stage at any address, with an input whose exact size only the device knows.
struct LooseRun {
  const DeviceBytesBuffer& in;
  std::size_t offset;
  std::size_t limit_bytes;
  std::size_t exact_bytes;
  CudaOutput out;
  std::uint64_t n_values = 0;

  StageRecord run(SimpleStage& stage) const {
    StageRecord record;
    cuda::initRecord(record);
    record.value[0] = n_values;
    const auto bytesOf = [](const auto& v) {
      return ByteView(reinterpret_cast<const std::uint8_t*>(&v), sizeof(v));
    };
    const DeviceBytesBuffer on_device(bytesOf(record));
    const std::uint64_t exact = exact_bytes;
    const DeviceBytesBuffer size(bytesOf(exact));
    const CudaInput input{in.data() + offset,
                          {limit_bytes, reinterpret_cast<const std::uint64_t*>(size.data())}};
    StageAccess::enqueueCuda(stage, {{&input, 1},
                                     {&out, 1},
                                     reinterpret_cast<StageRecord*>(on_device.data()),
                                     nullptr,
                                     &devicePool()});
    FZ_CUDA_CHECK(cudaMemcpy(&record, on_device.data(), sizeof(record), cudaMemcpyDefault));
    return record;
  }
};

TEST_F(BlockAnsDevice, StreamsDecodeFromEveryAddress) {
  std::mt19937_64 rng(5);
  for (const std::size_t n : {100u, 3001u, 90'001u}) {
    for (const std::uint32_t max_bits : {3u, 15u, 31u}) {
      BlockAnsStage<std::int16_t> stage;
      const std::vector<std::int16_t> values = residuals<std::int16_t>(n, max_bits, rng);
      const Bytes input = toBytes(values);
      const Bytes stream = encodeValues(stage, values).streams[0];
      stage.setInverse(true);
      for (std::size_t offset = 0; offset < 5; ++offset) {
        const DeviceBytesBuffer in(stream.size() + offset);  // ends where the stream does
        in.put(stream, offset);
        const DeviceBytesBuffer out(input.size());
        const StageRecord record =
            LooseRun{in, offset, stream.size(), stream.size(), {out.data(), input.size()}, n}.run(
                stage);
        EXPECT_EQ(record.error, 0u) << n << ", " << max_bits << ", " << offset;
        EXPECT_EQ(record.n_bytes[0], input.size());
        EXPECT_TRUE(out.get(input.size()) == input) << n << ", " << max_bits << ", " << offset;
      }
    }
  }
}

TEST_F(BlockAnsDevice, SizesMayStandOnTheDevice) {
  std::mt19937_64 rng(6);
  for (const auto tables : {BlockAnsTables::Counted, BlockAnsTables::Fixed}) {
    for (const std::size_t n : {700u, 50'001u}) {
      BlockAnsStage<std::int32_t> stage;
      stage.setTables(tables);
      const std::vector<std::int32_t> values = residuals<std::int32_t>(n, 5, rng);
      const Bytes input = toBytes(values);
      const Bytes stream = encodeValues(stage, values).streams[0];
      Bytes padded = input;
      padded.resize(input.size() + 300'000, 0xFF);
      const DeviceBytesBuffer in{ByteView(padded)};
      const DeviceBytesBuffer out(padded.size() + 4);
      const auto encodeTo = [&](std::size_t n_bytes, std::size_t capacity) {
        return LooseRun{in, 0, padded.size(), n_bytes, {out.data(), capacity}}.run(stage);
      };
      StageRecord record = encodeTo(input.size(), out.size());
      EXPECT_EQ(record.error, 0u);
      EXPECT_EQ(record.value[0], n);
      EXPECT_EQ(record.n_bytes[0], stream.size());
      EXPECT_TRUE(out.get(stream.size()) == stream);
      for (const std::size_t capacity : {std::size_t{0}, std::size_t{90}, stream.size() - 1}) {
        record = encodeTo(input.size(), capacity);
        EXPECT_EQ(record.needed_bytes[0], stream.size());
        EXPECT_EQ(record.n_bytes[0], capacity);
      }
      record = encodeTo(0, out.size());
      EXPECT_EQ(record.error, 0u);
      EXPECT_EQ(record.n_bytes[0], 0u);
      EXPECT_EQ(record.value[0], 0u);
      EXPECT_NE(encodeTo(7, out.size()).error, 0u);
      record = encodeTo(input.size(), out.size());  // as if nothing had been
      EXPECT_EQ(record.n_bytes[0], stream.size());
      EXPECT_TRUE(out.get(stream.size()) == stream);

      stage.setInverse(true);
      Bytes long_stream = stream;
      long_stream.resize(stream.size() + 1000, 0xFF);
      const DeviceBytesBuffer encoded{ByteView(long_stream)};
      const auto decodeTo = [&](std::size_t n_bytes, std::size_t capacity) {
        return LooseRun{encoded, 0, long_stream.size(), n_bytes, {out.data(), capacity}, n}.run(
            stage);
      };
      record = decodeTo(stream.size(), input.size() - 1);
      EXPECT_EQ(record.error, 0u);
      EXPECT_EQ(record.needed_bytes[0], input.size());
      record = decodeTo(stream.size(), input.size());
      EXPECT_EQ(record.error, 0u);
      EXPECT_EQ(record.n_bytes[0], input.size());
      EXPECT_TRUE(out.get(input.size()) == input);
      EXPECT_NE(decodeTo(stream.size() - 2, input.size()).error, 0u);
      EXPECT_NE(decodeTo(stream.size() + 2, input.size()).error, 0u);
      EXPECT_NE(decodeTo(0, input.size()).error, 0u);
    }
  }
}

/// The decoded data, or nothing but the code of an error.
struct Outcome {
  Bytes data;
  std::string error;
};
template <class F>
Outcome outcomeOf(F f) {
  try {
    return {f(), ""};
  } catch (const Error& e) {
    return {{}, errorCodeName(e.code())};
  }
}

void expectEndsAsOnTheCpu(const Encoded& damaged) {
  const Outcome cpu = outcomeOf([&] { return decodeBlockAns(damaged); });
  const Outcome gpu = outcomeOf([&] { return decodeOnDevice(kId, damaged); });
  EXPECT_EQ(gpu.error, cpu.error);
  EXPECT_TRUE(gpu.data == cpu.data);
}

TEST_F(BlockAnsDevice, DamageInEveryPartEndsAsOnTheCpu) {
  std::mt19937_64 rng(8);
  const std::vector<std::int32_t> many = allKinds<std::int32_t>(9000);
  const std::vector<std::int32_t> few = residuals<std::int32_t>(1000, 9, rng);
  for (const bool is_counted : {true, false}) {
    for (const std::vector<std::int32_t>* values : {&many, &few}) {
      BlockAnsStage<std::int32_t> stage;
      stage.setTables(is_counted ? BlockAnsTables::Counted : BlockAnsTables::Fixed);
      const Encoded good = encodeValues(stage, *values);
      const std::size_t n_front = std::min<std::size_t>(good.streams[0].size(), 700);
      for (int round = 0; round < (isSmallRun() ? 12 : 300); ++round) {
        Encoded damaged = good;
        Bytes& stream = damaged.streams[0];
        SCOPED_TRACE(testing::Message() << "round " << round << ", counted " << is_counted
                                        << ", values " << values->size());
        const auto flip = [&](std::size_t end) {
          stream[rng() % end] ^= static_cast<std::uint8_t>(1u << (rng() % 8));
        };
        switch (round % 6) {
          case 0:
            flip(n_front);  // header, tables, directory
            break;
          case 1:
            flip(stream.size());
            break;
          case 2:
            stream.resize(rng() % stream.size());
            break;
          case 3:
            stream.resize(stream.size() + 1 + rng() % 5);
            break;
          case 4:
            flip(38);  // sizes of tables
            break;
          default:
            stream[rng() % n_front] = static_cast<std::uint8_t>(rng());
        }
        expectEndsAsOnTheCpu(damaged);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

TEST_F(BlockAnsDevice, NumbersOfValuesThatAreNotThoseOfTheStreamEndAsOnTheCpu) {
  std::mt19937_64 rng(9);
  for (const std::size_t n : {10u, 4096u, 40'000u}) {
    for (const std::uint32_t max_bits : {3u, 31u}) {
      BlockAnsStage<std::int16_t> stage;
      const Encoded good = encodeValues(stage, residuals<std::int16_t>(n, max_bits, rng));
      for (const std::uint64_t wrong :
           {std::uint64_t{0}, std::uint64_t{n - 1}, std::uint64_t{n + 1}, std::uint64_t{n + 4096},
            std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        Encoded damaged = good;
        for (std::size_t i = 0; i < 8; ++i) {
          damaged.config[8 + i] = static_cast<std::uint8_t>(wrong >> (8 * i));
        }
        SCOPED_TRACE(testing::Message() << n << " as " << wrong);
        expectEndsAsOnTheCpu(damaged);
      }
    }
  }
}

/// A chunk of zeros takes a few bytes, and the output is beyond the reserve of damaged streams.
TEST_F(BlockAnsDevice, ZerosDecodeToFarMoreThanTheReserve) {
  BlockAnsStage<std::int32_t> stage;
  stage.setChunk(262144);
  expectSameBothWays(stage, std::vector<std::int32_t>(5'000'017));
}

/// What a decoder behind such a stage is told beforehand is only the reserve.
TEST_F(BlockAnsDevice, ConstantFieldsDecodeThroughStagesBehindAReserve) {
  const std::vector<float> values(1'000'000, 1.0f);
  const auto buildAns = [](Pipeline& pipeline) {
    auto* quantizer = addQuantizer(pipeline);
    pipeline.connect(pipeline.addStage<BlockAnsStage<std::uint16_t>>(), quantizer, "codes");
    pipeline.finalize();
  };
  const auto expectDecodes = [&](const auto& build) {
    Pipeline on_cpu;
    on_cpu.setBackend(Backend::CPU);
    build(on_cpu);
    const FrameBytes frame = frameOf(on_cpu, values);
    const DeviceBytesBuffer in{ByteView(frame)};
    const DeviceBytesBuffer out(byteCount(values));
    Pipeline on_device;
    on_device.setBackend(Backend::CUDA);
    build(on_device);
    std::size_t n_bytes = 0;
    on_device.decompress(in.data(), frame.size(), out.data(), out.size(), &n_bytes, nullptr);
    EXPECT_EQ(n_bytes, out.size());
    Pipeline again;
    again.setBackend(Backend::CPU);
    EXPECT_TRUE(out.get(n_bytes) == decoded<std::uint8_t>(again, frame));
  };
  expectDecodes(buildAns);
  expectDecodes(&buildRleChain);
}

/// More than 2^32 bytes and 2^30 values: takes half a minute and 15 GB of the host.
TEST_F(BlockAnsDevice, MoreThanFourGigabytes) {
  if (std::getenv("FZ_GPU_LARGE") == nullptr) {
    GTEST_SKIP() << "FZ_GPU_LARGE is not set";
  }
  std::mt19937_64 rng(10);
  const Bytes piece = toBytes(residuals<std::int32_t>(4'000'037, 4, rng));
  Bytes input;
  input.reserve(std::size_t{5} << 30);
  while (input.size() < (std::size_t{9} << 29)) {
    input.insert(input.end(), piece.begin(), piece.end());
  }
  BlockAnsStage<std::int32_t> stage;
  const Encoded gpu = encodeOnDevice(stage, input);
  EXPECT_TRUE(decodeOnDevice(kId, gpu) == input);
  stage.setExecContext(nullptr);
  const Encoded cpu = encode(stage, input);
  EXPECT_EQ(gpu.config, cpu.config);
  EXPECT_TRUE(gpu.streams[0] == cpu.streams[0]);
}

}  // namespace
}  // namespace fz::test
