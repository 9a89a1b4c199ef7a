#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/fields.h"
#include "support/pipelines.h"

// The smaller of a lossy and a lossless frame is kept; tests/trust/sizes.cc has every preset and
// family.

namespace fz::test {
namespace {

std::vector<float> noise(std::size_t n) {
  std::mt19937 rng(3);
  std::vector<float> values(n);
  for (float& v : values) {
    const auto bits = static_cast<std::uint32_t>(rng());
    std::memcpy(&v, &bits, sizeof(v));
  }
  return values;
}

CompressOptions pfpl(double bound) {
  CompressOptions options;
  options.preset = "pfpl";
  options.backend = Backend::CPU;
  options.error_bound = bound;
  options.mode = ErrorBoundMode::ABS;
  return options;
}

bool equalBits(const std::vector<float>& a, ByteView b) {
  return b.size() == byteCount(a) && (a.empty() || std::memcmp(a.data(), b.data(), b.size()) == 0);
}

TEST(LosslessFallback, NoiseTakesItsOwnBytesAndTheShortestHeader) {
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{10}, std::size_t{70'000}}) {
    const std::vector<float> values = noise(n);
    const Frame frame = compress(std::span<const float>(values), pfpl(1e-3));
    EXPECT_EQ(frame.size(), byteCount(values) + kStoredFrameBytes) << n;
    EXPECT_EQ(frame.size(), compressBound(DataType::FLOAT32, byteCount(values), pfpl(1e-3))) << n;
    EXPECT_TRUE(equalBits(values, decompress(frame).bytes())) << n;
  }
}

TEST(LosslessFallback, TellsTheTypeShapeAndBoundThatWereAskedFor) {
  const std::vector<float> values = noise(60 * 40 * 3);
  CompressOptions options = pfpl(1e-3);
  options.dims = {60, 40, 3};
  const FrameInfo info = inspect(compress(std::span<const float>(values), options));
  EXPECT_TRUE(info.isFallback());
  EXPECT_TRUE(info.lossless);
  EXPECT_EQ(info.type, DataType::FLOAT32);
  EXPECT_EQ(info.ndim, 3);
  EXPECT_EQ(info.dims, options.dims);
  ASSERT_TRUE(info.bound.has_value());
  EXPECT_EQ(info.bound->requested, 1e-3);
  EXPECT_EQ(info.bound->mode, ErrorBoundMode::ABS);
}

TEST(LosslessFallback, ZerosUnderRelAreNotStoredAsTheyAre) {
  const std::vector<float> values(50'000);
  CompressOptions options = pfpl(1e-3);
  options.mode = ErrorBoundMode::REL;
  options.lossless_fallback = false;
  EXPECT_GT(compress(std::span<const float>(values), options).size(), 4 * values.size());
  options.lossless_fallback = true;
  const Frame frame = compress(std::span<const float>(values), options);
  EXPECT_LT(frame.size(), values.size() / 10);
  EXPECT_TRUE(equalBits(values, decompress(frame).bytes()));
}

/// A smooth field with a mask of NaN, whose codes and outliers take more than its bit planes.
template <class T>
std::vector<T> masked(std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_land = i / 100 % 20 < 7;
    values[i] = is_land ? std::numeric_limits<T>::quiet_NaN()
                        : static_cast<T>(std::round(20 * std::sin(static_cast<double>(i) / 40)));
  }
  return values;
}

/// By a pipeline itself, which puts no Mask before its stages.
template <class T>
Frame frameWith(const std::vector<T>& values, CompressOptions options, bool has_fallback) {
  options.lossless_fallback = has_fallback;
  Pipeline pipeline;
  configure(pipeline, kDataTypeOf<T>, options);
  const CompressedView view = pipeline.compress(values.data(), values.size() * sizeof(T));
  const auto* data = static_cast<const std::uint8_t*>(view.data);
  return Frame(std::vector<std::uint8_t>(data, data + view.n_bytes));
}

template <class T>
void expectLosslessIsKept(const CompressOptions& options) {
  const std::vector<T> values = masked<T>(60'000);
  const std::size_t n_bytes = values.size() * sizeof(T);
  const Frame plain = frameWith(values, options, false);
  ASSERT_LT(plain.size(), n_bytes) << "it does not grow";
  ASSERT_TRUE(savesLittle(plain.size(), n_bytes));
  const Frame frame = frameWith(values, options, true);
  EXPECT_LT(frame.size(), plain.size());
  const FrameInfo info = inspect(frame);
  EXPECT_TRUE(info.isFallback());
  ASSERT_TRUE(info.bound.has_value());
  EXPECT_EQ(info.bound->requested, *options.error_bound);
  EXPECT_EQ(info.bound->absolute, inspect(plain).bound->absolute);
  EXPECT_EQ(info.type, kDataTypeOf<T>);
  const Array decoded = decompress(frame);
  const ByteView back = decoded.bytes();
  ASSERT_EQ(back.size(), n_bytes);
  EXPECT_EQ(std::memcmp(back.data(), values.data(), n_bytes), 0);
}

TEST(LosslessFallback, OfTwoFramesThatSaveLittleTheSmallerIsKept) {
  for (const auto& [preset, mode] :
       {std::pair("pfpl", ErrorBoundMode::ABS), std::pair("pfpl", ErrorBoundMode::NOA),
        std::pair("cusz", ErrorBoundMode::NOA), std::pair("speed", ErrorBoundMode::NOA)}) {
    SCOPED_TRACE(testing::Message() << preset << ' ' << errorBoundModeName(mode));
    CompressOptions options = pfpl(1e-4);
    options.preset = preset;
    options.mode = mode;
    expectLosslessIsKept<float>(options);
    expectLosslessIsKept<double>(options);
  }
}

/// Noise in all bits but the bound's: little is saved, and nothing without loss.
TEST(LosslessFallback, ALossyFrameThatSavesLittleAndIsTheSmallerStays) {
  std::mt19937 rng(8);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  std::vector<float> values(50'000);
  std::generate(values.begin(), values.end(), [&] { return uniform(rng); });
  for (const char* preset : {"pfpl", "cuszp2", "quantizer_lorenzo_bitpack"}) {
    CompressOptions options = pfpl(preset == std::string("pfpl") ? 2e-6 : 2e-5);
    options.preset = preset;
    const Frame plain = frameWith(values, options, false);
    ASSERT_TRUE(savesLittle(plain.size(), byteCount(values))) << preset << ' ' << plain.size();
    const Frame frame = frameWith(values, options, true);
    EXPECT_TRUE(std::equal(frame.bytes().begin(), frame.bytes().end(), plain.bytes().begin(),
                           plain.bytes().end()))
        << preset;
    EXPECT_FALSE(inspect(frame).isFallback());
  }
}

TEST(LosslessFallback, APipelineWithoutLossIsLeftToItself) {
  const std::vector<float> values = masked<float>(60'000);
  CompressOptions options;
  options.backend = Backend::CPU;
  options.preset = "planes";
  options.config_toml = R"([[stage]]
name = "planes"
type = "Bitshuffle"
element_width = 1
)";
  const Frame plain = frameWith(values, options, false);
  const Frame frame = frameWith(values, options, true);
  EXPECT_EQ(frame.size(), plain.size());
}

TEST(LosslessFallback, AMemoryLimitWithoutRoomForBothLeavesTheLossyFrame) {
  const std::vector<float> values = masked<float>(200'000);
  CompressOptions options = pfpl(1e-4);
  const Frame lossy = frameWith(values, options, false);
  const Frame lossless = frameWith(values, options, true);
  ASSERT_LT(lossless.size(), lossy.size());
  bool was_lossy = false;
  bool was_lossless = false;
  for (std::size_t tenths = 5; tenths <= 80; ++tenths) {
    options.max_memory_bytes = tenths * byteCount(values) / 10;
    try {
      const Frame frame = frameWith(values, options, true);
      was_lossy = was_lossy || frame.size() == lossy.size();
      was_lossless = was_lossless || frame.size() == lossless.size();
      EXPECT_FALSE(was_lossless && frame.size() != lossless.size())
          << "a larger limit, a worse one";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kLimit) << e.what();
      EXPECT_FALSE(was_lossy || was_lossless) << "a larger limit was refused: " << e.what();
    }
  }
  EXPECT_TRUE(was_lossy);
  EXPECT_TRUE(was_lossless);
}

TEST(LosslessFallback, APipelineComparesAgainAndAgain) {
  Pipeline pipeline;
  CompressOptions options = pfpl(1e-4);
  configure(pipeline, DataType::FLOAT32, options);
  const std::vector<float> mask = masked<float>(60'000);
  const std::vector<float> easy = wave(60'000);
  const FrameBytes first = frameOf(pipeline, mask);
  EXPECT_TRUE(pipeline.isLastFrameFallback());
  EXPECT_EQ(pipeline.buildHeader().stages.size(), 2u);
  options.error_bound = 1e-2;
  Pipeline other;
  configure(other, DataType::FLOAT32, options);
  const FrameBytes plain = frameOf(other, easy);
  EXPECT_FALSE(other.isLastFrameFallback());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(frameOf(pipeline, mask), first);
    EXPECT_EQ(frameOf(other, easy), plain);
  }
}

TEST(LosslessFallback, FramesThatDoNotGrowStayAsTheStagesMakeThem) {
  const std::vector<float> values = wave(20'000);
  CompressOptions options = pfpl(1e-2);
  const Frame frame = compress(std::span<const float>(values), options);
  options.lossless_fallback = false;
  const Frame plain = compress(std::span<const float>(values), options);
  EXPECT_TRUE(std::equal(frame.bytes().begin(), frame.bytes().end(), plain.bytes().begin(),
                         plain.bytes().end()));
  EXPECT_FALSE(inspect(frame).isFallback());
}

TEST(LosslessFallback, APipelineOffersItAndGoesOnAfterwards) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  buildRleChain(pipeline);
  EXPECT_FALSE(pipeline.isLosslessFallbackEnabled());
  const std::vector<float> hard = noise(5000);
  const std::vector<float> easy = wave(5000);
  const FrameBytes plain_hard = frameOf(pipeline, hard);
  const FrameBytes plain_easy = frameOf(pipeline, easy);
  pipeline.setLosslessFallback(true);
  const FrameBytes stored = frameOf(pipeline, hard);
  EXPECT_TRUE(pipeline.isLastFrameFallback());
  EXPECT_LT(stored.size(), plain_hard.size());
  EXPECT_EQ(pipeline.buildHeader().stages.size(), 1u);
  const TempFolder folder;
  pipeline.writeToFile(folder.file("a.fzm"));
  const Frame read = Frame::readFromFile(folder.file("a.fzm"));
  EXPECT_EQ(FrameBytes(read.bytes().begin(), read.bytes().end()), stored);
  EXPECT_TRUE(equalBits(hard, decompress(read).bytes()));
  EXPECT_EQ(frameOf(pipeline, easy), plain_easy);
  EXPECT_FALSE(pipeline.isLastFrameFallback());
  pipeline.setLosslessFallback(false);
  EXPECT_EQ(frameOf(pipeline, hard), plain_hard);
}

TEST(LosslessFallback, BytesOfNoTypeKeepNoType) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.addStage<RLEStage<std::uint8_t>>();
  pipeline.finalize();
  pipeline.setLosslessFallback(true);
  std::vector<std::uint8_t> bytes(10'001);
  std::mt19937 rng(5);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(rng());
  }
  const FrameBytes frame = frameOf(pipeline, bytes);
  EXPECT_EQ(frame.size(), bytes.size() + kStoredFrameBytes);
  EXPECT_EQ(decoded<std::uint8_t>(pipeline, frame), bytes);
  EXPECT_EQ(inspect(frame).type, DataType::UINT8);
}

TEST(LosslessFallback, TakesItsMemoryFromTheLimitOfThePipeline) {
  const std::vector<float> values = noise(200'000);
  CompressOptions options = pfpl(1e-3);
  bool fits = false;
  for (std::size_t n_times = 1; n_times <= 12; ++n_times) {
    options.max_memory_bytes = n_times * byteCount(values);
    try {
      const Frame frame = compress(std::span<const float>(values), options);
      EXPECT_EQ(frame.size(), byteCount(values) + kStoredFrameBytes);
      fits = true;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kLimit) << e.what();
      EXPECT_FALSE(fits) << "a larger limit was refused: " << e.what();
    }
  }
  EXPECT_TRUE(fits);
}

TEST(LosslessFallback, ThreadsDoNotChangeTheFrame) {
  const std::vector<float> values = noise(100'000);
  CompressOptions options = pfpl(1e-3);
  options.threads = 1;
  const Frame one = compress(std::span<const float>(values), options);
  options.threads = 7;
  const Frame many = compress(std::span<const float>(values), options);
  EXPECT_TRUE(
      std::equal(one.bytes().begin(), one.bytes().end(), many.bytes().begin(), many.bytes().end()));
}

TEST(LosslessFallback, RefusalsStayRefusals) {
  const std::vector<float> values = noise(5000);
  CompressOptions options;
  options.preset = "cuszp2";
  options.backend = Backend::CPU;
  options.mode = ErrorBoundMode::ABS;
  options.error_bound = 1e-3;  // of values up to 1e38
  EXPECT_THROW(compress(std::span<const float>(values), options), Error);
}

}  // namespace
}  // namespace fz::test
