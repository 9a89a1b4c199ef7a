#include "chunk_codec.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <string_view>
#include <system_error>
#include <vector>

#include "fz/archive.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fzm_format.h"

namespace fz::hdf5 {

namespace {

// A frame that grows to a chunk needs its output, and between the stages some times as much.
constexpr std::uint64_t kMemoryPerByte = 16;
constexpr std::uint64_t kMemoryBase = std::uint64_t{64} << 20;
constexpr std::uint64_t kChunkBytesMax = 0xffffffffu;

/// Ranks of a parallel program share the cores already, so one thread unless told otherwise.
std::size_t threadsOfFilter() {
  const char* text = std::getenv("FZ_HDF5_THREADS");
  if (text == nullptr) {
    return 1;
  }
  std::size_t n_threads = 0;
  const char* end = text + std::strlen(text);
  const auto [parsed_end, error] = std::from_chars(text, end, n_threads);
  if (error != std::errc() || parsed_end != end) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("FZ_HDF5_THREADS is '{}'; it must be a number of threads, 0 for all", text));
  }
  return n_threads;
}

/// Chunks are in host memory; a GPU is used where the user asks for it. The bytes are the same.
Backend backendOfFilter() {
  const char* text = std::getenv("FZ_HDF5_BACKEND");
  const std::string_view wish = text == nullptr ? "cpu" : text;
  if (wish != "cpu" && wish != "cuda" && wish != "auto") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("FZ_HDF5_BACKEND is '{}'; it must be cpu, cuda or auto", wish));
  }
  return wish == "cuda" ? Backend::CUDA : wish == "auto" ? Backend::Auto : Backend::CPU;
}

CompressOptions optionsFor(const Settings& settings, std::size_t n_values) {
  CompressOptions options;
  options.backend = backendOfFilter();
  options.threads = threadsOfFilter();
  options.dims = settings.hasChunk() ? foldedDims(settings.chunk_dims)
                                     : std::array<std::size_t, 3>{n_values, 1, 1};
  return options;
}

DataType integerOfWidth(std::size_t n_bytes) {
  switch (n_bytes) {
    case 1:
      return DataType::INT8;
    case 2:
      return DataType::INT16;
    case 4:
      return DataType::INT32;
    default:
      return DataType::INT64;
  }
}

/// Differences of the bit patterns, bit planes, zero elimination: keeps every bit of any type. The
/// frame says integers of the same width, because only those have exact differences.
Frame encodeLossless(const Settings& settings, ByteView bytes) {
  const std::size_t width = getDataTypeSize(settings.type);
  CompressOptions options = optionsFor(settings, bytes.size() / width);
  options.preset = "hdf5 lossless";
  options.config_toml = fmt::format(
      R"([[stage]]
name = "difference"
type = "Difference"
input_type = "int{0}"
output_type = "uint{0}"
chunk_size = 16384

[[stage]]
name = "shuffle"
type = "Bitshuffle"
block_size = 16384
element_width = {1}
inputs = [{{ from = "difference" }}]

[[stage]]
name = "coder"
type = "RZE"
chunk_size = 16384
levels = 4
inputs = [{{ from = "shuffle" }}]
)",
      width * 8, width);
  return compress(integerOfWidth(width), bytes, options);
}

/// A fill value that the user chose, as a list of one or none.
std::vector<double> fillOf(const Settings& settings) {
  if (!settings.fill_bits || !isFloat(settings.type)) {
    return {};
  }
  return {settings.type == DataType::FLOAT32
              ? std::bit_cast<float>(static_cast<std::uint32_t>(*settings.fill_bits))
              : std::bit_cast<double>(*settings.fill_bits)};
}

