// Archives that lie, were cut off, or belong to something else.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

#include "archive/index.h"
#include "archive/support.h"
#include "format/crc32.h"

namespace fz::test {
namespace {

const AxisValues kExtents = {12, 10, 6};
const AxisValues kChunk = {12, 10, 2};

std::vector<std::uint8_t> smallArchive(const char* preset = "pfpl", float factor = 1.0f) {
  std::vector<float> values = waves(kExtents);
  for (float& value : values) {
    value *= factor;
  }
  ArchiveOptions options = optionsWith(kExtents, kChunk, 1e-2);
  options.compress.preset = preset;
  return archiveOf(values, options);
}

ArchiveIndex indexOf(const std::vector<std::uint8_t>& archive) {
  const auto place = findIndex(archive, archive.size());
  EXPECT_TRUE(place);
  return getIndex(ByteView(archive).subspan(place->offset), archive.size());
}

/// The same frames with another index.
std::vector<std::uint8_t> withIndex(const std::vector<std::uint8_t>& archive,
                                    const std::function<void(ArchiveIndex&)>& change) {
  ArchiveIndex index = indexOf(archive);
  const std::uint64_t frames_end = findIndex(archive, archive.size())->offset;
  change(index);
  std::vector<std::uint8_t> made(archive.begin(),
                                 archive.begin() + static_cast<std::ptrdiff_t>(frames_end));
  const std::vector<std::uint8_t> tail = putIndex(index, frames_end);
  made.insert(made.end(), tail.begin(), tail.end());
  return made;
}

/// What opening and reading all of it says; empty: nothing.
std::string complaintOf(const std::vector<std::uint8_t>& archive, std::vector<float>* values) {
  try {
    const ArchiveReader reader(sourceOf(archive));
    if (reader.info().original_bytes > 1u << 20) {
      return "large";
    }
    std::vector<std::uint8_t> out(reader.info().original_bytes);
    reader.read(wholeOf(reader.info().extents), out, onCpu());
    values->resize(out.size() / sizeof(float));
    std::memcpy(values->data(), out.data(), values->size() * sizeof(float));
    return {};
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kUnsupported)
        << error.what();
    return error.what();
  }
}

TEST(ArchiveDamage, EveryTruncationIsNoticed) {
  const std::vector<std::uint8_t> archive = smallArchive();
  std::vector<float> values;
  ASSERT_EQ(complaintOf(archive, &values), "");
  for (std::size_t n = 0; n < archive.size(); ++n) {
    const std::vector<std::uint8_t> cut(archive.begin(),
                                        archive.begin() + static_cast<std::ptrdiff_t>(n));
    // A cut right behind the first frame leaves a sound frame, which says that it is a part.
    if (n == indexOf(archive).chunks[1].offset) {
      EXPECT_EQ(inspect(cut).place->whole, kExtents);
      continue;
    }
    EXPECT_NE(complaintOf(cut, &values), "") << n;
  }
  std::vector<std::uint8_t> longer = archive;
  longer.push_back(0);
  EXPECT_NE(complaintOf(longer, &values), "");
}

TEST(ArchiveDamage, EveryBitFlipIsNoticed) {
  for (const char* preset : {"pfpl", "balanced"}) {
    std::vector<std::uint8_t> archive = smallArchive(preset);
    std::vector<float> values;
    for (std::size_t i = 0; i < archive.size(); ++i) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        archive[i] ^= static_cast<std::uint8_t>(1u << bit);
        EXPECT_NE(complaintOf(archive, &values), "") << i << ' ' << bit;
        archive[i] ^= static_cast<std::uint8_t>(1u << bit);
      }
    }
  }
}

TEST(ArchiveDamage, OtherChunksStayReadable) {
  std::vector<std::uint8_t> archive = smallArchive();
  const std::vector<float> expected = readBox(ArchiveReader(sourceOf(archive)), wholeOf(kExtents));
  const ChunkEntry entry = indexOf(archive).chunks[1];
  archive[entry.offset + entry.n_bytes - 1] ^= 1;
  const ArchiveReader reader(sourceOf(archive));
  for (const std::uint64_t z : {0u, 4u}) {
    const Box box{{0, 0, z}, {12, 10, 2}};
    EXPECT_EQ(readBox(reader, box), pick(expected, kExtents, box));
  }
  try {
    readBox(reader, {{3, 3, 3}, {1, 1, 1}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("chunk 1 of 3, [2:4, 0:10, 0:12]"), std::string::npos)
        << error.what();
  }
}

TEST(ArchiveDamage, AnIndexThatLiesIsNoticed) {
  const std::vector<std::uint8_t> archive = smallArchive();
  std::vector<float> values;
  const auto complaint = [&](const std::function<void(ArchiveIndex&)>& change) {
    return complaintOf(withIndex(archive, change), &values);
  };
  EXPECT_EQ(complaint([](ArchiveIndex& /*index*/) {}), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { std::swap(i.chunks[0], i.chunks[1]); }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.chunks[1] = i.chunks[0]; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.chunks[0].n_bytes += 1; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.chunks[2].n_bytes += 1; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.chunks[2].offset = ~std::uint64_t{0} - 5; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.chunks[0].header_checksum ^= 1; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.array_id += 1; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) { i.type = DataType::FLOAT64; }), "");
  EXPECT_NE(complaint([](ArchiveIndex& i) {
              i.grid = ChunkGrid(i.type, {10, 12, 6}, {10, 12, 2});
            }),
            "");
  EXPECT_NE(complaint([](ArchiveIndex& i) {
              i.grid = ChunkGrid(i.type, {12, 10, 8}, kChunk);
              i.chunks.push_back(i.chunks.back());
            }),
            "");
  const std::string absent = complaint([](ArchiveIndex& i) { i.chunks[2] = {}; });
  EXPECT_NE(absent.find("chunk 2 of 3"), std::string::npos) << absent;
  EXPECT_NE(absent.find("absent"), std::string::npos) << absent;
}

