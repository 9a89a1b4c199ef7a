// Bit planes of elements of every size in fused groups, which are compiled at run time: the bytes
// and values of the stages, both ways.
#include <gtest/gtest.h>
#include <random>

#include "backends/cuda/rtc/compiler.h"
#include "fzgpumodules.h"
#include "gpu/device_pipeline.h"
#include "pipeline/dag.h"

namespace fz::test {
namespace {

/// A chain of four stages over integers, or of three over floats.
struct WidthCase {
  std::string name;
  std::size_t value_bytes;  ///< of the field
  std::size_t block_bytes;  ///< of Bitshuffle
  std::size_t chunk_bytes;  ///< of RZE
  void (*build)(Pipeline&, const WidthCase&);
};

void addPlanes(Pipeline& pipeline, Stage* before, std::size_t width, const WidthCase& how) {
  auto* shuffle = pipeline.addStage<BitshuffleStage>();
  shuffle->setBlockSize(how.block_bytes);
  shuffle->setElementWidth(width);
  auto* coder = pipeline.addStage<RZEStage>();
  coder->setChunkSize(how.chunk_bytes);
  if (before != nullptr) {
    pipeline.connect(shuffle, before);
  }
  pipeline.connect(coder, shuffle);
}

template <class S>
void integers(Pipeline& pipeline, const WidthCase& how) {
  using U = std::make_unsigned_t<S>;
  auto* difference = pipeline.addStage<DifferenceStage<S, U>>();
  difference->setChunkSize(4096);
  addPlanes(pipeline, difference, sizeof(S), how);
}
template <class S>
void mapped(Pipeline& pipeline, const WidthCase& how) {
  using U = std::make_unsigned_t<S>;
  addPlanes(pipeline, pipeline.addStage<ZigzagStage<S, U>>(), sizeof(S), how);
}
template <unsigned kWidth>
void plain(Pipeline& pipeline, const WidthCase& how) {
  addPlanes(pipeline, nullptr, kWidth, how);
}
void bytesOfFloats(Pipeline& pipeline, const WidthCase& how) {
  auto* predict = pipeline.addStage<LorenzoQuantStage<float, std::uint8_t>>();
  predict->setErrorBound(0.5);
  auto* shuffle = pipeline.addStage<BitshuffleStage>();
  shuffle->setBlockSize(how.block_bytes);
  shuffle->setElementWidth(1);
  auto* coder = pipeline.addStage<RZEStage>();
  coder->setChunkSize(how.chunk_bytes);
  pipeline.connect(shuffle, predict, "codes");
  pipeline.connect(coder, shuffle);
}

std::vector<WidthCase> cases() {
  std::vector<WidthCase> all;
  for (const std::size_t chunk : {std::size_t{8192}, std::size_t{16384}}) {
    const std::string end = "_" + std::to_string(chunk);
    all.push_back({"Differences8" + end, 1, chunk / 4, chunk, &integers<std::int8_t>});
    all.push_back({"Differences64" + end, 8, 8192, chunk, &integers<std::int64_t>});
    all.push_back({"Zigzag8" + end, 1, chunk, chunk, &mapped<std::int8_t>});
    all.push_back({"Zigzag64" + end, 8, chunk, chunk, &mapped<std::int64_t>});
    all.push_back({"Plain1" + end, 1, 1024, chunk, &plain<1>});
    all.push_back({"Plain8" + end, 8, 8192, chunk, &plain<8>});
    all.push_back({"BytesOfFloats" + end, 4, chunk, chunk, &bytesOfFloats});
  }
  return all;
}

/// Small numbers, some large ones; floats where the chain wants them.
std::vector<std::uint8_t> valuesFor(const WidthCase& how, std::size_t n) {
  std::mt19937_64 random(how.value_bytes);
  std::vector<std::uint8_t> bytes(n * how.value_bytes);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t word = random();
    std::int64_t value = static_cast<std::int64_t>(i / 5 + word % 7) - 50;
    value = i % 61 == 3 ? static_cast<std::int64_t>(random()) : value;
    const auto as_float = static_cast<float>(static_cast<double>(i % 300) * 0.7);
    const void* from = how.value_bytes == 4 ? static_cast<const void*>(&as_float) : &value;
    std::memcpy(bytes.data() + i * how.value_bytes, from, how.value_bytes);
  }
  return bytes;
}

class DeviceFusionWidths : public OnDevice<testing::TestWithParam<WidthCase>> {};

TEST_P(DeviceFusionWidths, EqualTheStages) {
  const WidthCase& how = GetParam();
  for (const std::size_t n : {1u, 1023u, 8192u, 16385u, 100'003u}) {
    if (isSmallRun() && n != 16385) {
      continue;
    }
    SCOPED_TRACE(n);
    const std::vector<std::uint8_t> bytes = valuesFor(how, n);
    const DeviceBytesBuffer input{ByteView(bytes)};
    FrameBytes frames[2];
    std::vector<std::uint8_t> values[2];
    for (int side = 0; side < 2; ++side) {
      Pipeline pipeline(bytes.size(), MemoryStrategy::PREALLOCATE);
      pipeline.setBackend(Backend::CUDA);
      pipeline.setFusion(side == 0 ? Fusion::Off : Fusion::Auto);
      how.build(pipeline, how);
      pipeline.finalize();
      frames[side] = frameOnDevice(pipeline, input, bytes.size());
      frames[side] = frameOnDevice(pipeline, input, bytes.size());  // over what the first run left
      if (side == 1 && !cuda::rtc::compilerVersion().empty()) {
        ASSERT_EQ(pipeline.getFusedGroups().size(), 1u) << pipeline.explain();
        EXPECT_EQ(pipeline.getFusedGroups()[0].stages.size(), pipeline.getDAG()->getNodes().size())
            << pipeline.explain();
      }
      const DeviceBytesBuffer stored{ByteView(frames[0])};
      const DeviceBytesBuffer out(bytes.size());
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE - side, out.size()));
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      std::size_t n_bytes = 0;
      pipeline.decompress(stored.data(), stored.size(), out.data(), out.size(), &n_bytes);
      ASSERT_EQ(n_bytes, out.size());
      values[side] = out.get(n_bytes);
    }
    ASSERT_TRUE(frames[0] == frames[1]);
    ASSERT_TRUE(values[0] == values[1]);
    if (how.value_bytes != 4) {
      ASSERT_TRUE(values[1] == bytes);
    }
  }
}

