// A chain that runs as one must do what its stages do one after the other.
#include "fz/fusion.h"

#include "backends/cpu/exec_context.h"
#include "backends/cpu/executors.h"
#include "pipeline/fusion_outcome.h"
#include "pipeline/run/engine.h"

namespace fz::test::fusion {
namespace {

TEST(Fusion, EveryChainGivesTheBytesOfItsStages) {
  std::size_t index = 0;
  for (const FusionChain& chain : fusionChains()) {
    for (const DataType type : typesOf(chain)) {
      for (const std::size_t n : {0, 1, 31, 32, 33, 1023, 1024, 1025, 4095, 4096, 4097, 65537}) {
        for (const Kind kind : kAllKinds) {
          if (index++ % FZ_TEST_STEP != 0) {
            continue;
          }
          SCOPED_TRACE(chain.name + " " + std::string(dataTypeToString(type)) + " " +
                       std::to_string(n) + " kind " + std::to_string(static_cast<int>(kind)));
          expectSame({chain, type}, dataOf(type, kind, n), {1, 2});
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST(Fusion, LargeDataOnAnyNumberOfThreads) {
  for (const FusionChain& chain : fusionChains()) {
    for (const DataType type : typesOf(chain)) {
      for (const Kind kind : {Kind::kSmooth, Kind::kSpecial}) {
        SCOPED_TRACE(chain.name + " " + std::string(dataTypeToString(type)) + " kind " +
                     std::to_string(static_cast<int>(kind)));
        expectSame({chain, type}, dataOf(type, kind, 300'007 / FZ_TEST_STEP), {1, 2, 7});
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

TEST(Fusion, GridsWithRaggedEdges) {
  const Dims shapes[] = {{67, 41, 11}, {100, 37, 1}, {5, 4, 4},   {1, 1, 9},
                         {9, 1, 1},    {515, 9, 2},  {3, 700, 1}, {64, 64, 16}};
  std::size_t index = 0;
  for (const FusionChain& chain : fusionChains()) {
    for (const DataType type : typesOf(chain)) {
      for (const Dims& dims : shapes) {
        SCOPED_TRACE(chain.name + " " + std::to_string(dims[0]) + "x" + std::to_string(dims[1]) +
                     "x" + std::to_string(dims[2]));
        const std::size_t n = dims[0] * dims[1] * dims[2];
        for (const Kind kind : {Kind::kSmooth, Kind::kRandom}) {
          if (index++ % FZ_TEST_STEP != 0) {
            continue;
          }
          expectSame({chain, type, dims}, dataOf(type, kind, n), {1, 7});
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST(Fusion, WhatEarlierCallsLeftBehindDoesNotShow) {
  for (const FusionChain& chain : fusionChains()) {
    for (const MemoryStrategy strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
      SCOPED_TRACE(chain.name);
      const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 70'001);
      const FrameBytes other = dataOf(DataType::FLOAT32, Kind::kRandom, 90'000);
      const Outcome staged = compressed(Settings{.chain = chain, .fusion = Fusion::Off}, data);
      Pipeline pipeline(0, strategy);
      load(pipeline, {.chain = chain, .n_threads = 2, .strategy = strategy});
      compressed(pipeline, other);
      EXPECT_EQ(compressed(pipeline, data), staged);
      compressed(pipeline, other);
      EXPECT_EQ(compressed(pipeline, data), staged);
    }
  }
}

TEST(Fusion, LongArraysWrittenPastTheCachesAreTheSame) {
  const Dims dims = {515, 64, 257};  // above kStreamedBytes; rows that are no whole lines
  const std::size_t n = dims[0] * dims[1] * dims[2];
  const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, n);
  for (const char* name : {"cuszp", "cuszp3"}) {
    const FusionChain chain{name, std::string(findPreset(name)->toml)};
    const FrameBytes frame = compressed(Settings{.chain = chain, .dims = dims}, data).bytes;
    const Outcome staged = decompressed(Fusion::Off, 1, frame);
    ASSERT_EQ(staged.bytes.size(), data.size());
    EXPECT_TRUE(decompressed(Fusion::Auto, 1, frame) == staged);
    EXPECT_TRUE(decompressed(Fusion::Auto, 3, frame) == staged);

    Pipeline pipeline;
    load(pipeline, {.chain = chain});
    FrameBytes unaligned(data.size() + 24);
    std::size_t n_bytes = 0;
    pipeline.decompress(frame.data(), frame.size(), unaligned.data() + 24, data.size(), &n_bytes);
    EXPECT_EQ(n_bytes, data.size());
    EXPECT_TRUE(std::equal(staged.bytes.begin(), staged.bytes.end(), unaligned.begin() + 24));
  }
}

TEST(Fusion, ThreadsOfTheStandardLibraryGiveTheSame) {
  const auto executor = makeStdExecutor(3);
  const ExecContext context{Backend::CPU, executor.get(), Fusion::Auto};
  for (const FusionChain& chain : fusionChains()) {
    SCOPED_TRACE(chain.name);
    const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 200'003);
    const Outcome staged = compressed(Settings{.chain = chain, .fusion = Fusion::Off}, data);
    Pipeline pipeline;
    load(pipeline, {.chain = chain});
    pipeline.getDAG()->engine().context = &context;
    EXPECT_EQ(compressed(pipeline, data), staged);
  }
}

TEST(Fusion, ExplainNamesTheGroupAndProfilesHaveARowForIt) {
  for (const FusionChain& chain : fusionChains()) {
    SCOPED_TRACE(chain.name);
    Pipeline pipeline;
    pipeline.enableProfiling(true);
    load(pipeline, {.chain = chain});
    const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 10'000);
    frameOf(pipeline, data);
    const auto& groups = pipeline.getFusedGroups();
    if (!chain.is_fused_in_1d) {
      EXPECT_NE(pipeline.explain().find("not fused: "), std::string::npos) << pipeline.explain();
      continue;
    }
    ASSERT_EQ(groups.size(), 1u) << pipeline.explain();
    EXPECT_EQ(groups[0].stages.size(), pipeline.getStages().size());
    EXPECT_NE(pipeline.explain().find("one pass over memory: " + groups[0].name),
              std::string::npos);
    const auto& rows = pipeline.getLastPerfResult().stages;
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].name, groups[0].name);
    EXPECT_EQ(rows[0].input_bytes, data.size());
  }
}

TEST(Fusion, ExplainTellsHowTheLastFrameWasDecoded) {
  const FusionChain chain = gridChains().front();
  Pipeline pipeline;
  load(pipeline, {.chain = chain});
  const FrameBytes frame = frameOf(pipeline, dataOf(DataType::FLOAT32, Kind::kSmooth, 10'000));
  EXPECT_EQ(pipeline.explain().find("decoded last"), std::string::npos);
  decoded<std::uint8_t>(pipeline, frame);
  const std::string text = pipeline.explain();
  const std::size_t at = text.find("the frame decoded last:\nfused, one pass over memory: ");
  EXPECT_NE(at, std::string::npos) << text;

  // Another graph and dims that this decoder has to leave to its stages.
  const Dims dims = {259, 67, 56};
  const FrameBytes long_rows =
      compressed(Settings{.chain = chain, .dims = dims},
                 dataOf(DataType::FLOAT32, Kind::kSmooth, dims[0] * dims[1] * dims[2]))
          .bytes;
  decoded<std::uint8_t>(pipeline, long_rows);
  EXPECT_NE(pipeline.explain().find("few and long rows of tiles"), std::string::npos)
      << pipeline.explain();
}

TEST(Fusion, WhatLiesBetweenTheStagesTakesNoMemory) {
  const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 1'000'000);
  for (const char* name : {"cuszp", "cuszp3", "pfpl", "speed"}) {
    SCOPED_TRACE(name);
    const FusionChain chain{name, std::string(findPreset(name)->toml)};
    std::array<std::size_t, 2> peaks = {};
    std::size_t n_between = 0;
    for (const Fusion fusion : {Fusion::Off, Fusion::Auto}) {
      Pipeline pipeline(0, MemoryStrategy::PREALLOCATE);
      pipeline.setColoringEnabled(false);
      load(pipeline, {.chain = chain, .fusion = fusion, .strategy = MemoryStrategy::PREALLOCATE});
      frameOf(pipeline, data);
      peaks[fusion == Fusion::Auto ? 1 : 0] = pipeline.getPeakMemoryUsage();
      for (const auto& node : pipeline.getDAG()->getNodes()) {
        const Buffer& buffer =
            pipeline.getDAG()->engine().buffers.at(node->output_index_to_buffer_id.at(0));
        n_between += buffer.is_inside ? buffer.size : 0;
        EXPECT_TRUE(!buffer.is_inside || buffer.d_ptr == nullptr);
      }
    }
    EXPECT_GT(n_between, 0u);
    // A few tiles and their payload are kept instead, whatever the size of the data.
    constexpr std::size_t kScratchBytes = 256 * 1024;
    EXPECT_LE(peaks[1] + n_between, peaks[0] + kScratchBytes);
  }
}

TEST(Fusion, DamageEndsInTheSameWay) {
  for (const FusionChain& chain : fusionChains()) {
    SCOPED_TRACE(chain.name);
    const Settings setup{.chain = chain, .dims = {9, 5, 1}};
    const FrameBytes frame = compressed(setup, dataOf(DataType::FLOAT32, Kind::kRandom, 45)).bytes;
    const FrameHeader header = readHeader(frame, frame.size());
    for (std::size_t n = 0; n < frame.size(); n += FZ_TEST_STEP) {
      expectSameEnd({frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(n)});
      ASSERT_FALSE(HasFatalFailure()) << n << " bytes";
    }
    for (std::size_t bit = 8 * header.core.header_size; bit < 8 * frame.size();
         bit += FZ_TEST_STEP) {
      FrameBytes damaged = frame;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      expectSameEnd(sealed(header, damaged));
      ASSERT_FALSE(HasFatalFailure()) << "payload bit " << bit;
    }
    for (std::size_t i = 0; i < header.stages.size(); ++i) {
      for (std::size_t bit = i % FZ_TEST_STEP; bit < 8 * header.stages[i].config_size;
           bit += FZ_TEST_STEP) {
        FrameHeader damaged = header;
        damaged.stages[i].stage_config[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        expectSameEnd(sealed(damaged, frame));
        ASSERT_FALSE(HasFatalFailure()) << "stage " << i << " bit " << bit;
      }
    }
  }
}

}  // namespace
}  // namespace fz::test::fusion