TEST(ArchiveDamage, AChunkOfAnotherArrayIsNoticed) {
  const std::vector<std::uint8_t> archive = smallArchive();
  const std::vector<std::uint8_t> other = smallArchive("pfpl", -1.0f);
  const ArchiveIndex index = indexOf(archive);
  ASSERT_EQ(indexOf(other).chunks[1].n_bytes, index.chunks[1].n_bytes);
  std::vector<std::uint8_t> mixed = archive;
  std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(index.chunks[1].offset),
              index.chunks[1].n_bytes,
              mixed.begin() + static_cast<std::ptrdiff_t>(index.chunks[1].offset));
  std::vector<float> values;
  EXPECT_NE(complaintOf(mixed, &values).find("chunk 1 of 3"), std::string::npos);
}

TEST(ArchiveDamage, AnIndexBeyondTheMemoryLimitIsRefused) {
  const std::vector<std::uint8_t> archive = smallArchive();
  DecodeLimits limits;
  limits.max_memory_bytes = 64;
  try {
    const ArchiveReader reader(sourceOf(archive), limits);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimit);
  }
}

TEST(ArchiveDamage, AbsentChunksCountForTheMemoryLimit) {
  // A byte each in the index, an entry each in memory.
  constexpr std::uint64_t kChunks = 100000;
  const std::vector<std::uint8_t> archive = withIndex(smallArchive(), [](ArchiveIndex& index) {
    index.grid = ChunkGrid(index.type, {12, 10, 2 * kChunks}, {12, 10, 2});
    index.chunks.resize(kChunks);
  });
  DecodeLimits limits;
  limits.max_memory_bytes = 10 * kChunks;
  try {
    const ArchiveReader reader(sourceOf(archive), limits);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimit);
  }
  limits.max_memory_bytes = 100 * kChunks;
  EXPECT_EQ(ArchiveReader(sourceOf(archive), limits).info().n_absent, kChunks - 3);
}

TEST(ArchiveDamage, TheFrameOfAChunkCountsForTheMemoryLimit) {
  const std::vector<std::uint8_t> archive = smallArchive();
  const ArchiveReader reader(sourceOf(archive));
  std::vector<std::uint8_t> values(valueCount(reader.chunkBox(0).extents) * sizeof(float));
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.limits.max_memory_bytes = reader.frame(0).size();
  try {
    reader.readChunk(0, values, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimit);
    EXPECT_NE(std::string(error.what()).find("its frame takes"), std::string::npos) << error.what();
  }
  options.limits.max_memory_bytes += std::size_t{32} << 20;
  EXPECT_NO_THROW(reader.readChunk(0, values, options));
}

TEST(ArchiveDamage, ExtentsThatNoFrameCanHoldTakeNoMemory) {
  const std::vector<std::uint8_t> archive = withIndex(smallArchive(), [](ArchiveIndex& index) {
    // Two chunks of 2^44 bytes each, for frames of a few hundred.
    index.grid = ChunkGrid(index.type, {std::uint64_t{1} << 20, std::uint64_t{1} << 20, 8},
                           {std::uint64_t{1} << 20, std::uint64_t{1} << 20, 4});
    index.chunks.resize(2);
  });
  const ArchiveReader reader(sourceOf(archive));
  std::vector<std::uint8_t> out(4);
  try {
    reader.read({{5, 5, 5}, {1, 1, 1}}, out, onCpu());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
  }
  bool was_asked = false;
  EXPECT_THROW(reader.readChunk(
                   0,
                   [&](std::size_t /*n_bytes*/) -> void* {
                     was_asked = true;
                     return nullptr;
                   },
                   onCpu()),
               Error);
  EXPECT_FALSE(was_asked);
}

/// Asks to stop when the first frame has been written.
class StoppingSink : public MemorySink {
 public:
  explicit StoppingSink(ArchiveProgress& progress) : progress_(progress) {}
  void write(ByteView bytes) override {
    MemorySink::write(bytes);
    progress_.is_cancelled = true;
  }

