#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"

/// The parameters of the filter: what stands in a file, and what it means.
namespace fz::hdf5 {

/// cd_values with a meaning. include/fz/hdf5.h has the layout.
struct Settings {
  unsigned flags = 0;
  unsigned preset = 0;
  ErrorBoundMode mode = ErrorBoundMode::ABS;
  double bound = 0.0;

  // Known once the dataset exists.
  DataType type = DataType::UNKNOWN;
  std::optional<std::uint64_t> fill_bits;  ///< a fill value that the user chose
  std::vector<std::uint64_t> chunk_dims;   ///< slowest first

  bool isLossless() const { return preset == 0; }
  bool isStrict() const;
  bool hasChunk() const { return !chunk_dims.empty(); }
};

/// Reads cd_values; none at all means lossless. Untrusted input: throws Error(kInvalidArgument) for
/// unknown layouts, presets, kinds of bound and impossible numbers.
Settings parseValues(std::span<const unsigned> values);
std::vector<unsigned> toValues(const Settings& settings);

/// Bytes of a chunk. Throws Error(kInvalidArgument) from 4 GiB on, which HDF5 does not allow.
std::uint64_t chunkBytes(const Settings& settings);
/// The chunk's shape, x fastest: axes of length 1 left out, the slowest ones folded into z.
std::array<std::size_t, 3> foldedDims(std::span<const std::uint64_t> chunk_dims);

/// Null for numbers that no preset has. 0 is "lossless".
const char* presetName(unsigned number);
std::optional<unsigned> presetNumber(std::string_view name);

/// From a preset's name and "abs:1e-3". Throws Error(kInvalidArgument) with what is allowed.
Settings settingsFromText(std::string_view preset, std::string_view bound, unsigned flags);

}  // namespace fz::hdf5
