#include "coders/rle/rle.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

#include "backends/cpu/exec_context.h"
#include "coders/rle/codec.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

/// Runs of random values whose lengths are spread evenly over 1 .. longest.
InputCase runs(std::size_t longest) {
  return {"runs up to " + std::to_string(longest),
          [longest](DataType type, std::size_t n, std::mt19937_64& rng) {
            const std::size_t width = getDataTypeSize(type);
            Bytes bytes(n * width);
            std::uint64_t value = 0;
            std::size_t left = 0;
            for (std::size_t i = 0; i < n; ++i, --left) {
              if (left == 0) {
                value = rng();
                left = 1 + rng() % longest;
              }
              std::memcpy(bytes.data() + i * width, &value, width);
            }
            return bytes;
          }};
}

FZ_STAGE_CASE(Rle,
              {.stage = "RLE",
               .tile_values = rle::kTileValues,
               .inputs = {runs(8), runs(40), runs(20'000), fullNoise(), constant(), zeros(), ramp(),
                          sparse(), extremes()},
               .extra_sizes = {63, 64, 65, 128, 16'384}});

template <class T>
Encoded encodeValues(const std::vector<T>& values) {
  RLEStage<T> stage;
  return encode(stage, toBytes(values));
}

TEST(Rle, GivesTheBytesOfTheWorkedExample) {
  const Encoded encoded = encodeValues<std::uint8_t>({7, 7, 7, 0, 0, 9, 9, 9});
  EXPECT_EQ(encoded.streams[0],
            (Bytes{3, 0, 0, 0, 7, 0, 9, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(encoded.config, (Bytes{0, 8, 0, 0, 0}));
}

TEST(Rle, NoValuesGiveFourZeroBytes) {
  const Encoded encoded = encodeValues<std::uint16_t>({});
  EXPECT_EQ(encoded.streams[0], (Bytes{0, 0, 0, 0}));
  EXPECT_EQ(decode(5, encoded), Bytes{});
}

TEST(Rle, OneValueIsOneRun) {
  EXPECT_EQ(encodeValues<std::uint16_t>({0x1234}).streams[0],
            (Bytes{1, 0, 0, 0, 0x34, 0x12, 0, 0, 1, 0, 0, 0}));
}

TEST(Rle, AConstantIsOneRunHoweverLong) {
  const Encoded encoded = encodeValues(std::vector<std::int32_t>(100'003, -1));
  EXPECT_EQ(encoded.streams[0],
            (Bytes{1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xA3, 0x86, 0x01, 0x00}));
}

TEST(Rle, FirstWordCountsTheRunsAndAlternationIsTheWorstCase) {
  std::vector<std::uint16_t> values(10'001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint16_t>(i % 2);
  }
  RLEStage<std::uint16_t> stage;
  const Encoded encoded = encode(stage, toBytes(values));
  EXPECT_EQ(loadLe<std::uint32_t>(encoded.streams[0].data()), 10'001u);
  EXPECT_EQ(encoded.streams[0].size(), 4u + 20'004 + 40'004);
  EXPECT_EQ(stage.maxOutputSizes({20'002}), (std::vector<std::size_t>{60'012}));
}

TEST(Rle, RunsAreNotCutAtTiles) {
  std::vector<std::uint8_t> values(5 * rle::kTileValues, 3);
  values[rle::kTileValues - 1] = 4;
  values[4 * rle::kTileValues] = 5;
  const Bytes stream = encodeValues(values).streams[0];
  ASSERT_EQ(loadLe<std::uint32_t>(stream.data()), 5u);
  const auto lengths = fromBytes<std::uint32_t>(ByteView(stream).subspan(12));
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{rle::kTileValues - 1, 1, 3 * rle::kTileValues, 1,
                                                 rle::kTileValues - 1}));
}

TEST(Rle, BothPortsKeepTheElementType) {
  RLEStage<> stage;
  EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::UINT16));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UINT16));
}

TEST(Rle, RefusesAnInputThatIsNoWholeNumberOfValues) {
  RLEStage<std::uint32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

/// A stream of given runs, for a decoder that must not care how it came about.
Encoded handMade(const std::vector<std::uint16_t>& values,
                 const std::vector<std::uint32_t>& lengths,
                 std::uint32_t n_values) {
  Bytes stream(4 + (2 * values.size() + 3) / 4 * 4 + 4 * lengths.size());
  ByteWriter out(stream);
  out.u32(static_cast<std::uint32_t>(values.size()));
  for (const std::uint16_t v : values) {
    out.u16(v);
  }
  out.zeros(2 * (values.size() % 2));
  for (const std::uint32_t n : lengths) {
    out.u32(n);
  }
  Encoded encoded;
  encoded.config.resize(5);
  ByteWriter(encoded.config).u8(1).u32(n_values);
  encoded.streams = {stream};
  return encoded;
}

TEST(Rle, RunsOfNoLengthAndNeighboursOfOneValueAreAccepted) {
  EXPECT_EQ(fromBytes<std::uint16_t>(decode(5, handMade({8, 1, 9, 9, 8}, {0, 2, 0, 1, 0}, 3))),
            (std::vector<std::uint16_t>{1, 1, 9}));
  std::vector<std::uint16_t> values(5000, 7);
  std::vector<std::uint32_t> lengths(5000, 0);
  values[4097] = 3;
  lengths[4097] = 70'000;
  EXPECT_EQ(fromBytes<std::uint16_t>(decode(5, handMade(values, lengths, 70'000))),
            std::vector<std::uint16_t>(70'000, 3));
}

TEST(Rle, LengthsThatDoNotAddUpAreCorrupt) {
  EXPECT_THROW(decode(5, handMade({1, 2}, {2, 2}, 3)), Error);
  EXPECT_THROW(decode(5, handMade({1, 2}, {2, 2}, 5)), Error);
  EXPECT_THROW(decode(5, handMade({1, 2}, {0xFFFFFFFF, 5}, 4)), Error);  // 4 modulo 2^32
  EXPECT_THROW(decode(5, handMade({}, {}, 1)), Error);
}

TEST(Rle, MemoryBeyondAReserveIsAskedForOnlyWhenTheLengthsConfirmIt) {
  RLEStage<std::uint16_t> claim;
  const Bytes config = {1, 0xFF, 0xFF, 0xFF, 0xFF};
  claim.deserializeHeader(config.data(), config.size());
  claim.setInverse(true);
  EXPECT_LE(claim.estimateOutputSizes({12})[0], 70'000u);
  EXPECT_THROW(decode(5, handMade({1}, {7}, 0xFFFFFFFF)), Error);
  EXPECT_EQ(fromBytes<std::uint16_t>(decode(5, handMade({1}, {900'000}, 900'000))),
            std::vector<std::uint16_t>(900'000, 1));
}

TEST(Rle, ACountThatTheSizeContradictsIsCorrupt) {
  Encoded encoded = handMade({1, 2}, {2, 2}, 4);
  encoded.streams[0].push_back(0);
  EXPECT_THROW(decode(5, encoded), Error);
  encoded = handMade({1, 2}, {2, 2}, 4);
  encoded.streams[0][3] = 0x80;
  EXPECT_THROW(decode(5, encoded), Error);
  encoded.streams[0].clear();
  EXPECT_THROW(decode(5, encoded), Error);
}

template <class T, class Team>
Bytes encodeWithText(const std::vector<T>& values, Team team) {
  const std::size_t n_tiles = bits::ceilDiv(values.size(), std::size_t{rle::kTileValues});
  std::vector<std::uint64_t> marks(n_tiles * rle::kTileMarkWords);
  std::vector<std::uint32_t> first_run(n_tiles + 1);
  const auto sizeOf = [&](std::size_t tile) {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(rle::kTileValues, values.size() - tile * rle::kTileValues));
  };
  for (std::size_t tile = 0; tile < n_tiles; ++tile) {
    std::uint64_t* own = marks.data() + tile * rle::kTileMarkWords;
    rle::markStarts(team, values.data(), tile * rle::kTileValues, sizeOf(tile), own);
    first_run[tile + 1] = first_run[tile];
    for (std::uint32_t i = 0; i < bits::ceilDiv(sizeOf(tile), 64u); ++i) {
      first_run[tile + 1] += rle::popCount64(own[i]);
    }
  }
  const std::uint32_t n_runs = first_run[n_tiles];
  const rle::Layout layout = rle::layoutOf(n_runs, sizeof(T));
  std::vector<T> run_values(n_runs);
  std::vector<std::uint32_t> lengths(n_runs);
  for (std::size_t tile = 0; tile < n_tiles; ++tile) {
    std::uint64_t next = (tile + 1) * rle::kTileValues;
    while (next < values.size() && !rle::startsRun(values.data(), next)) {
      ++next;
    }
    const rle::TileMarks tile_marks{marks.data() + tile * rle::kTileMarkWords,
                                    bits::ceilDiv(sizeOf(tile), 64u), tile * rle::kTileValues,
                                    std::min<std::uint64_t>(next, values.size())};
    rle::writeRuns(team, values.data(), tile_marks, run_values.data() + first_run[tile],
                   lengths.data() + first_run[tile]);
  }
  Bytes stream(layout.n_bytes);
  std::memcpy(stream.data(), &n_runs, 4);
  std::memcpy(stream.data() + rle::kValuesAt, run_values.data(), n_runs * sizeof(T));
  std::memcpy(stream.data() + layout.lengths_at, lengths.data(), 4 * std::size_t{n_runs});
  return stream;
}

template <class T>
std::vector<T> someRuns(std::size_t n, std::size_t longest) {
  std::mt19937_64 rng(n + longest);
  return fromBytes<T>(runs(longest).make(kDataTypeOf<T>, n, rng));
}

template <class T>
void expectBytesOfTheCodecText() {
  std::mt19937_64 rng(3);
  for (const std::size_t longest : {1u, 3u, 70u, 9000u}) {
    const std::vector<T> values = someRuns<T>(20'001, longest);
    const Bytes stream = encodeValues(values).streams[0];
    EXPECT_EQ(stream, encodeWithText(values, SerialTeam{}));
    EXPECT_EQ(stream, encodeWithText(values, ShuffledTeam{&rng}));
  }
}

TEST(Rle, StageGivesTheBytesOfTheCodecText) {
  expectBytesOfTheCodecText<std::uint8_t>();
  expectBytesOfTheCodecText<std::uint16_t>();
  expectBytesOfTheCodecText<std::uint32_t>();
  expectBytesOfTheCodecText<std::int32_t>();
}

TEST(Rle, DecoderTextGivesTheValuesOfTheStageInAnyPiece) {
  std::mt19937_64 rng(4);
  const std::vector<std::uint16_t> run_values = {5, 6, 7, 8};
  const std::vector<std::uint64_t> starts = {0, 3, 3, 90, 100};
  std::vector<std::uint16_t> whole(100);
  rle::fillRuns(SerialTeam{}, run_values.data(), starts.data(), 4, {0, 100}, whole.data());
  for (std::uint64_t begin = 0; begin < 100; begin += 7) {
    const std::uint64_t end = std::min<std::uint64_t>(100, begin + 20);
    std::vector<std::uint16_t> piece(end - begin);
    rle::fillRuns(ShuffledTeam{&rng}, run_values.data(), starts.data(), 4, {begin, end},
                  piece.data());
    EXPECT_TRUE(
        std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
  EXPECT_EQ(fromBytes<std::uint16_t>(decode(5, handMade({5, 7, 8}, {3, 87, 10}, 100))), whole);
}

}  // namespace
}  // namespace fz::test
