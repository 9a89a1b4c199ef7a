#include "chunk_codec.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <string_view>
#include <system_error>

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

struct Request {
  ErrorBoundMode mode;
  double bound;
};

Frame encodeLossy(const Settings& settings, ByteView bytes, const Request& request) {
  CompressOptions options = optionsFor(settings, bytes.size() / getDataTypeSize(settings.type));
  options.preset = presetName(settings.preset);
  options.mode = request.mode;
  options.error_bound = request.bound;
  options.lossless_fallback = false;  // encodeChunk() has a better one, which knows chunks
  return compress(settings.type, bytes, options);
}

/// Values of one type by their bits.
template <class Bits, class Float>
class Values {
 public:
  Values(ByteView bytes, Bits fill) : bytes_(bytes), fill_(fill) {}

  std::size_t size() const { return bytes_.size() / sizeof(Bits); }
  bool isFill(std::size_t index) const { return bits(index) == fill_; }
  bool hasFill() const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (isFill(i)) {
        return true;
      }
    }
    return false;
  }
  /// max - min of what is neither fill nor infinite nor NaN, rounded down.
  double rangeWithoutFill() const {
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -lowest;
    for (std::size_t i = 0; i < size(); ++i) {
      const double value = static_cast<double>(std::bit_cast<Float>(bits(i)));
      if (!isFill(i) && std::isfinite(value)) {
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
      }
    }
    return highest > lowest ? std::nextafter(highest - lowest, 0.0) : 0.0;
  }
  /// Whether `decoded` has the fill value where these have it.
  bool keepFill(ByteView decoded) const {
    const Values other(decoded, fill_);
    for (std::size_t i = 0; i < size(); ++i) {
      if (isFill(i) && !other.isFill(i)) {
        return false;
      }
    }
    return true;
  }

 private:
  Bits bits(std::size_t index) const {
    Bits value;
    std::memcpy(&value, bytes_.data() + index * sizeof(Bits), sizeof(Bits));
    return value;
  }

  ByteView bytes_;
  Bits fill_;
};

double powerOfTwoNotAbove(double bound) {
  int exponent = 0;
  std::frexp(bound, &exponent);
  return std::ldexp(1.0, exponent - 1);
}

/// A chunk that has fill values. They count neither for a range nor may they change, so an
/// attempt is decoded and looked at.
template <class Bits, class Float>
std::optional<Frame> encodeAroundFill(const Settings& settings,
                                      ByteView bytes,
                                      const Values<Bits, Float>& values) {
  Request request = {settings.mode, settings.bound};
  if (request.mode == ErrorBoundMode::NOA) {
    request = {ErrorBoundMode::ABS,
               std::nextafter(settings.bound * values.rangeWithoutFill(), 0.0)};
    if (!std::isfinite(request.bound) || !(request.bound > 0)) {
      return std::nullopt;
    }
  }
  const auto attempt = [&]() -> std::optional<Frame> {
    Frame frame = encodeLossy(settings, bytes, request);
    if (!values.keepFill(decodeChunk(settings, frame.bytes()).bytes())) {
      return std::nullopt;
    }
    return frame;
  };
  if (std::optional<Frame> frame = attempt()) {
    return frame;
  }
  if (request.mode != ErrorBoundMode::ABS) {
    return std::nullopt;
  }
  // The steps of a bound that is a power of two meet the usual fill values, whole numbers.
  request.bound = powerOfTwoNotAbove(request.bound);
  return attempt();
}

template <class Bits, class Float>
std::optional<Frame> encodeFloats(const Settings& settings, ByteView bytes) {
  if (settings.fill_bits) {
    const Values<Bits, Float> values(bytes, static_cast<Bits>(*settings.fill_bits));
    if (values.hasFill()) {
      return encodeAroundFill(settings, bytes, values);
    }
  }
  return encodeLossy(settings, bytes, {settings.mode, settings.bound});
}

/// Whether a bound relative to the range means anything: a constant chunk has none, and what the
/// stages take instead, the number as an absolute bound, might be more than the whole dataset
/// spans.
bool hasRange(const Settings& settings, ByteView bytes) {
  // NaN never count, so one of them stands for "no fill value".
  const std::uint64_t fill = settings.fill_bits.value_or(~std::uint64_t{0});
  return settings.type == DataType::FLOAT32
             ? Values<std::uint32_t, float>(bytes, static_cast<std::uint32_t>(fill))
                       .rangeWithoutFill() > 0
             : Values<std::uint64_t, double>(bytes, fill).rangeWithoutFill() > 0;
}

/// Nothing when the preset cannot take these values, or when one that nobody declared looks like a
/// fill value and would set the range.
std::optional<Frame> tryLossy(const Settings& settings, ByteView bytes) {
  try {
    std::optional<Frame> frame = settings.type == DataType::FLOAT32
                                     ? encodeFloats<std::uint32_t, float>(settings, bytes)
                                     : encodeFloats<std::uint64_t, double>(settings, bytes);
    if (!frame && settings.isStrict()) {
      throw Error(ErrorCode::kBoundViolation,
                  fmt::format("the preset {} cannot keep the fill value bit for bit",
                              presetName(settings.preset)));
    }
    return frame;
  } catch (const Error& error) {
    const bool is_about_values =
        error.code() == ErrorCode::kBoundViolation || error.code() == ErrorCode::kFillValue;
    if (!is_about_values || settings.isStrict()) {
      throw;
    }
    return std::nullopt;
  }
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
    const FrameInfo info = inspect(encodeLossy(probe, bytes, {settings.mode, 0.25}));
    const bool is_pointwise = info.bound && info.bound->absolute == 0.0;
    if (!info.bound || (settings.mode == ErrorBoundMode::REL && !is_pointwise)) {
      throw Error(ErrorCode::kUnsupported, "it does not bound each value by its own size");
    }
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
  if (settings.hasChunk() && info.original_bytes != n_bytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("the frame holds {} bytes, the chunk has {}",
                                                 info.original_bytes, n_bytes));
  }
  DecompressOptions options;
  options.backend = backendOfFilter();
  options.threads = threadsOfFilter();
  options.limits.max_output_bytes = n_bytes;
  options.limits.max_memory_bytes = kMemoryBase + kMemoryPerByte * n_bytes;
  Array array = decompress(frame, options);
  if (settings.hasChunk() && array.bytes().size() != n_bytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("the frame decoded to {} bytes, the chunk has {}",
                                                 array.bytes().size(), n_bytes));
  }
  return array;
}

}  // namespace fz::hdf5
