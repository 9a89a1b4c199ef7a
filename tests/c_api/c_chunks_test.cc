// Archives of chunks through the C interface: files and callbacks, boxes with steps, hostile bytes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <unistd.h>

#include "archive/support.h"
#include "c_api/c_api_support.h"

namespace fz::test {
namespace {

const AxisValues kExtents = {20, 15, 9};
constexpr double kBound = 1e-3;

std::string pathFor(const char* name) {
  return ::testing::TempDir() + "c-chunks-" + name + "-" + std::to_string(::getpid());
}

PipelineHandle absPipeline(const char* preset = "pfpl") {
  fz_options options = cpuOptions();
  options.type = FZ_TYPE_FLOAT32;
  options.bound_mode = FZ_BOUND_ABS;
  options.error_bound = kBound;
  return fromPreset(preset, options);
}

fz_writer_options writerOptions(const AxisValues& extents, const AxisValues& chunk) {
  fz_writer_options options = {};
  options.struct_size = sizeof(options);
  options.n_axes = static_cast<int32_t>(extents.size());
  std::copy(extents.begin(), extents.end(), options.extents);
  std::copy(chunk.begin(), chunk.end(), options.chunk);
  return options;
}

/// Bytes in memory as sink and source.
struct Memory {
  Bytes bytes;
  int n_calls_left = 1000000;

