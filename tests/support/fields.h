#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fz/data_type.h"

namespace fz::test {

/// An array with its shape.
struct Field {
  std::string name;
  DataType type;
  std::array<std::size_t, 3> dims;
  std::vector<std::uint8_t> bytes;

  std::size_t valueCount() const { return bytes.size() / getDataTypeSize(type); }
};

/// A smooth field with a little noise, the same in every run.
Field smoothField(DataType type, std::array<std::size_t, 3> dims);

/// Real fields next to the project; empty where the folder is absent.
std::vector<Field> realFields();

/// Whether every value is finite.
bool isFiniteField(const Field& field);

/// max - min over the finite values.
double valueRange(const Field& field);

/// Values whose error exceeds the bound (exactly), or whose NaN or infinity is not bit-equal.
/// Relative: the bound of each value is bound * |x|.
std::size_t countViolations(const Field& original,
                            const std::uint8_t* decoded,
                            double bound,
                            bool relative = false);

std::vector<std::uint8_t> readBytes(const std::string& path);

}  // namespace fz::test
