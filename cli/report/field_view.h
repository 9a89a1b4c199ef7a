#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fz/data_type.h"
#include "fz/span.h"

namespace fz::report {

/// Values of one type as doubles; the memory need not be aligned.
template <class T>
class FieldReader {
 public:
  explicit FieldReader(ByteView bytes) : data_(bytes.data()) {}
  double operator[](std::size_t i) const {
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  }

 private:
  const std::uint8_t* data_;
};

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
    return FieldReader<T>(bytes)[i];
  }
};

/// Calls `use` with readers of both fields, which are of one type: loops inside know it.
template <class F>
void readBoth(const FieldView& first, const FieldView& second, F&& use) {
  if (first.type == DataType::FLOAT32) {
    use(FieldReader<float>(first.bytes), FieldReader<float>(second.bytes));
  } else if (first.type == DataType::FLOAT64) {
    use(FieldReader<double>(first.bytes), FieldReader<double>(second.bytes));
  } else {
    use(FieldReader<std::uint8_t>(first.bytes), FieldReader<std::uint8_t>(second.bytes));
  }
}

/// What stands at a position of the original. Pictures, histograms and spectra take values only.
enum class Content : unsigned char { kValue, kNan, kInfinity, kFill };

inline Content contentOf(double value, const std::vector<double>& fill) {
  if (std::isnan(value)) {
    return Content::kNan;
  }
  if (std::isinf(value)) {
    return Content::kInfinity;
  }
  return std::find(fill.begin(), fill.end(), value) != fill.end() ? Content::kFill
                                                                  : Content::kValue;
}

}  // namespace fz::report
