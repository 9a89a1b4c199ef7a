#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

#include "format/crc32.h"
#include "fz/byte_io.h"
#include "predictors/diff/diff.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "stage/stage_factory.h"
#include "support/pipelines.h"
#include "support/test_stages.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 8192;
constexpr std::size_t kVersionOffset = 4;
constexpr std::size_t kHeaderSizeOffset = 24;
constexpr std::size_t kFlagsOffset = 38;
constexpr std::size_t kDataCrcOffset = 72;
constexpr std::size_t kHeaderCrcOffset = 76;
constexpr std::size_t kReservedOffset = 172;  // inside a stage record

void put16(FrameBytes& bytes, std::size_t offset, std::uint16_t value) {
  ByteWriter(MutableByteView(bytes).subspan(offset, 2)).u16(value);
}
void put64(FrameBytes& bytes, std::size_t offset, std::uint64_t value) {
  ByteWriter(MutableByteView(bytes).subspan(offset, 8)).u64(value);
}

/// Makes the header checksum right again after an edit of the header.
void sealHeader(FrameBytes& bytes) {
  const auto header_bytes =
      static_cast<std::size_t>(loadLe<std::uint64_t>(bytes.data() + kHeaderSizeOffset));
  const MutableByteView field = MutableByteView(bytes).subspan(kHeaderCrcOffset, 4);
  ByteWriter(field).u32(0);
  const std::uint32_t crc = crc32(ByteView(bytes).first(header_bytes));
  ByteWriter(field).u32(crc);
}

/// A frame as version 3.1 wrote it: without the description in the first stage record.
FrameBytes asVersion31(FrameBytes bytes) {
  put16(bytes, kVersionOffset, 0x0301);
  const auto reserved = bytes.begin() + kCoreBytes + kReservedOffset;
  std::fill(reserved, reserved + 84, std::uint8_t{0});
  sealHeader(bytes);
  return bytes;
}

/// A frame as version 3.0 wrote it: a core of 72 bytes without checksums.
FrameBytes asVersion30(const FrameBytes& frame, std::uint16_t version) {
  FrameBytes bytes = asVersion31(frame);
  bytes.erase(bytes.begin() + kDataCrcOffset, bytes.begin() + kCoreBytes);
  put16(bytes, kVersionOffset, version);
  put16(bytes, kFlagsOffset, 0);
  put64(bytes, kHeaderSizeOffset, loadLe<std::uint64_t>(bytes.data() + kHeaderSizeOffset) - 8);
  return bytes;
}

/// A folder with the file of LorenzoQuant -> RLE on a wave.
class File : public testing::Test {
 protected:
  File() {
    buildRleChain(pipeline_);
    frame_ = frameOf(pipeline_, values_);
    pipeline_.writeToFile(path_);
  }

  std::optional<ErrorCode> codeOfReading(const FrameBytes& bytes) const {
    writeAll(folder_.file("edited.fzm"), bytes);
    const auto header = codeOf([&] { Pipeline::readHeader(folder_.file("edited.fzm")); });
    const auto whole = codeOf([&] { decodeFile(folder_.file("edited.fzm")); });
    EXPECT_TRUE(!header.has_value() || header == whole) << "both readers agree";
    return whole;
  }

  static std::vector<float> decodeFile(const std::string& path) {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    Pipeline::decompressFromFile(path, &out, &n_bytes);
    std::vector<float> values(n_bytes / sizeof(float));
    std::memcpy(values.data(), out, n_bytes);
    std::free(out);
    return values;
  }

  TempFolder folder_;
  std::string path_ = folder_.file("a.fzm");
  std::vector<float> values_ = wave(kValues);
  Pipeline pipeline_;
  FrameBytes frame_;
};

TEST(FileFormat, StructsHaveTheSizesAndDefaultsOfTheFormat) {
  EXPECT_EQ(sizeof(FZMHeaderCore), 80u);
  EXPECT_EQ(sizeof(FZMStageInfo), 256u);
  EXPECT_EQ(sizeof(FZMBufferEntry), 256u);
  const FZMHeaderCore core;
  EXPECT_EQ(core.magic, 0x464D5A32u);
  EXPECT_EQ(core.version >> 8, 3);
  EXPECT_EQ(core.version, FZM_VERSION);
}

