#include <algorithm>

#include "fused/interp/config.h"
#include "fused/interp/interp_stage.h"
#include "fused/interp/tests/support.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "stage/stage_factory.h"

namespace fz::test {
namespace {

using F32 = InterpStage<float, std::int16_t>;
using F64 = InterpStage<double, std::int16_t>;

InputCase smooth() {
  return floats("smooth", [](std::size_t i, std::mt19937_64& rng) {
    const auto x = static_cast<double>(i);
    return 30.0 * std::sin(0.01 * x) + 1e-3 * static_cast<double>(rng() % 100);
  });
}
InputCase noise() {
  return floats("noise", [](std::size_t, std::mt19937_64& rng) {
    return static_cast<double>(rng() % 2'000'001) * 1e-4 - 100.0;
  });
}
InputCase constantOf() {
  return floats("constant", [](std::size_t, std::mt19937_64&) { return 3.25; });
}
InputCase specials() {
  return floats("specials", [](std::size_t i, std::mt19937_64& rng) {
    using L = std::numeric_limits<double>;
    const double values[] = {L::quiet_NaN(), L::infinity(),          -L::infinity(), -0.0, 1e-42,
                             -9999.0,        static_cast<double>(i), 3e38,           1e30, 1e-30};
    return i % 3 == 0 ? values[rng() % 10] : std::cos(static_cast<double>(i));
  });
}
InputCase offset() {
  return floats("far from zero", [](std::size_t i, std::mt19937_64& rng) {
    return 1e9 + std::sin(0.1 * static_cast<double>(i)) + 1e-3 * static_cast<double>(rng() % 10);
  });
}
InputCase tiny() {
  return floats("tiny", [](std::size_t i, std::mt19937_64&) {
    return 1e-40 * std::sin(0.1 * static_cast<double>(i));
  });
}
InputCase patterns() {
  return {"all bit patterns", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            Bytes bytes(n * getDataTypeSize(type));
            for (auto& b : bytes) {
              b = static_cast<std::uint8_t>(rng());
            }
            return bytes;
          }};
}

void verify(const Stage& encoder, ByteView original, ByteView decoded) {
  const double bound = encoder.boundInfo()->absolute;
  const bool skips = dynamic_cast<const interp::InterpBase&>(encoder).getSkipsMissing();
  if (encoder.elementTypes()[0] == DataType::FLOAT32) {
    expectKept(fromBytes<float>(original), fromBytes<float>(decoded), bound, skips);
  } else {
    expectKept(fromBytes<double>(original), fromBytes<double>(decoded), bound, skips);
  }
}

/// The hostile-input suite tries every bit of every stream: some inputs meet one config only.
InputCase onlyFor(const std::vector<std::string>& labels, InputCase input) {
  input.applies = [labels](const StageConfig& config, const std::vector<DataType>&) {
    return std::find(labels.begin(), labels.end(), config.label) != labels.end();
  };
  return input;
}

const auto kPlane = [](std::size_t n) { return dimsOf(n, 2); };
const auto kVolume = [](std::size_t n) { return dimsOf(n, 3); };
const auto kColumn = [](std::size_t n) { return Dims{n == 0 ? 0u : 1u, 1, n}; };

bool hasShortCodes(const std::vector<DataType>& types) {
  return types[1] == DataType::INT16;
}

std::pair<std::string, ParamValue> plan(const char* text) {
  return {"plan", std::string(text)};
}

FZ_STAGE_CASE(
    Interp,
    {.stage = "Interp",
     .configs = {{"default"},
                 {"plane", {}, kPlane},
                 {"volume", {}, kVolume},
                 {"column", {{"error_bound", 1e-2}}, kColumn, hasShortCodes},
                 {"lorenzo", {plan("lorenzo")}, kVolume},
                 {"subsets", {plan("alpha lorenzo:y xz:nl:5 y:n x z:l xyz:lcn:612b")}, kVolume},
                 {"nested",
                  {plan("lorenzo:x Nz:l(lorenzo:y xy:cc:2) Nx:n(yz:cc:1 y) xy")},
                  kVolume},
                 {"noa", {{"error_bound_mode", std::string("NOA")}}, kPlane},
                 {"tight", {{"error_bound", 1e-9}}, kVolume},
                 {"loose", {{"error_bound", 10.0}}, kPlane, hasShortCodes},
                 {"skip",
                  {{"missing", std::string("skip")}, plan("lorenzo:xyz xyz Nx(lorenzo) xyz")},
                  kVolume}},
     .inputs = {smooth(), onlyFor({"default", "volume", "lorenzo", "tight", "skip"}, specials()),
                onlyFor({"default", "volume", "loose"}, noise()),
                onlyFor({"default", "volume"}, patterns()), onlyFor({"noa"}, constantOf()),
                onlyFor({"noa", "default"}, zeros()), onlyFor({"volume", "noa"}, offset()),
                onlyFor({"noa"}, tiny())},
     .verify = verify,
     .extra_sizes = {67 * 45, 17 * 11 * 13, 31 * 31 * 31},
     .large_values = 270 * 40 * 9});

TEST(Interp, EncodesTheExampleOfItsOwnDocument) {
  F32 stage;
  stage.setErrorBound(0.5);
  stage.setPlan("lorenzo x:l");
  const Encoded e = encodeValues(
      stage, std::vector<float>{0.f, 1.f, 2.f, 10.f, 4.f, std::numeric_limits<float>::infinity()});
  const auto codes = fromBytes<std::int16_t>(e.streams[0]);
  ASSERT_EQ(codes.size(), 128u);
  EXPECT_EQ(std::vector(codes.begin(), codes.begin() + 4), (std::vector<std::int16_t>{0, 2, 2, 0}));
  EXPECT_EQ(std::vector(codes.begin() + 64, codes.begin() + 68),
            (std::vector<std::int16_t>{0, 7, 0, 0}));
  EXPECT_EQ(e.streams[1], (Bytes{5, 0, 0, 0, 0, 0, 0x80, 0x7f}));
}

TEST(Interp, TakesNoAxesOfOneValue) {
  std::vector<float> values(90);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * i % 37);
  }
  F32 flat;
  flat.setDims(9, 10);
  const Encoded e = encodeValues(flat, values);
  for (const Dims& dims : {Dims{1, 9, 10}, Dims{9, 1, 10}}) {
    F32 stage;
    stage.setDims(dims);
    const Encoded other = encodeValues(stage, values);
    EXPECT_EQ(other.streams, e.streams);
    EXPECT_EQ(decode(kInterpId, other), decode(kInterpId, e));
  }
}