/// Whether hardly any value is valid, as the library has it for its own fallback. Most chunks are
/// not, which their first values tell.
template <class T>
bool isSparse(ByteView bytes, const std::vector<double>& fill) {
  constexpr std::size_t kSparseShare = 64;
  std::size_t n_valid = 0;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    const auto wide = static_cast<double>(value);
    n_valid += std::isfinite(wide) && (fill.empty() || wide != fill.front()) ? 1u : 0u;
    if (n_valid * kSparseShare > bytes.size() / sizeof(T)) {
      return false;
    }
  }
  return true;
}

/// Missing values, NaN, infinities and the fill value, come back bit for bit and are no part of a
/// range.
Frame encodeLossy(const Settings& settings, ByteView bytes) {
  CompressOptions options = optionsFor(settings, bytes.size() / getDataTypeSize(settings.type));
  options.preset = presetName(settings.preset);
  options.mode = settings.mode;
  options.error_bound = settings.bound;
  options.fill = fillOf(settings);
  // encodeChunk() has a better one, which knows chunks, but no Mask.
  options.lossless_fallback = settings.type == DataType::FLOAT32
                                  ? isSparse<float>(bytes, options.fill)
                                  : isSparse<double>(bytes, options.fill);
  return compress(settings.type, bytes, options);
}

/// max - min of the values that are not missing, rounded down.
template <class T>
double rangeOf(ByteView bytes, const std::vector<double>& fill) {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -lowest;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    const auto wide = static_cast<double>(value);
    if (std::isfinite(wide) && (fill.empty() || wide != fill.front())) {
      lowest = std::min(lowest, wide);
      highest = std::max(highest, wide);
    }
  }
  return highest > lowest ? std::nextafter(highest - lowest, 0.0) : 0.0;
}

/// Whether a bound relative to the range means anything: a constant chunk has none, and what the
/// stages take instead, the number as an absolute bound, might be more than the whole dataset
/// spans.
bool hasRange(const Settings& settings, ByteView bytes) {
  const std::vector<double> fill = fillOf(settings);
  return (settings.type == DataType::FLOAT32 ? rangeOf<float>(bytes, fill)
                                             : rangeOf<double>(bytes, fill)) > 0;
}

/// Nothing when the preset cannot take these values, or when one that nobody declared looks like a
/// fill value and would set the range.
std::optional<Frame> tryLossy(const Settings& settings, ByteView bytes) {
  try {
    return encodeLossy(settings, bytes);
  } catch (const Error& error) {
    const bool is_about_values =
        error.code() == ErrorCode::kBoundViolation || error.code() == ErrorCode::kFillValue;
    if (!is_about_values || settings.isStrict()) {
      throw;
    }
    return std::nullopt;
  }
}

/// Whether a part of a larger array is this chunk, or what there is of it at the array's edge: as
/// many axes, and no more values along any of them.
bool fitsChunk(const Settings& settings, const FrameInfo& info) {
  const std::vector<std::uint64_t>& dims = settings.chunk_dims;
  return info.type == settings.type && info.extents.size() == dims.size() &&
         std::equal(dims.rbegin(), dims.rend(), info.extents.begin(), std::greater_equal<>());
}