class DeviceFusionEnds : public OnDevice<> {};

/// Bitshuffle takes any bytes, a group only whole values: what lies behind the last one must not
/// be lost.
TEST_F(DeviceFusionEnds, BytesBehindTheLastWholeElementAreKept) {
  for (const std::size_t width : {2u, 4u, 8u}) {
    for (const bool is_mapped : {false, true}) {  // 16-bit values, of which there may be any number
      const auto build = [&](Pipeline& pipeline) {
        const WidthCase how{"", 1, 8192, 16384, nullptr};
        addPlanes(
            pipeline,
            is_mapped ? pipeline.addStage<ZigzagStage<std::int16_t, std::uint16_t>>() : nullptr,
            width, how);
        pipeline.finalize();
      };
      Pipeline gpu;
      gpu.setBackend(Backend::CUDA);
      build(gpu);
      for (const std::size_t n : {6u, 10u, 630u, 3 * 16384u + 2u, 3 * 16384u, 100'002u}) {
        const std::size_t n_bytes = is_mapped ? n : n - 1;
        SCOPED_TRACE(std::to_string(width) + (is_mapped ? ", mapped, " : ", plain, ") +
                     std::to_string(n_bytes));
        const std::vector<std::uint8_t> bytes = valuesFor({"", 1, 0, 0, nullptr}, n_bytes);
        Pipeline cpu;
        cpu.setBackend(Backend::CPU);
        build(cpu);
        const CompressedView view = cpu.compress(bytes.data(), bytes.size());
        const auto* begin = static_cast<const std::uint8_t*>(view.data);
        const FrameBytes expected(begin, begin + view.n_bytes);
        const DeviceBytesBuffer input{ByteView(bytes)};
        ASSERT_TRUE(frameOnDevice(gpu, input, bytes.size()) == expected);
        void* out = nullptr;
        std::size_t n_out = 0;
        gpu.decompress(nullptr, 0, &out, &n_out);
        ASSERT_TRUE(fromDevice(out, n_out) == bytes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceFusionWidths, testing::ValuesIn(cases()), [](const auto& c) {
  return c.param.name;
});

}  // namespace
}  // namespace fz::test