  static int32_t write(const void* from, size_t n_bytes, void* context) {
    auto& memory = *static_cast<Memory*>(context);
    if (memory.n_calls_left-- == 0) {
      return 28;
    }
    const auto* begin = static_cast<const std::uint8_t*>(from);
    memory.bytes.insert(memory.bytes.end(), begin, begin + n_bytes);
    return 0;
  }
  static int32_t read(uint64_t offset, void* out, size_t n_bytes, void* context) {
    auto& memory = *static_cast<Memory*>(context);
    if (memory.n_calls_left-- == 0 || offset + n_bytes > memory.bytes.size()) {
      return 5;
    }
    std::memcpy(out, memory.bytes.data() + offset, n_bytes);
    return 0;
  }
  fz_sink sink() { return {&write, this}; }
  fz_source source() { return {bytes.size(), &read, this}; }
};

Bytes smallArchive() {
  const std::vector<float> values = waves(kExtents);
  Memory memory;
  const fz_sink sink = memory.sink();
  const fz_writer_options options = writerOptions(kExtents, {20, 15, 2});
  fz_writer* made = nullptr;
  EXPECT_EQ(fz_writer_create_callbacks(&sink, absPipeline().get(), &options, &made), FZ_OK)
      << fz_last_error();
  const WriterHandle writer(made);
  EXPECT_EQ(fz_writer_append(made, values.data(), values.size() * sizeof(float)), FZ_OK)
      << fz_last_error();
  uint64_t n_bytes = 0;
  EXPECT_EQ(fz_writer_finish(made, &n_bytes), FZ_OK) << fz_last_error();
  EXPECT_EQ(n_bytes, memory.bytes.size());
  return memory.bytes;
}

TEST(CChunks, BytesAreThoseOfCpp) {
  ArchiveOptions options = optionsWith(kExtents, {20, 15, 2}, kBound);
  options.compress.preset = "pfpl";
  EXPECT_EQ(smallArchive(), archiveOf(waves(kExtents), options));
}

TEST(CChunks, AFileIsWrittenInAnyOrderAndReadWithSteps) {
  const std::string path = pathFor("steps");
  const std::vector<float> values = waves(kExtents);
  {
    const fz_writer_options options = writerOptions(kExtents, {8, 15, 4});
    fz_writer* made = nullptr;
    ASSERT_EQ(fz_writer_create(path.c_str(), absPipeline("cuszp2").get(), &options, &made), FZ_OK)
        << fz_last_error();
    const WriterHandle writer(made);
    ASSERT_EQ(fz_writer_chunk_count(made), 9u);
    for (uint64_t chunk = 9; chunk-- > 0;) {
      Box box{AxisValues(3), AxisValues(3)};
      ASSERT_EQ(fz_writer_chunk_box(made, chunk, box.origin.data(), box.extents.data()), FZ_OK);
      const std::vector<float> part = pick(values, kExtents, box);
      expectError(fz_writer_finish(made, nullptr), FZ_ERROR_BAD_SIZE, "missing");
      ASSERT_EQ(fz_writer_put(made, chunk, part.data(), part.size() * sizeof(float)), FZ_OK)
          << fz_last_error();
    }
    ASSERT_EQ(fz_writer_finish(made, nullptr), FZ_OK) << fz_last_error();
    expectError(fz_writer_finish(made, nullptr), FZ_ERROR_INVALID_STATE, "finished");
  }
  fz_reader* made = nullptr;
  const fz_options options = cpuOptions();
  ASSERT_EQ(fz_reader_open(path.c_str(), &options, &made), FZ_OK) << fz_last_error();
  const ReaderHandle reader(made);
  std::remove(path.c_str());
  fz_reader_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(fz_reader_get(made, &info), FZ_OK);
  EXPECT_EQ(info.type, FZ_TYPE_FLOAT32);
  EXPECT_EQ(info.n_axes, 3);
  EXPECT_TRUE(std::equal(kExtents.begin(), kExtents.end(), info.extents));
  EXPECT_EQ(info.chunk[0], 8u);
  EXPECT_EQ(info.extents[3], 0u);
  EXPECT_EQ(info.n_chunks, 9u);
  EXPECT_EQ(info.n_absent, 0u);
  EXPECT_EQ(info.original_bytes, values.size() * sizeof(float));
  EXPECT_EQ(info.bound_mode, FZ_BOUND_ABS);
  EXPECT_EQ(info.bound_requested, kBound);

  // Into the middle of a larger array whose slowest axis is x, one value in two.
  const Box box{{3, 2, 1}, {10, 7, 5}};
  const ptrdiff_t steps[] = {280, 40, 8};
  std::vector<float> out(700, -7.0f);
  const std::size_t n_needed = 9 * 280 + 6 * 40 + 4 * 8 + 4;
  ASSERT_EQ(
      fz_reader_read_box(made, box.origin.data(), box.extents.data(), out.data(), n_needed, steps),
      FZ_OK)
      << fz_last_error();
  const std::vector<float> wanted = pick(values, kExtents, box);
  std::size_t n_written = 0;
  for (std::size_t x = 0; x < 10; ++x) {
    for (std::size_t y = 0; y < 7; ++y) {
      for (std::size_t z = 0; z < 5; ++z) {
        const float got = out[x * 70 + y * 10 + z * 2];
        const float was = wanted[(z * 7 + y) * 10 + x];
        EXPECT_LE(std::fabs(static_cast<double>(got) - static_cast<double>(was)), kBound);
      }
    }
  }
  n_written = out.size() - static_cast<std::size_t>(std::count(out.begin(), out.end(), -7.0f));
  EXPECT_EQ(n_written, 350u);
  expectError(fz_reader_read_box(made, box.origin.data(), box.extents.data(), out.data(),
                                 n_needed - 1, steps),
              FZ_ERROR_BUFFER_TOO_SMALL, "ends after 2796 bytes");
}

TEST(CChunks, ArraysGrowAndBoundsOfTheRangeNeedIt) {
  const std::vector<float> values = waves(kExtents);
  fz_options options = cpuOptions();
  options.bound_mode = FZ_BOUND_NOA;
  options.error_bound = kBound;
  const PipelineHandle pipeline = fromPreset("cusz", options);
  Memory memory;
  const fz_sink sink = memory.sink();
  fz_writer_options array = writerOptions({20, 15, 0}, {20, 15, 4});
  fz_writer* made = nullptr;
  expectError(fz_writer_create_callbacks(&sink, pipeline.get(), &array, &made),
              FZ_ERROR_INVALID_ARGUMENT, "range of the whole array");
  EXPECT_EQ(made, nullptr);
  array.has_range = 1;
  array.range[0] = -10.0;
  array.range[1] = 10.0;
  ASSERT_EQ(fz_writer_create_callbacks(&sink, pipeline.get(), &array, &made), FZ_OK)
      << fz_last_error();
  const WriterHandle writer(made);
  EXPECT_EQ(fz_writer_chunk_count(made), 0u);
  expectError(fz_writer_put(made, 0, values.data(), 4800), FZ_ERROR_INVALID_STATE, "known");
  for (std::size_t i = 0; i < values.size(); i += 100) {
    ASSERT_EQ(fz_writer_append(made, values.data() + i, 400), FZ_OK) << fz_last_error();
  }
  ASSERT_EQ(fz_writer_finish(made, nullptr), FZ_OK) << fz_last_error();
  const ArchiveReader reader(sourceOf(memory.bytes));
  EXPECT_EQ(reader.info().extents, kExtents);
  const std::vector<float> decoded = readBox(reader, wholeOf(kExtents));
  double worst = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(values[i] - decoded[i])));
  }
  EXPECT_LE(worst, 20 * kBound);
  EXPECT_GT(worst, kBound);
}

