#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>

#include "fz/data_type.h"
#include "fz/span.h"

namespace fz::report {

/// An array in memory, read value by value. Types other than f32 and f64 are read as bytes.
struct FieldView {
  DataType type = DataType::FLOAT32;
  std::array<std::size_t, 3> dims = {0, 1, 1};  ///< x fastest; their product is count()
  ByteView bytes;

  std::size_t valueBytes() const { return isFloat(type) ? getDataTypeSize(type) : 1; }
  std::size_t count() const { return bytes.size() / valueBytes(); }
  double at(std::size_t i) const {
    if (type == DataType::FLOAT32) {
      return load<float>(i);
    }
    return type == DataType::FLOAT64 ? load<double>(i) : bytes[i];
  }

 private:
  template <class T>
  double load(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  }
};

/// What stands at a position of the original. Pictures, histograms and spectra take values only.
enum class Content : unsigned char { kValue, kNan, kInfinity, kFill };

inline Content contentOf(double value, const std::optional<double>& fill) {
  if (std::isnan(value)) {
    return Content::kNan;
  }
  if (std::isinf(value)) {
    return Content::kInfinity;
  }
  return fill && value == *fill ? Content::kFill : Content::kValue;
}

}  // namespace fz::report