 private:
  ArchiveProgress& progress_;
};

TEST(ArchiveDamage, ACallThatEndedHalfwayIsNotGoneOnWith) {
  ArchiveProgress progress;
  StoppingSink sink(progress);
  ArchiveOptions options = optionsWith({12, 10, 0}, {6, 10, 2}, 1e-2);
  options.progress = &progress;
  const std::vector<float> values = waves(kExtents);
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  const auto codeOf = [&](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(codeOf([&] { writer.append(bytesOf(values)); }), ErrorCode::kCancelled);
  progress.is_cancelled = false;
  // Nobody knows how much of the values it has.
  EXPECT_EQ(codeOf([&] { writer.append(bytesOf(values)); }), ErrorCode::kInvalidState);
  EXPECT_EQ(codeOf([&] { writer.finish(); }), ErrorCode::kInvalidState);
}

Recovery recover(const std::vector<std::uint8_t>& bytes, std::vector<std::uint8_t>& made) {
  MemorySink sink;
  Recovery recovery = recoverArchive(*sourceOf(bytes), sink);
  made = sink.bytes();
  return recovery;
}

TEST(ArchiveRecovery, TakesEverythingUpToTheCut) {
  const std::vector<std::uint8_t> archive = smallArchive();
  const std::vector<float> expected = readBox(ArchiveReader(sourceOf(archive)), wholeOf(kExtents));
  const ArchiveIndex index = indexOf(archive);
  std::vector<std::uint8_t> made;
  for (std::size_t n = 0; n <= archive.size(); n += n % 7 + 1) {
    const std::vector<std::uint8_t> cut(archive.begin(),
                                        archive.begin() + static_cast<std::ptrdiff_t>(n));
    const auto n_whole = static_cast<std::uint64_t>(
        std::count_if(index.chunks.begin(), index.chunks.end(),
                      [&](const ChunkEntry& entry) { return entry.offset + entry.n_bytes <= n; }));
    if (n_whole == 0) {
      EXPECT_THROW(recover(cut, made), Error) << n;
      continue;
    }
    const Recovery recovery = recover(cut, made);
    EXPECT_EQ(recovery.n_chunks, n_whole);
    EXPECT_EQ(recovery.whole, kExtents);
    const ArchiveReader reader(sourceOf(made));
    EXPECT_EQ(reader.info().extents, (AxisValues{12, 10, 2 * n_whole}));
    EXPECT_EQ(reader.info().bound->requested, 1e-2);
    const Box box = wholeOf(reader.info().extents);
    EXPECT_EQ(readBox(reader, box), pick(expected, kExtents, box));
  }
}

TEST(ArchiveRecovery, OfACompleteArchiveIsTheArchive) {
  const std::vector<std::uint8_t> archive = smallArchive();
  std::vector<std::uint8_t> made;
  const Recovery recovery = recover(archive, made);
  EXPECT_EQ(recovery.n_dropped, 0u);
  EXPECT_EQ(made, archive);
}

TEST(ArchiveRecovery, FindsItsWayBehindDamage) {
  std::vector<std::uint8_t> archive = smallArchive();
  const ArchiveIndex index = indexOf(archive);
  archive[index.chunks[1].offset + 30] ^= 0x10;
  std::vector<std::uint8_t> made;
  const Recovery recovery = recover(archive, made);
  EXPECT_EQ(recovery.extents, (AxisValues{12, 10, 2}));
  EXPECT_EQ(recovery.n_dropped, 1u);
  EXPECT_GE(recovery.n_damaged_bytes, index.chunks[1].n_bytes);
}

TEST(ArchiveRecovery, OfAGrownArchiveKnowsWhatWasThere) {
  ArchiveOptions options = optionsWith({12, 10, 0}, {12, 10, 2});
  const std::vector<std::uint8_t> archive = archiveOf(waves(kExtents), options);
  const ArchiveIndex index = indexOf(archive);
  const std::vector<std::uint8_t> cut(
      archive.begin(), archive.begin() + static_cast<std::ptrdiff_t>(index.chunks[2].offset + 3));
  std::vector<std::uint8_t> made;
  EXPECT_EQ(recover(cut, made).extents, (AxisValues{12, 10, 4}));
}

TEST(ArchiveRecovery, MakesAFileOrNone) {
  const std::string path = ::testing::TempDir() + "recovered-" + std::to_string(::getpid());
  const std::vector<std::uint8_t> archive = smallArchive();
  EXPECT_EQ(recoverArchive(*sourceOf(archive), path).n_chunks, 3u);
  EXPECT_EQ(ArchiveReader(path).info().extents, kExtents);
  EXPECT_THROW(recoverArchive(*sourceOf(archive), path, false), Error);
  std::remove(path.c_str());
  EXPECT_THROW(recoverArchive(*sourceOf(ByteView(archive).first(10)), path), Error);
  EXPECT_THROW(ArchiveReader reader(path), Error);
}

}  // namespace
}  // namespace fz::test
