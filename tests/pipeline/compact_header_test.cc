// Headers of version 3.3: what is written is read again, one header has one form, and what does not
// fit together is refused.
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "format/crc32.h"
#include "format/frame_header.h"
#include "format/frame_layout.h"
#include "format/header_places.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "support/stage_case.h"

namespace fz {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint16_t kOwnStage = 0x5001;

/// Two stages, two segments, a bound and three axes.
FrameHeader smallHeader() {
  FrameHeader header;
  header.core.uncompressed_size = 240;
  header.core.compressed_size = 17;
  header.core.data_checksum = 0x12345678;
  FZMStageInfo first;
  first.stage_type = kOwnStage;
  first.num_inputs = 1;
  first.num_outputs = 2;
  first.input_buffer_ids.fill(FZM_UNUSED_BUFFER_ID);
  first.output_buffer_ids.fill(FZM_UNUSED_BUFFER_ID);
  first.input_buffer_ids[0] = 3;
  first.output_buffer_ids[0] = 0;
  first.output_buffer_ids[1] = 1;
  first.stage_config[0] = 9;
  first.config_size = 3;
  FZMStageInfo second = first;
  second.stage_type = 6;
  second.num_outputs = 1;
  second.input_buffer_ids[0] = 0;
  second.output_buffer_ids = first.output_buffer_ids;
  second.output_buffer_ids[0] = 2;
  second.output_buffer_ids[1] = FZM_UNUSED_BUFFER_ID;
  second.config_size = 0;
  second.stage_config.fill(0);
  header.stages = {first, second};
  const auto segment = [](std::uint16_t id, const std::string& name, std::uint64_t n_bytes) {
    FZMBufferEntry entry;
    entry.dag_buffer_id = id;
    entry.data_type = static_cast<std::uint8_t>(DataType::UINT8);
    std::copy(name.begin(), name.end(), entry.name.begin());
    entry.data_size = n_bytes;
    return entry;
  };
  header.buffers = {segment(2, "codes", 12), segment(1, "", 5)};
  FrameDescription& description = header.description;
  description.type = DataType::FLOAT32;
  description.ndim = 3;
  description.original_bytes = 240;
  description.dims = {5, 4, 3};
  description.shape = {3, {5, 4, 3}};
  description.bound = BoundInfo{ErrorBoundMode::NOA, 1e-3, 0.25};
  return header;
}

Bytes written(FrameHeader header) {
  Bytes bytes(headerBytes(header));
  writeHeader(header, bytes);
  return bytes;
}

FrameHeader read(const Bytes& bytes) {
  return readHeader(bytes, bytes.size() + loadLe<std::uint64_t>(bytes.data() + 16));
}

/// With a checksum that fits what is there.
void seal(Bytes& bytes) {
  storeLe(bytes.data() + kHeaderChecksumOffset, std::uint32_t{0});
  storeLe(bytes.data() + kHeaderChecksumOffset, crc32(bytes));
}

void expectCorrupt(const Bytes& bytes, const std::string& text) {
  try {
    static_cast<void>(read(bytes));
    ADD_FAILURE() << "accepted: " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorrupt) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

void expectCorrupt(const std::function<void(FrameHeader&)>& change, const std::string& text) {
  FrameHeader header = smallHeader();
  change(header);
  expectCorrupt(written(header), text);
}

TEST(CompactHeader, WhatIsWrittenIsReadAgain) {
  const FrameHeader wanted = smallHeader();
  const Bytes bytes = written(wanted);
  // Core, three extents, stages of 8 + 3 and 8, segments of 12 + 5 and 12, to a multiple of 16.
  EXPECT_EQ(bytes.size(), 144u);
  const FrameHeader header = read(bytes);
  EXPECT_EQ(header.core.version, FZM_VERSION_COMPACT);
  EXPECT_EQ(header.core.header_size, bytes.size());
  EXPECT_EQ(header.core.uncompressed_size, 240u);
  EXPECT_EQ(header.core.data_checksum, 0x12345678u);
  ASSERT_EQ(header.stages.size(), 2u);
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(header.stages[s].stage_type, wanted.stages[s].stage_type);
    EXPECT_EQ(header.stages[s].input_buffer_ids, wanted.stages[s].input_buffer_ids);
    EXPECT_EQ(header.stages[s].output_buffer_ids, wanted.stages[s].output_buffer_ids);
    EXPECT_EQ(header.stages[s].stage_config, wanted.stages[s].stage_config);
    EXPECT_EQ(header.stages[s].config_size, wanted.stages[s].config_size);
  }
  ASSERT_EQ(header.buffers.size(), 2u);
  EXPECT_EQ(std::string(header.buffers[0].name.data()), "codes");
  EXPECT_EQ(header.buffers[0].stage_type, 6u);
  EXPECT_EQ(header.buffers[1].stage_type, kOwnStage);
  EXPECT_EQ(header.buffers[1].producer_output_idx, 1u);
  EXPECT_EQ(header.buffers[1].config_size, 3u);
  EXPECT_EQ(header.buffers[1].byte_offset, 12u);
  EXPECT_EQ(header.description.shape, wanted.description.shape);
  EXPECT_EQ(header.description.dims, wanted.description.dims);
  EXPECT_EQ(header.description.ndim, 3u);
  ASSERT_TRUE(header.description.bound);
  EXPECT_EQ(header.description.bound->absolute, 0.25);
  EXPECT_FALSE(header.description.place);
}

TEST(CompactHeader, AxesBeyondTheThirdArePartOfIt) {
  FrameHeader header = smallHeader();
  header.description.shape = {5, {5, 2, 3, 1, 2}};
  const FrameHeader found = read(written(header));
  EXPECT_EQ(found.description.shape, header.description.shape);
  EXPECT_EQ(found.description.dims, (std::array<std::uint64_t, 3>{5, 2, 6}));
  EXPECT_EQ(found.description.ndim, 3u);
}

TEST(CompactHeader, APointHasNoAxes) {
  FrameHeader header = smallHeader();
  header.core.uncompressed_size = 4;
  header.description.original_bytes = 4;
  header.description.shape = {};
  const FrameHeader found = read(written(header));
  EXPECT_EQ(found.description.shape.n_axes, 0u);
  EXPECT_EQ(found.description.dims, (std::array<std::uint64_t, 3>{1, 1, 1}));
}

TEST(CompactHeader, APartOfAnArraySaysWhereItStands) {
  FrameHeader header = smallHeader();
  header.stages[0].stage_type = 12;  // a place alone makes a header compact
  header.description.place = FramePlace{0xABCDEF, {10, 0, 300}, {1000, 4, 303}};
  const FrameHeader found = read(written(header));
  EXPECT_EQ(found.core.version, FZM_VERSION_COMPACT);
  ASSERT_TRUE(found.description.place);
  EXPECT_EQ(*found.description.place, *header.description.place);
}

TEST(CompactHeader, APlaceOutsideOfItsArrayIsRefused) {
  expectCorrupt(
      [](FrameHeader& header) {
        header.description.place = FramePlace{1, {0, 1, 0}, {5, 4, 3}};
      },
      "its part of axis 1");
  expectCorrupt(
      [](FrameHeader& header) {
        header.description.place = FramePlace{1, {~std::uint64_t{0}, 0, 0}, {5, 4, 3}};
      },
      "its part of axis 0");
}

TEST(CompactHeader, StagesOfTheOriginalSystemKeepTheirRecords) {
  FrameHeader header = smallHeader();
  header.stages[0].stage_type = 12;
  const Bytes bytes = written(header);
  EXPECT_EQ(loadLe<std::uint16_t>(bytes.data() + 4), FZM_VERSION);
  EXPECT_EQ(bytes.size(), 80u + 4 * 256u);
}

TEST(CompactHeader, PlacesAreWhereTheBytesAre) {
  FrameHeader header = smallHeader();
  header.core.version = FZM_VERSION_COMPACT;
  const Bytes bytes = written(header);
  const HeaderPlaces places = placesIn(header);
  ASSERT_EQ(places.stages.size(), 2u);
  ASSERT_EQ(places.segments.size(), 2u);
  EXPECT_EQ(loadLe<std::uint16_t>(bytes.data() + places.stages[1].version), 1u);
  EXPECT_EQ(bytes[places.stages[0].config], 9u);
  EXPECT_EQ(loadLe<std::uint64_t>(bytes.data() + places.segments[0].sizes.at(0)), 12u);
  EXPECT_EQ(loadLe<std::uint64_t>(bytes.data() + places.segments[1].sizes.at(0)), 5u);
  EXPECT_EQ(loadLe<double>(bytes.data() + places.absolute_bound), 0.25);
}

TEST(CompactHeader, CountsAndSizesThatDoNotFitAreRefused) {
  expectCorrupt([](FrameHeader& h) { h.description.shape.extents[1] = 5; }, "5 x 5 x 3");
  expectCorrupt([](FrameHeader& h) { h.description.original_bytes = 241; }, "original length");
  expectCorrupt([](FrameHeader& h) { h.buffers[1].data_size = 6; }, "of 6 bytes in a payload");
  expectCorrupt([](FrameHeader& h) { h.buffers[1].data_size = 4; }, "segments take 16 bytes");
  expectCorrupt([](FrameHeader& h) { h.buffers[0].data_size = ~std::uint64_t{0}; }, "segment at 0");
  expectCorrupt([](FrameHeader& h) { h.buffers[1].dag_buffer_id = 3; }, "which no stage makes");
  expectCorrupt([](FrameHeader& h) { h.buffers[1].dag_buffer_id = 2; }, "two segments");
  expectCorrupt([](FrameHeader& h) { h.stages[1].num_inputs = 0; }, "0 inputs");
  expectCorrupt([](FrameHeader& h) { h.description.bound->absolute = -1; }, "absolute -1");
  expectCorrupt([](FrameHeader& h) { h.description.type = static_cast<DataType>(77); },
                "unknown element type");
}

TEST(CompactHeader, ANumberHasOneForm) {
  Bytes bytes = written(smallHeader());
  ASSERT_EQ(bytes[80], 5u);
  ASSERT_EQ(bytes.back(), 0u);  // there is room
  bytes.insert(bytes.begin() + 81, std::uint8_t{0});
  bytes[80] = 0x85;  // 5 in two bytes
  bytes.pop_back();
  seal(bytes);
  expectCorrupt(bytes, "more bytes than it needs");
}

TEST(CompactHeader, BytesBehindTheRecordsAreRefused) {
  Bytes bytes = written(smallHeader());
  bytes.back() = 1;
  seal(bytes);
  expectCorrupt(bytes, "behind the records");
  bytes = written(smallHeader());
  bytes.insert(bytes.end(), 16, std::uint8_t{0});
  storeLe(bytes.data() + kHeaderSizeOffset, std::uint64_t{bytes.size()});
  seal(bytes);
  expectCorrupt(bytes, "its records take");
}

TEST(CompactHeader, FlagsThatNobodyKnowsAreRefused) {
  Bytes bytes = written(smallHeader());
  for (const unsigned flags : {0u, 1u, 2u, 15u, 0x8003u}) {
    storeLe(bytes.data() + kCompactFlagsOffset, static_cast<std::uint16_t>(flags));
    seal(bytes);
    expectCorrupt(bytes, "checksum flags");
  }
  storeLe(bytes.data() + kCompactFlagsOffset, std::uint16_t{3});
  storeLe(bytes.data() + kCompactArrayIdOffset, std::uint64_t{1});
  seal(bytes);
  expectCorrupt(bytes, "array id without a place");
}

/// Whatever a header says, reading it ends in a header or in a typed error.
TEST(CompactHeader, EveryFlippedBitWithAFittingChecksumEndsWell) {
  const Bytes good = written(smallHeader());
  std::size_t n_refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    if (bit / 8 < kHeaderChecksumOffset || bit / 8 >= kCoreBytes) {
      seal(bytes);
    }
    try {
      static_cast<void>(readHeader(bytes, bytes.size() + 17));
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::kCorrupt || e.code() == ErrorCode::kUnsupported)
          << e.what();
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 4 * good.size());
}

TEST(CompactHeader, EveryCutIsRefused) {
  const Bytes good = written(smallHeader());
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW(readHeader(ByteView(good).first(n), good.size() + 17), Error) << n;
  }
}

TEST(CompactHeader, AFieldWithMissingValuesTakesHundredsOfBytesNotThousands) {
  const std::vector<float> values(10'000, std::numeric_limits<float>::quiet_NaN());
  CompressOptions options;
  options.backend = Backend::CPU;
  options.dims = {100, 100, 1};
  options.error_bound = 1e-3;
  options.mode = ErrorBoundMode::ABS;
  for (const char* preset : {"pfpl", "cuszp2", "fzgpu"}) {
    options.preset = preset;
    const Frame frame = compress(DataType::FLOAT32, test::toBytes(values), options);
    EXPECT_LT(frame.bytes().size(), 1000u) << preset;
  }
}

}  // namespace
}  // namespace fz
