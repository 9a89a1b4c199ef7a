// Shapes, chunks of them, and bounds that are a part of the range.
#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

#include "archive/support.h"

namespace fz::test {
namespace {

TEST(ArchiveBound, OfTheRangeIsThatOfTheWholeArray) {
  const AxisValues extents = {64, 64, 8};
  std::vector<float> values = waves(extents);
  for (std::size_t i = 0; i < values.size() / 8; ++i) {
    values[i] *= 1000.0f;  // the first plane alone has the whole range
  }
  RangeScan scan(DataType::FLOAT32, {}, 1);
  scan.add(bytesOf(values));
  ASSERT_TRUE(scan.range());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_EQ(scan.range()->low, static_cast<double>(*low));
  EXPECT_EQ(scan.range()->high, static_cast<double>(*high));
  for (const char* preset : {"pfpl", "cusz", "cuszp2", "fzgpu", "best", "balanced", "fast"}) {
    ArchiveOptions options = optionsWith(extents, {64, 64, 1}, 1e-3);
    options.compress.preset = preset;
    options.compress.mode = ErrorBoundMode::NOA;
    EXPECT_THROW(archiveOf(values, options), InvalidArgument);
    options.range = scan.range();
    const std::vector<std::uint8_t> archive = archiveOf(values, options);
    const ArchiveReader reader(sourceOf(archive));
    ASSERT_TRUE(reader.info().bound);
    EXPECT_EQ(reader.info().bound->mode, ErrorBoundMode::NOA) << preset;
    EXPECT_EQ(reader.info().bound->requested, 1e-3);
    const double width = static_cast<double>(*high) - static_cast<double>(*low);
    EXPECT_LE(reader.info().bound->absolute, 1e-3 * width) << preset;
    EXPECT_GT(reader.info().bound->absolute, 0.999e-3 * width) << preset;
    EXPECT_LE(largestError(values, readBox(reader, wholeOf(extents))), 1e-3 * width) << preset;
  }
}

TEST(ArchiveBound, OfAConstantArrayIsTheNumberItself) {
  const std::vector<float> values(1000, 5.0f);
  ArchiveOptions options = optionsWith({1000}, {300}, 0.5);
  options.compress.mode = ErrorBoundMode::NOA;
  options.range = ValueRange{5.0, 5.0};
  const ArchiveReader reader(sourceOf(archiveOf(values, options)));
  EXPECT_EQ(reader.info().n_chunks, 4u);
}

TEST(RangeScan, LeavesMissingValuesOutAndSuspectsOthers) {
  std::vector<float> values = waves({5000});
  values[7] = std::numeric_limits<float>::quiet_NaN();
  values[8] = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 100; i < 200; ++i) {
    values[i] = -9999.0f;
  }
  RangeScan declared(DataType::FLOAT32, {-9999.0}, 1);
  RangeScan undeclared(DataType::FLOAT32, {}, 2);
  for (std::size_t i = 0; i < values.size(); i += 50) {
    declared.add(bytesOf(values).subspan(i * 4, 200));
    undeclared.add(bytesOf(values).subspan(i * 4, 200));
  }
  EXPECT_GE(declared.range()->low, -1.0);
  EXPECT_NO_THROW(declared.requireWithoutFill(1e-3));
  EXPECT_EQ(undeclared.range()->low, -9999.0);
  try {
    undeclared.requireWithoutFill(1e-3);
    FAIL();
  } catch (const FillValueError& error) {
    EXPECT_EQ(error.finding().value, -9999.0);
    EXPECT_EQ(error.finding().n_found, 100u);
    EXPECT_EQ(error.finding().n_values, 5000u);
  }
  EXPECT_FALSE(RangeScan(DataType::FLOAT64, {}).range());
}

TEST(ChooseChunk, StaysBelowTheSizeAndKeepsRows) {
  EXPECT_EQ(chooseChunk(DataType::FLOAT32, {100, 100, 100}), (AxisValues{100, 100, 100}));
  const AxisValues cube = chooseChunk(DataType::FLOAT32, {1024, 1024, 1024});
  EXPECT_EQ(cube[0], 1024u);
  EXPECT_EQ(cube[1], 128u);
  EXPECT_EQ(cube[2], 128u);
  for (const AxisValues& extents :
       {AxisValues{1u << 30}, AxisValues{40000, 40000}, AxisValues{1440, 721, 8760},
        AxisValues{3, 100000, 100000}, AxisValues{512, 512, 512, 100},
        AxisValues{100, 100, 100, 100, 100}, AxisValues{1, 1, 1u << 30},
        AxisValues{1u << 20, 1u << 20, 1u << 20, 1u << 20}}) {
    for (const std::uint64_t n_bytes : {std::uint64_t{64} << 20, std::uint64_t{1} << 20}) {
      const AxisValues chunk = chooseChunk(DataType::FLOAT32, extents, n_bytes);
      const std::uint64_t n_chunk = valueCount(chunk) * 4;
      EXPECT_LE(n_chunk, n_bytes) << extentsText(extents);
      EXPECT_GE(n_chunk, n_bytes / 4) << extentsText(extents) << " in " << extentsText(chunk);
    }
  }
  EXPECT_EQ(chooseChunk(DataType::FLOAT32, {}), AxisValues{});
  EXPECT_EQ(chooseChunk(DataType::FLOAT32, {0, 5}), (AxisValues{1, 5}));
}

TEST(FrameShape, AnyNumberOfAxesComesBack) {
  for (const char* preset : {"pfpl", "best"}) {
    for (const AxisValues& extents :
         {AxisValues{}, AxisValues{1}, AxisValues{5}, AxisValues{0}, AxisValues{5, 0},
          AxisValues{0, 3, 4, 5}, AxisValues{8, 1}, AxisValues{8, 6, 1}, AxisValues{1, 6, 8},
          AxisValues{8, 6, 5, 4}, AxisValues{8, 6, 5, 1}, AxisValues{3, 2, 2, 2, 2, 2, 2, 2}}) {
      const std::vector<float> values = waves(extents);
      CompressOptions options;
      options.preset = preset;
      options.error_bound = 1e-3;
      options.mode = ErrorBoundMode::ABS;
      options.extents = extents;
      options.backend = Backend::CPU;
      const Frame frame = compress(std::span(values), options);
      const FrameInfo info = inspect(frame);
      EXPECT_EQ(info.extents, extents) << preset << ' ' << extentsText(extents);
      EXPECT_EQ(info.original_bytes, values.size() * sizeof(float));
      const Array array = decompress(frame, onCpu());
      EXPECT_EQ(array.bytes().size(), values.size() * sizeof(float));
      const ArchiveReader reader(sourceOf(frame.bytes()));
      EXPECT_EQ(reader.info().extents, extents);
      EXPECT_LE(largestError(values, readBox(reader, wholeOf(extents))), 1e-3);
      EXPECT_EQ(archiveOf(values,
                          [&] {
                            ArchiveOptions how = optionsWith(extents, {});
                            how.compress.preset = preset;
                            return how;
                          }()),
                std::vector<std::uint8_t>(frame.bytes().begin(), frame.bytes().end()))
          << preset << ' ' << extentsText(extents);
    }
  }
}

TEST(FrameShape, ThatDoesNotHoldTheValuesIsAnError) {
  const std::vector<float> values(24);
  CompressOptions options;
  options.error_bound = 1e-3;
  options.backend = Backend::CPU;
  options.extents = AxisValues{2, 3, 5};
  EXPECT_THROW(compress(std::span(values), options), Error);
  options.extents = AxisValues{24, 0};
  EXPECT_THROW(compress(std::span(values), options), Error);
  options.extents = AxisValues(9, 1);
  EXPECT_THROW(compress(std::span(values), options), InvalidArgument);
}

}  // namespace
}  // namespace fz::test