TEST_F(File, IsTheFrame) {
  EXPECT_EQ(readAll(path_), frame_);
  EXPECT_LT(frame_.size(), byteCount(values_));
  EXPECT_EQ(countMisses(values_, decodeFile(path_)), 0u);
}

TEST_F(File, OfLorenzoQuantToDifferenceDecodesWithinTheBound) {
  Pipeline pipeline;
  auto* difference = pipeline.addStage<DifferenceStage<std::uint16_t>>();
  pipeline.connect(difference, addQuantizer(pipeline), "codes");
  pipeline.finalize();
  frameOf(pipeline, values_);
  pipeline.writeToFile(path_);
  EXPECT_EQ(countMisses(values_, decodeFile(path_)), 0u);
}

TEST_F(File, HeaderCountsMatchItsRecords) {
  const Pipeline::FZMFileHeader header = Pipeline::readHeader(path_);
  EXPECT_EQ(header.core.num_stages, 2u);
  EXPECT_EQ(header.stages.size(), 2u);
  EXPECT_EQ(header.core.num_buffers, 3u);
  EXPECT_EQ(header.buffers.size(), 3u);
  EXPECT_EQ(header.core.uncompressed_size, byteCount(values_));
  EXPECT_EQ(header.core.header_size, 80u + 5 * 256u);
  EXPECT_EQ(header.core.header_size + header.core.compressed_size, frame_.size());
  EXPECT_EQ(header.core.flags, FZM_FLAG_DATA_CHECKSUM | FZM_FLAG_HEADER_CHECKSUM);
  EXPECT_NE(header.core.data_checksum, 0u);
  EXPECT_NE(header.core.header_checksum, 0u);
  const Pipeline::FZMFileHeader built = pipeline_.buildHeader();
  EXPECT_EQ(built.core.header_checksum, header.core.header_checksum);
  EXPECT_EQ(built.stages.size(), header.stages.size());
}

TEST_F(File, WithoutAValidHeaderIsRefused) {
  EXPECT_EQ(codeOfReading({}), ErrorCode::kCorrupt) << "empty";
  EXPECT_EQ(codeOfReading(FrameBytes(10, 0x32)), ErrorCode::kCorrupt) << "10 bytes";
  EXPECT_EQ(codeOfReading(FrameBytes(frame_.begin(), frame_.begin() + 10)), ErrorCode::kCorrupt)
      << "the first 10 bytes";
  FrameBytes bytes = frame_;
  bytes[0] ^= 1;
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << "magic";
  bytes = frame_;
  put16(bytes, kVersionOffset, 0x0402);
  sealHeader(bytes);
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kUnsupported) << "major version";
  EXPECT_EQ(codeOf([&] { decodeFile(folder_.file("missing.fzm")); }), ErrorCode::kIo);
  EXPECT_EQ(codeOf([&] { Pipeline::readHeader(folder_.file("missing.fzm")); }), ErrorCode::kIo);
  EXPECT_EQ(codeOf([&] { decodeFile(folder_.file("")); }), ErrorCode::kIo) << "a folder";
}

TEST_F(File, OfANewerMinorVersionIsRefusedAndNotGuessedAt) {
  FrameBytes bytes = frame_;
  put16(bytes, kVersionOffset, FZM_VERSION_COMPACT + 1);
  sealHeader(bytes);
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kUnsupported);
}

TEST_F(File, WithADamagedHeaderOrPayloadIsRefused) {
  FrameBytes bytes = frame_;
  bytes[kCoreBytes + 41] ^= 4;  // config of the first stage
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << "header";
  bytes = frame_;
  bytes[pipeline_.buildHeader().core.header_size + 3] ^= 4;
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << "payload";
  bytes = frame_;
  bytes.pop_back();
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << "cut";
  bytes = frame_;
  bytes.push_back(0);
  EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << "extended";
}

