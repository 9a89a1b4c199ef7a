// Several chunks at once: the same values, errors and limits as one at a time.
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

#include "archive/chunk_slots.h"
#include "archive/support.h"

namespace fz::test {
namespace {

const AxisValues kExtents = {60, 50, 40};
const AxisValues kChunk = {32, 17, 9};

DecompressOptions withThreads(std::size_t n_threads) {
  DecompressOptions options = onCpu();
  options.threads = n_threads;
  return options;
}

/// Counts what is read, and by whom.
class WatchedSource : public ByteSource {
 public:
  explicit WatchedSource(ByteView bytes) : source_(sourceOf(bytes)) {}
  std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    n_bytes += out.size();
    n_elsewhere += std::this_thread::get_id() == owner_ ? 0u : 1u;
    source_->read(offset, out);
  }

  mutable std::atomic<std::uint64_t> n_bytes{0};
  mutable std::atomic<std::uint64_t> n_elsewhere{0};

 private:
  std::shared_ptr<const ByteSource> source_;
  std::thread::id owner_ = std::this_thread::get_id();
};

std::vector<std::uint8_t> archive(const char* preset = "") {
  ArchiveOptions options = optionsWith(kExtents, kChunk);
  options.compress.preset = preset;
  return archiveOf(waves(kExtents), options);
}

TEST(ArchiveTeam, GivesTheSameValuesForAnyThreads) {
  const std::vector<std::uint8_t> bytes = archive();
  const ArchiveReader reader(sourceOf(bytes));
  for (const Box& box : {wholeOf(kExtents), Box{{3, 5, 7}, {50, 30, 20}}}) {
    const std::vector<float> expected = readBox(reader, box);
    for (const std::size_t n_threads : {2u, 3u, 16u}) {
      std::vector<float> values(expected.size());
      reader.read(box, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * 4},
                  withThreads(n_threads));
      EXPECT_EQ(values, expected) << n_threads;
    }
  }
}

TEST(ArchiveTeam, HandsOutEveryPartOfABoxOnce) {
  const std::vector<std::uint8_t> bytes = archive();
  const ArchiveReader reader(sourceOf(bytes));
  const std::vector<float> whole = readBox(reader, wholeOf(kExtents));
  const Box box = {{3, 5, 7}, {50, 30, 20}};
  for (const std::size_t n_threads : {1u, 4u}) {
    std::mutex mutex;
    std::uint64_t n_values = 0;
    ArchiveProgress progress;
    reader.readParts(
        box,
        [&](const Box& part, ByteView values) {
          const std::vector<float> expected = pick(whole, kExtents, part);
          const std::lock_guard lock(mutex);
          ASSERT_EQ(values.size(), expected.size() * 4);
          EXPECT_EQ(std::memcmp(values.data(), expected.data(), values.size()), 0);
          n_values += expected.size();
        },
        withThreads(n_threads), &progress);
    EXPECT_EQ(n_values, valueCount(box.extents));
    EXPECT_EQ(progress.n_bytes_done, progress.n_bytes);
  }
}

TEST(ArchiveTeam, ReadsTheSourceOnTheCallingThreadOnly) {
  const std::vector<std::uint8_t> bytes = archive();
  const auto source = std::make_shared<WatchedSource>(bytes);
  const ArchiveReader reader(source);
  reader.readParts(
      wholeOf(kExtents), [](const Box&, ByteView) {}, withThreads(4));
  EXPECT_GT(source->n_bytes, 0u);
  EXPECT_EQ(source->n_elsewhere, 0u);
}

TEST(ArchiveTeam, ReadsNoMoreThanIndexAndTouchedChunks) {
  const std::vector<std::uint8_t> bytes = archive();
  const auto source = std::make_shared<WatchedSource>(bytes);
  const ArchiveReader reader(source);
  const std::uint64_t n_index = source->n_bytes;
  std::uint64_t n_frames = 0;
  for (std::uint64_t chunk = 0; chunk < 6; ++chunk) {  // all that begin with the first plane
    n_frames += reader.frame(chunk).size();
  }
  source->n_bytes = 0;
  reader.readParts(
      {{0, 0, 2}, {60, 50, 3}}, [](const Box&, ByteView) {}, withThreads(4));
  EXPECT_EQ(source->n_bytes, n_frames);
  EXPECT_LT(n_index + n_frames, bytes.size() / 4);
}

