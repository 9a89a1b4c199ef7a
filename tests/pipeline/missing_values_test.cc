// Missing values: NaN, infinities and declared fill values, through every preset.
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "api/host_run.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

constexpr double kFill = -9999.0;
constexpr std::array<std::size_t, 3> kDims = {70, 40, 12};
constexpr std::size_t kValues = 70 * 40 * 12;

using IsMissing = std::function<bool(std::size_t i, std::mt19937& rng)>;

struct MaskKind {
  const char* name;
  IsMissing is_missing;
};

const std::vector<MaskKind>& maskKinds() {
  static const std::vector<MaskKind> kKinds = {
      {"coast",
       [](std::size_t i, std::mt19937&) {
         const double x = static_cast<double>(i % 70);
         const std::size_t row = i / 70 % 40;
         const auto y = static_cast<double>(row);
         const std::size_t z = i / 2800;
         return std::sin(0.13 * x + 0.02 * static_cast<double>(z)) + std::cos(0.2 * y) > 0.4;
       }},
      {"scattered", [](std::size_t, std::mt19937& rng) { return rng() % 100 == 0; }},
      {"checkerboard", [](std::size_t i, std::mt19937&) { return (i + i / 70) % 2 == 0; }},
      {"blocks", [](std::size_t i, std::mt19937&) { return i / 500 % 2 == 0; }},
      {"most", [](std::size_t, std::mt19937& rng) { return rng() % 10 != 0; }},
      {"all but one", [](std::size_t i, std::mt19937&) { return i != 20'000; }},
      {"all", [](std::size_t, std::mt19937&) { return true; }},
      {"one", [](std::size_t i, std::mt19937&) { return i == 30'001; }},
  };
  return kKinds;
}

template <class T>
auto bitsOf(T x) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(x);
}

template <class T>
std::vector<T> smooth() {
  std::vector<T> values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) {
    const std::size_t row = i / 70;
    values[i] = static_cast<T>(288.0 + 10.0 * std::sin(0.05 * static_cast<double>(i % 70)) +
                               5.0 * std::cos(0.1 * static_cast<double>(row)));
  }
  return values;
}

/// NaN of two payloads, infinities and the fill value in turn, or NaN alone.
template <class T>
std::vector<T> masked(const MaskKind& kind, bool is_mixed) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T other_nan = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(nan) | 0x123));
  const T kinds[] = {nan, other_nan, std::numeric_limits<T>::infinity(),
                     -std::numeric_limits<T>::infinity(), static_cast<T>(kFill)};
  std::vector<T> values = smooth<T>();
  std::mt19937 rng(3);
  for (std::size_t i = 0; i < kValues; ++i) {
    if (kind.is_missing(i, rng)) {
      values[i] = is_mixed ? kinds[i % 5] : nan;
    }
  }
  return values;
}

template <class T>
bool isMissing(T x) {
  return !std::isfinite(x) || x == static_cast<T>(kFill);
}

CompressOptions optionsOf(const Preset& preset, ErrorBoundMode mode, double bound) {
  CompressOptions options;
  options.preset = preset.name;
  options.backend = Backend::CPU;
  options.dims = kDims;
  options.mode = mode;
  options.error_bound = bound;
  options.fill = {kFill};
  return options;
}

template <class T>
void expectKept(const std::vector<T>& values, const Frame& frame, double bound) {
  const Array decoded = decompress(frame, {.backend = Backend::CPU});
  const std::span<const T> back = decoded.as<T>();
  ASSERT_EQ(back.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (isMissing(values[i])) {
      ASSERT_EQ(bitsOf(values[i]), bitsOf(back[i])) << i;
    } else {
      ASSERT_LE(std::fabs(static_cast<long double>(values[i]) - static_cast<long double>(back[i])),
                static_cast<long double>(bound))
          << i;
    }
  }
}

template <class T>
class MissingValues : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(MissingValues, FloatTypes);

/// Looking for a plan takes most of the time of a small field; one kind of mask is enough for that.
void searchOnlyIn(const MaskKind& kind, const Preset& preset, CompressOptions& options) {
  const std::string_view name = preset.name;
  if ((name == "best" || name == "auto") && std::string_view(kind.name) != maskKinds()[0].name) {
    options.params.emplace_back("plan", "iso");
  }
}