TEST_F(File, HeaderChecksumCannotBeSwitchedOff) {
  for (const std::uint16_t flags : std::initializer_list<std::uint16_t>{0, 1, 2}) {
    FrameBytes bytes = frame_;
    put16(bytes, kFlagsOffset, flags);
    sealHeader(bytes);
    EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << "flags " << flags;
  }
}

TEST_F(File, WhoseDimsAreNotThoseOfItsDataIsRefused) {
  constexpr std::size_t kNdim = kCoreBytes + kReservedOffset + 5;
  constexpr std::size_t kDims = kCoreBytes + kReservedOffset + 16;
  const auto codeWith = [&](int ndim, const std::array<std::uint64_t, 3>& dims) {
    FrameBytes bytes = frame_;
    bytes[kNdim] = static_cast<std::uint8_t>(ndim);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      put64(bytes, kDims + 8 * axis, dims[axis]);
    }
    sealHeader(bytes);
    return codeOfReading(bytes);
  };
  EXPECT_EQ(codeWith(1, {kValues, 1, 1}), std::nullopt);
  EXPECT_EQ(codeWith(3, {kValues / 4, 2, 2}), std::nullopt);
  EXPECT_EQ(codeWith(1, {kValues + 1, 1, 1}), ErrorCode::kCorrupt);
  EXPECT_EQ(codeWith(2, {kValues, 2, 1}), ErrorCode::kCorrupt);
  EXPECT_EQ(codeWith(3, {kValues, 0, 1}), ErrorCode::kCorrupt);
  EXPECT_EQ(codeWith(1, {kValues / 2, 2, 1}), ErrorCode::kCorrupt) << "an axis beyond the last";
  EXPECT_EQ(codeWith(0, {kValues, 1, 1}), ErrorCode::kCorrupt);
  EXPECT_EQ(codeWith(4, {kValues, 1, 1}), ErrorCode::kCorrupt);
  const std::uint64_t huge = std::uint64_t{1} << 32;
  EXPECT_EQ(codeWith(3, {huge, huge, kValues}), ErrorCode::kCorrupt) << "0 modulo 2^64";
}

TEST_F(File, WhoseBoundIsNoNumberIsRefused) {
  constexpr std::size_t kRequested = kCoreBytes + kReservedOffset + 40;
  for (const std::size_t offset : {kRequested, kRequested + 8}) {
    for (const double bound : {-1.0, HUGE_VAL, std::nan("")}) {
      FrameBytes bytes = frame_;
      ByteWriter(MutableByteView(bytes).subspan(offset, 8)).f64(bound);
      sealHeader(bytes);
      EXPECT_EQ(codeOfReading(bytes), ErrorCode::kCorrupt) << bound;
    }
  }
}

TEST_F(File, OfVersions30And31IsRead) {
  writeAll(path_, asVersion31(frame_));
  EXPECT_EQ(countMisses(values_, decodeFile(path_)), 0u) << "3.1";
  EXPECT_EQ(Pipeline::readHeader(path_).core.version, 0x0301);
  for (const std::uint16_t version : std::initializer_list<std::uint16_t>{0x0300, 3}) {
    writeAll(path_, asVersion30(frame_, version));
    EXPECT_EQ(std::filesystem::file_size(path_), frame_.size() - 8);
    EXPECT_EQ(countMisses(values_, decodeFile(path_)), 0u) << "3.0 written as " << version;
    EXPECT_EQ(Pipeline::readHeader(path_).core.header_size, 72u + 5 * 256u);
  }
}

