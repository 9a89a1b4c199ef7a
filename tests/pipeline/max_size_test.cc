#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/bitpack/bitpack_stage.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/rze/rze_stage.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "predictors/diff/diff.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "support/pipelines.h"
#include "transforms/zigzag/zigzag_stage.h"

// No input may need more than getMaxCompressedSize() says, however hard it is to compress.

namespace fz::test {
namespace {

const std::size_t kSizes[] = {0, 1, 2, 3, 31, 32, 33, 1023, 1024, 1025, 4095, 4097, 16385, 40'000};

std::vector<float> floatNoise(std::size_t n) {
  std::mt19937 rng(7);
  std::vector<float> values(n);
  for (float& v : values) {
    const auto bits = static_cast<std::uint32_t>(rng());
    std::memcpy(&v, &bits, sizeof(v));
  }
  return values;
}

std::vector<float> floatExtremes(std::size_t n) {
  using Limits = std::numeric_limits<float>;
  const float extremes[] = {Limits::max(),        -Limits::max(), Limits::infinity(),
                            Limits::quiet_NaN(),  0.0f,           -0.0f,
                            Limits::denorm_min(), 1e-3f,          -Limits::infinity()};
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = extremes[i * 7 % std::size(extremes)];
  }
  return values;
}

template <class T>
std::vector<T> integerNoise(std::size_t n) {
  std::mt19937 rng(11);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(rng());
  }
  return values;
}

template <class T>
std::vector<T> integerExtremes(std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = i % 2 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
  return values;
}

template <class T>
bool equalBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), byteCount(a)) == 0);
}

template <class T>
void expectWithinMaximum(Pipeline& pipeline, const std::vector<T>& values, const char* what) {
  const std::size_t limit = pipeline.getMaxCompressedSize(byteCount(values));
  FrameBytes room(limit);
  std::size_t n_bytes = 0;
  ASSERT_NO_THROW(pipeline.compress(values.data(), byteCount(values), room.data(), limit, &n_bytes))
      << what << ", " << values.size() << " values";
  const auto back = decoded<T>(pipeline, ByteView(room).first(n_bytes));
  if constexpr (std::is_floating_point_v<T>) {
    EXPECT_EQ(countMisses(values, back), 0u) << what << ", " << values.size() << " values";
  } else {
    EXPECT_TRUE(equalBits(values, back)) << what << ", " << values.size() << " values";
  }
}

/// Compresses hard inputs of all sizes with what `build` makes.
template <class F>
void checkFloats(F build) {
  Pipeline pipeline;
  build(pipeline);
  pipeline.finalize();
  for (const std::size_t n : kSizes) {
    expectWithinMaximum(pipeline, floatNoise(n), "noise");
    expectWithinMaximum(pipeline, floatExtremes(n), "extremes");
    expectWithinMaximum(pipeline, std::vector<float>(n, 3.25f), "constant");
    expectWithinMaximum(pipeline, wave(n), "wave");
  }
}

template <class T, class F>
void checkIntegers(F build) {
  Pipeline pipeline;
  build(pipeline);
  pipeline.finalize();
  for (const std::size_t n : kSizes) {
    expectWithinMaximum(pipeline, integerNoise<T>(n), "noise");
    expectWithinMaximum(pipeline, integerExtremes<T>(n), "extremes");
    expectWithinMaximum(pipeline, std::vector<T>(n, T{5}), "constant");
  }
}

/// A quantizer that reserves no room for outliers, in front of a coder of its codes.
template <class Coder>
void quantizeThen(Pipeline& pipeline) {
  auto* quantizer = pipeline.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(kBound, 512, 0.0));
  quantizer->setZigzagCodes(true);
  auto* coder = pipeline.addStage<Coder>();
  pipeline.connect(coder, quantizer, "codes");
}

TEST(MaxCompressedSize, HoldsForLorenzoQuantAlone) {
  checkFloats([](Pipeline& p) { addQuantizer(p, 1); });
}

