// Archives from front to back, as pipes bring them.
#include <gtest/gtest.h>

#include "archive/index.h"
#include "archive/support.h"

namespace fz::test {
namespace {

const AxisValues kExtents = {40, 30, 20};
const AxisValues kChunk = {40, 11, 6};

/// Gives pieces of at most n_most bytes.
NextBytes piecesOf(const std::vector<std::uint8_t>& bytes, std::size_t n_most, std::size_t& at) {
  at = 0;
  return [&bytes, n_most, &at](MutableByteView out) {
    const std::size_t n = std::min({out.size(), n_most, bytes.size() - at});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n, out.begin());
    at += n;
    return n;
  };
}

/// The array as it came, and what the reader says of it.
std::vector<float> streamed(const std::vector<std::uint8_t>& bytes,
                            std::size_t n_most,
                            const AxisValues& extents,
                            ArchiveInfo* info = nullptr,
                            const DecompressOptions& options = onCpu()) {
  std::vector<float> values(valueCount(extents), -1.0f);
  std::size_t at = 0;
  const ArchiveInfo found = readArchiveStream(
      piecesOf(bytes, n_most, at),
      [&](const StreamedChunk& chunk) {
        const auto* from = reinterpret_cast<const float*>(chunk.values.data());
        std::size_t i = 0;
        for (std::uint64_t z = 0; z < chunk.box.extents[2]; ++z) {
          for (std::uint64_t y = 0; y < chunk.box.extents[1]; ++y) {
            for (std::uint64_t x = 0; x < chunk.box.extents[0]; ++x) {
              values.at(((z + chunk.box.origin[2]) * extents[1] + y + chunk.box.origin[1]) *
                            extents[0] +
                        x + chunk.box.origin[0]) = from[i++];
            }
          }
        }
      },
      options);
  if (info != nullptr) {
    *info = found;
  }
  return values;
}

TEST(ArchiveStream, GivesWhatTheReaderGivesForAnyPieces) {
  const std::vector<std::uint8_t> bytes = archiveOf(waves(kExtents), optionsWith(kExtents, kChunk));
  const ArchiveReader reader(sourceOf(bytes));
  const std::vector<float> expected = readBox(reader, wholeOf(kExtents));
  for (const std::size_t n_most : {1u, 777u, 1u << 20}) {
    ArchiveInfo info;
    EXPECT_EQ(streamed(bytes, n_most, kExtents, &info), expected);
    EXPECT_EQ(info.extents, kExtents);
    EXPECT_EQ(info.chunk, kChunk);
    EXPECT_EQ(info.archive_bytes, bytes.size());
    EXPECT_EQ(info.n_chunks, reader.info().n_chunks);
  }
}

TEST(ArchiveStream, KnowsTheExtentOfAnArrayThatGrewAtItsEnd) {
  ArchiveOptions options = optionsWith({40, 30, 0}, kChunk);
  const std::vector<float> values = waves(kExtents);
  const std::vector<std::uint8_t> bytes = archiveOf(values, options);
  ArchiveInfo info;
  EXPECT_LE(largestError(streamed(bytes, 5000, kExtents, &info), values), 1e-3);
  EXPECT_EQ(info.extents, kExtents);
}

TEST(ArchiveStream, RefusesEveryCut) {
  const std::vector<std::uint8_t> bytes =
      archiveOf(waves(kExtents), optionsWith(kExtents, {40, 30, 10}));
  for (std::size_t n = 0; n < bytes.size(); n += n < 600 || n + 200 > bytes.size() ? 1 : 37) {
    const std::vector<std::uint8_t> cut(bytes.begin(),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_THROW(streamed(cut, 4096, kExtents), Error) << n;
  }
}

TEST(ArchiveStream, RefusesEveryFlip) {
  const std::vector<std::uint8_t> bytes =
      archiveOf(waves(kExtents), optionsWith(kExtents, {40, 30, 10}));
  for (std::size_t i = 0; i < bytes.size(); i += i < 600 || i + 200 > bytes.size() ? 1 : 37) {
    std::vector<std::uint8_t> flipped = bytes;
    flipped[i] ^= static_cast<std::uint8_t>(1u << i % 8);
    EXPECT_THROW(streamed(flipped, 4096, kExtents), Error) << i;
  }
}

TEST(ArchiveStream, RefusesBytesBehindItsEnd) {
  std::vector<std::uint8_t> bytes = archiveOf(waves(kExtents), optionsWith(kExtents, kChunk));
  bytes.push_back(0);
  EXPECT_THROW(streamed(bytes, 4096, kExtents), Error);
  bytes.insert(bytes.end(), 100000, 0);
  EXPECT_THROW(streamed(bytes, 4096, kExtents), Error);
}

TEST(ArchiveStream, RefusesAChunkThatIsMissingOrOfAnotherArray) {
  const std::vector<std::uint8_t> bytes = archiveOf(waves(kExtents), optionsWith(kExtents, kChunk));
  const ArchiveReader reader(sourceOf(bytes));
  const auto n_first = static_cast<std::ptrdiff_t>(reader.frame(0).size());
  const auto n_second = static_cast<std::ptrdiff_t>(reader.frame(1).size());
  std::vector<std::uint8_t> without = bytes;
  without.erase(without.begin() + n_first, without.begin() + n_first + n_second);
  EXPECT_THROW(streamed(without, 4096, kExtents), Error);

  ArchiveOptions other = optionsWith(kExtents, kChunk);
  other.array_id = 77;
  const std::vector<std::uint8_t> others = archiveOf(waves(kExtents), other);
  const ArchiveReader others_reader(sourceOf(others));
  const Frame frame = others_reader.frame(1);
  std::vector<std::uint8_t> mixed(bytes.begin(), bytes.begin() + n_first);
  mixed.insert(mixed.end(), frame.bytes().begin(), frame.bytes().end());
  mixed.insert(mixed.end(), bytes.begin() + n_first + n_second, bytes.end());
  try {
    streamed(mixed, 4096, kExtents);
    ADD_FAILURE() << "a chunk of another array was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("number 1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("another array"), std::string::npos) << error.what();
  }
}

TEST(ArchiveStream, TakesNoMoreThanALimitAllows) {
  const std::vector<std::uint8_t> bytes = archiveOf(waves(kExtents), optionsWith(kExtents, kChunk));
  DecompressOptions options = onCpu();
  options.limits.max_memory_bytes = 5000;  // less than a chunk
  try {
    streamed(bytes, 4096, kExtents, nullptr, options);
    ADD_FAILURE() << "no limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimit);
  }
}

TEST(ArchiveStream, SaysThatAPlainFrameIsNoArchiveOfChunks) {
  const std::vector<std::uint8_t> bytes =
      archiveOf(waves(kExtents), optionsWith(kExtents, kExtents));
  EXPECT_FALSE(beginsChunked(bytes));
  EXPECT_THROW(streamed(bytes, 4096, kExtents), Error);
}

}  // namespace
}  // namespace fz::test
