// Compressing, decoding and verifying.
#include <cstdlib>

#include "c_api/c_api_support.h"
#include "fz/host_api.h"

namespace fz::test {
namespace {

TEST(CCompress, TooSmallABufferSaysWhatIsNeededAndStaysAsItWas) {
  const PipelineHandle pipeline = fromPreset("cuszp2", cpuOptions());
  const Bytes& values = sampleField().bytes;
  const Bytes wanted = compressed(pipeline.get(), values);
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, wanted.size() - 1}) {
    Bytes archive(capacity + 8, 0x5a);
    std::size_t n_bytes = 0;
    expectError(fz_compress(pipeline.get(), values.data(), values.size(), archive.data(), capacity,
                            &n_bytes, nullptr),
                FZ_ERROR_BUFFER_TOO_SMALL, "fz_compress: the archive has");
    EXPECT_EQ(n_bytes, wanted.size());
    EXPECT_EQ(archive, Bytes(capacity + 8, 0x5a));
  }
  Bytes archive(wanted.size());
  std::size_t n_bytes = 0;
  ASSERT_EQ(fz_compress(pipeline.get(), values.data(), values.size(), archive.data(),
                        archive.size(), &n_bytes, nullptr),
            FZ_OK);
  EXPECT_EQ(archive, wanted);
}

TEST(CDecompress, TooSmallABufferSaysWhatIsNeededAndStaysAsItWas) {
  const PipelineHandle pipeline = decoder(cpuOptions());
  const Bytes archive = sampleArchive();
  const std::size_t n_wanted = sampleField().bytes.size();
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, n_wanted - 1}) {
    Bytes values(capacity + 8, 0x5a);
    std::size_t n_bytes = 0;
    expectError(fz_decompress(pipeline.get(), archive.data(), archive.size(), values.data(),
                              capacity, &n_bytes, nullptr),
                FZ_ERROR_BUFFER_TOO_SMALL, "fz_decompress: the data have");
    EXPECT_EQ(n_bytes, n_wanted);
    EXPECT_EQ(values, Bytes(capacity + 8, 0x5a));
  }
  std::size_t n_bytes = 0;
  expectError(
      fz_decompress(pipeline.get(), archive.data(), archive.size(), nullptr, 0, &n_bytes, nullptr),
      FZ_ERROR_BUFFER_TOO_SMALL, "bytes");
  EXPECT_EQ(n_bytes, n_wanted);
}

TEST(CDecompress, ALargerBufferKeepsWhatLiesBehindTheValues) {
  const Bytes archive = sampleArchive();
  const std::size_t n_values_bytes = sampleField().bytes.size();
  Bytes values(n_values_bytes + 100, 0x5a);
  std::size_t n_bytes = 0;
  ASSERT_EQ(fz_decompress(decoder(cpuOptions()).get(), archive.data(), archive.size(),
                          values.data(), values.size(), &n_bytes, nullptr),
            FZ_OK);
  EXPECT_EQ(n_bytes, n_values_bytes);
  EXPECT_EQ(Bytes(values.begin() + static_cast<std::ptrdiff_t>(n_bytes), values.end()),
            Bytes(100, 0x5a));
}

TEST(CCompress, NothingCompressesAndDecodesToNothing) {
  const PipelineHandle pipeline = fromPreset("cuszp2", cpuOptions());
  std::size_t n_bytes = 0;
  Bytes archive(1 << 16);
  ASSERT_EQ(
      fz_compress(pipeline.get(), nullptr, 0, archive.data(), archive.size(), &n_bytes, nullptr),
      FZ_OK)
      << fz_last_error();
  archive.resize(n_bytes);
  n_bytes = 1;
  ASSERT_EQ(
      fz_decompress(pipeline.get(), archive.data(), archive.size(), nullptr, 0, &n_bytes, nullptr),
      FZ_OK)
      << fz_last_error();
  EXPECT_EQ(n_bytes, 0u);
  void* values = nullptr;
  n_bytes = 1;
  ASSERT_EQ(fz_decompress_alloc(pipeline.get(), archive.data(), archive.size(), &values, &n_bytes,
                                nullptr),
            FZ_OK);
  EXPECT_EQ(n_bytes, 0u);
  EXPECT_NE(values, nullptr);
  fz_release(pipeline.get(), values, n_bytes);
}

