// The search for a plan: it depends on the values alone, and pays.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>

#include "fused/interp/cpu/blocks.h"
#include "fused/interp/cpu/lorenzo_search.h"
#include "fused/interp/interp_stage.h"
#include "fz/host_api.h"
#include "pipeline/compressor.h"

namespace fz {
namespace {

using Dims = std::array<std::size_t, 3>;

/// Waves of other lengths along each axis, with some noise.
std::vector<float> field(const Dims& dims, const std::array<double, 3>& frequency, double noise) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<double> grain(-noise, noise);
  std::vector<float> values;
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      for (std::size_t x = 0; x < dims[0]; ++x) {
        const double wave = std::sin(frequency[0] * static_cast<double>(x)) +
                            std::cos(frequency[1] * static_cast<double>(y)) *
                                std::sin(1 + frequency[2] * static_cast<double>(z));
        values.push_back(static_cast<float>(wave + grain(rng)));
      }
    }
  }
  return values;
}

CompressOptions optionsOf(const Dims& dims, std::size_t threads = 1) {
  CompressOptions options;
  options.preset = "best";
  options.dims = dims;
  options.error_bound = 1e-3;
  options.mode = ErrorBoundMode::NOA;
  options.backend = Backend::CPU;
  options.threads = threads;
  return options;
}

Frame compressWith(const std::vector<float>& values,
                   CompressOptions options,
                   const std::string& plan) {
  options.params.emplace_back("plan", plan);
  return compress(std::span<const float>(values), options);
}

std::string planOf(const Frame& frame) {
  for (const FrameStageInfo& stage : inspect(frame).stages) {
    for (const auto& [key, value] : stage.params) {
      if (stage.name == "Interp" && key == "plan") {
        return std::get<std::string>(value);
      }
    }
  }
  return {};
}

struct Shape {
  Dims dims;
  std::array<double, 3> frequency;
  double noise;
};
const Shape kShapes[] = {
    {{48, 40, 36}, {0.1, 0.12, 0.09}, 1e-4}, {{60, 50, 20}, {0.05, 1.9, 0.03}, 1e-3},
    {{120, 90, 1}, {0.02, 0.3, 0.0}, 1e-3},  {{5000, 1, 1}, {0.01, 0.0, 0.0}, 1e-4},
    {{31, 1, 77}, {0.2, 0.0, 0.02}, 1e-2},   {{2, 3, 500}, {0.1, 0.1, 0.1}, 1e-3},
    {{1, 1, 1}, {1.0, 1.0, 1.0}, 0.0},       {{33, 33, 33}, {9.0, 7.0, 8.0}, 1.0},
    {{90, 70, 64}, {0.1, 0.8, 0.02}, 1e-3}};

TEST(InterpTune, TheChosenPlanIsNoWorseThanTheSimpleOnes) {
  for (const Shape& shape : kShapes) {
    const std::vector<float> values = field(shape.dims, shape.frequency, shape.noise);
    const CompressOptions options = optionsOf(shape.dims);
    const std::size_t chosen = compressWith(values, options, "auto").size();
    const std::size_t chosen_lorenzo = compressWith(values, options, "lorenzo:auto").size();
    const std::size_t iso = compressWith(values, options, "iso").size();
    const std::size_t lorenzo = compressWith(values, options, "lorenzo").size();
    const std::size_t room = 100;  // a plan takes bytes of the header
    EXPECT_LE(chosen, std::min({iso, lorenzo, chosen_lorenzo}) * 102 / 100 + room)
        << shape.dims[0] << " x " << shape.dims[1] << " x " << shape.dims[2];
    EXPECT_LE(chosen_lorenzo, lorenzo * 102 / 100 + room);
  }
}

TEST(InterpTune, AFieldThatIsSmoothAlongOneAxisGetsAPlanForIt) {
  const Dims dims = {64, 48, 40};
  const std::vector<float> values = field(dims, {2.9, 2.3, 0.01}, 0.0);
  const CompressOptions options = optionsOf(dims);
  const std::size_t chosen = compressWith(values, options, "auto").size();
  EXPECT_LT(chosen * 4, compressWith(values, options, "iso").size());
}

void expectSameForAllThreads(const std::vector<float>& values, const CompressOptions& options) {
  CompressOptions others = options;
  others.threads = 1;
  const Frame one = compressWith(values, others, "auto");
  for (const std::size_t threads : {2u, 3u, 7u, 16u}) {
    others.threads = threads;
    const Frame several = compressWith(values, others, "auto");
    EXPECT_EQ(planOf(one), planOf(several)) << threads << " threads";
    EXPECT_TRUE(std::equal(one.bytes().begin(), one.bytes().end(), several.bytes().begin(),
                           several.bytes().end()))
        << threads << " threads";
  }
}

