// What the command line, Python and C share: words for bounds, element types of a chain, settings
// that archives keep, and whether values keep to a bound.
#include <cmath>
#include <gtest/gtest.h>

#include "fz/bound_kind.h"
#include "fz/recorded_params.h"
#include "fz/stage_types.h"
#include "pipeline/bound_check.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

using Types = std::vector<DataType>;

TEST(BoundKind, WordsAndModesAreOneToOne) {
  for (const auto mode : {ErrorBoundMode::ABS, ErrorBoundMode::REL, ErrorBoundMode::NOA}) {
    EXPECT_EQ(boundKindFromName(boundKindName(mode)), mode);
  }
  EXPECT_EQ(boundKindName(ErrorBoundMode::NOA), "range");
  EXPECT_FALSE(boundKindFromName("max"));
  EXPECT_FALSE(boundKindFromName("ABS"));
}

TEST(BoundKind, RelOfTheLargestValueHasANameOfItsOwn) {
  const BoundInfo pointwise{ErrorBoundMode::REL, 1e-3, 0.0};
  EXPECT_EQ(boundKindName(pointwise), "rel");
  EXPECT_FALSE(absoluteBound(pointwise));
  const BoundInfo of_largest{ErrorBoundMode::REL, 1e-3, 0.5};
  EXPECT_EQ(boundKindName(of_largest), "max");
  EXPECT_EQ(absoluteBound(of_largest), 0.5);
}

TEST(CandidateTypes, TheIncomingTypeComesFirstAndWhatIsGivenHolds) {
  const StageDescriptor& quantizer = *findStage("Quantizer");
  const std::vector<std::optional<DataType>> open(2);
  EXPECT_EQ(candidateTypes(quantizer, open, DataType::FLOAT64).front(),
            (Types{DataType::FLOAT64, DataType::UINT32}));
  const std::vector<std::optional<DataType>> narrow = {std::nullopt, DataType::UINT16};
  for (const Types& types : candidateTypes(quantizer, narrow, DataType::FLOAT32)) {
    EXPECT_EQ(types[1], DataType::UINT16);
  }
  EXPECT_EQ(candidateTypes(*findStage("Bitshuffle"), {}, DataType::UINT32), std::vector<Types>{{}});
}

TEST(RecordedParams, OnlyWhatADecoderNeedsIsInAnArchive) {
  const auto recorded = [](std::string_view stage) {
    std::vector<std::string_view> keys;
    for (const Param& param : findStage(stage)->params().rows()) {
      if (isRecorded(*findStage(stage), param.key)) {
        keys.push_back(param.key);
      }
    }
    return keys;
  };
  using Keys = std::vector<std::string_view>;
  EXPECT_EQ(recorded("Huffman"), Keys{"bklen"});
  EXPECT_EQ(recorded("RZE"), (Keys{"chunk_size", "levels"}));
  EXPECT_EQ(recorded("Bitpack"), Keys{"nbits"});
  const Keys quantizer = recorded("Quantizer");
  EXPECT_EQ(std::count(quantizer.begin(), quantizer.end(), "linear_policy"), 0);
  EXPECT_EQ(std::count(quantizer.begin(), quantizer.end(), "outlier_capacity"), 0);
  EXPECT_EQ(std::count(quantizer.begin(), quantizer.end(), "quant_radius"), 1);
  EXPECT_FALSE(isRecorded(*findStage("RZE"), "no such key"));
}

TEST(BoundCheck, TheBoundItselfIsMetAndTheNextNumberIsNot) {
  const std::vector<double> original = {1.0, 2.0};
  const auto check = [&](double decoded, const BoundRule& rule) {
    const std::vector<double> back = {decoded, 2.0};
    const auto bytes = [](const std::vector<double>& values) {
      return ByteView(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * 8);
    };
    std::size_t n_told = 0;
    const CheckReport report = checkValues(DataType::FLOAT64, bytes(original), bytes(back), rule,
                                           [&](std::size_t n) { n_told += n; });
    EXPECT_EQ(n_told, original.size() * sizeof(double));
    return report.n_violations;
  };
  for (const auto kind : {BoundRule::Kind::kAbsolute, BoundRule::Kind::kPointwise}) {
    EXPECT_EQ(check(1.25, {kind, 0.25}), 0U);
    EXPECT_EQ(check(std::nextafter(1.25, 2.0), {kind, 0.25}), 1U);
  }
  EXPECT_EQ(check(std::nan(""), {BoundRule::Kind::kAbsolute, 1e300}), 1U);
}

}  // namespace
}  // namespace fz::test