TEST(MaxCompressedSize, HoldsForLorenzoQuantAndEachCoder) {
  checkFloats(&quantizeThen<RLEStage<std::uint16_t>>);
  checkFloats(&quantizeThen<RZEStage>);
  checkFloats(&quantizeThen<HuffmanStage<std::uint16_t>>);
  checkFloats(&quantizeThen<BitpackStage<std::uint16_t>>);
  checkFloats(&quantizeThen<BitplaneRZEStage>);
}

TEST(MaxCompressedSize, HoldsWhenTheOutlierListsAreCodedToo) {
  checkFloats([](Pipeline& p) {
    auto* quantizer = addQuantizer(p, 1);
    auto* codes = p.addStage<RLEStage<std::uint16_t>>();
    auto* errors = p.addStage<RZEStage>();
    auto* indices = p.addStage<DifferenceStage<std::uint32_t>>();
    auto* runs = p.addStage<RLEStage<std::uint32_t>>();
    p.connect(codes, quantizer, "codes");
    p.connect(errors, quantizer, "outlier_errors");
    p.connect(indices, quantizer, "outlier_indices");
    p.connect(runs, indices);
  });
}

TEST(MaxCompressedSize, HoldsForLongChains) {
  checkFloats([](Pipeline& p) {
    auto* quantizer = addQuantizer(p);
    auto* difference = p.addStage<DifferenceStage<std::uint16_t>>();
    auto* shuffle = p.addStage<BitshuffleStage>();
    shuffle->setElementWidth(2);
    auto* rze = p.addStage<RZEStage>();
    auto* rle = p.addStage<RLEStage<std::uint8_t>>();
    p.connect(difference, quantizer, "codes");
    p.connect(shuffle, difference);
    p.connect(rze, shuffle);
    p.connect(rle, rze);
  });
}

TEST(MaxCompressedSize, HoldsForIntegerChains) {
  checkIntegers<std::int32_t>([](Pipeline& p) {
    auto* lorenzo = p.addStage<LorenzoStage<std::int32_t>>();
    auto* pack = p.addStage<AdaptiveBitpackStage<std::int32_t>>();
    p.connect(pack, lorenzo);
  });
  checkIntegers<std::int16_t>([](Pipeline& p) {
    auto* tiles = p.addStage<TiledLorenzoStage<std::int16_t>>();
    auto* pack = p.addStage<AdaptiveBitpackStage<std::int16_t>>();
    pack->setOutlierSelection(true);
    pack->setBlockSize(1);
    p.connect(pack, tiles);
  });
  checkIntegers<std::int32_t>([](Pipeline& p) {
    auto* zigzag = p.addStage<ZigzagStage<std::int32_t>>();
    auto* rle = p.addStage<RLEStage<std::uint32_t>>();
    p.connect(rle, zigzag);
  });
  checkIntegers<std::uint8_t>([](Pipeline& p) { p.addStage<HuffmanStage<std::uint8_t>>(); });
  checkIntegers<std::uint16_t>(
      [](Pipeline& p) { p.addStage<HuffmanStage<std::uint16_t>>()->setBklen(65536); });
}

TEST(MaxCompressedSize, HoldsInTwoAndThreeDimensions) {
  for (const auto& dims :
       {std::array<std::size_t, 3>{37, 29, 1}, {1500, 3, 1}, {9, 17, 5}, {1, 1, 7}}) {
    const std::size_t n = dims[0] * dims[1] * dims[2];
    Pipeline floats;
    floats.setDims(dims);
    quantizeThen<RLEStage<std::uint16_t>>(floats);
    floats.finalize();
    expectWithinMaximum(floats, floatNoise(n), "noise");
    expectWithinMaximum(floats, floatExtremes(n), "extremes");
    Pipeline integers;
    integers.setDims(dims);
    auto* tiles = integers.addStage<TiledLorenzoStage<std::int32_t>>();
    auto* pack = integers.addStage<AdaptiveBitpackStage<std::int32_t>>();
    integers.connect(pack, tiles);
    integers.finalize();
    expectWithinMaximum(integers, integerNoise<std::int32_t>(n), "noise");
    expectWithinMaximum(integers, integerExtremes<std::int32_t>(n), "extremes");
  }
}

}  // namespace
}  // namespace fz::test