TEST(ArchiveTeam, NamesTheFirstDamagedChunkForAnyThreads) {
  const std::vector<std::uint8_t> bytes = archive();
  for (const std::size_t n_threads : {1u, 2u, 4u, 7u}) {
    std::vector<std::uint8_t> damaged = bytes;
    std::uint64_t at = 0;
    const ArchiveReader sound(sourceOf(bytes));
    for (std::uint64_t chunk = 0; chunk < 6; ++chunk) {
      at += sound.frame(chunk).size();
      if (chunk == 3) {
        damaged[at + 20] ^= 0x40;  // header of the chunk 4, which is read before 3 is decoded
        damaged[at - 1] ^= 0x40;   // payload of 3
      }
    }
    const ArchiveReader reader(sourceOf(damaged));
    try {
      reader.readParts(
          wholeOf(kExtents), [](const Box&, ByteView) {}, withThreads(n_threads));
      ADD_FAILURE() << "damage was not seen with " << n_threads << " threads";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      EXPECT_NE(std::string(error.what()).find("chunk 3 of"), std::string::npos) << error.what();
    }
  }
}

TEST(ArchiveTeam, StopsBeforeTheNextChunks) {
  const std::vector<std::uint8_t> bytes = archive();
  const ArchiveReader reader(sourceOf(bytes));
  ArchiveProgress progress;
  std::atomic<std::size_t> n_taken{0};
  try {
    reader.readParts(
        wholeOf(kExtents),
        [&](const Box&, ByteView) {
          ++n_taken;
          progress.is_cancelled = true;
        },
        withThreads(2), &progress);
    ADD_FAILURE() << "not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_LE(n_taken, 2u);
}

TEST(ArchiveTeam, TakesOneChunkAtATimeWhereTheLimitHasNoRoomForMore) {
  const ChunkGrid grid(DataType::FLOAT32, kExtents, kChunk);
  DecompressOptions options = withThreads(8);
  EXPECT_EQ(teamFor(grid, 100, options).n_at_once, 8u);
  EXPECT_EQ(teamFor(grid, 3, options).n_at_once, 3u);
  EXPECT_EQ(teamFor(grid, 3, options).each.threads, 2u);
  for (std::uint64_t n = 1; n < 8; ++n) {
    options.limits.max_memory_bytes = grid.chunkBytes() * 4 * n;
    const ChunkTeam team = teamFor(grid, 100, options);
    EXPECT_EQ(team.n_at_once, n);
    if (n > 1) {
      const std::uint64_t each = team.each.limits.max_memory_bytes + grid.chunkBytes();
      EXPECT_LE(each * n, options.limits.max_memory_bytes);
    }
  }
}

class ArchiveLimits : public testing::TestWithParam<const char*> {};

TEST_P(ArchiveLimits, ThatAreEnoughForOneChunkAreEnoughForAnyThreads) {
  const std::vector<std::uint8_t> bytes = archive(GetParam());
  const ArchiveReader reader(sourceOf(bytes));
  const auto isEnough = [&](std::size_t n_threads, std::uint64_t limit) {
    DecompressOptions options = withThreads(n_threads);
    options.limits.max_memory_bytes = limit;
    std::atomic<std::uint64_t> n_bytes = 0;
    ArchiveProgress progress;
    try {
      reader.readParts(
          wholeOf(kExtents), [&](const Box&, ByteView values) { n_bytes += values.size(); },
          options, &progress);
      EXPECT_EQ(n_bytes, valueCount(kExtents) * 4) << "a part came twice or not at all";
      EXPECT_EQ(progress.n_bytes_done, progress.n_bytes);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kLimit) << error.what();
      return false;
    }
  };
  std::size_t n_enough = 0;
  for (std::uint64_t limit = 1000; limit < 400000; limit += 3000) {
    const bool expected = isEnough(1, limit);
    EXPECT_EQ(isEnough(4, limit), expected) << limit;
    n_enough += expected ? 1u : 0u;
  }
  EXPECT_GT(n_enough, 0u);
}
INSTANTIATE_TEST_SUITE_P(Presets, ArchiveLimits, testing::Values("pfpl", "balanced", "cuszp2"));

}  // namespace
}  // namespace fz::test
