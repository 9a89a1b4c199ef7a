// ZIP files beyond what 32 and 16 bits say, which python's zipfile reads in the other tests only
// where they are small.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "fz/error.h"
#include "handover/zip_reader.h"
#include "handover/zip_writer.h"

namespace fz::cli {

namespace {

/// A file that keeps what is not zeros.
class SparseFile : public ByteSink, public ByteSource {
 public:
  void write(ByteView bytes) override {
    constexpr std::size_t kMostKept = 1 << 16;
    if (bytes.size() <= kMostKept) {
      parts_[size_].assign(bytes.begin(), bytes.end());
    }
    size_ += bytes.size();
  }
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, MutableByteView out) const override {
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    auto part = parts_.upper_bound(offset);
    part = part == parts_.begin() ? part : std::prev(part);
    for (; part != parts_.end() && part->first < offset + out.size(); ++part) {
      for (std::size_t i = 0; i < part->second.size(); ++i) {
        const std::uint64_t at = part->first + i;
        if (at >= offset && at < offset + out.size()) {
          out[at - offset] = part->second[i];
        }
      }
    }
  }

 private:
  std::map<std::uint64_t, std::vector<std::uint8_t>> parts_;
  std::uint64_t size_ = 0;
};

std::vector<std::uint8_t> contentOf(std::size_t number) {
  return {static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(number >> 8), 1};
}

}  // namespace

TEST(Zip, KeepsMoreEntriesThanSixteenBitsCount) {
  constexpr std::size_t kCount = 70000;
  const auto file = std::make_shared<SparseFile>();
  ZipWriter writer(*file);
  for (std::size_t i = 0; i < kCount; ++i) {
    writer.add(fmt::format("c/{}", i), {contentOf(i)});
  }
  writer.finish();
  const ZipReader reader(file);
  EXPECT_EQ(reader.names().size(), kCount);
  for (const std::size_t i : {std::size_t{0}, std::size_t{65535}, kCount - 1}) {
    EXPECT_EQ(reader.read(fmt::format("c/{}", i), 100), contentOf(i));
  }
  EXPECT_EQ(reader.read("c/70000", 100), std::nullopt);
}

TEST(Zip, KeepsOffsetsAndLengthsBeyondThirtyTwoBits) {
  const std::vector<std::uint8_t> zeros(std::size_t{1} << 30);
  const auto file = std::make_shared<SparseFile>();
  ZipWriter writer(*file);
  writer.add("first", {contentOf(1)});
  writer.add("long", {zeros, zeros, zeros, zeros, zeros});
  writer.add("last", {contentOf(2)});
  writer.finish();
  const ZipReader reader(file);
  EXPECT_GT(file->size(), std::uint64_t{5} << 30);
  EXPECT_EQ(reader.sizeOf("long"), std::uint64_t{5} << 30);
  EXPECT_EQ(reader.read("first", 100), contentOf(1));
  EXPECT_EQ(reader.read("last", 100), contentOf(2));
  EXPECT_EQ(reader.read("long", 3), std::vector<std::uint8_t>(3));
}

TEST(Zip, RefusesADirectoryAboveTheLimit) {
  const auto file = std::make_shared<SparseFile>();
  ZipWriter writer(*file);
  for (std::size_t i = 0; i < 1000; ++i) {
    writer.add(fmt::format("c/{}", i), {contentOf(i)});
  }
  writer.finish();
  EXPECT_NO_THROW(ZipReader(file, 1 << 20));
  EXPECT_THROW(ZipReader(file, 1 << 16), Error);
}

TEST(Zip, WritesEmptyFiles) {
  const auto file = std::make_shared<SparseFile>();
  ZipWriter writer(*file);
  writer.finish();
  EXPECT_EQ(file->size(), 22u);
  EXPECT_TRUE(ZipReader(file).names().empty());
}

}  // namespace fz::cli
