// Long blocks that one call leaves to the next.
#include "mem/kept_blocks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fz/host_api.h"

namespace fz {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class KeptBlocks : public testing::Test {
 protected:
  void SetUp() override {
    releaseHostMemory();
    giveBlock(takeBlock(8 * kMiB), 8 * kMiB);
    if (keptBlockBytes() == 0) {
      GTEST_SKIP() << "a sanitizer follows every block, so none is kept";
    }
    releaseHostMemory();
  }
  void TearDown() override { releaseHostMemory(); }
};

TEST_F(KeptBlocks, ALongBlockServesTheNextOneOfAboutItsLength) {
  void* const first = takeBlock(20 * kMiB);
  std::memset(first, 1, 20 * kMiB);
  giveBlock(first, 20 * kMiB);
  EXPECT_GE(keptBlockBytes(), 20 * kMiB);
  for (const std::size_t n_mib : {20, 19, 12}) {
    void* const next = takeBlock(n_mib * kMiB);
    EXPECT_EQ(next, first) << n_mib;
    EXPECT_EQ(keptBlockBytes(), 0U);
    giveBlock(next, n_mib * kMiB);
    EXPECT_GE(keptBlockBytes(), 20 * kMiB) << "of a block that was longer than asked for";
  }
}

TEST_F(KeptBlocks, OneMuchShorterGetsABlockOfItsOwn) {
  void* const longer = takeBlock(64 * kMiB);
  giveBlock(longer, 64 * kMiB);
  void* const shorter = takeBlock(8 * kMiB);
  EXPECT_NE(shorter, longer);
  giveBlock(shorter, 8 * kMiB);
}

TEST_F(KeptBlocks, ShortBlocksAreLeftToTheLibraryOfC) {
  giveBlock(takeBlock(1000), 1000);
  giveBlock(takeBlock(4 * kMiB - 1), 4 * kMiB - 1);
  giveBlock(nullptr, 8 * kMiB);
  EXPECT_EQ(keptBlockBytes(), 0U);
}

TEST_F(KeptBlocks, KeptAndUsedAreAtMostTwiceWhatWasAskedForAtOnce) {
  struct Block {
    void* memory;
    std::size_t n_bytes;
  };
  constexpr std::size_t kSlack = 9;  // of 8: lengths are rounded up by an eighth at most
  std::mt19937 random(5);
  std::vector<Block> used;
  std::size_t used_bytes = 0;
  std::size_t peak_bytes = 0;
  for (int step = 0; step < 2000; ++step) {
    if (used.size() < 12 && random() % 2 == 0) {
      const std::size_t n_bytes = (16 + random() % 100) * kMiB + random() % 1000;
      used.push_back({takeBlock(n_bytes), n_bytes});
      ASSERT_NE(used.back().memory, nullptr);
      used_bytes += n_bytes;
      // A block may be twice as long as what is asked for.
      peak_bytes = std::max(peak_bytes, used_bytes);
    } else if (!used.empty()) {
      std::swap(used[random() % used.size()], used.back());
      giveBlock(used.back().memory, used.back().n_bytes);
      used_bytes -= used.back().n_bytes;
      used.pop_back();
    }
    ASSERT_LE(keptBlockBytes() + used_bytes, 2 * peak_bytes * kSlack / 8) << step;
  }
  for (const Block& block : used) {
    giveBlock(block.memory, block.n_bytes);
  }
}

TEST_F(KeptBlocks, WhatCannotBeHadIsNullAndChangesNothing) {
  giveBlock(takeBlock(8 * kMiB), 8 * kMiB);
  for (const std::size_t n_bytes : {SIZE_MAX, SIZE_MAX - kMiB, SIZE_MAX / 2, SIZE_MAX / 4}) {
    EXPECT_EQ(takeBlock(n_bytes), nullptr) << n_bytes;
  }
  // Had the huge ones been counted, nothing would make room for others any more.
  releaseHostMemory();
  giveBlock(takeBlock(8 * kMiB), 8 * kMiB);
  giveBlock(takeBlock(64 * kMiB), 64 * kMiB);
  EXPECT_LT(keptBlockBytes(), 72 * kMiB);
}

TEST_F(KeptBlocks, AResultIsWrittenWhereTheOneBeforeStood) {
  std::vector<float> values(4 * kMiB);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i) * 1e-3F);
  }
  CompressOptions options;
  options.preset = "cuszp2";
  options.error_bound = 1e-3;
  options.mode = ErrorBoundMode::ABS;
  options.backend = Backend::CPU;
  const Frame frame = compress(std::span<const float>(values), options);
  const auto addressOfResult = [&] {
    const Array array = decompress(frame, {.backend = Backend::CPU});
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!(std::abs(array.as<float>()[i] - values[i]) <= 1e-3F)) {
        ADD_FAILURE() << "value " << i;
        break;
      }
    }
    return array.bytes().data();
  };
  const std::uint8_t* const first = addressOfResult();
  EXPECT_EQ(addressOfResult(), first);
  const Array held = decompress(frame, {.backend = Backend::CPU});
  EXPECT_NE(addressOfResult(), held.bytes().data()) << "while a result lives, its block is its own";
}

TEST_F(KeptBlocks, ReleaseGivesBackWhatNobodyUses) {
  void* const used = takeBlock(8 * kMiB);
  giveBlock(takeBlock(32 * kMiB), 32 * kMiB);
  EXPECT_GT(keptBlockBytes(), 0U);
  releaseHostMemory();
  EXPECT_EQ(keptBlockBytes(), 0U);
  std::memset(used, 1, 8 * kMiB);
  giveBlock(used, 8 * kMiB);
}

TEST_F(KeptBlocks, AChildOfABusyParentMayTakeThem) {
  std::atomic<bool> is_done = false;
  std::thread busy([&] {
    while (!is_done) {
      giveBlock(takeBlock(8 * kMiB), 8 * kMiB);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // rather than waiting for a lock that nobody opens
      void* const block = takeBlock(8 * kMiB);
      giveBlock(block, 8 * kMiB);
      _exit(block == nullptr ? 1 : 0);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << i;
  }
  is_done = true;
  busy.join();
}

}  // namespace
}  // namespace fz