TEST(CChunks, SingleValuesAndEmptyArraysAreArraysToo) {
  for (const AxisValues& extents : {AxisValues{}, AxisValues{5, 0, 3}}) {
    Memory memory;
    const fz_sink sink = memory.sink();
    const fz_writer_options options = writerOptions(extents, {});
    fz_writer* made = nullptr;
    ASSERT_EQ(fz_writer_create_callbacks(&sink, absPipeline().get(), &options, &made), FZ_OK)
        << fz_last_error();
    const WriterHandle writer(made);
    const float value = 2.5f;
    ASSERT_EQ(fz_writer_append(made, &value, valueCount(extents) * sizeof(float)), FZ_OK)
        << fz_last_error();
    ASSERT_EQ(fz_writer_finish(made, nullptr), FZ_OK) << fz_last_error();
    const fz_source source = memory.source();
    fz_reader* opened = nullptr;
    ASSERT_EQ(fz_reader_open_callbacks(&source, nullptr, &opened), FZ_OK) << fz_last_error();
    const ReaderHandle reader(opened);
    float out = 0.0f;
    const Box box = wholeOf(extents);
    ASSERT_EQ(fz_reader_read_box(opened, box.origin.data(), box.extents.data(), &out, sizeof(out),
                                 nullptr),
              FZ_OK)
        << fz_last_error();
    EXPECT_NEAR(out, extents.empty() ? 2.5f : 0.0f, kBound);
  }
}

