// Archives of chunks: written in any way, read by any box.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <unistd.h>

#include "archive/support.h"
#include "format/file_io.h"

namespace fz::test {
namespace {

namespace fs = std::filesystem;

struct Case {
  AxisValues extents;
  AxisValues chunk;
};

class ArchiveShapes : public ::testing::TestWithParam<Case> {};

TEST_P(ArchiveShapes, ComeBackWholeAndByBoxes) {
  const auto& [extents, chunk] = GetParam();
  const std::vector<float> values = waves(extents);
  const std::vector<std::uint8_t> archive = archiveOf(values, optionsWith(extents, chunk));
  const ArchiveReader reader(sourceOf(archive));
  EXPECT_EQ(reader.info().extents, extents);
  EXPECT_EQ(reader.info().chunk, chunk);
  EXPECT_EQ(reader.info().type, DataType::FLOAT32);
  EXPECT_EQ(reader.info().original_bytes, values.size() * sizeof(float));
  const std::vector<float> decoded = readBox(reader, wholeOf(extents));
  EXPECT_LE(largestError(values, decoded), 1e-3);

  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    Box box;
    for (const std::uint64_t extent : extents) {
      const std::uint64_t begin = random() % extent;
      box.origin.push_back(begin);
      box.extents.push_back(1 + random() % (extent - begin));
    }
    EXPECT_EQ(readBox(reader, box), pick(decoded, extents, box)) << boxText(box);
  }
}

INSTANTIATE_TEST_SUITE_P(Grids,
                         ArchiveShapes,
                         ::testing::Values(Case{{}, {}},
                                           Case{{1000}, {300}},
                                           Case{{1000}, {1000}},
                                           Case{{70, 50}, {70, 7}},
                                           Case{{70, 50}, {33, 50}},
                                           Case{{70, 50}, {33, 20}},
                                           Case{{40, 30, 20}, {40, 30, 5}},
                                           Case{{40, 30, 20}, {16, 16, 16}},
                                           Case{{1, 30, 20}, {1, 16, 16}},
                                           Case{{20, 1, 17}, {7, 1, 5}},
                                           Case{{9, 8, 7, 6}, {9, 4, 7, 1}},
                                           Case{{9, 8, 7, 6}, {4, 8, 3, 4}},
                                           Case{{5, 4, 3, 2, 3, 2, 2, 3},
                                                {5, 2, 3, 1, 3, 2, 1, 2}}));

TEST(ArchiveWriter, GivesTheSameBytesForAnyPiecesAndAnyThreads) {
  const AxisValues extents = {40, 30, 20};
  const std::vector<float> values = waves(extents);
  ArchiveOptions options = optionsWith(extents, {40, 11, 6});
  const std::vector<std::uint8_t> expected = archiveOf(values, options);
  for (const std::size_t n_piece : {4u, 4096u, 50000u}) {
    MemorySink sink;
    ArchiveWriter writer(DataType::FLOAT32, options, sink);
    ByteView rest = bytesOf(values);
    while (!rest.empty()) {
      const std::size_t n = std::min(rest.size(), n_piece);
      writer.append(rest.first(n));
      rest = rest.subspan(n);
    }
    const std::uint64_t n_bytes = writer.finish();
    EXPECT_EQ(n_bytes, sink.bytes().size());
    EXPECT_EQ(sink.bytes(), expected) << n_piece;
  }
  options.compress.threads = 3;
  EXPECT_EQ(archiveOf(values, options), expected);
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  writer.putAll([&](const Box& box, MutableByteView out) {
    const std::vector<float> part = pick(values, extents, box);
    ASSERT_EQ(out.size(), part.size() * sizeof(float));
    std::memcpy(out.data(), part.data(), out.size());
  });
  writer.finish();
  EXPECT_EQ(sink.bytes(), expected);
}

TEST(ArchiveWriter, TheErrorOfPutAllIsThatOfTheFirstChunkWhichHasOne) {
  const AxisValues extents = {16, 16, 40};
  const std::vector<float> values = waves(extents);
  for (std::uint64_t bad = 0; bad < 10; ++bad) {
    MemorySink sink;
    ArchiveWriter writer(DataType::FLOAT32, optionsWith(extents, {16, 16, 4}), sink);
    std::vector<std::uint64_t> asked;
    try {
      writer.putAll([&](const Box& box, MutableByteView out) {
        const std::uint64_t chunk = box.origin[2] / 4;
        asked.push_back(chunk);
        if (chunk >= bad) {
          throw Error(ErrorCode::kIo, "chunk " + std::to_string(chunk));
        }
        const std::vector<float> part = pick(values, extents, box);
        std::memcpy(out.data(), part.data(), out.size());
      });
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), ("chunk " + std::to_string(bad)).c_str());
    }
    EXPECT_EQ(asked.size(), bad + 1) << "nothing is read after an error";
    EXPECT_TRUE(std::is_sorted(asked.begin(), asked.end()));
  }
}