TEST_F(File, KeepsTheSettingsOfItsStages) {
  Pipeline pipeline;
  pipeline.setDims(128, 64);
  auto* quantizer = addQuantizer(pipeline, 256);
  auto* shuffle = pipeline.addStage<BitshuffleStage>();
  shuffle->setBlockSize(8192);
  shuffle->setElementWidth(2);
  pipeline.connect(shuffle, quantizer, "codes");
  pipeline.finalize();
  frameOf(pipeline, values_);
  pipeline.writeToFile(path_);
  const Pipeline::FZMFileHeader header = Pipeline::readHeader(path_);
  ASSERT_EQ(header.stages.size(), 2u);
  const auto restore = [&](std::size_t i) {
    const FZMStageInfo& record = header.stages[i];
    return std::unique_ptr<Stage>(createStage(static_cast<StageType>(record.stage_type),
                                              record.stage_config.data(), record.config_size));
  };
  const auto first = restore(0);
  const auto* read_quantizer = dynamic_cast<const LorenzoQuantF32*>(first.get());
  ASSERT_NE(read_quantizer, nullptr);
  EXPECT_EQ(read_quantizer->getQuantRadius(), 256);
  EXPECT_EQ(read_quantizer->ndim(), 2);
  EXPECT_EQ(read_quantizer->getDims(), (std::array<std::size_t, 3>{128, 64, 1}));
  const auto second = restore(1);
  const auto* read_shuffle = dynamic_cast<const BitshuffleStage*>(second.get());
  ASSERT_NE(read_shuffle, nullptr);
  EXPECT_EQ(read_shuffle->getBlockSize(), 8192u);
  EXPECT_EQ(read_shuffle->getElementWidth(), 2u);
  EXPECT_EQ(countMisses(values_, decodeFile(path_)), 0u);
}

TEST_F(File, DecodesToTheLengthOfTheInputAlsoWhenThatWasPadded) {
  Pipeline pipeline;
  auto* aligned = pipeline.addStage<AlignedStage>();
  pipeline.connect(pipeline.addStage<PassThroughStage>(), aligned);
  pipeline.finalize();
  const auto values = wave(1001);
  frameOf(pipeline, values);
  pipeline.writeToFile(path_);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompressFromFileInstance(path_, &out, &n_bytes);
  EXPECT_EQ(n_bytes, byteCount(values));
  EXPECT_EQ(std::memcmp(out, values.data(), n_bytes), 0);
}

TEST_F(File, ReportsTimesAndTakesAPoolSize) {
  PipelinePerfResult perf;
  void* out = nullptr;
  std::size_t n_bytes = 0;
  Pipeline::decompressFromFile(path_, &out, &n_bytes, nullptr, &perf, std::size_t{1} << 20);
  EXPECT_EQ(countBoundViolations(values_.data(), static_cast<float*>(out), kValues, kBound), 0u);
  std::free(out);
  EXPECT_FALSE(perf.is_compress);
  EXPECT_EQ(perf.stages.size(), 2u);
  EXPECT_EQ(perf.output_bytes, byteCount(values_));
  EXPECT_GT(perf.host_elapsed_ms, 0.0f);
}

TEST_F(File, ReplacesAnOlderOneAndLeavesNothingElse) {
  writeAll(path_, std::string("an old file"));
  pipeline_.writeToFile(path_);
  EXPECT_EQ(readAll(path_), frame_);
  EXPECT_EQ(folder_.fileCount(), 1u);
}

TEST_F(File, ThatCannotBeWrittenIsAnErrorAndLeavesNothing) {
  EXPECT_EQ(codeOf([&] { pipeline_.writeToFile(folder_.file("missing/a.fzm")); }), ErrorCode::kIo);
  EXPECT_EQ(codeOf([&] { pipeline_.writeToFile(path_ + "/a.fzm"); }), ErrorCode::kIo);
  std::filesystem::create_directories(folder_.file("folder/inside"));
  const Failure failure = failureOf([&] { pipeline_.writeToFile(folder_.file("folder")); });
  EXPECT_EQ(failure.code, ErrorCode::kIo);
  EXPECT_TRUE(failure.mentions("folder")) << failure.message;
  EXPECT_EQ(folder_.fileCount(), 2u) << "the file and the folder, no temporary";
  EXPECT_NO_THROW(pipeline_.writeToFile(path_));
}

TEST(StageFactory, UnknownStagesAndTypesAreRefused) {
  EXPECT_EQ(codeOf([] { createStage(static_cast<StageType>(0x3FFF), nullptr, 0); }),
            ErrorCode::kUnsupported);
  const std::array<std::uint8_t, 6> config = {77, 77, 0, 0, 0, 0};
  const auto code = codeOf([&] { createStage(StageType::DIFFERENCE, config.data(), 6); });
  EXPECT_TRUE(code == ErrorCode::kUnsupported || code == ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace fz::test