TYPED_TEST(MissingValues, SurviveEveryPresetBitForBitAndNeverTouchTheBound) {
  using T = TypeParam;
  for (const Preset& preset : allPresets()) {
    for (const MaskKind& kind : maskKinds()) {
      for (const bool is_mixed : {false, true}) {
        SCOPED_TRACE(std::string(preset.name) + " " + kind.name + (is_mixed ? " mixed" : ""));
        const std::vector<T> values = masked<T>(kind, is_mixed);
        CompressOptions options = optionsOf(preset, ErrorBoundMode::ABS, 0.01);
        searchOnlyIn(kind, preset, options);
        expectKept(values, compress(std::span<const T>(values), options), 0.01);
        options.mode = ErrorBoundMode::NOA;
        options.error_bound = 1e-3;
        const Frame frame = compress(std::span<const T>(values), options);
        expectKept(values, frame, inspect(frame).bound->absolute);
        if (this->HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TYPED_TEST(MissingValues, HaveNoPartInTheRange) {
  using T = TypeParam;
  const std::vector<T> values = masked<T>(maskKinds()[0], true);
  double low = 1e300;
  double high = -1e300;
  for (const T x : values) {
    if (!isMissing(x)) {
      low = std::min(low, static_cast<double>(x));
      high = std::max(high, static_cast<double>(x));
    }
  }
  for (const Preset& preset : allPresets()) {
    const Frame frame =
        compress(std::span<const T>(values), optionsOf(preset, ErrorBoundMode::NOA, 1e-3));
    EXPECT_NEAR(inspect(frame).bound->absolute, 1e-3 * (high - low), 1e-8) << preset.name;
  }
}

TYPED_TEST(MissingValues, AreCountedInTheFrame) {
  using T = TypeParam;
  const std::vector<T> values = masked<T>(maskKinds()[0], true);
  const auto n_missing = std::count_if(values.begin(), values.end(), &isMissing<T>);
  const auto n_filled = std::count(values.begin(), values.end(), static_cast<T>(kFill));
  const FrameInfo info = inspect(compress(
      std::span<const T>(values), optionsOf(*findPreset("pfpl"), ErrorBoundMode::ABS, 0.01)));
  ASSERT_TRUE(info.missing.has_value());
  EXPECT_EQ(info.missing->n_missing, static_cast<std::uint64_t>(n_missing));
  EXPECT_EQ(info.missing->n_filled, static_cast<std::uint64_t>(n_filled));
  EXPECT_EQ(info.missing->fill, std::vector<double>{kFill});
}

TYPED_TEST(MissingValues, OfAFieldWithoutAnyChangeNoByte) {
  using T = TypeParam;
  const std::vector<T> values = smooth<T>();
  for (const Preset& preset : allPresets()) {
    const CompressOptions options = optionsOf(preset, ErrorBoundMode::NOA, 1e-3);
    Pipeline pipeline;
    configure(pipeline, kDataTypeOf<T>, options);
    const Frame frame = compress(std::span<const T>(values), options);
    const FrameBytes plain = frameOf(pipeline, values);
    EXPECT_TRUE(std::equal(plain.begin(), plain.end(), frame.bytes().begin(), frame.bytes().end()))
        << preset.name;
    EXPECT_FALSE(inspect(frame).missing.has_value());
  }
}

TYPED_TEST(MissingValues, CostLittleBesideTheFieldWithItsGapsFilled) {
  using T = TypeParam;
  const std::vector<T> values = masked<T>(maskKinds()[0], false);
  for (const Preset& preset : allPresets()) {
    const CompressOptions options = optionsOf(preset, ErrorBoundMode::ABS, 0.01);
    const std::vector<T> filled = smooth<T>();
    const std::size_t n_masked = compress(std::span<const T>(values), options).size();
    const std::size_t n_filled = compress(std::span<const T>(filled), options).size();
    // Two more records in the header, the mask, and where small tiles meet the coast of a field
    // that is all smooth up to half of the codes.
    EXPECT_LE(n_masked, n_filled + n_filled / 2 + 2 * kRecordBytes + 2000) << preset.name;
  }
}

TYPED_TEST(MissingValues, GiveTheSameBytesForAnyThreadsAndWithoutFusion) {
  using T = TypeParam;
  for (const Preset& preset : allPresets()) {
    for (const MaskKind& kind : maskKinds()) {
      const std::vector<T> values = masked<T>(kind, true);
      const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()),
                           values.size() * sizeof(T));
      CompressOptions options = optionsOf(preset, ErrorBoundMode::NOA, 1e-4);
      searchOnlyIn(kind, preset, options);
      options.threads = 1;
      const Frame one = compress(kDataTypeOf<T>, bytes, options);
      options.threads = 4;
      for (const Fusion fusion : {Fusion::Auto, Fusion::Off}) {
        HostCompression compression(kDataTypeOf<T>, bytes, options, fusion);
        const Frame other = compression.run();
        ASSERT_TRUE(std::equal(one.bytes().begin(), one.bytes().end(), other.bytes().begin(),
                               other.bytes().end()))
            << preset.name << " " << kind.name;
      }
    }
  }
}

TEST(MissingValues, FuseWithALinearQuantiserBehindTheMask) {
  const std::vector<float> values = masked<float>(maskKinds()[0], false);
  const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * 4);
  HostCompression compression(DataType::FLOAT32, bytes,
                              optionsOf(*findPreset("cuszp2"), ErrorBoundMode::NOA, 1e-3));
  ASSERT_TRUE(compression.isMasked());
  ASSERT_EQ(compression.pipeline().getFusedGroups().size(), 1u);
  EXPECT_EQ(compression.pipeline().getFusedGroups().front().stages.size(), 4u)
      << compression.pipeline().explain();
}

/// Every valid value above 290 is an outlier, far more than memory is reserved for at first.
TYPED_TEST(MissingValues, FuseWithListsOfOutliersBehindTheMask) {
  using T = TypeParam;
  for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
    const std::vector<T> values = masked<T>(maskKinds()[0], false);
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()),
                         values.size() * sizeof(T));
    CompressOptions options = optionsOf(*findPreset("pfpl"), mode, 1e-3);
    options.params = {{"quantizer.outlier_threshold", "290"}};
    options.threads = 1;
    HostCompression compression(kDataTypeOf<T>, bytes, options);
    const Frame one = compression.run();
    if constexpr (sizeof(T) == 4) {
      ASSERT_EQ(compression.pipeline().getFusedGroups().size(), 1u);
      EXPECT_EQ(compression.pipeline().getFusedGroups().front().stages.size(), 5u)
          << compression.pipeline().explain();
    }
    expectKept(values, one, 1e-3 * (mode == ErrorBoundMode::NOA ? 30.0 : 1.0));
    for (const std::size_t n_threads : {2, 7}) {
      options.threads = n_threads;
      for (const Fusion fusion : {Fusion::Auto, Fusion::Off}) {
        const Frame other = HostCompression(kDataTypeOf<T>, bytes, options, fusion).run();
        ASSERT_TRUE(std::equal(one.bytes().begin(), one.bytes().end(), other.bytes().begin(),
                               other.bytes().end()))
            << n_threads;
      }
      const Array back = decompress(one, {.backend = Backend::CPU, .threads = n_threads});
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] < T{290})) {
          ASSERT_EQ(bitsOf(back.as<T>()[i]), bitsOf(values[i])) << i;
        }
      }
    }
  }
}

