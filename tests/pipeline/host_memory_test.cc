// What the calls on host memory promise about memory, progress and files.
#include "mem/host_memory.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

#include "api/backend_choice.h"
#include "format/file_io.h"
#include "fz/backend_memory.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fz/progress.h"
#include "pipeline/compressor.h"

namespace fs = std::filesystem;

namespace fz {
namespace {

std::vector<float> ramp(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(i % 1000) * 0.125F;
  }
  return values;
}

CompressOptions cpu(const std::string& preset) {
  CompressOptions options;
  options.preset = preset;
  options.error_bound = 0.01;
  options.mode = ErrorBoundMode::ABS;
  options.backend = Backend::CPU;
  return options;
}

ByteView bytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float)};
}

TEST(HostMemory, LongBlocksBeginOnALargePageAndShortOnesAreAlignedAsAsked) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  for (const std::size_t n_bytes : {0u, 1u, 1000u, 4u << 20, (9u << 20) + 1}) {
    const std::unique_ptr<void, Free> memory(allocateOnHost(n_bytes, 256));
    ASSERT_NE(memory, nullptr) << n_bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(memory.get());
    EXPECT_EQ(address % (n_bytes >= 2 * kLargePage ? kLargePage : 256), 0u) << n_bytes;
    std::memset(memory.get(), 1, n_bytes);
  }
}

TEST(BackendChoice, ChainsAreJudgedByTheSlowestStageThatTheyName) {
  const auto costOf = [](std::string_view preset) { return chainCostOf(findPreset(preset)->toml); };
  for (const char* preset : {"best", "balanced", "auto", "cusz"}) {
    EXPECT_EQ(costOf(preset), ChainCost::kEntropy) << preset;
  }
  for (const char* preset : {"cuszp", "cuszp2", "cuszp3", "fast"}) {
    EXPECT_EQ(costOf(preset), ChainCost::kPacking) << preset;
  }
  for (const char* preset : {"pfpl", "fzgpu"}) {
    EXPECT_EQ(costOf(preset), ChainCost::kShuffle) << preset;
  }
}

TEST(BackendChoice, WithoutADeviceItIsTheCpuAndTheReasonSaysSo) {
  if (isBackendAvailable(Backend::CUDA) || std::getenv("FZ_BACKEND") != nullptr) {
    GTEST_SKIP() << "there is a choice";
  }
  const BackendChoice choice = chooseToCompress({std::size_t{1} << 30, 0, ChainCost::kEntropy});
  EXPECT_EQ(choice.backend, Backend::CPU);
  EXPECT_NE(choice.reason.find("CUDA"), std::string::npos) << choice.reason;
}

TEST(MemoryLimit, AnEstimateThatIsAllowedSuffices) {
  const std::vector<float> values = ramp(100000);
  for (const char* preset : {"pfpl", "cusz", "cuszp", "fzgpu", "speed"}) {
    CompressOptions options = cpu(preset);
    options.max_memory_bytes = 2 * estimateMemory(DataType::FLOAT32, 400000, options) + 1000000;
    EXPECT_GT(compress(std::span<const float>(values), options).size(), 0U) << preset;
  }
}

TEST(MemoryLimit, LessIsRefusedWithoutTakingIt) {
  const std::vector<float> values = ramp(100000);
  for (const char* preset : {"pfpl", "cusz", "cuszp", "fzgpu", "speed"}) {
    CompressOptions options = cpu(preset);
    options.max_memory_bytes = 10000;
    try {
      compress(std::span<const float>(values), options);
      ADD_FAILURE() << preset;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kLimit) << preset;
    }
  }
}

TEST(MemoryLimit, APipelineWorksAgainOnceItIsLifted) {
  const std::vector<float> values = ramp(100000);
  Pipeline pipeline;
  configure(pipeline, DataType::FLOAT32, cpu("pfpl"));
  pipeline.setMemoryLimit(1000);
  EXPECT_EQ(pipeline.getMemoryLimit(), 1000U);
  EXPECT_THROW(pipeline.compress(values.data(), 400000), Error);
  pipeline.setMemoryLimit(0);
  EXPECT_GT(pipeline.compress(values.data(), 400000).n_bytes, 0U);
}