TEST(Interp, TheIsotropicPlanGoesAsFarAsTheLatticeHasPoints) {
  const auto planOf = [](const Dims& dims) {
    F32 stage;
    stage.setDims(dims);
    encodeValues(stage, std::vector<float>(dims[0] * dims[1] * dims[2], 1.f));
    return stage.usedPlan();
  };
  EXPECT_EQ(planOf({33, 17, 17}),
            "lorenzo:xyz xyz:ccc:0000 xyz:ccc:0000 xyz:ccc:0000 xyz:ccc:0000");
  EXPECT_EQ(planOf({40, 5, 3}), "lorenzo:x x:c xy:cc:0 xyz:ccc:0000 xyz:ccc:0000");
  EXPECT_EQ(planOf({70, 70, 1}), "lorenzo:xy xy:cc:0 xy:cc:0 xy:cc:0 xy:cc:0 xy:cc:0");
  EXPECT_EQ(planOf({3, 1, 1}), "lorenzo:none x:c x:c");
  EXPECT_EQ(planOf({1, 1, 1}), "lorenzo:none");
}

TEST(Interp, MissingValuesAreListedOrSkipped) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 4 == 0 ? std::nanf("") : std::sin(0.02f * static_cast<float>(i));
  }
  values[77] = std::numeric_limits<float>::infinity();
  for (const char* text : {"iso", "lorenzo", "Nx(lorenzo) x"}) {
    F32 exact;
    exact.setPlan(text);
    const Encoded listed = encodeValues(exact, values);
    EXPECT_EQ(listed.streams[1].size(), 251 * 8u) << text;
    F32 skipping;
    skipping.setPlan(text);
    skipping.setSkipsMissing(true);
    const Encoded skipped = encodeValues(skipping, values);
    EXPECT_EQ(skipped.streams[0], listed.streams[0]) << text;
    EXPECT_EQ(skipped.streams[1], (Bytes{77, 0, 0, 0, 0, 0, 0x80, 0x7f})) << text;
    expectKept(values, decodeValues<float>(skipped), 1e-3, true);
    expectKept(values, decodeValues<float>(listed), 1e-3);
  }
}

TEST(Interp, OutliersLeaveTheirNeighboursAlone) {
  std::vector<float> values(31 * 31 * 31);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        std::sin(0.05f * static_cast<float>(i % 31)) + std::cos(0.0013f * static_cast<float>(i));
  }
  F32 plain;
  plain.setDims(31, 31, 31);
  encodeValues(plain, values);
  std::vector<float> spiked = values;
  for (std::size_t i = 5; i < spiked.size(); i += 997) {
    spiked[i] = 1e30f;
  }
  F32 stage;
  stage.setDims(31, 31, 31);
  const Encoded e = encodeValues(stage, spiked);
  EXPECT_EQ(e.streams[1].size(), 8 * ((spiked.size() - 5 + 996) / 997));
  expectKept(spiked, decodeValues<float>(e), 1e-3);
}

