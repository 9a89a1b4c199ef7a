// Frames that no writer leaves: recovering ends, soon, and makes only what can be read.
#include <array>
#include <gtest/gtest.h>

#include "archive/chunk_frame.h"
#include "archive/support.h"
#include "format/frame_layout.h"

namespace fz::test {
namespace {

/// A sound frame that claims to be this part of an array.
void addPart(std::vector<std::uint8_t>& bytes, const Box& box, const AxisValues& whole) {
  const std::vector<float> values(valueCount(box.extents), 1.0f);
  CompressOptions options = optionsWith({}, {}).compress;
  options.preset = "pfpl";
  options.extents = AxisValues{values.size()};
  const Frame frame = compress(DataType::FLOAT32, bytesOf(values), options);
  FrameHeader header = readHeader(frame.bytes(), frame.size());
  const ByteView payload = frame.bytes().subspan(header.core.header_size);
  const std::vector<std::uint8_t> front = headerWith(header, box.extents, placeOf(box, whole, 5));
  bytes.insert(bytes.end(), front.begin(), front.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
}

ErrorCode refusal(const std::vector<std::uint8_t>& bytes) {
  MemorySink sink;
  try {
    recoverArchive(*sourceOf(bytes), sink);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(HostileRecovery, APartWithoutAxesIsNone) {
  std::vector<std::uint8_t> bytes;
  addPart(bytes, {}, {});
  EXPECT_EQ(refusal(bytes), ErrorCode::kCorrupt);
}

TEST(HostileRecovery, PlacesAtTheEndOfTheNumbersEnd) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  std::vector<std::uint8_t> bytes;
  const AxisValues whole = {2 * (kHalf - 1) + 1, 1};
  addPart(bytes, {{0, 0}, {kHalf, 0}}, whole);
  addPart(bytes, {{kHalf, 0}, {kHalf - 1, 0}}, whole);
  EXPECT_EQ(refusal(bytes), ErrorCode::kCorrupt);
}

TEST(HostileRecovery, NeighboursOfDifferentHeightsMakeNoSlab) {
  std::vector<std::uint8_t> bytes;
  addPart(bytes, {{0, 0}, {4, 2}}, {8, 5});
  addPart(bytes, {{4, 0}, {4, 3}}, {8, 5});
  EXPECT_EQ(refusal(bytes), ErrorCode::kCorrupt);
}

/// Counts what is read.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(ByteView bytes) : source_(sourceOf(bytes)) {}
  std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    n_bytes += out.size();
    source_->read(offset, out);
  }

  mutable std::uint64_t n_bytes = 0;

 private:
  std::shared_ptr<const ByteSource> source_;
};

TEST(HostileRecovery, BytesThatLookLikeFramesAreNotReadAgainForEach) {
  constexpr std::array<std::uint8_t, 4> kMagic = {0x32, 0x5A, 0x4D, 0x46};
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < 50000; ++i) {
    bytes.insert(bytes.end(), kMagic.begin(), kMagic.end());
  }
  const CountingSource source(bytes);
  MemorySink sink;
  EXPECT_THROW(recoverArchive(source, sink), Error);
  // The front of each, as long as the core of a frame, and all of them a few times.
  EXPECT_LT(source.n_bytes, bytes.size() / kMagic.size() * 100);
}

}  // namespace
}  // namespace fz::test