TEST(Progress, AllStagesAreDoneInTheEnd) {
  const std::vector<float> values = ramp(300000);
  for (const char* preset : {"pfpl", "cusz", "quantizer_lorenzo_bitpack"}) {
    RunProgress progress;
    CompressOptions options = cpu(preset);
    options.progress = &progress;
    options.lossless_fallback = false;  // the stages of the preset are counted
    const Frame frame = compress(std::span<const float>(values), options);
    EXPECT_EQ(progress.n_stages_done, inspect(frame).stages.size()) << preset;
    EXPECT_EQ(progress.part(), 1.0) << preset;
    RunProgress back;
    decompress(frame, {.backend = Backend::CPU, .progress = &back});
    EXPECT_EQ(back.part(), 1.0) << preset;
  }
}

TEST(Progress, TilesOfAFusedGroupCountTowardsIt) {
  RunProgress progress;
  progress.beginCall(4);
  EXPECT_EQ(progress.part(), 0.0);
  progress.beginStages(2, 10);
  progress.n_tiles_done = 5;
  EXPECT_EQ(progress.part(), 0.25);
  progress.endStages(2);
  EXPECT_EQ(progress.part(), 0.5);
}

TEST(Frame, OutlivesThePipelineThatMadeItAndItsCopies) {
  const std::vector<float> values = ramp(5000);
  Frame copy;
  {
    const Frame frame = compress(std::span<const float>(values), cpu("speed"));
    copy = frame;
  }
  const Array array = decompress(copy);
  Array same;
  same = array;
  EXPECT_EQ(same.as<float>().size(), values.size());
  EXPECT_EQ(same.bytes().data(), array.bytes().data());
}

TEST(DecompressInto, GivesTheSameBytesInMemoryOfTheCaller) {
  const std::vector<float> values = ramp(5000);
  const Frame frame = compress(std::span<const float>(values), cpu("pfpl"));
  std::vector<std::uint8_t> memory;
  const std::size_t n_bytes = decompressInto(frame.bytes(),
                                             [&](std::size_t n) {
                                               memory.resize(n);
                                               return memory.data();
                                             },
                                             {.backend = Backend::CPU});
  ASSERT_EQ(n_bytes, memory.size());
  const Array array = decompress(frame);
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), array.bytes().begin()));
}

TEST(BackendMemory, HoldsWhatWasPutIn) {
  const std::vector<float> values = ramp(100);
  BackendMemory first(Backend::CPU, 400);
  BackendMemory second(Backend::CPU, 400);
  first.upload(bytesOf(values));
  second.copyFrom(first);
  std::vector<std::uint8_t> back(400);
  second.download(back);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), bytesOf(values).begin()));
  EXPECT_THROW(first.upload(std::vector<std::uint8_t>(401)), Error);
  EXPECT_THROW(BackendMemory(Backend::Auto, 1), Error);
}

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fz_atomic_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::size_t fileCount() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string path() const { return (folder_ / "f").string(); }

  fs::path folder_;
};

TEST_F(AtomicFileTest, HasItsNameOnlyAfterCommit) {
  for (const TemporaryName name :
       {TemporaryName::kNone, TemporaryName::kUnique, TemporaryName::kPart}) {
    {
      AtomicFile file(path(), name);
      file.write(std::vector<std::uint8_t>{1, 2});
      EXPECT_FALSE(fs::exists(path()));
    }
    EXPECT_EQ(fileCount(), 0U);
    AtomicFile file(path(), name);
    file.write(std::vector<std::uint8_t>{1, 2});
    file.write(std::vector<std::uint8_t>{3});
    file.commit();
    EXPECT_EQ(readFile(path()), (std::vector<std::uint8_t>{1, 2, 3}));
    EXPECT_EQ(fileCount(), 1U);
    fs::remove(path());
  }
}

TEST_F(AtomicFileTest, MappedPartFollowsWhatWasWrittenAndMayGrow) {
  AtomicFile file(path());
  file.write(std::vector<std::uint8_t>{9});
  file.map(2);
  const MutableByteView memory = file.map(3);
  std::fill(memory.begin(), memory.end(), std::uint8_t{7});
  file.commit();
  EXPECT_EQ(readFile(path()), (std::vector<std::uint8_t>{9, 7, 7, 7}));
  EXPECT_EQ(MappedFile(path()).bytes().size(), 4U);
}

TEST_F(AtomicFileTest, KeepsTheModeOfTheFileItReplaces) {
  writeFileAtomically(path(), std::vector<std::uint8_t>{1});
  fs::permissions(path(), fs::perms::owner_read | fs::perms::owner_write);
  writeFileAtomically(path(), std::vector<std::uint8_t>{2});
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(readFile(path()), std::vector<std::uint8_t>{2});
}

}  // namespace
}  // namespace fz