/// Random bit patterns, which no quantiser can shorten.
Bytes noiseBytes(std::size_t n_bytes) {
  Bytes bytes(n_bytes);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

fz_options absoluteOptions() {
  fz_options options = cpuOptions();
  options.bound_mode = FZ_BOUND_ABS;
  options.error_bound = 1e-3;
  return options;
}

TEST(CCompress, NoiseTakesNoMoreThanTheBoundWhichIsExact) {
  const PipelineHandle pipeline = fromPreset("pfpl", absoluteOptions());
  for (const std::size_t n_bytes : {std::size_t{0}, std::size_t{40}, std::size_t{80'000}}) {
    const Bytes values = noiseBytes(n_bytes);
    std::size_t bound = 0;
    ASSERT_EQ(fz_compress_bound(pipeline.get(), n_bytes, &bound), FZ_OK);
    EXPECT_EQ(bound, n_bytes + 592);
    const Bytes archive = compressed(pipeline.get(), values);
    EXPECT_EQ(archive.size(), bound);
    EXPECT_EQ(decompressed(pipeline.get(), archive, n_bytes), values);
    const FrameInfo info = inspect(archive);
    EXPECT_TRUE(info.isFallback());
    EXPECT_EQ(info.type, DataType::FLOAT32);
  }
}

/// 300 of 4000 values are -9999, the others lie between 271 and 305.
Bytes seaWithFill() {
  std::vector<float> values(4000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 13 == 5 ? -9999.0f : 271.0f + 34.0f * static_cast<float>(i % 997) / 996.0f;
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  return {bytes, bytes + values.size() * sizeof(float)};
}

TEST(CCompress, AFillValueThatSetsTheRangeIsRefusedAndNothingIsWritten) {
  fz_options options = cpuOptions();
  options.bound_mode = FZ_BOUND_NOA;
  options.error_bound = 1e-3;
  const PipelineHandle pipeline = fromPreset("pfpl", options);
  const Bytes values = seaWithFill();
  const char* const words =
      "-9999 occurs 308 times in 4000 values and makes the range 10304 "
      "instead of 34, as fill values do; declare it as a fill value, say that there are none, "
      "or use an absolute bound such as abs:";
  Bytes archive(values.size() + 592, 0x5a);
  std::size_t n_bytes = 7;
  expectError(fz_compress(pipeline.get(), values.data(), values.size(), archive.data(),
                          archive.size(), &n_bytes, nullptr),
              FZ_ERROR_FILL_VALUE, words);
  EXPECT_EQ(n_bytes, 0u);
  EXPECT_EQ(archive, Bytes(archive.size(), 0x5a));
  void* made = &n_bytes;
  expectError(
      fz_compress_alloc(pipeline.get(), values.data(), values.size(), &made, &n_bytes, nullptr),
      FZ_ERROR_FILL_VALUE, words);
  EXPECT_EQ(made, nullptr);
  EXPECT_STREQ(fz_status_name(FZ_ERROR_FILL_VALUE), "fill value");
  // The handle goes on, and the same values under an absolute bound are no matter.
  EXPECT_EQ(decompressed(pipeline.get(), compressed(pipeline.get(), Bytes(400)), 400), Bytes(400));
  EXPECT_FALSE(compressed(fromPreset("pfpl", absoluteOptions()).get(), values).empty());
}

TEST(CCompress, TheFallbackCanBeForbiddenAndOlderProgramsHaveIt) {
  const Bytes values = noiseBytes(80'000);
  fz_options options = absoluteOptions();
  options.fallback = FZ_FALLBACK_NONE;
  EXPECT_GT(compressed(fromPreset("pfpl", options).get(), values).size(), values.size() + 592);
  fz_options older = absoluteOptions();
  older.struct_size = offsetof(fz_options, fallback);
  older.fallback = FZ_FALLBACK_NONE;  // behind the end of that struct
  EXPECT_EQ(compressed(fromPreset("pfpl", older).get(), values).size(), values.size() + 592);
}

TEST(CCompress, TheSmallerOfALossyAndALosslessArchiveIsKept) {
  std::vector<float> numbers(60'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i / 100 % 20 < 7 ? 3e37f : static_cast<float>(i / 500 % 40);
  }
  const auto* first = reinterpret_cast<const std::uint8_t*>(numbers.data());
  const Bytes values(first, first + numbers.size() * sizeof(float));
  fz_options options = absoluteOptions();
  const Bytes kept = compressed(fromPreset("pfpl", options).get(), values);
  options.fallback = FZ_FALLBACK_NONE;
  const Bytes lossy = compressed(fromPreset("pfpl", options).get(), values);
  EXPECT_LT(lossy.size(), values.size());
  EXPECT_GT(lossy.size(), values.size() / 2);
  EXPECT_LT(kept.size(), lossy.size());
  EXPECT_TRUE(inspect(kept).isFallback());
  EXPECT_EQ(decompressed(fromPreset("pfpl", options).get(), kept, values.size()), values);
}

TEST(CCompress, TheFallbackUsesTheAllocatorOfTheCaller) {
  std::size_t n_held = 0;
  fz_options options = absoluteOptions();
  options.allocator.context = &n_held;
  options.allocator.allocate = [](std::size_t n_bytes, std::size_t alignment, void* context) {
    *static_cast<std::size_t*>(context) += n_bytes;
    return std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment);
  };
  options.allocator.release = [](void* memory, std::size_t n_bytes, void* context) {
    *static_cast<std::size_t*>(context) -= n_bytes;
    std::free(memory);
  };
  {
    const PipelineHandle pipeline = fromPreset("pfpl", options);
    const Bytes values = noiseBytes(80'000);
    EXPECT_EQ(compressed(pipeline.get(), values).size(), values.size() + 592);
  }
  EXPECT_EQ(n_held, 0u);
}

TEST(CPipeline, OneFromAStoredArchiveKeepsTheType) {
  const Bytes values = noiseBytes(80'000);
  const Bytes archive = compressed(fromPreset("pfpl", absoluteOptions()).get(), values);
  fz_pipeline* made = nullptr;
  ASSERT_EQ(fz_pipeline_from_archive(archive.data(), archive.size(), nullptr, &made), FZ_OK)
      << fz_last_error();
  const PipelineHandle pipeline(made);
  const FrameInfo info = inspect(compressed(pipeline.get(), values));
  EXPECT_TRUE(info.lossless);
  EXPECT_EQ(info.type, DataType::FLOAT32);
}

TEST(CCompress, NullArgumentsAreErrors) {
  const PipelineHandle handle = fromPreset("cuszp2", cpuOptions());
  fz_pipeline* pipeline = handle.get();
  const fz_status argument = FZ_ERROR_INVALID_ARGUMENT;
  std::size_t n_bytes = 0;
  void* memory = nullptr;
  char buffer[64] = {};
  expectError(fz_compress_bound(nullptr, 64, &n_bytes), argument, "pipeline is NULL");
  expectError(fz_compress_bound(pipeline, 64, nullptr), argument, "archive_bytes is NULL");
  expectError(fz_compress(nullptr, buffer, 64, buffer, 64, &n_bytes, nullptr), argument,
              "pipeline is NULL");
  expectError(fz_compress(pipeline, nullptr, 64, buffer, 64, &n_bytes, nullptr), argument,
              "values is NULL");
  expectError(fz_compress(pipeline, buffer, 64, nullptr, 64, &n_bytes, nullptr), argument,
              "archive is NULL");
  expectError(fz_compress(pipeline, buffer, 64, buffer, 64, nullptr, nullptr), argument,
              "archive_bytes is NULL");
  expectError(fz_compress_alloc(nullptr, buffer, 64, &memory, &n_bytes, nullptr), argument,
              "pipeline is NULL");
  expectError(fz_compress_alloc(pipeline, nullptr, 64, &memory, &n_bytes, nullptr), argument,
              "values is NULL");
  expectError(fz_compress_alloc(pipeline, buffer, 64, nullptr, &n_bytes, nullptr), argument,
              "archive is NULL");
  expectError(fz_compress_alloc(pipeline, buffer, 64, &memory, nullptr, nullptr), argument,
              "archive_bytes is NULL");
}

TEST(CDecompress, NullArgumentsAreErrors) {
  const PipelineHandle handle = decoder(cpuOptions());
  fz_pipeline* pipeline = handle.get();
  const fz_status argument = FZ_ERROR_INVALID_ARGUMENT;
  std::size_t n_bytes = 0;
  void* memory = nullptr;
  char buffer[64] = {};
  expectError(fz_decompress(nullptr, buffer, 64, buffer, 64, &n_bytes, nullptr), argument,
              "pipeline is NULL");
  expectError(fz_decompress(pipeline, nullptr, 64, buffer, 64, &n_bytes, nullptr), argument,
              "archive is NULL");
  expectError(fz_decompress(pipeline, buffer, 64, nullptr, 64, &n_bytes, nullptr), argument,
              "values is NULL");
  expectError(fz_decompress(pipeline, buffer, 64, buffer, 64, nullptr, nullptr), argument,
              "n_bytes is NULL");
  expectError(fz_decompress_alloc(nullptr, buffer, 64, &memory, &n_bytes, nullptr), argument,
              "pipeline is NULL");
  expectError(fz_decompress_alloc(pipeline, nullptr, 64, &memory, &n_bytes, nullptr), argument,
              "archive is NULL");
  expectError(fz_decompress_alloc(pipeline, buffer, 64, nullptr, &n_bytes, nullptr), argument,
              "values is NULL");
  expectError(fz_decompress_alloc(pipeline, buffer, 64, &memory, nullptr, nullptr), argument,
              "n_bytes is NULL");
  expectError(fz_verify(nullptr, buffer, 64, nullptr), argument, "pipeline is NULL");
  expectError(fz_verify(pipeline, nullptr, 64, nullptr), argument, "archive is NULL");
  fz_release(nullptr, nullptr, 0);
  fz_release(pipeline, nullptr, 10);
}

TEST(CCompress, FailuresLeaveThePipelineUsable) {
  fz_options options = cpuOptions();
  options.dims[0] = 40;
  options.dims[1] = 20;
  options.dims[2] = 1;
  const PipelineHandle pipeline = fromPreset("cuszp2", options);
  const Bytes& values = sampleField().bytes;
  Bytes archive(1 << 20);
  std::size_t n_bytes = 1;
  expectError(fz_compress(pipeline.get(), values.data(), values.size() - 4, archive.data(),
                          archive.size(), &n_bytes, nullptr),
              FZ_ERROR_BAD_SIZE, "");
  EXPECT_EQ(n_bytes, 0u);
  EXPECT_EQ(inspect(compressed(pipeline.get(), values)).original_bytes, values.size());
}

TEST(CDecompress, EveryTruncationAndFlippedBitIsNoticed) {
  const Bytes archive = sampleArchive("fzgpu");
  const PipelineHandle pipeline = decoder(cpuOptions());
  Bytes values(sampleField().bytes.size());
  const auto refused = [&](const Bytes& bytes, std::size_t n_archive_bytes) {
    std::size_t n_bytes = 1;
    const fz_status status = fz_decompress(pipeline.get(), bytes.data(), n_archive_bytes,
                                           values.data(), values.size(), &n_bytes, nullptr);
    // A flipped length can ask for a larger buffer; everything else must not store a length.
    return status != FZ_OK && (n_bytes == 0 || status == FZ_ERROR_BUFFER_TOO_SMALL);
  };
  for (std::size_t n = 0; n < archive.size(); ++n) {
    const Bytes cut(archive.begin(), archive.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_TRUE(refused(cut.empty() ? Bytes(1) : cut, n)) << n;
  }
  Bytes damaged = archive;
  for (std::size_t i = 0; i < archive.size(); ++i) {
    damaged[i] ^= static_cast<std::uint8_t>(1u << (i % 8));
    EXPECT_TRUE(refused(damaged, damaged.size())) << i;
    EXPECT_NE(fz_verify(pipeline.get(), damaged.data(), damaged.size(), nullptr), FZ_OK) << i;
    damaged[i] = archive[i];
  }
  EXPECT_EQ(fz_verify(pipeline.get(), archive.data(), archive.size(), nullptr), FZ_OK);
  EXPECT_FALSE(refused(archive, archive.size()));
}

TEST(CDecompress, LimitsAreKept) {
  const Bytes archive = sampleArchive();
  Bytes values(sampleField().bytes.size());
  std::size_t n_bytes = 0;
  void* memory = nullptr;
  fz_options options = cpuOptions();
  options.max_output_bytes = values.size() - 1;
  const PipelineHandle small_output = decoder(options);
  // Also where the buffer is too small: nobody should take memory beyond his own limit.
  for (const std::size_t capacity : {values.size(), std::size_t{0}}) {
    expectError(fz_decompress(small_output.get(), archive.data(), archive.size(), values.data(),
                              capacity, &n_bytes, nullptr),
                FZ_ERROR_LIMIT, "limit");
    EXPECT_EQ(n_bytes, 0u);
  }
  expectError(fz_decompress_alloc(small_output.get(), archive.data(), archive.size(), &memory,
                                  &n_bytes, nullptr),
              FZ_ERROR_LIMIT, "limit");
  expectError(fz_verify(small_output.get(), archive.data(), archive.size(), nullptr),
              FZ_ERROR_LIMIT, "limit");
  options.max_output_bytes = values.size();
  decompressed(decoder(options).get(), archive, values.size());

  const Bytes staged = sampleArchive("cusz");
  options.max_output_bytes = 0;
  options.max_memory_bytes = 1;
  expectError(fz_decompress(decoder(options).get(), staged.data(), staged.size(), values.data(),
                            values.size(), &n_bytes, nullptr),
              FZ_ERROR_LIMIT, "");
}

}  // namespace
}  // namespace fz::test
