#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/executors.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/rze/rze_stage.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "pipeline/run/engine.h"
#include "predictors/diff/diff.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 200'003;

/// A wave with spikes, so that the outlier lists are not empty.
std::vector<float> spikyWave(std::size_t n) {
  auto values = wave(n);
  for (std::size_t i = 0; i < n; i += 101) {
    values[i] += 5000.0f;
  }
  return values;
}

TEST(Threads, AnyNumberOfThemGivesTheSameFrameAndTheSameValues) {
  const auto values = spikyWave(kValues);
  for (const Build build : kCodeChains) {
    FrameBytes expected;
    std::vector<float> expected_values;
    for (const std::size_t n_threads : {1, 2, 7}) {
      Pipeline pipeline;
      pipeline.setThreads(n_threads);
      build(pipeline);
      EXPECT_EQ(pipeline.getThreads(), n_threads);
      const FrameBytes frame = frameOf(pipeline, values);
      const auto back = decoded<float>(pipeline, frame);
      if (expected.empty()) {
        expected = frame;
        expected_values = back;
        EXPECT_EQ(countMisses(values, back), 0u);
      }
      EXPECT_EQ(frame, expected) << n_threads << " threads";
      EXPECT_EQ(back, expected_values) << n_threads << " threads";
    }
  }
}

TEST(Threads, TheNumberMayChangeBetweenCalls) {
  const auto values = spikyWave(50'000);
  Pipeline pipeline;
  buildLongChain(pipeline);
  const FrameBytes frame = frameOf(pipeline, values);
  for (const std::size_t n_threads : {3, 1, 0}) {
    pipeline.setThreads(n_threads);
    EXPECT_EQ(frameOf(pipeline, values), frame);
    EXPECT_EQ(countMisses(values, decoded<float>(pipeline, frame)), 0u);
  }
  EXPECT_GE(pipeline.getThreads(), 1u);
}

TEST(Threads, IndependentPipelinesWorkAtOnceFromEightThreads) {
  constexpr std::size_t kThreads = 8;
  const auto values = spikyWave(30'000);
  std::array<FrameBytes, std::size(kCodeChains)> expected;
  for (std::size_t i = 0; i < std::size(kCodeChains); ++i) {
    Pipeline pipeline;
    kCodeChains[i](pipeline);
    expected[i] = frameOf(pipeline, values);
  }
  std::array<std::size_t, kThreads> n_bad = {};
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t repeat = 0; repeat < 3; ++repeat) {
          const std::size_t chain = (t + repeat) % std::size(kCodeChains);
          Pipeline pipeline(0, t % 2 == 0 ? MemoryStrategy::MINIMAL : MemoryStrategy::PREALLOCATE);
          kCodeChains[chain](pipeline);
          const FrameBytes frame = frameOf(pipeline, values);
          n_bad[t] += frame == expected[chain] ? 0 : 1;
          n_bad[t] += countMisses(values, decoded<float>(pipeline, frame));
        }
      });
    }
  }
  for (std::size_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(n_bad[t], 0u) << "thread " << t;
  }
}

TEST(Threads, IndependentFilesAreWrittenAtOnceFromEightThreads) {
  const TempFolder folder;
  const auto values = wave(2000);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        Pipeline pipeline;
        pipeline.setThreads(1);
        buildRleChain(pipeline);
        frameOf(pipeline, values);
        pipeline.writeToFile(folder.file("same.fzm"));
      });
    }
  }
  EXPECT_EQ(folder.fileCount(), 1u);
  Pipeline reader;
  const FrameBytes frame = readAll(folder.file("same.fzm"));
  EXPECT_EQ(countMisses(values, decoded<float>(reader, frame)), 0u);
}

