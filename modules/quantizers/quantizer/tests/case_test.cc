// The stage's record for the conformance suites.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

#include "quantizers/quantizer/quantizer.h"
#include "shared/fp.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using quantizer::QuantizerBase;

// 113 bits: differences of two doubles of similar size and products of two doubles are exact.
using Wide = __float128;

Wide wideAbs(Wide v) {
  return v < 0 ? -v : v;
}

double scannedRange(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double v : values) {
    if (std::isfinite(v)) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  return low < high ? std::min(high - low, std::numeric_limits<double>::max()) : 0.0;
}

double expectedBound(const QuantizerBase& q, const std::vector<double>& values) {
  double bound = q.getErrorBound();
  if (q.getErrorBoundMode() == ErrorBoundMode::NOA) {
    const double range = scannedRange(values);
    bound = range > 0.0 ? bound * range : bound;
  }
  return std::min(bound, q.elementTypes()[0] == DataType::FLOAT32 ? 0x1p125 : 0x1p1021);
}

bool holds(const QuantizerBase& q, double bound, double x, double y) {
  const Wide allowed = q.getErrorBoundMode() == ErrorBoundMode::REL
                           ? Wide(q.getErrorBound()) * wideAbs(Wide(x))
                           : Wide(bound);
  return std::isfinite(x) && std::isfinite(y) && wideAbs(Wide(x) - Wide(y)) <= allowed;
}

template <class T>
void verifyValues(const QuantizerBase& q, ByteView original, ByteView decoded) {
  const std::vector<T> x = fromBytes<T>(original);
  const std::vector<T> y = fromBytes<T>(decoded);
  ASSERT_EQ(x.size(), y.size());
  const double bound = expectedBound(q, {x.begin(), x.end()});
  ASSERT_EQ(q.getAbsErrorBound(), q.getErrorBoundMode() == ErrorBoundMode::REL ? 0.0 : bound);
  const bool promises = !q.getLinearMode() || q.getLinearPolicy() != LinearPolicy::Wrap;
  ASSERT_EQ(q.boundInfo().has_value(), promises);
  ASSERT_EQ(q.boundInfo().value_or(BoundInfo{}).requested, promises ? q.getErrorBound() : 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (fp::bits(x[i]) != fp::bits(y[i])) {
      ASSERT_TRUE(holds(q, bound, x[i], y[i])) << i << ": " << x[i] << " became " << y[i];
    }
  }
}

void verify(const Stage& encoder, ByteView original, ByteView decoded) {
  const auto& q = static_cast<const QuantizerBase&>(encoder);
  if (q.elementTypes()[0] == DataType::FLOAT32) {
    verifyValues<float>(q, original, decoded);
  } else {
    verifyValues<double>(q, original, decoded);
  }
}

template <class F>
InputCase family(const std::string& label, bool for_linear, F make_value) {
  const auto make = [make_value](DataType type, std::size_t n, std::mt19937_64& rng) {
    std::vector<float> floats;
    std::vector<double> doubles;
    for (std::size_t i = 0; i < n; ++i) {
      const double v = make_value(i, rng, type == DataType::FLOAT32);
      floats.push_back(static_cast<float>(v));
      doubles.push_back(v);
    }
    return type == DataType::FLOAT32 ? toBytes(floats) : toBytes(doubles);
  };
  return {label, make, [for_linear](const StageConfig& config, const std::vector<DataType>&) {
            return for_linear || config.label.rfind("linear", 0) != 0;
          }};
}

// No libm in the generators: golden files hold their bytes.
double smoothValue(std::size_t i) {
  const double t = static_cast<double>(i % 1000) / 1000.0;
  return 40.0 * t * (1.0 - t) * (t - 0.3) * 7.0 + 0.125;
}

double uniform(std::mt19937_64& rng) {
  return static_cast<double>(rng() >> 11) * 0x1p-53;
}

double specialValue(std::mt19937_64& rng, bool is_float) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double denormal = is_float ? 0x1.8p-140 : 0x1.8p-1060;
  const double values[] = {std::numeric_limits<double>::quiet_NaN(),
                           kInfinity,
                           -kInfinity,
                           -0.0,
                           0.0,
                           denormal,
                           -denormal,
                           9.96920996838687e+36,
                           -9999.0,
                           1e30,
                           -3.4028234663852886e38,
                           1e-30};
  return values[rng() % std::size(values)];
}