TEST(InterpTune, ThreadsDoNotChangeThePlan) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.dims[0]) + " x " + std::to_string(shape.dims[1]));
    const std::vector<float> values = field(shape.dims, shape.frequency, shape.noise);
    expectSameForAllThreads(values, optionsOf(shape.dims));
  }
}

TEST(InterpTune, ThreadsDoNotChangeThePlanForAnyBound) {
  const Shape shape = {{70, 60, 50}, {0.1, 0.8, 0.02}, 1e-4};
  const std::vector<float> values = field(shape.dims, shape.frequency, shape.noise);
  CompressOptions options = optionsOf(shape.dims);
  for (const double bound : {1e-1, 1e-2, 1e-5}) {
    options.error_bound = bound;
    expectSameForAllThreads(values, options);
  }
}

TEST(InterpTune, ThreadsDoNotChangeThePlanOfAFieldWithGaps) {
  const Dims dims = {80, 70, 30};
  std::vector<float> values = field(dims, {0.1, 0.07, 0.02}, 1e-3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % dims[0] / 9 % 3 == 0 && i / dims[0] % dims[1] / 7 % 2 == 0) {
      values[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  expectSameForAllThreads(values, optionsOf(dims));
}

TEST(InterpTune, ThreadsDoNotChangeThePlanOfALargeField) {
  const Dims dims = {160, 110, 80};
  expectSameForAllThreads(field(dims, {0.05, 1.1, 0.07}, 1e-3), optionsOf(dims));
}

TEST(InterpTune, ThePlanOfOneFieldServesTheNext) {
  const Shape& shape = kShapes[0];
  const std::vector<float> first = field(shape.dims, shape.frequency, shape.noise);
  const Frame searched = compressWith(first, optionsOf(shape.dims), "auto");
  const Frame given = compressWith(first, optionsOf(shape.dims), planOf(searched));
  EXPECT_FALSE(planOf(searched).empty());
  EXPECT_TRUE(std::equal(searched.bytes().begin(), searched.bytes().end(), given.bytes().begin(),
                         given.bytes().end()));
}

TEST(InterpTune, PartsOfAFieldLieInsideItAndSmallOnesAreWhole) {
  for (const interp::Extents& n : {interp::Extents{512, 512, 512}, interp::Extents{91, 91, 91},
                                   interp::Extents{70'000'000, 1, 1}, interp::Extents{33, 33, 33},
                                   interp::Extents{3, 5, 40'000}, interp::Extents{4096, 2047, 1}}) {
    const interp::FieldParts parts = interp::lorenzoParts(n);
    ASSERT_EQ(parts.first.size(), 3u);
    for (const auto& first : parts.first) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        EXPECT_LE(first[axis] + parts.n[axis], n[axis]);
        EXPECT_TRUE(parts.n[axis] == n[axis] || parts.n[axis] % 32 == 0);
      }
    }
  }
  const interp::Extents small = {32, 32, 32};
  EXPECT_EQ(interp::lorenzoParts(small).n, small);
  EXPECT_EQ(interp::lorenzoParts(small).first.size(), 1u);
}

TEST(InterpTune, AxesAreThoseThatCostLeastAndAllOfThemWhereCostsAreAlike) {
  const interp::Extents n = {64, 64, 64};
  const interp::FieldParts parts = interp::lorenzoParts(n);
  EXPECT_EQ(interp::cheapestLorenzo(n, parts, {9, 8, 7, 6, 5, 4, 3, 4}).plan.lorenzo, 6);
  EXPECT_EQ(interp::cheapestLorenzo(n, parts, {9, 9, 9, 9, 9, 9, 9, 9}).plan.lorenzo, 7);
  EXPECT_EQ(interp::cheapestLorenzo({64, 64, 1}, parts, {9, 8, 7, 6, 0, 0, 0, 0}).plan.lorenzo, 3);
}

TEST(InterpTune, ARunSaysWhichPlansCameIntoQuestion) {
  const Shape& shape = kShapes[0];
  const std::vector<float> values = field(shape.dims, shape.frequency, shape.noise);
  const auto explained = [&](const std::string& plan) {
    Pipeline pipeline(values.size() * sizeof(float));
    auto* const stage = pipeline.addStage<InterpStage<float, std::int32_t>>();
    stage->setDims(shape.dims);
    stage->setPlan(plan);
    pipeline.setBackend(Backend::CPU);
    pipeline.finalize();
    EXPECT_EQ(stage->runNote(), "");
    pipeline.compress(values.data(), values.size() * sizeof(float));
    EXPECT_NE(pipeline.explain().find(stage->runNote()), std::string::npos);
    EXPECT_TRUE(stage->runNote().empty() ||
                stage->runNote().starts_with("plan " + stage->usedPlan()));
    return stage->runNote();
  };
  const std::string note = explained("auto");
  EXPECT_NE(note.find(" found "), std::string::npos) << note;
  EXPECT_NE(note.find(", lorenzo:"), std::string::npos) << note;
  EXPECT_NE(note.find("bits per value, estimated on the whole field: "), std::string::npos) << note;
  EXPECT_EQ(explained("iso"), "");
}

/// The smallest of Lorenzo along any of the three axes.
std::size_t leastLorenzo(const std::vector<float>& values, const CompressOptions& options) {
  std::size_t least = values.size() * sizeof(float);
  for (const char* axes : {"xyz", "xy", "xz", "yz", "x", "y", "z"}) {
    least = std::min(least, compressWith(values, options, std::string("lorenzo:") + axes).size());
  }
  return least;
}

TEST(InterpTune, AxesOfLorenzoAreChosenFromPartsOfASmallField) {
  // Only differences along z pay, everywhere; the field is small enough to be searched whole.
  const Dims dims = {96, 80, 72};
  const std::vector<float> values = field(dims, {2.9, 2.3, 0.01}, 1e-3);
  const CompressOptions options = optionsOf(dims);
  const std::size_t chosen = compressWith(values, options, "lorenzo:auto").size();
  EXPECT_LE(chosen, leastLorenzo(values, options) * 101 / 100);
  EXPECT_LT(chosen * 2, compressWith(values, options, "lorenzo:x").size());
}

TEST(InterpTune, PartsThatLieInGapsDoNotChooseTheAxes) {
  // The parts that plans are compared by lie on the diagonal, where next to nothing is left.
  const Dims dims = {96, 80, 72};
  std::vector<float> values = field(dims, {2.9, 2.3, 0.01}, 1e-3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i % dims[0]) / static_cast<double>(dims[0]);
    const std::size_t plane = i / (dims[0] * dims[1]);
    const double z = static_cast<double>(plane) / static_cast<double>(dims[2]);
    if (std::abs(x - z) < 0.45) {
      values[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  const CompressOptions options = optionsOf(dims);
  EXPECT_LE(compressWith(values, options, "lorenzo:auto").size(),
            leastLorenzo(values, options) * 101 / 100);
}

TEST(InterpTune, LargeFieldsAreSearchedByParts) {
  // More values than are looked at whole; levels along all axes are best everywhere.
  const Dims dims = {160, 110, 80};
  const std::vector<float> values = field(dims, {0.05, 0.06, 0.07}, 1e-5);
  const CompressOptions options = optionsOf(dims);
  const std::size_t chosen = compressWith(values, options, "auto").size();
  EXPECT_LE(chosen, compressWith(values, options, "iso").size() * 102 / 100);
  EXPECT_LE(chosen, compressWith(values, options, "lorenzo:auto").size() * 102 / 100);
}

TEST(InterpCost, LogarithmsAreRightToAThousandth) {
  for (std::uint32_t v = 1; v < 5000; ++v) {
    EXPECT_NEAR(interp::log2Of(v), 1024 * std::log2(v), 6.0) << v;
  }
  for (std::uint32_t v = 1u << 20; v < 1u << 30; v += 12345677) {
    EXPECT_NEAR(interp::log2Of(v), 1024 * std::log2(v), 6.0) << v;
  }
}

TEST(InterpCost, LargerCodesCostMore) {
  std::vector<std::int16_t> codes(64 * 32);
  std::uint64_t last_block = 0;
  std::uint64_t last_class = 0;
  for (const int size : {0, 1, 3, 20, 300, 5000}) {
    std::mt19937 rng(1);
    for (std::int16_t& code : codes) {
      code = static_cast<std::int16_t>(
          static_cast<int>(rng() % (2u * static_cast<unsigned>(size) + 1)) - size);
    }
    const std::uint64_t block = interp::blockCost(std::span<const std::int16_t>(codes));
    interp::ClassCost by_class;
    by_class.add(std::span<const std::int16_t>(codes));
    if (size > 0) {
      EXPECT_GT(block, last_block) << size;
      EXPECT_GT(by_class.total(), last_class) << size;
      // Within a quarter of the entropy of equally likely values.
      const double entropy = 1024 * static_cast<double>(codes.size()) * std::log2(2 * size + 1);
      EXPECT_NEAR(static_cast<double>(by_class.total()), entropy, 0.25 * entropy) << size;
    }
    last_block = block;
    last_class = by_class.total();
  }
}

}  // namespace
}  // namespace fz
