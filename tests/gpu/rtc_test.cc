// Chains without a kernel of the library: compiled at run time. That ops compile is checked
// wherever the compiler is, device or not.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>

#include "backends/cuda/rtc/compiler.h"
#include "backends/cuda/rtc/kernel_cache.h"
#include "core/stage_access.h"
#include "fzgpumodules.h"
#include "gpu/device_pipeline.h"
#include "gpu/rtc_chains.h"

namespace fz::test {
namespace {

TEST_F(RunTimeCompiler, TakesMapsOrdersAndAdaptiveBitpack) {
  Stages stages;
  auto quantizer = make<QuantizerStage<float, std::uint32_t>>();
  quantizer->setLinearMode(true);
  stages.push_back(std::move(quantizer));
  auto tiles = make<TiledLorenzoStage<std::int32_t>>();
  tiles->setDims({64, 64, 1});
  stages.push_back(std::move(tiles));
  auto coder = make<AdaptiveBitpackStage<std::int32_t>>();
  coder->setBlockSize(256);
  stages.push_back(std::move(coder));
  expectCompiles(stages, DataType::FLOAT32);
}

TEST_F(RunTimeCompiler, TakesRowsPlanesAndRze) {
  Stages stages;
  stages.push_back(make<QuantizerStage<double, std::uint32_t>>());
  auto difference = make<DifferenceStage<std::int32_t, std::uint32_t>>();
  difference->setChunkSize(4096);
  stages.push_back(std::move(difference));
  auto shuffle = make<BitshuffleStage>();
  shuffle->setBlockSize(4096);
  shuffle->setElementWidth(4);
  stages.push_back(std::move(shuffle));
  auto coder = make<RZEStage>();
  coder->setChunkSize(4096);
  stages.push_back(std::move(coder));
  expectCompiles(stages, DataType::FLOAT64);
}

TEST_F(RunTimeCompiler, TakesLorenzoQuantAndBitplaneRze) {
  Stages stages;
  stages.push_back(make<LorenzoQuantStage<float, std::uint16_t>>());
  stages.push_back(make<BitplaneRZEStage>());
  expectCompiles(stages, DataType::FLOAT32);
}

/// The decoder of grids is an op of its own.
TEST_F(RunTimeCompiler, TakesDecodersOfGrids) {
  for (const char* type : {"float, std::uint16_t, 3", "double, std::uint16_t, 2"}) {
    const std::string name = type;
    cuda::GroupChain chain;
    chain.is_inverse = true;
    chain.field_type = name[0] == 'f' ? DataType::FLOAT32 : DataType::FLOAT64;
    chain.has_coder = true;
    BitplaneRZEStage coder;
    chain.ops = {
        {"fz::lorenzo_quant::LorenzoQuantGridDecodeOp<" + name + ">",
         "fused/lorenzo_quant/cuda/op/grid_decode.cuh"},
        {StageAccess::cudaPart(coder)->tileOpType(), StageAccess::cudaPart(coder)->tileOpHeader()}};
    std::string why;
    EXPECT_FALSE(cuda::rtc::compile(cuda::rtc::sourceOf(chain), 90, why).empty()) << why;
  }
}

/// Grids of codes of 8 bits before Bitshuffle and RZE are encoded in a group only.
TEST_F(RunTimeCompiler, TakesGridsAndPlanesOfBytes) {
  Stages stages;
  auto predict = make<LorenzoQuantStage<float, std::uint8_t>>();
  predict->setDims({64, 8, 8});
  stages.push_back(std::move(predict));
  auto shuffle = make<BitshuffleStage>();
  shuffle->setElementWidth(1);
  stages.push_back(std::move(shuffle));
  stages.push_back(make<RZEStage>());
  expectCompiles(stages, DataType::FLOAT32, false);
}

TEST_F(RunTimeCompiler, TakesPlanesOf64Bits) {
  Stages stages;
  stages.push_back(make<ZigzagStage<std::int64_t, std::uint64_t>>());
  auto shuffle = make<BitshuffleStage>();
  shuffle->setElementWidth(8);
  stages.push_back(std::move(shuffle));
  stages.push_back(make<RZEStage>());
  expectCompiles(stages, DataType::INT64);
}

TEST_F(RunTimeCompiler, TakesChainsWithoutACoder) {
  Stages stages;
  auto lorenzo = make<LorenzoStage<std::int32_t>>();
  lorenzo->setBlockSize(64);
  stages.push_back(std::move(lorenzo));
  stages.push_back(make<ZigzagStage<std::int32_t, std::uint32_t>>());
  expectCompiles(stages, DataType::INT32);
}

TEST_F(RunTimeCompiler, TakesRowsOfAnyLength) {
  Stages stages;
  auto lorenzo = make<LorenzoStage<std::int32_t>>();
  lorenzo->setBlockSize(64);
  stages.push_back(std::move(lorenzo));
  stages.push_back(make<ZigzagStage<std::int32_t, std::uint32_t>>());
  stages.push_back(make<BitshuffleStage>());
  stages.push_back(make<RZEStage>());
  expectCompiles(stages, DataType::INT32);
}

/// Doubles on their way need more shared memory than this coder has, so every lane reads its own.
TEST_F(RunTimeCompiler, TakesRowsThatNeedMoreSharedMemory) {
  Stages stages;
  auto quantizer = make<QuantizerStage<double, std::uint32_t>>();
  quantizer->setLinearMode(true);
  stages.push_back(std::move(quantizer));
  auto lorenzo = make<LorenzoStage<std::int32_t>>();
  lorenzo->setBlockSize(64);
  stages.push_back(std::move(lorenzo));
  stages.push_back(make<BitshuffleStage>());
  stages.push_back(make<RZEStage>());
  expectCompiles(stages, DataType::FLOAT64);
}

TEST_F(RunTimeCompiler, ARefusedChainSaysSo) {
  Logger::setCallback(nullptr);
  std::string why;
  EXPECT_TRUE(cuda::rtc::compile("this is no program", 90, why).empty());
  EXPECT_NE(why.find("refused"), std::string::npos) << why;
}

TEST(KernelCache, KeepsWhatItWasGivenAndNothingDamaged) {
  const std::string folder = testing::TempDir() + "/fz_kernels_test";
  setenv("FZ_CACHE_DIR", folder.c_str(), 1);
  const cuda::rtc::KernelCache cache;
  const std::vector<char> code = {'c', 'o', 'd', 'e'};
  cache.store("a key", code);
  EXPECT_EQ(cache.load("a key"), code);
  EXPECT_TRUE(cache.load("another key").empty());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('X');
  }
  EXPECT_TRUE(cache.load("a key").empty());
  setenv("FZ_CACHE_DIR", "", 1);
  EXPECT_TRUE(cuda::rtc::KernelCache().folder().empty());
  unsetenv("FZ_CACHE_DIR");
  std::filesystem::remove_all(folder);
}

/// No chain of the library's own begins with integers. Rows of this coder are shorter than those of
/// AdaptiveBitpack, so blocks begin inside rows, with them, and span several.
class DeviceRunTimeKernels : public OnDevice<testing::TestWithParam<std::size_t>> {};

TEST_P(DeviceRunTimeKernels, RunChainsThatHaveNoKernelOfTheLibrary) {
  const Field field = smoothField(DataType::FLOAT32, {70001, 1, 1});
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  FrameBytes frames[2];
  for (int side = 0; side < 2; ++side) {
    Pipeline pipeline(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    pipeline.setFusion(side == 0 ? Fusion::Off : Fusion::Auto);
    auto* lorenzo = pipeline.addStage<LorenzoStage<std::int32_t>>();
    lorenzo->setBlockSize(GetParam());
    auto* zigzag = pipeline.addStage<ZigzagStage<std::int32_t, std::uint32_t>>();
    auto* shuffle = pipeline.addStage<BitshuffleStage>();
    shuffle->setBlockSize(16384);
    shuffle->setElementWidth(4);
    auto* coder = pipeline.addStage<RZEStage>();
    pipeline.connect(zigzag, lorenzo);
    pipeline.connect(shuffle, zigzag);
    pipeline.connect(coder, shuffle);
    pipeline.finalize();
    if (side == 1 && !cuda::rtc::compilerVersion().empty()) {
      // A warp of this coder has 512 values; a longer block stays outside of the group.
      const std::size_t n_stages = GetParam() > 512 ? 3 : 4;
      ASSERT_EQ(pipeline.getFusedGroups().size(), 1u) << pipeline.explain();
      ASSERT_EQ(pipeline.getFusedGroups()[0].stages.size(), n_stages) << pipeline.explain();
    }
    frames[side] = frameOnDevice(pipeline, input, field.bytes.size());
    void* decoded = nullptr;
    std::size_t n_decoded = 0;
    pipeline.decompress(nullptr, 0, &decoded, &n_decoded);
    ASSERT_EQ(n_decoded, field.bytes.size());
    std::vector<std::uint8_t> bytes(n_decoded);
    FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), decoded, n_decoded, cudaMemcpyDefault));
    EXPECT_TRUE(bytes == std::vector<std::uint8_t>(field.bytes.begin(), field.bytes.end()));
  }
  EXPECT_TRUE(frames[0] == frames[1]);
}

INSTANTIATE_TEST_SUITE_P(Blocks, DeviceRunTimeKernels, testing::Values(8u, 16u, 32u, 64u, 1024u));

}  // namespace
}  // namespace fz::test