/// The chunk with the fill value where the frame has none.
Array decodeCutChunk(const Settings& settings, ByteView frame, const DecompressOptions& options) {
  const std::size_t width = getDataTypeSize(settings.type);
  std::array<std::uint8_t, sizeof(std::uint64_t)> fill = {};
  storeLe(fill.data(), settings.fill_bits.value_or(0));
  std::vector<std::uint8_t> chunk(chunkBytes(settings));
  for (std::size_t at = 0; settings.fill_bits && at < chunk.size(); at += width) {
    std::copy_n(fill.begin(), width, chunk.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::vector<std::ptrdiff_t> steps;
  auto step = static_cast<std::ptrdiff_t>(width);
  for (auto extent = settings.chunk_dims.rbegin(); extent != settings.chunk_dims.rend(); ++extent) {
    steps.push_back(step);
    step *= static_cast<std::ptrdiff_t>(*extent);
  }
  const ArchiveReader part(sourceOf(frame), options.limits);
  part.read({AxisValues(steps.size(), 0), part.info().extents}, chunk.data(), steps, options);
  return {settings.type, foldedDims(settings.chunk_dims), std::move(chunk)};
}

}  // namespace

void checkPresetTakes(const Settings& settings) {
  if (settings.isLossless()) {
    return;
  }
  if (!isFloat(settings.type)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the preset {} takes float32 and float64, not {}; "
                            "the preset lossless takes it",
                            presetName(settings.preset), dataTypeToString(settings.type)));
  }
  // The library knows; asking it with a few values costs less than a table that may be wrong.
  const std::array<double, 4> numbers = {1, 2, 3, 4};
  const std::size_t n_values =
      settings.type == DataType::FLOAT32 ? numbers.size() * 2 : numbers.size();
  Settings probe = settings;
  probe.chunk_dims = {n_values};
  probe.fill_bits.reset();
  probe.flags = 0;
  const ByteView bytes(reinterpret_cast<const std::uint8_t*>(numbers.data()), sizeof(numbers));
  try {
    probe.bound = 0.25;
    const FrameInfo info = inspect(encodeLossy(probe, bytes));
    const bool is_pointwise = info.bound && info.bound->absolute == 0.0;
    if (!info.bound || (settings.mode == ErrorBoundMode::REL && !is_pointwise)) {
      throw Error(ErrorCode::kUnsupported, "it does not bound each value by its own size");
    }
    probe.bound = settings.bound;
    tryLossy(probe, bytes);  // throws for bounds that the stages do not take
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnsupported, fmt::format("the preset {} does not take this bound: {}",
                                                     presetName(settings.preset), error.what()));
  }
}

Frame encodeChunk(const Settings& settings, ByteView bytes) {
  if (settings.hasChunk() && bytes.size() != chunkBytes(settings)) {
    throw Error(ErrorCode::kBadSize, fmt::format("a chunk of {} bytes, expected {}", bytes.size(),
                                                 chunkBytes(settings)));
  }
  std::optional<Frame> lossy;
  const bool is_constant = settings.mode == ErrorBoundMode::NOA && !hasRange(settings, bytes);
  if (!settings.isLossless() && !is_constant) {
    lossy = tryLossy(settings, bytes);
    if (lossy && !savesLittle(lossy->size(), bytes.size())) {
      return *std::move(lossy);
    }
  }
  Frame lossless = encodeLossless(settings, bytes);
  return lossy && lossy->size() <= lossless.size() ? *std::move(lossy) : lossless;
}

Array decodeChunk(const Settings& settings, ByteView frame) {
  const std::uint64_t n_bytes = settings.hasChunk() ? chunkBytes(settings) : kChunkBytesMax;
  const FrameInfo info = inspect(frame);
  // HDF5 trusts the length that a filter gives back, so it must be the chunk's before any work.
  const bool is_part = settings.hasChunk() && info.place;
  if (is_part ? !fitsChunk(settings, info)
              : settings.hasChunk() && info.original_bytes != n_bytes) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("the frame holds {} bytes{}, the chunk has {}", info.original_bytes,
                            is_part ? " of another chunk" : "", n_bytes));
  }
  DecompressOptions options;
  options.backend = backendOfFilter();
  options.threads = threadsOfFilter();
  options.limits.max_output_bytes = n_bytes;
  options.limits.max_memory_bytes = kMemoryBase + kMemoryPerByte * n_bytes;
  if (is_part && info.original_bytes != n_bytes) {
    return decodeCutChunk(settings, frame, options);
  }
  Array array = decompress(frame, options);
  if (settings.hasChunk() && array.bytes().size() != n_bytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("the frame decoded to {} bytes, the chunk has {}",
                                                 array.bytes().size(), n_bytes));
  }
  return array;
}

}  // namespace fz::hdf5
