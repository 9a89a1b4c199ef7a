#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fzm_format.h"
#include "support/fields.h"

// The presets that users are told to take, on data that no predictor likes and on shapes that leave
// nothing to predict from: the bound holds exactly, and no frame is larger than its data and the
// shortest header. tests/trust/sizes.cc has every preset on rows of values. `fast` alone has no way
// to keep values exactly: it may refuse a bound that its codes of 32 bits cannot hold, and no
// other.

namespace fz::test {
namespace {

using Dims = std::array<std::size_t, 3>;

const char* const kPresets[] = {"best", "auto", "balanced", "fast"};

struct Bound {
  ErrorBoundMode mode;
  double size;
};

/// A field whose value at each place comes from `make`.
template <class T, class F>
Field madeField(const std::string& name, const Dims& dims, F make) {
  Field field{name, std::is_same_v<T, float> ? DataType::FLOAT32 : DataType::FLOAT64, dims, {}};
  field.bytes.resize(dims[0] * dims[1] * dims[2] * sizeof(T));
  for (std::size_t i = 0; i < field.valueCount(); ++i) {
    const T value = make(i);
    std::memcpy(field.bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return field;
}

/// Noise, of equal spread and of all sizes, constants, and values that are all outliers.
template <class T>
std::vector<Field> hardFields(const Dims& dims) {
  std::mt19937 rng(20261118);
  const auto unit = [&rng] { return static_cast<double>(rng()) * 0x1p-32; };
  std::vector<Field> fields;
  fields.push_back(
      madeField<T>("noise", dims, [&](std::size_t) { return static_cast<T>(unit()); }));
  fields.push_back(madeField<T>("noise of all sizes", dims, [&](std::size_t) {
    const double sign = unit() < 0.5 ? -1.0 : 1.0;
    return static_cast<T>(sign * std::ldexp(1.0 + unit(), static_cast<int>(60 * unit()) - 30));
  }));
  fields.push_back(madeField<T>("constant", dims, [](std::size_t) { return T(3.1415926); }));
  fields.push_back(madeField<T>("zero", dims, [](std::size_t) { return T(0); }));
  fields.push_back(madeField<T>("all outliers", dims,
                                [](std::size_t i) { return i % 2 == 0 ? T(1e30) : T(-1e30); }));
  return fields;
}

template <class T>
double largestSize(const Field& field) {
  double largest = 0;
  for (std::size_t i = 0; i < field.valueCount(); ++i) {
    T value = 0;
    std::memcpy(&value, field.bytes.data() + i * sizeof(T), sizeof(T));
    largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  return largest;
}

template <class T>
void expectHolds(const Field& field, const std::string& preset, const Bound& bound) {
  SCOPED_TRACE(preset + ", " + field.name + ", " + std::to_string(field.dims[0]) + "x" +
               std::to_string(field.dims[1]) + "x" + std::to_string(field.dims[2]) + ", " +
               std::to_string(getDataTypeSize(field.type)) + " bytes a value, bound " +
               std::to_string(bound.size));
  CompressOptions options;
  options.preset = preset;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.dims = field.dims;
  options.mode = bound.mode;
  options.error_bound = bound.size;
  options.suspect_fill = false;
  const double range = valueRange(field);
  const bool is_share = bound.mode == ErrorBoundMode::NOA && range > 0;
  const double absolute = is_share ? bound.size * range : bound.size;
  Frame frame;
  try {
    frame = compress(field.type, field.bytes, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBoundViolation) << error.what();
    EXPECT_TRUE(preset == "fast" && largestSize<T>(field) > 0x1p24 * absolute) << error.what();
    return;
  }
  EXPECT_LE(frame.size(), field.bytes.size() + kStoredFrameBytes);
  const FrameInfo info = inspect(frame);
  ASSERT_TRUE(info.bound.has_value());
  EXPECT_LE(info.bound->absolute, absolute * (1 + 1e-15));
  const Array array = decompress(frame);
  ASSERT_EQ(array.bytes().size(), field.bytes.size());
  EXPECT_EQ(countViolations(field, array.bytes().data(), info.bound->absolute), 0U);
}

template <class T>
void expectHoldsFor(const Dims& dims, std::initializer_list<Bound> bounds) {
  for (const Field& field : hardFields<T>(dims)) {
    for (const char* preset : kPresets) {
      for (const Bound& bound : bounds) {
        expectHolds<T>(field, preset, bound);
      }
    }
  }
}

constexpr Bound kLoose{ErrorBoundMode::NOA, 1e-2};
constexpr Bound kTight{ErrorBoundMode::NOA, 1e-5};
constexpr Bound kTiny{ErrorBoundMode::ABS, 1e-30};  // below what most values can be rounded by

TEST(WorstCases, HoldForOneTo70Values) {
  static_assert(kStoredFrameBytes == 592);
  for (std::size_t n = 1; n <= 70; ++n) {
    expectHoldsFor<float>({n, 1, 1}, {kLoose, kTiny});
    expectHoldsFor<double>({n, 1, 1}, {kLoose, kTiny});
  }
}

TEST(WorstCases, HoldAlongTheSlowestAxisAlone) {
  for (const std::size_t n : {2, 3, 5, 17, 64, 65, 1021}) {
    expectHoldsFor<float>({1, 1, n}, {kLoose, kTiny});
    expectHoldsFor<double>({1, 1, n}, {kLoose, kTiny});
    expectHoldsFor<float>({1, n, 1}, {kLoose});
  }
}

TEST(WorstCases, HoldForPrimeExtents) {
  for (const Dims& dims : {Dims{7919, 1, 1}, Dims{101, 53, 1}, Dims{31, 17, 13}, Dims{2, 3, 997},
                           Dims{3, 499, 2}, Dims{43, 1, 47}}) {
    expectHoldsFor<float>(dims, {kLoose, kTight, kTiny});
    expectHoldsFor<double>(dims, {kLoose, kTight, kTiny});
  }
}

}  // namespace
}  // namespace fz::test
