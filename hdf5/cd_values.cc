#include "cd_values.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "fz/error.h"
#include "fz/hdf5.h"

namespace fz::hdf5 {

namespace {

struct PresetRow {
  unsigned number;
  const char* name;
};

constexpr PresetRow kPresets[] = {
    {FZ_HDF5_LOSSLESS, "lossless"},
    {FZ_HDF5_CUSZP, "cuszp"},
    {FZ_HDF5_CUSZP2, "cuszp2"},
    {FZ_HDF5_CUSZP3, "cuszp3"},
    {FZ_HDF5_CUSZP3_FIXED, "cuszp3_fixed"},
    {FZ_HDF5_CUSZP3_OUTLIER, "cuszp3_outlier"},
    {FZ_HDF5_FZGPU, "fzgpu"},
    {FZ_HDF5_PFPL, "pfpl"},
    {FZ_HDF5_CUSZ, "cusz"},
    {FZ_HDF5_LORENZO_BITPACK, "lorenzo_bitpack"},
    {FZ_HDF5_QUANTIZER_LORENZO_BITPACK, "quantizer_lorenzo_bitpack"},
    {FZ_HDF5_SPEED, "speed"},
    {FZ_HDF5_BEST, "best"},
    {FZ_HDF5_AUTO, "auto"},
    {FZ_HDF5_BALANCED, "balanced"},
    {FZ_HDF5_FAST, "fast"},
};

constexpr std::uint64_t kChunkBytesMax = 0xffffffffu;  // HDF5 keeps the size in 32 bits

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

std::uint64_t word64(std::span<const unsigned> values, std::size_t at) {
  return static_cast<std::uint64_t>(values[at]) | static_cast<std::uint64_t>(values[at + 1]) << 32;
}

void putWord64(std::vector<unsigned>& values, std::uint64_t word) {
  values.push_back(static_cast<unsigned>(word));
  values.push_back(static_cast<unsigned>(word >> 32));
}

void checkBound(double bound) {
  if (!std::isfinite(bound) || !(bound > 0)) {
    fail("the bound must be a finite number above 0, not {}", bound);
  }
}

void parseChunk(std::span<const unsigned> values, Settings& settings) {
  if (values.size() < FZ_HDF5_WORD_DIMS) {
    return;  // words of the user only, and those that set_local overwrites
  }
  const unsigned rank = values[FZ_HDF5_WORD_RANK];
  if (rank == 0 || rank > FZ_HDF5_MAX_RANK || values.size() < FZ_HDF5_WORD_DIMS + rank) {
    fail("cd_values: {} words cannot describe a chunk of rank {}", values.size(), rank);
  }
  const unsigned type = values[FZ_HDF5_WORD_TYPE];
  if (type > 255 || !isKnown(static_cast<DataType>(type))) {
    fail("cd_values: no type has the number {}", type);
  }
  settings.type = static_cast<DataType>(type);
  if (values[FZ_HDF5_WORD_HAS_FILL] != 0) {
    settings.fill_bits = word64(values, FZ_HDF5_WORD_FILL);
  }
  for (unsigned axis = 0; axis < rank; ++axis) {
    settings.chunk_dims.push_back(values[FZ_HDF5_WORD_DIMS + axis]);
  }
  chunkBytes(settings);
}

}  // namespace

bool Settings::isStrict() const {
  return (flags & FZ_HDF5_STRICT) != 0;
}

Settings parseValues(std::span<const unsigned> values) {
  Settings settings;
  if (values.empty()) {
    return settings;
  }
  if (values[FZ_HDF5_WORD_LAYOUT] != FZ_HDF5_LAYOUT) {
    fail("cd_values: unknown layout {}; this filter knows {}", values[FZ_HDF5_WORD_LAYOUT],
         FZ_HDF5_LAYOUT);
  }
  if (values.size() < FZ_HDF5_USER_WORDS) {
    fail("cd_values: {} words, expected {} (layout, flags, preset, kind of bound, bound in two)",
         values.size(), static_cast<unsigned>(FZ_HDF5_USER_WORDS));
  }
  settings.flags = values[FZ_HDF5_WORD_FLAGS];
  if ((settings.flags & ~static_cast<unsigned>(FZ_HDF5_STRICT)) != 0) {
    fail("cd_values: unknown flags {:#x}", settings.flags);
  }
  settings.preset = values[FZ_HDF5_WORD_PRESET];
  if (presetName(settings.preset) == nullptr) {
    fail("cd_values: no preset has the number {}", settings.preset);
  }
  if (!settings.isLossless()) {
    if (values[FZ_HDF5_WORD_MODE] > FZ_HDF5_RANGE) {
      fail("cd_values: no kind of bound has the number {}", values[FZ_HDF5_WORD_MODE]);
    }
    settings.mode = static_cast<ErrorBoundMode>(values[FZ_HDF5_WORD_MODE]);
    settings.bound = std::bit_cast<double>(word64(values, FZ_HDF5_WORD_BOUND));
    checkBound(settings.bound);
  }
  parseChunk(values, settings);
  return settings;
}

std::vector<unsigned> toValues(const Settings& settings) {
  std::vector<unsigned> values(FZ_HDF5_USER_WORDS);
  fz_hdf5_cd_values(values.data(), settings.preset, static_cast<unsigned>(settings.mode),
                    settings.bound, settings.flags);
  if (!settings.hasChunk()) {
    return values;
  }
  values.push_back(static_cast<unsigned>(settings.type));
  values.push_back(settings.fill_bits ? 1u : 0u);
  putWord64(values, settings.fill_bits.value_or(0));
  values.push_back(static_cast<unsigned>(settings.chunk_dims.size()));
  for (const std::uint64_t extent : settings.chunk_dims) {
    values.push_back(static_cast<unsigned>(extent));
  }
  return values;
}

std::uint64_t chunkBytes(const Settings& settings) {
  std::uint64_t n_bytes = getDataTypeSize(settings.type);
  for (const std::uint64_t extent : settings.chunk_dims) {
    if (extent == 0 || extent > kChunkBytesMax / n_bytes) {
      fail("cd_values: a chunk must have between 1 byte and 4 GiB");
    }
    n_bytes *= extent;
  }
  return n_bytes;
}

std::array<std::size_t, 3> foldedDims(std::span<const std::uint64_t> chunk_dims) {
  std::vector<std::size_t> fastest_first;
  for (auto extent = chunk_dims.rbegin(); extent != chunk_dims.rend(); ++extent) {
    if (*extent != 1) {
      fastest_first.push_back(*extent);
    }
  }
  std::array<std::size_t, 3> dims = {1, 1, 1};
  for (std::size_t axis = 0; axis < fastest_first.size(); ++axis) {
    dims[std::min<std::size_t>(axis, 2)] *= fastest_first[axis];
  }
  return dims;
}

const char* presetName(unsigned number) {
  for (const PresetRow& row : kPresets) {
    if (row.number == number) {
      return row.name;
    }
  }
  return nullptr;
}

std::optional<unsigned> presetNumber(std::string_view name) {
  for (const PresetRow& row : kPresets) {
    if (name == row.name) {
      return row.number;
    }
  }
  return std::nullopt;
}

Settings settingsFromText(std::string_view preset, std::string_view bound, unsigned flags) {
  Settings settings;
  settings.flags = flags;
  const std::optional<unsigned> number = presetNumber(preset);
  if (!number) {
    std::string names;
    for (const PresetRow& row : kPresets) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    }
    fail("no preset '{}'; the presets are {}", preset, names);
  }
  settings.preset = *number;
  if (settings.isLossless()) {
    return settings;
  }
  const std::size_t colon = bound.find(':');
  const std::string_view kind = bound.substr(0, colon);
  if (colon == std::string_view::npos || (kind != "abs" && kind != "rel" && kind != "range")) {
    fail("the bound '{}' must be abs:, rel: or range: and a number, as in abs:1e-3", bound);
  }
  settings.mode = kind == "abs"   ? ErrorBoundMode::ABS
                  : kind == "rel" ? ErrorBoundMode::REL
                                  : ErrorBoundMode::NOA;
  const std::string_view text = bound.substr(colon + 1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), settings.bound);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("'{}' in the bound '{}' is not a number", text, bound);
  }
  checkBound(settings.bound);
  return settings;
}

}  // namespace fz::hdf5