/// One missing value hides from any sample, in a field that lies across tiles, runs and vectors.
TYPED_TEST(MissingValues, AreFoundAtAnyPlaceWhereAFillValueIsDeclared) {
  using T = TypeParam;
  constexpr std::array<std::size_t, 3> kOdd = {317, 131, 2};
  constexpr std::size_t kOddValues = 317 * 131 * 2;
  std::vector<T> values(kOddValues);
  for (std::size_t i = 0; i < kOddValues; ++i) {
    values[i] = static_cast<T>(280.0 + 5.0 * std::sin(0.01 * static_cast<double>(i)));
  }
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const Preset& preset : allPresets()) {
    CompressOptions options = optionsOf(preset, ErrorBoundMode::ABS, 0.01);
    options.dims = kOdd;
    searchOnlyIn(maskKinds()[1], preset, options);
    for (const std::vector<double>& fill :
         {std::vector<double>{kFill}, {0.0}, {1e20, kFill, kFill}}) {
      options.fill = fill;
      EXPECT_FALSE(inspect(compress(std::span<const T>(values), options)).missing.has_value());
      for (const std::size_t at : {std::size_t{40'003}, kOddValues - 1}) {
        for (const T x : {static_cast<T>(fill.back()), nan, static_cast<T>(-0.0)}) {
          std::vector<T> hidden = values;
          hidden[at] = x;
          const bool is_one = std::isnan(x) || x == static_cast<T>(fill.back());
          const FrameInfo info = inspect(compress(std::span<const T>(hidden), options));
          ASSERT_EQ(info.missing.has_value() && info.missing->n_missing == 1, is_one)
              << preset.name << ' ' << at << ' ' << x;
        }
      }
    }
  }
}

TEST(MissingValues, ThatNobodyDeclaredAreFoundWhereAStageCannotStoreThem) {
  std::vector<float> values(1'000'000, 1.0f);
  values[777'777] = std::numeric_limits<float>::quiet_NaN();  // hides from any sample
  CompressOptions options;
  options.preset = "cuszp2";
  options.backend = Backend::CPU;
  options.mode = ErrorBoundMode::ABS;
  options.error_bound = 0.01;
  const Frame frame = compress(std::span<const float>(values), options);
  ASSERT_TRUE(inspect(frame).missing.has_value());
  EXPECT_EQ(inspect(frame).missing->n_missing, 1u);
  expectKept(values, frame, 0.01);
}

}  // namespace
}  // namespace fz::test