/// LorenzoQuant -> RLE, driven by hand on an executor; the bytes of the three stored parts.
std::vector<FrameBytes> runOn(const CpuExecutor& executor, std::vector<float> values) {
  const ExecContext context{.cpu = &executor};
  MemoryPool pool;
  LorenzoQuantF32 quantizer(LorenzoQuantF32::Config(kBound, 512));
  RLEStage<std::uint16_t> rle;
  CompressionDAG dag(&pool);
  DAGNode* first = dag.addStage(&quantizer);
  DAGNode* second = dag.addStage(&rle);
  const int input = dag.setInputBuffer(first, byteCount(values));
  dag.addDependency(second, first, byteCount(values), 0);
  const int outputs[] = {dag.addUnconnectedOutput(first, 1, 1),
                         dag.addUnconnectedOutput(first, 1, 2), dag.setOutputBuffer(second, 1)};
  dag.finalize();
  dag.engine().context = &context;
  dag.setExternalPointer(input, values.data());
  dag.execute(nullptr);
  std::vector<FrameBytes> parts;
  for (const int id : outputs) {
    const auto* bytes = static_cast<const std::uint8_t*>(dag.getBuffer(id));
    parts.emplace_back(bytes, bytes + dag.getBufferSize(id));
  }
  return parts;
}

TEST(Threads, EveryExecutorGivesTheSameBytes) {
  const auto values = spikyWave(kValues);
  const auto expected = runOn(CpuExecutor::serial(), values);
  EXPECT_GT(expected[0].size(), 0u);
  for (const std::size_t n_threads : {1, 2, 7}) {
    EXPECT_EQ(runOn(*makeStdExecutor(n_threads), values), expected) << n_threads << " std threads";
    if (hasTbb()) {
      EXPECT_EQ(runOn(*makeTbbExecutor(n_threads), values), expected) << n_threads << " by TBB";
    }
  }
}

TEST(Threads, AnErrorInsideATaskReachesTheCaller) {
  const auto executor = makeStdExecutor(4);
  EXPECT_THROW(parallelFor(*executor, 1000,
                           [](std::size_t i) {
                             if (i == 700) {
                               throw Error(ErrorCode::kCorrupt, "task 700");
                             }
                           }),
               Error);
  std::atomic<std::size_t> n_done = 0;
  parallelFor(*executor, 1000, [&](std::size_t) { ++n_done; });
  EXPECT_EQ(n_done, 1000u);
}

/// In a child process: room for a few thread stacks, then an executor that asks for many. Exits
/// with 0 when it works with the threads it got; the alarm ends a hang.
[[noreturn]] void useFewerThreadsAndExit() {
  constexpr std::size_t kWanted = 64;
  constexpr std::size_t kRoomBytes = std::size_t{48} << 20;
  alarm(30);
  std::size_t n_pages = 0;
  std::ifstream("/proc/self/statm") >> n_pages;
  const rlim_t limit = n_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + kRoomBytes;
  const rlimit address_space{limit, limit};
  if (setrlimit(RLIMIT_AS, &address_space) != 0) {
    std::_Exit(2);
  }
  const auto executor = makeStdExecutor(kWanted);
  std::atomic<std::size_t> n_done = 0;
  parallelFor(*executor, 1000, [&](std::size_t) { ++n_done; });
  const bool works = executor->threadCount() >= 1 && executor->threadCount() < kWanted;
  std::_Exit(works && n_done == 1000 ? 0 : 1);
}

TEST(Threads, WhenTheSystemGivesFewerThreadsTheExecutorWorksWithThose) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space that this test takes away";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(useFewerThreadsAndExit(), testing::ExitedWithCode(0), "");
}

TEST(Threads, ARequestForMoreThanTheLimitGetsTheLimit) {
  EXPECT_EQ(usableThreads(kMaxThreads + 1), kMaxThreads);
  EXPECT_EQ(usableThreads(static_cast<std::size_t>(-1)), kMaxThreads);
  EXPECT_EQ(usableThreads(5), 5u);
  EXPECT_EQ(usableThreads(0), std::min(hardwareThreads(), kMaxThreads));
}

}  // namespace
}  // namespace fz::test