TEST(CChunks, WrongArgumentsAreNamed) {
  const PipelineHandle pipeline = absPipeline();
  Memory memory;
  const fz_sink sink = memory.sink();
  fz_writer* writer = nullptr;
  fz_writer_options options = writerOptions(kExtents, {});
  expectError(fz_writer_create(nullptr, pipeline.get(), &options, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "path is NULL");
  expectError(fz_writer_create("/nowhere/a.fz", pipeline.get(), &options, &writer), FZ_ERROR_IO,
              "/nowhere/a.fz");
  expectError(fz_writer_create_callbacks(&sink, nullptr, &options, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "pipeline is NULL");
  expectError(fz_writer_create_callbacks(&sink, pipeline.get(), nullptr, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "options is NULL");
  expectError(fz_writer_create_callbacks(&sink, decoder(cpuOptions()).get(), &options, &writer),
              FZ_ERROR_INVALID_STATE, "for decoding");
  const fz_sink nothing = {nullptr, nullptr};
  expectError(fz_writer_create_callbacks(&nothing, pipeline.get(), &options, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "write is NULL");
  options.n_axes = 9;
  expectError(fz_writer_create_callbacks(&sink, pipeline.get(), &options, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "n_axes is 9");
  options = writerOptions(kExtents, {20, 0, 1});
  expectError(fz_writer_create_callbacks(&sink, pipeline.get(), &options, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "chunks of");
  options.struct_size = 3;
  expectError(fz_writer_create_callbacks(&sink, pipeline.get(), &options, &writer),
              FZ_ERROR_INVALID_ARGUMENT, "struct_size is 3");
  EXPECT_EQ(writer, nullptr);
  fz_writer_destroy(nullptr);
  EXPECT_EQ(fz_writer_chunk_count(nullptr), 0u);

  fz_reader* made = nullptr;
  expectError(fz_reader_open("/nowhere/a.fz", nullptr, &made), FZ_ERROR_IO, "/nowhere/a.fz");
  fz_options device = cpuOptions();
  device.memory = FZ_MEMORY_DEVICE;
  expectError(fz_reader_open("/nowhere/a.fz", &device, &made), FZ_ERROR_UNSUPPORTED, "host");
  memory.bytes = smallArchive();
  const fz_source source = memory.source();
  ASSERT_EQ(fz_reader_open_callbacks(&source, nullptr, &made), FZ_OK) << fz_last_error();
  const ReaderHandle reader(made);
  std::vector<float> out(valueCount(kExtents));
  const std::size_t n_bytes = out.size() * sizeof(float);
  const auto read = [&](Box box, void* to, const ptrdiff_t* steps) {
    return fz_reader_read_box(made, box.origin.data(), box.extents.data(), to, n_bytes, steps);
  };
  expectError(read({{1, 0, 0}, kExtents}, out.data(), nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "not inside the array");
  expectError(read({{0, 0, 0}, {~0ull, ~0ull, 2}}, out.data(), nullptr), FZ_ERROR_BUFFER_TOO_SMALL,
              "64 bits");
  expectError(read(wholeOf(kExtents), nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT, "out is NULL");
  const ptrdiff_t back[] = {-4, 80, 1200};
  expectError(read(wholeOf(kExtents), out.data(), back), FZ_ERROR_INVALID_ARGUMENT, "negative");
  expectError(fz_reader_read_box(made, nullptr, nullptr, out.data(), n_bytes, nullptr),
              FZ_ERROR_INVALID_ARGUMENT, "origin is NULL");
  EXPECT_EQ(read({{20, 0, 0}, {0, 1, 1}}, nullptr, nullptr), FZ_OK) << fz_last_error();
  expectError(read({{21, 0, 0}, {0, 1, 1}}, nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT, "inside");
  EXPECT_EQ(read(wholeOf(kExtents), out.data(), nullptr), FZ_OK) << fz_last_error();
}

TEST(CChunks, FailuresOfTheCallerAreReported) {
  const std::vector<float> values = waves(kExtents);
  Memory full;
  full.n_calls_left = 3;
  const fz_sink sink = full.sink();
  const fz_writer_options options = writerOptions(kExtents, {20, 15, 2});
  fz_writer* writer = nullptr;
  ASSERT_EQ(fz_writer_create_callbacks(&sink, absPipeline().get(), &options, &writer), FZ_OK);
  const WriterHandle owned_writer(writer);
  expectError(fz_writer_append(writer, values.data(), values.size() * sizeof(float)), FZ_ERROR_IO,
              "returned 28");
  expectError(fz_writer_finish(writer, nullptr), FZ_ERROR_INVALID_STATE, "could not be written");

  Memory memory;
  memory.bytes = smallArchive();
  const fz_source source = memory.source();
  fz_reader* reader = nullptr;
  ASSERT_EQ(fz_reader_open_callbacks(&source, nullptr, &reader), FZ_OK) << fz_last_error();
  const ReaderHandle owned_reader(reader);
  memory.n_calls_left = 2;
  std::vector<float> out(values.size());
  const Box box = wholeOf(kExtents);
  const auto read = [&] {
    return fz_reader_read_box(reader, box.origin.data(), box.extents.data(), out.data(),
                              out.size() * sizeof(float), nullptr);
  };
  expectError(read(), FZ_ERROR_IO, "returned 5");
  memory.n_calls_left = 1000;
  EXPECT_EQ(read(), FZ_OK) << fz_last_error();
}

TEST(CChunks, DamagedAndCutArchivesEndInAStatus) {
  const Bytes archive = smallArchive();
  std::mt19937 rng(7);
  fz_options options = cpuOptions();
  options.n_threads = 1;
  options.max_output_bytes = 1 << 20;
  options.max_memory_bytes = 1 << 24;
  std::size_t n_refused = 0;
  for (int round = 0; round < 600; ++round) {
    Memory memory;
    memory.bytes = archive;
    if (round % 2 == 0) {
      memory.bytes.resize(rng() % archive.size());
    } else {
      memory.bytes[rng() % archive.size()] ^= static_cast<std::uint8_t>(1 + rng() % 255);
    }
    const fz_source source = memory.source();
    fz_reader* made = nullptr;
    fz_status status = fz_reader_open_callbacks(&source, &options, &made);
    const ReaderHandle reader(made);
    EXPECT_EQ(status == FZ_OK, made != nullptr);
    if (status == FZ_OK) {
      std::vector<float> out(valueCount(kExtents));
      const Box box = wholeOf(kExtents);
      status = fz_reader_read_box(made, box.origin.data(), box.extents.data(), out.data(),
                                  out.size() * sizeof(float), nullptr);
    }
    n_refused += status == FZ_OK ? 0 : 1;
    EXPECT_NE(status, FZ_ERROR_INTERNAL) << fz_last_error();
  }
  EXPECT_EQ(n_refused, 600u);
}

TEST(CChunks, SeveralThreadsReadAtOnce) {
  const std::string path = pathFor("threads");
  const Bytes archive = smallArchive();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_EQ(std::fwrite(archive.data(), 1, archive.size(), file), archive.size());
  std::fclose(file);
  fz_reader* made = nullptr;
  ASSERT_EQ(fz_reader_open(path.c_str(), nullptr, &made), FZ_OK) << fz_last_error();
  const ReaderHandle reader(made);
  std::remove(path.c_str());
  const ArchiveReader expected(sourceOf(archive));
  std::vector<int> n_right(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < n_right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t z = 0; z < kExtents[2]; ++z) {
        const Box box{{t, 0, z}, {10, 15, 1}};
        std::vector<float> out(150);
        const fz_status status = fz_reader_read_box(made, box.origin.data(), box.extents.data(),
                                                    out.data(), 600, nullptr);
        n_right[t] += status == FZ_OK && out == readBox(expected, box) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(n_right, std::vector<int>(4, 9));
}

TEST(CChunks, WhatIsLeftIsRecovered) {
  const std::string from = pathFor("cut");
  const std::string to = pathFor("saved");
  const Bytes archive = smallArchive();
  std::FILE* file = std::fopen(from.c_str(), "wb");
  ASSERT_EQ(std::fwrite(archive.data(), 1, archive.size() / 2, file), archive.size() / 2);
  std::fclose(file);
  uint64_t n_damaged = 0;
  uint64_t n_dropped = 9;
  ASSERT_EQ(fz_recover(from.c_str(), to.c_str(), &n_damaged, &n_dropped), FZ_OK) << fz_last_error();
  EXPECT_GT(n_damaged, 0u);
  EXPECT_EQ(n_dropped, 0u);
  const ArchiveReader reader(to);
  EXPECT_GT(reader.info().extents[2], 0u);
  EXPECT_LT(reader.info().extents[2], kExtents[2]);
  EXPECT_EQ(fz_recover(from.c_str(), to.c_str(), nullptr, nullptr), FZ_OK);
  expectError(fz_recover("/nowhere/a.fz", to.c_str(), nullptr, nullptr), FZ_ERROR_IO, "/nowhere");
  expectError(fz_recover(nullptr, to.c_str(), nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "from_path is NULL");
  std::remove(from.c_str());
  std::remove(to.c_str());
}

}  // namespace
}  // namespace fz::test
