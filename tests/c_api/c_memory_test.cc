// Memory of the caller, and handles in many threads.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "c_api/c_api_support.h"

namespace fz::test {
namespace {

/// Hands out memory and keeps account of it; refuses after a number of calls.
struct Account {
  std::size_t n_allocations = 0;
  std::size_t n_live_bytes = 0;
  std::size_t n_allowed = SIZE_MAX;

  static void* allocate(std::size_t n_bytes, std::size_t alignment, void* context) {
    auto* account = static_cast<Account*>(context);
    if (account->n_allocations >= account->n_allowed) {
      return nullptr;
    }
    ++account->n_allocations;
    account->n_live_bytes += n_bytes;
    return std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment);
  }
  static void release(void* memory, std::size_t n_bytes, void* context) {
    static_cast<Account*>(context)->n_live_bytes -= n_bytes;
    std::free(memory);
  }
  fz_allocator hooks() { return {&allocate, &release, this}; }
};

TEST(CAllocator, GivesWorkingMemoryAndResultsAndGetsAllBack) {
  Account account;
  fz_options options = cpuOptions();
  options.allocator = account.hooks();
  options.fallback = FZ_FALLBACK_NONE;
  const Bytes& values = sampleField().bytes;
  {
    const PipelineHandle pipeline = fromPreset("cusz", options);
    void* archive = nullptr;
    std::size_t n_archive_bytes = 0;
    ASSERT_EQ(fz_compress_alloc(pipeline.get(), values.data(), values.size(), &archive,
                                &n_archive_bytes, nullptr),
              FZ_OK)
        << fz_last_error();
    const auto* bytes = static_cast<const std::uint8_t*>(archive);
    EXPECT_EQ(Bytes(bytes, bytes + n_archive_bytes), sampleArchive("cusz"));
    EXPECT_GE(account.n_allocations, 2u);
    void* decoded = nullptr;
    std::size_t n_bytes = 0;
    ASSERT_EQ(
        fz_decompress_alloc(pipeline.get(), archive, n_archive_bytes, &decoded, &n_bytes, nullptr),
        FZ_OK)
        << fz_last_error();
    ASSERT_EQ(n_bytes, values.size());
    const std::size_t n_before = account.n_live_bytes;
    fz_release(pipeline.get(), decoded, n_bytes);
    EXPECT_EQ(n_before - account.n_live_bytes, n_bytes);
    fz_release(pipeline.get(), archive, n_archive_bytes);
    EXPECT_GT(account.n_live_bytes, 0u);  // the pipeline's own
  }
  EXPECT_EQ(account.n_live_bytes, 0u);
}

/// Compresses with ever more memory until it is enough, and each time again with all of it.
void expectCleanFailures(const Bytes& values) {
  const Bytes wanted = compressed(fromPreset("cusz", cpuOptions()).get(), values);
  bool was_refused = true;
  for (std::size_t n_allowed = 0; was_refused && n_allowed < 100; ++n_allowed) {
    Account account;
    account.n_allowed = n_allowed;
    fz_options options = cpuOptions();
    options.allocator = account.hooks();
    options.error_bound = 1e-4;
    {
      fz_pipeline* made = nullptr;
      ASSERT_EQ(fz_pipeline_from_preset("cusz", &options, &made), FZ_OK) << fz_last_error();
      const PipelineHandle pipeline(made);
      void* memory = nullptr;
      std::size_t n_bytes = 0;
      const fz_status status = fz_compress_alloc(pipeline.get(), values.data(), values.size(),
                                                 &memory, &n_bytes, nullptr);
      was_refused = status != FZ_OK;
      if (was_refused) {
        EXPECT_EQ(status, FZ_ERROR_OUT_OF_MEMORY) << n_allowed << ": " << fz_last_error();
        EXPECT_EQ(memory, nullptr);
        account.n_allowed = SIZE_MAX;
        EXPECT_EQ(compressed(pipeline.get(), values), wanted);
      }
      fz_release(pipeline.get(), memory, n_bytes);
    }
    EXPECT_EQ(account.n_live_bytes, 0u) << n_allowed;
  }
  EXPECT_FALSE(was_refused);
}

TEST(CAllocator, WithoutMemoryEveryCallFailsCleanlyAndWorksLater) {
  expectCleanFailures(sampleField().bytes);
}

/// The sample with a gap in it.
Bytes sampleWithNan() {
  Bytes values = sampleField().bytes;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 100; i < 300; ++i) {
    std::memcpy(values.data() + i * sizeof(float), &nan, sizeof(float));
  }
  return values;
}

TEST(CAllocator, WithoutMemoryFieldsWithMissingValuesFailCleanlyToo) {
  expectCleanFailures(sampleWithNan());
}

TEST(CAllocator, GivesTheMemoryForFieldsWithMissingValuesAsWell) {
  Account account;
  fz_options options = cpuOptions();
  options.allocator = account.hooks();
  {
    const PipelineHandle pipeline = fromPreset("cusz", options);
    compressed(pipeline.get(), sampleField().bytes);
    const std::size_t n_before = account.n_live_bytes;
    const Bytes archive = compressed(pipeline.get(), sampleWithNan());
    EXPECT_GT(account.n_live_bytes, n_before);
    EXPECT_EQ(archive, compressed(fromPreset("cusz", cpuOptions()).get(), sampleWithNan()));
  }
  EXPECT_EQ(account.n_live_bytes, 0u);
}

TEST(CAllocator, WithoutOneTheLibraryHandsOverItsOwnMemory) {
  const PipelineHandle pipeline = fromPreset("pfpl", cpuOptions());
  const Bytes& values = sampleField().bytes;
  void* archive = nullptr;
  std::size_t n_archive_bytes = 0;
  ASSERT_EQ(fz_compress_alloc(pipeline.get(), values.data(), values.size(), &archive,
                              &n_archive_bytes, nullptr),
            FZ_OK);
  // The archive is the caller's: later calls and the end of other pipelines do not touch it.
  compressed(pipeline.get(), Bytes(values.size()));
  const auto* bytes = static_cast<const std::uint8_t*>(archive);
  EXPECT_EQ(Bytes(bytes, bytes + n_archive_bytes), sampleArchive("pfpl"));
  fz_release(pipeline.get(), archive, n_archive_bytes);
}

TEST(CThreads, HandlesInManyThreadsGiveTheSameBytes) {
  const Bytes& values = sampleField().bytes;
  const Bytes wanted = sampleArchive();
  std::atomic<int> n_wrong = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      fz_options options = cpuOptions();
      options.n_threads = 2;
      for (int round = 0; round < 10; ++round) {
        const PipelineHandle pipeline = fromPreset("cuszp2", options);
        const Bytes archive = compressed(pipeline.get(), values);
        n_wrong += archive != wanted ? 1 : 0;
        // Every thread also fails, and reads its own message.
        fz_pipeline* made = nullptr;
        const std::string name = "nosuch" + std::to_string(t);
        n_wrong += fz_pipeline_from_preset(name.c_str(), &options, &made) == FZ_OK ? 1 : 0;
        n_wrong += std::strstr(fz_last_error(), name.c_str()) == nullptr ? 1 : 0;
        n_wrong += fz_verify(pipeline.get(), archive.data(), archive.size(), nullptr) != FZ_OK;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(n_wrong, 0);
}

}  // namespace
}  // namespace fz::test
