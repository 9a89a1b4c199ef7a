// Chunks that `fz convert` takes from archives: those at the edge of an array have fewer values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "chunk_codec.h"
#include "fz/archive.h"
#include "fz/error.h"

namespace fz::hdf5::test {

namespace {

struct Memory : ByteSink {
  void write(ByteView part) override { bytes.insert(bytes.end(), part.begin(), part.end()); }

  std::vector<std::uint8_t> bytes;
};

/// An array of 7 x 5, x first, in chunks of 4 x 3.
class Hdf5ArchiveChunks : public testing::Test {
 protected:
  Hdf5ArchiveChunks() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = std::sin(static_cast<float>(i));
    }
    ArchiveOptions options;
    options.compress.preset = "lossless";
    options.extents = {7, 5};
    options.chunk = {4, 3};
    ArchiveWriter writer(DataType::FLOAT32, options, file_);
    writer.append({reinterpret_cast<const std::uint8_t*>(values_.data()), sizeof(values_)});
    writer.finish();
  }

  Frame last() const { return ArchiveReader(sourceOf(file_.bytes)).frame(3); }

  static Settings settings(std::vector<std::uint64_t> dims, DataType type = DataType::FLOAT32) {
    Settings made;
    made.type = type;
    made.chunk_dims = std::move(dims);
    return made;
  }

  std::array<float, 35> values_ = {};
  Memory file_;
};

}  // namespace

TEST_F(Hdf5ArchiveChunks, TheRestOfAChunkIsTheFillValue) {
  const float fill = -9999.0f;
  for (const bool has_fill : {false, true}) {
    Settings how = settings({3, 4});
    if (has_fill) {
      how.fill_bits = __builtin_bit_cast(std::uint32_t, fill);
    }
    const Array array = decodeChunk(how, last().bytes());
    ASSERT_EQ(array.bytes().size(), 12 * sizeof(float));
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 4; ++x) {
        const bool is_inside = y < 2 && x < 3;
        const float expected = is_inside ? values_[(y + 3) * 7 + x + 4] : has_fill ? fill : 0.0f;
        EXPECT_EQ(array.as<float>()[y * 4 + x], expected) << y << " " << x;
      }
    }
  }
}

TEST_F(Hdf5ArchiveChunks, FramesThatDoNotFitTheChunkAreRefused) {
  const Frame frame = last();
  EXPECT_THROW(decodeChunk(settings({1, 4}), frame.bytes()), Error);
  EXPECT_THROW(decodeChunk(settings({3, 2}), frame.bytes()), Error);
  EXPECT_THROW(decodeChunk(settings({12}), frame.bytes()), Error);
  EXPECT_THROW(decodeChunk(settings({1, 3, 4}), frame.bytes()), Error);
  EXPECT_THROW(decodeChunk(settings({3, 4}, DataType::INT32), frame.bytes()), Error);
  EXPECT_THROW(decodeChunk(settings({3, 4}, DataType::FLOAT64), frame.bytes()), Error);
  // A plain frame with as few values is none of an archive.
  const Frame plain =
      compress(DataType::FLOAT32, {reinterpret_cast<const std::uint8_t*>(values_.data()), 24},
               {.preset = "lossless", .extents = AxisValues{3, 2}});
  EXPECT_THROW(decodeChunk(settings({3, 4}), plain.bytes()), Error);
}

TEST_F(Hdf5ArchiveChunks, EveryFlipIsAnErrorOrChangesNothing) {
  const Frame frame = last();
  const Array expected = decodeChunk(settings({3, 4}), frame.bytes());
  for (std::size_t at = 0; at < frame.size(); ++at) {
    std::vector<std::uint8_t> bytes(frame.bytes().begin(), frame.bytes().end());
    bytes[at] ^= 0x41;
    try {
      const Array array = decodeChunk(settings({3, 4}), bytes);
      EXPECT_TRUE(std::equal(array.bytes().begin(), array.bytes().end(), expected.bytes().begin(),
                             expected.bytes().end()));
    } catch (const Error&) {
    }
  }
}

}  // namespace fz::hdf5::test
