#include "support/fields.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>

#include "pipeline/stat.h"

namespace fz::test {

namespace {

template <class T, class F>
void eachValue(const Field& field, F f) {
  const T* values = reinterpret_cast<const T*>(field.bytes.data());
  for (std::size_t i = 0; i < field.bytes.size() / sizeof(T); ++i) {
    f(i, values[i]);
  }
}

template <class F>
void eachAsDouble(const Field& field, F f) {
  const auto widen = [&](std::size_t i, auto v) { f(i, static_cast<double>(v)); };
  if (field.type == DataType::FLOAT32) {
    eachValue<float>(field, widen);
  } else {
    eachValue<double>(field, widen);
  }
}

template <class T>
std::size_t countRelative(const Field& original, const std::uint8_t* decoded, double bound) {
  std::size_t n_violations = 0;
  eachValue<T>(original, [&](std::size_t i, T x) {
    T y;
    std::memcpy(&y, decoded + i * sizeof(T), sizeof(T));
    if (std::memcmp(original.bytes.data() + i * sizeof(T), decoded + i * sizeof(T), sizeof(T)) ==
        0) {
      return;
    }
    const long double error = std::fabs(static_cast<long double>(x) - static_cast<long double>(y));
    const long double allowed =
        static_cast<long double>(bound) * std::fabs(static_cast<long double>(x));
    n_violations += error <= allowed ? 0 : 1;
  });
  return n_violations;
}

}  // namespace

Field smoothField(DataType type, std::array<std::size_t, 3> dims) {
  Field field{"smooth", type, dims, {}};
  const std::size_t n = dims[0] * dims[1] * dims[2];
  field.bytes.resize(n * getDataTypeSize(type));
  std::mt19937_64 rng(42);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i % dims[0]);
    const double y = static_cast<double>(i / dims[0] % dims[1]);
    const std::size_t plane = i / (dims[0] * dims[1]);
    const double z = static_cast<double>(plane);
    const double noise = static_cast<double>(rng() % 1000) * 1e-5;
    const double v =
        50 * std::sin(0.01 * x) + 20 * std::cos(0.03 * y) + 5 * std::sin(0.1 * z) + noise;
    if (type == DataType::FLOAT32) {
      reinterpret_cast<float*>(field.bytes.data())[i] = static_cast<float>(v);
    } else {
      reinterpret_cast<double*>(field.bytes.data())[i] = v;
    }
  }
  return field;
}

std::vector<std::uint8_t> readBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<Field> realFields() {
  std::vector<Field> fields;
  std::ifstream manifest(std::string(FZ_SHARED_DATA) + "/manifest.tsv");
  std::string line;
  std::getline(manifest, line);
  while (std::getline(manifest, line)) {
    std::istringstream columns(line);
    std::string file;
    std::string type;
    std::string dims;
    std::getline(columns, file, '\t');
    std::getline(columns, type, '\t');
    std::getline(columns, dims, '\t');
    Field field{file, dataTypeFromString(type).value(), {1, 1, 1}, {}};
    std::istringstream extents(dims);
    std::string extent;
    for (std::size_t i = 0; i < 3 && std::getline(extents, extent, ','); ++i) {
      field.dims[i] = std::stoul(extent);
    }
    field.bytes = readBytes(std::string(FZ_SHARED_DATA) + "/" + file);
    EXPECT_EQ(field.valueCount(), field.dims[0] * field.dims[1] * field.dims[2]) << file;
    fields.push_back(std::move(field));
  }
  return fields;
}

bool isFiniteField(const Field& field) {
  bool finite = true;
  eachAsDouble(field, [&](std::size_t, double v) { finite = finite && std::isfinite(v); });
  return finite;
}

double valueRange(const Field& field) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -smallest;
  eachAsDouble(field, [&](std::size_t, double v) {
    if (std::isfinite(v)) {
      smallest = std::min(smallest, v);
      largest = std::max(largest, v);
    }
  });
  return largest >= smallest ? largest - smallest : 0.0;
}

std::size_t countViolations(const Field& original,
                            const std::uint8_t* decoded,
                            double bound,
                            bool relative) {
  if (original.type == DataType::FLOAT32) {
    return relative ? countRelative<float>(original, decoded, bound)
                    : countBoundViolations(reinterpret_cast<const float*>(original.bytes.data()),
                                           reinterpret_cast<const float*>(decoded),
                                           original.valueCount(), bound);
  }
  return relative ? countRelative<double>(original, decoded, bound)
                  : countBoundViolations(reinterpret_cast<const double*>(original.bytes.data()),
                                         reinterpret_cast<const double*>(decoded),
                                         original.valueCount(), bound);
}

}  // namespace fz::test