const std::vector<InputCase>& inputs() {
  static const std::vector<InputCase> kInputs = {
      family("smooth with specials", false,
             [](std::size_t i, std::mt19937_64& rng, bool is_float) {
               return rng() % 6 == 0 ? specialValue(rng, is_float) : smoothValue(i);
             }),
      family("smooth", true, [](std::size_t i, std::mt19937_64&, bool) { return smoothValue(i); }),
      family("noise at many scales", false,
             [](std::size_t, std::mt19937_64& rng, bool) {
               const int exponent = static_cast<int>(rng() % 120) - 60;
               return (uniform(rng) - 0.5) * std::ldexp(1.0, exponent);
             }),
      family("edges of bins", true,
             [](std::size_t, std::mt19937_64& rng, bool is_float) {
               const double bounds[] = {1e-2, 1e-3, 0x1p-7, 1e-4};
               const double step = 2.0 * bounds[rng() % 4];
               const double edge = (static_cast<double>(rng() % 2001) - 1000.0 + 0.5) * step;
               const auto ulps = static_cast<std::int64_t>(rng() % 3) - 1;
               if (is_float) {
                 const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(edge));
                 return static_cast<double>(
                     std::bit_cast<float>(bits + static_cast<std::uint32_t>(ulps)));
               }
               return std::bit_cast<double>(std::bit_cast<std::uint64_t>(edge) +
                                            static_cast<std::uint64_t>(ulps));
             }),
      family("constant", true, [](std::size_t, std::mt19937_64&, bool) { return 3.7; }),
  };
  return kInputs;
}

InputCase randomBits() {
  InputCase bits = fullNoise();
  bits.label = "random bits";
  bits.applies = [](const StageConfig& config, const std::vector<DataType>&) {
    return config.label.rfind("linear", 0) != 0;
  };
  return bits;
}

bool unsignedCodes(const std::vector<DataType>& types) {
  return types[1] == DataType::UINT16 || types[1] == DataType::UINT32;
}
bool wideCodes(const std::vector<DataType>& types) {
  return types[1] == DataType::UINT32;
}

std::vector<StageConfig> configs() {
  const std::string abs = "ABS";
  const std::string noa = "NOA";
  const std::string rel = "REL";
  const auto mode = [](const std::string& m) {
    return std::pair<std::string, ParamValue>{"error_bound_mode", m};
  };
  const auto eb = [](double v) { return std::pair<std::string, ParamValue>{"error_bound", v}; };
  const auto on = [](const char* key) { return std::pair<std::string, ParamValue>{key, true}; };
  const auto policy = [](const char* name) {
    return std::pair<std::string, ParamValue>{"linear_policy", std::string(name)};
  };
  using Row = std::pair<std::string, ParamValue>;
  const Row full_radius{"quant_radius", std::int64_t{0x7fffffff}};
  return {
      {.label = "abs", .params = {eb(1e-3)}},
      {.label = "abs zigzag", .params = {eb(1e-2), on("zigzag_codes")}},
      {.label = "abs tight", .params = {eb(1e-7), full_radius}, .applies = wideCodes},
      {.label = "abs radius 1",
       .params = {eb(1e-2), {"quant_radius", std::int64_t{1}}},
       .applies = unsignedCodes},
      {.label = "abs no reserve",
       .params = {eb(1e-3), {"outlier_capacity", 0.0}},
       .applies = unsignedCodes},
      {.label = "abs threshold",
       .params = {eb(1e-3), {"outlier_threshold", 0.5}},
       .applies = unsignedCodes},
      {.label = "noa", .params = {eb(1e-3), mode(noa)}},
      {.label = "noa zigzag",
       .params = {eb(1e-5), mode(noa), on("zigzag_codes")},
       .applies = unsignedCodes},
      {.label = "rel", .params = {eb(1e-2), mode(rel)}},
      {.label = "rel tight", .params = {eb(1e-6), mode(rel), full_radius}, .applies = wideCodes},
      {.label = "rel wide", .params = {eb(3.0), mode(rel)}, .applies = unsignedCodes},
      {.label = "inplace",
       .params = {eb(1e-3), on("zigzag_codes"), on("inplace_outliers")},
       .applies =
           [](const std::vector<DataType>& types) {
             return types[0] == DataType::FLOAT32 && getDataTypeSize(types[1]) == 4;
           }},
      {.label = "linear throw", .params = {eb(0x1p-7), on("linear_mode")}},
      {.label = "linear wrap",
       .params = {eb(0x1p-7), on("linear_mode"), policy("Wrap")},
       .applies = unsignedCodes},
      {.label = "linear guarantee", .params = {eb(1e-2), on("linear_mode"), policy("Guarantee")}},
      {.label = "linear noa guarantee",
       .params = {eb(1e-3), mode(noa), on("linear_mode"), policy("Guarantee")},
       .applies = unsignedCodes},
  };
}

std::vector<InputCase> allInputs() {
  std::vector<InputCase> all = inputs();
  all.push_back(randomBits());
  return all;
}

FZ_STAGE_CASE(Quantizer,
              {.stage = "Quantizer",
               .tile_values = 64,
               .configs = configs(),
               .inputs = allInputs(),
               .verify = verify,
               .extra_sizes = {8191, 8192, 8193},
               .large_values = 20'003});

}  // namespace
}  // namespace fz::test