TEST(Interp, WideCodesNeedNoOutliersWhereNarrowOnesDo) {
  std::vector<float> values(5000);
  std::mt19937_64 rng(3);
  for (float& v : values) {
    v = static_cast<float>(rng() % 100'000);
  }
  F32 narrow;
  InterpStage<float, std::int32_t> wide;
  for (const char* text : {"iso", "lorenzo"}) {
    narrow.setPlan(text);
    narrow.setErrorBound(1.0);
    wide.setPlan(text);
    wide.setErrorBound(1.0);
    const Encoded few = encodeValues(narrow, values);
    EXPECT_GT(few.streams[1].size(), 1000u);
    expectKept(values, decodeValues<float>(few), 1.0);
    const Encoded none = encodeValues(wide, values);
    EXPECT_TRUE(none.streams[1].empty());
    expectKept(values, decodeValues<float>(none), 1.0);
  }
}

TEST(Interp, RefusesWhatItCannotDo) {
  F32 stage;
  EXPECT_THROW(stage.setErrorBoundMode(ErrorBoundMode::REL), InvalidArgument);
  EXPECT_THROW(stage.setErrorBound(0.0), InvalidArgument);
  EXPECT_THROW(stage.setErrorBound(std::numeric_limits<double>::infinity()), InvalidArgument);
  EXPECT_THROW(stage.setValueBase(-1.0), InvalidArgument);
  EXPECT_THROW(stage.setPlan("automatic"), InvalidArgument);
  stage.setDims(7, 3);
  EXPECT_THROW(encodeValues(stage, std::vector<float>(20)), Error);
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

TEST(Interp, RefusesAPlanThatDoesNotFitItsConfig) {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += " Nz(xy xy xy xy xy xy xy xy)";
  }
  F32 stage;
  stage.setPlan(text);
  stage.setDims(256, 256, 2);
  EXPECT_NO_THROW(encodeValues(stage, std::vector<float>(256 * 256 * 2)));  // two halvings are left
  stage.setDims(256, 256, 33);
  EXPECT_THROW(encodeValues(stage, std::vector<float>(256 * 256 * 33)), Error);
}

/// What a decoder must refuse, since the checksums could be right.
class LyingInterp : public testing::Test {
 protected:
  LyingInterp() {
    F32 stage;
    stage.setDims(9, 8, 7);
    stage.setPlan("Nz(xy) xyz");
    std::vector<float> values(9 * 8 * 7);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = i % 100 == 1 ? std::nanf("") : static_cast<float>(i % 9);
    }
    good_ = encodeValues(stage, values);
  }
  static void expectCorrupt(const Encoded& e) {
    try {
      decode(kInterpId, e);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    }
  }
  template <class T>
  void expectCorruptAt(std::size_t offset, T value) {
    SCOPED_TRACE(offset);
    Encoded e = good_;
    storeLe(e.config.data() + offset, value);
    expectCorrupt(e);
  }
  Encoded good_;
};

TEST_F(LyingInterp, AboutItsOutliers) {
  ASSERT_EQ(good_.streams[1].size(), 6 * 8u);
  Encoded e = good_;
  storeLe<std::uint32_t>(e.streams[1].data() + 4, 1);  // twice
  expectCorrupt(e);
  storeLe<std::uint32_t>(e.streams[1].data() + 4, 0);  // not in order
  expectCorrupt(e);
  e = good_;
  storeLe<std::uint32_t>(e.streams[1].data() + 20, 9 * 8 * 7);  // behind the end
  expectCorrupt(e);
  e = good_;
  e.streams[1].pop_back();
  expectCorrupt(e);
  e.streams[1].assign(8 * (9 * 8 * 7 + 1), 0);
  expectCorrupt(e);
}

TEST_F(LyingInterp, AboutItsCodes) {
  Encoded e = good_;
  e.streams[0].resize(e.streams[0].size() - 2);
  expectCorrupt(e);
  e.streams[0].resize(e.streams[0].size() + 130);
  expectCorrupt(e);
}

TEST_F(LyingInterp, AboutItsNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  expectCorruptAt<std::uint8_t>(2, 1);  // REL
  expectCorruptAt<std::uint8_t>(3, 9);  // sub-bin bits
  expectCorruptAt<std::uint8_t>(4, 2);  // missing
  expectCorruptAt<std::uint8_t>(7, 1);  // reserved
  for (const double wrong : {nan, infinity, 0.0, -1.0}) {
    expectCorruptAt(8, wrong);   // bound
    expectCorruptAt(24, wrong);  // units per value
  }
  expectCorruptAt(16, nan);  // absolute bound
  expectCorruptAt(24, 5e-324);
  expectCorruptAt(24, 0x1p1023);           // its inverse is not normal
  expectCorruptAt(32, infinity);           // origin
  expectCorruptAt<std::uint32_t>(40, 10);  // dims
  expectCorruptAt<std::uint32_t>(40, 0);
  expectCorruptAt<std::uint32_t>(48, 0xffffffffu);
}

}  // namespace
}  // namespace fz::test
