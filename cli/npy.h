#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/span.h"

/// NumPy's .npy files: reading of f4 and f8 in either byte order and C or Fortran order, writing of
/// every type, little-endian and in C order.
namespace fz::cli {

struct NpyHeader {
  DataType type = DataType::UNKNOWN;
  std::vector<std::size_t> shape;  ///< as NumPy has it: the last axis is the fastest
  std::size_t n_header_bytes = 0;
  bool is_swapped = false;  ///< big-endian
  bool is_fortran = false;  ///< the first axis is the fastest in the file

  bool isPlain() const { return !is_swapped && !is_fortran; }
};

/// The values of a file that is not plain, little-endian and in C order.
std::vector<std::uint8_t> plainValues(const NpyHeader& header, ByteView values);

bool isNpyName(std::string_view path);
bool hasNpyMagic(ByteView bytes);
/// Throws Failure: kCorrupt for a broken file, kUsage for a valid one that fz does not take.
NpyHeader parseNpyHeader(ByteView bytes);
/// x first: the last axis is x, and axes beyond three are folded into z. Empty arrays: {0, 1, 1}.
std::array<std::size_t, 3> dimsOfShape(const std::vector<std::size_t>& shape);
/// What stands before the values. Throws Failure(kUsage) for a type that NumPy has no name for.
std::string makeNpyHeader(DataType type, const std::vector<std::size_t>& shape);

}  // namespace fz::cli