TEST(ArchiveWriter, ASinkThatFailsEndsPutAllWithItsError) {
  const AxisValues extents = {32, 32, 40};
  const std::vector<float> values = waves(extents);
  MemorySink sink;
  sink.n_most = 3000;
  ArchiveWriter writer(DataType::FLOAT32, optionsWith(extents, {32, 32, 4}), sink);
  const auto read = [&](const Box& box, MutableByteView out) {
    const std::vector<float> part = pick(values, extents, box);
    std::memcpy(out.data(), part.data(), out.size());
  };
  try {
    writer.putAll(read);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
  EXPECT_THROW(writer.finish(), Error);
}

TEST(ArchiveWriter, ChunksInOrderKeepThePlanOfTheFirst) {
  const AxisValues extents = {64, 48, 50};
  std::vector<float> values = waves(extents);
  ArchiveOptions options = optionsWith(extents, {64, 48, 8});
  options.compress.preset = "best";
  const auto plansOf = [](const std::vector<std::uint8_t>& archive) {
    const ArchiveReader reader(sourceOf(archive));
    std::vector<std::string> plans;
    for (std::uint64_t chunk = 0; chunk < reader.info().n_chunks; ++chunk) {
      const FrameInfo info = reader.inspect(chunk);
      for (const auto& [key, value] : info.stages.front().params) {
        if (key == "plan") {
          plans.push_back(std::get<std::string>(value));
        }
      }
    }
    return plans;
  };
  const std::vector<std::uint8_t> archive = archiveOf(values, options);
  const std::vector<std::string> plans = plansOf(archive);
  ASSERT_EQ(plans.size(), 7u);
  for (std::size_t chunk = 1; chunk < 6; ++chunk) {
    EXPECT_EQ(plans[chunk], plans[0]);
  }
  EXPECT_LE(largestError(values, readBox(ArchiveReader(sourceOf(archive)), wholeOf(extents))),
            1e-3);

  // Values of another kind are looked at anew, and where they begin is the same in any pieces.
  std::mt19937 random(1);
  for (std::size_t i = values.size() / 2; i < values.size(); ++i) {
    values[i] += static_cast<float>(random() % 1000) * 0.01f;
  }
  const std::vector<std::uint8_t> mixed = archiveOf(values, options);
  EXPECT_LE(largestError(values, readBox(ArchiveReader(sourceOf(mixed)), wholeOf(extents))), 1e-3);
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  writer.putAll([&](const Box& box, MutableByteView out) {
    const std::vector<float> part = pick(values, extents, box);
    std::memcpy(out.data(), part.data(), out.size());
  });
  writer.finish();
  EXPECT_EQ(sink.bytes(), mixed);
}

TEST(ArchiveWriter, TakesChunksInAnyOrderFromSeveralThreads) {
  const AxisValues extents = {40, 30, 20};
  const std::vector<float> values = waves(extents);
  const ArchiveOptions options = optionsWith(extents, {16, 16, 4});
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  const std::uint64_t n_chunks = writer.chunkCount();
  ASSERT_EQ(n_chunks, 3u * 2u * 5u);
  std::vector<std::thread> threads;
  for (std::uint64_t first = 0; first < 3; ++first) {
    threads.emplace_back([&, first] {
      for (std::uint64_t k = n_chunks; k-- > 0;) {
        if (k % 3 == first) {
          writer.put(k, bytesOf(pick(values, extents, writer.chunkBox(k))));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  writer.finish();
  const ArchiveReader shuffled(sourceOf(sink.bytes()));
  const std::vector<std::uint8_t> ordered = archiveOf(values, options);
  EXPECT_EQ(readBox(shuffled, wholeOf(extents)),
            readBox(ArchiveReader(sourceOf(ordered)), wholeOf(extents)));
}

TEST(ArchiveWriter, GrowsAlongTheSlowestAxis) {
  const AxisValues extents = {40, 30, 20};
  const std::vector<float> values = waves(extents);
  for (const AxisValues& chunk : {AxisValues{40, 30, 6}, AxisValues{16, 30, 6}}) {
    ArchiveOptions options = optionsWith({40, 30, 0}, chunk);
    const std::vector<std::uint8_t> archive = archiveOf(values, options);
    const ArchiveReader reader(sourceOf(archive));
    EXPECT_EQ(reader.info().extents, extents);
    EXPECT_LE(largestError(values, readBox(reader, wholeOf(extents))), 1e-3);
  }
}

TEST(ArchiveWriter, KeepsNoMoreOfAGrowingArrayThanAChunkOrAPlane) {
  for (const AxisValues& extents : {AxisValues{0}, AxisValues{2048, 2048, 0},
                                    AxisValues{8192, 8192, 0}, AxisValues{64, 64, 64, 32, 0}}) {
    MemorySink sink;
    const ArchiveWriter writer(DataType::FLOAT32, optionsWith(extents, {}), sink);
    AxisValues slab = extents;
    slab.back() = 1;
    const std::uint64_t n_plane_bytes = valueCount(slab) * sizeof(float);
    slab.back() = writer.chunkExtents().back();
    EXPECT_LE(valueCount(slab) * sizeof(float), std::max(n_plane_bytes, kDefaultChunkBytes))
        << extentsText(writer.chunkExtents());
    EXPECT_GE(valueCount(writer.chunkExtents()) * sizeof(float), kDefaultChunkBytes / 4);
  }
}

TEST(ArchiveWriter, ValuesThatEndInsideAPlaneAreAnError) {
  ArchiveOptions options = optionsWith({40, 30, 0}, {40, 30, 6});
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  writer.append(bytesOf(std::vector<float>(40 * 30 * 2 + 7)));
  EXPECT_THROW(writer.finish(), Error);
}

TEST(ArchiveWriter, OneChunkIsThePlainFrame) {
  const AxisValues extents = {40, 30, 2};
  const std::vector<float> values = waves(extents);
  const ArchiveOptions options = optionsWith(extents, {});
  CompressOptions plain = options.compress;
  plain.dims = {40, 30, 2};
  const Frame frame = compress(std::span(values), plain);
  const std::vector<std::uint8_t> expected(frame.bytes().begin(), frame.bytes().end());
  EXPECT_EQ(archiveOf(values, options), expected);
  EXPECT_EQ(archiveOf(values, optionsWith({40, 30, 0}, {40, 30, 6})), expected);
  const ArchiveReader reader(sourceOf(expected));
  EXPECT_TRUE(reader.info().is_frame);
  EXPECT_EQ(reader.info().n_chunks, 1u);
  const Box box{{3, 4, 1}, {10, 20, 1}};
  EXPECT_EQ(readBox(reader, box), pick(readBox(reader, wholeOf(extents)), extents, box));
}

TEST(ArchiveWriter, SaysWhatIsMissing) {
  const AxisValues extents = {40, 30, 20};
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, optionsWith(extents, {40, 30, 6}), sink);
  writer.put(1, bytesOf(std::vector<float>(40 * 30 * 6)));
  try {
    writer.finish();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadSize);
    EXPECT_NE(std::string(error.what()).find("chunk 0 of 4"), std::string::npos) << error.what();
  }
  EXPECT_THROW(writer.put(1, bytesOf(std::vector<float>(40 * 30 * 6))), InvalidArgument);
  EXPECT_THROW(writer.put(3, bytesOf(std::vector<float>(40 * 30 * 6))), Error);
  EXPECT_THROW(writer.put(4, {}), InvalidArgument);
}

TEST(ArchiveWriter, MoreValuesThanTheArrayHasAreAnError) {
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, optionsWith({10, 4}, {10, 2}), sink);
  writer.append(bytesOf(std::vector<float>(40)));
  EXPECT_THROW(writer.append(bytesOf(std::vector<float>(1))), Error);
}

TEST(ArchiveWriter, AFailedWriteIsNotForgotten) {
  MemorySink sink;
  sink.n_most = 1000;
  ArchiveWriter writer(DataType::FLOAT32, optionsWith({40, 30, 20}, {40, 30, 2}), sink);
  const std::vector<float> noise = [] {
    std::vector<float> values(40 * 30 * 20);
    std::mt19937 random(1);
    for (float& value : values) {
      value = static_cast<float>(random());
    }
    return values;
  }();
  EXPECT_THROW(writer.append(bytesOf(noise)), Error);
  EXPECT_THROW(writer.finish(), Error);
}

TEST(ArchiveWriter, StopsWhenAsked) {
  ArchiveProgress progress;
  ArchiveOptions options = optionsWith({40, 30, 20}, {40, 30, 2});
  options.progress = &progress;
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  EXPECT_EQ(progress.n_bytes, 40u * 30u * 20u * 4u);
  writer.append(bytesOf(std::vector<float>(40 * 30 * 4)));
  EXPECT_EQ(progress.n_bytes_done, 40u * 30u * 4u * 4u);
  progress.is_cancelled = true;
  try {
    writer.append(bytesOf(std::vector<float>(40 * 30 * 4)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

TEST(ArchiveReader, ReadsIntoSteps) {
  const AxisValues extents = {12, 10, 8};
  const std::vector<float> values = waves(extents);
  const std::vector<std::uint8_t> archive = archiveOf(values, optionsWith(extents, {5, 4, 3}));
  const ArchiveReader reader(sourceOf(archive));
  const Box box{{1, 2, 3}, {10, 7, 4}};
  const std::vector<float> expected = readBox(reader, box);
  // The other order of axes, every second value.
  std::vector<float> turned(10 * 7 * 4 * 2, -1.0f);
  reader.read(box, turned.data(), {4 * 7 * 2 * 4, 4 * 2 * 4, 2 * 4}, onCpu());
  for (std::size_t z = 0; z < 4; ++z) {
    for (std::size_t y = 0; y < 7; ++y) {
      for (std::size_t x = 0; x < 10; ++x) {
        EXPECT_EQ(turned[((x * 7 + y) * 4 + z) * 2], expected[(z * 7 + y) * 10 + x]);
        EXPECT_EQ(turned[((x * 7 + y) * 4 + z) * 2 + 1], -1.0f);
      }
    }
  }
}

TEST(ArchiveReader, RefusesBoxesOutsideTheArray) {
  const AxisValues extents = {12, 10};
  const std::vector<std::uint8_t> archive = archiveOf(waves(extents), optionsWith(extents, {5, 4}));
  const ArchiveReader reader(sourceOf(archive));
  std::vector<std::uint8_t> out(4096);
  const auto refused = [&](const Box& box) {
    EXPECT_THROW(reader.read(box, MutableByteView(out).first(valueCount(box.extents) * 4), onCpu()),
                 InvalidArgument);
  };
  refused({{0, 0}, {13, 1}});
  refused({{12, 0}, {1, 1}});
  refused({{~std::uint64_t{0}, 0}, {2, 1}});
  refused({{0}, {1}});
  EXPECT_THROW(reader.read({{0, 0}, {2, 2}}, MutableByteView(out).first(15), onCpu()), Error);
  EXPECT_NO_THROW(reader.read({{12, 0}, {0, 4}}, MutableByteView(out).first(0), onCpu()));
}

/// Counts what is read.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(ByteView bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    n_read += out.size();
  }
  mutable std::size_t n_read = 0;

 private:
  ByteView bytes_;
};

TEST(ArchiveReader, ReadsOnlyTheChunksThatABoxTouches) {
  const AxisValues extents = {64, 64, 64};
  std::vector<float> values(64 * 64 * 64);
  std::mt19937 random(1);
  for (float& value : values) {
    value = static_cast<float>(random() % 100000);
  }
  const std::vector<std::uint8_t> archive =
      archiveOf(values, optionsWith(extents, {64, 64, 4}, 1e-3));
  const auto source = std::make_shared<CountingSource>(archive);
  const ArchiveReader reader(source);
  source->n_read = 0;
  readBox(reader, {{0, 0, 9}, {64, 64, 1}});
  EXPECT_LT(source->n_read, archive.size() / 15);
}

TEST(ArchiveFile, HasItsNameOnlyWhenItIsComplete) {
  const fs::path folder = fs::temp_directory_path() / ("fz_archive_" + std::to_string(::getpid()));
  fs::create_directory(folder);
  const std::string path = (folder / "a.fzm").string();
  const AxisValues extents = {40, 30, 20};
  const std::vector<float> values = waves(extents);
  const ArchiveOptions options = optionsWith(extents, {40, 30, 6});
  {
    ArchiveWriter writer(DataType::FLOAT32, options, path);
    writer.append(bytesOf(values));
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(fs::exists(path + ".part"));
    // Nobody else may write it meanwhile.
    EXPECT_THROW(ArchiveWriter(DataType::FLOAT32, options, path), Error);
  }
  EXPECT_TRUE(fs::is_empty(folder));
  {
    ArchiveWriter writer(DataType::FLOAT32, options, path);
    writer.append(bytesOf(values));
    writer.finish();
  }
  EXPECT_FALSE(fs::exists(path + ".part"));
  EXPECT_EQ(readFile(path), archiveOf(values, options));
  EXPECT_LE(largestError(values, readBox(ArchiveReader(path), wholeOf(extents))), 1e-3);

  // What a killed process left.
  std::vector<std::uint8_t> cut = readFile(path);
  cut.resize(cut.size() / 2);
  writeFileAtomically(path + ".part", cut);
  EXPECT_THROW(ArchiveWriter(DataType::FLOAT32, options, path, false), Error);
  EXPECT_EQ(readFile(path + ".part"), cut);
  {
    ArchiveWriter writer(DataType::FLOAT32, options, path, true);
    writer.append(bytesOf(values));
    writer.finish();
  }
  EXPECT_FALSE(fs::exists(path + ".part"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace fz::test
