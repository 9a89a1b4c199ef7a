// The filter as HDF5 loads it. No exception leaves a function here: failures go onto HDF5's error
// stack and are returned.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <string_view>

#include "cd_values.h"
#include "chunk_codec.h"
#include "fz/error.h"
#include "fz/hdf5.h"
#include "hdf5_calls.h"

#define FZ_HDF5_EXPORT extern "C" __attribute__((visibility("default")))

namespace fz::hdf5 {

namespace {

// HDF5 from 1.14 on drops what a filter puts onto the error stack, so the words are kept here too.
thread_local std::array<char, 512> last_error = {};

void reportError(const Calls& calls, const char* function, const char* message) noexcept {
  std::snprintf(last_error.data(), last_error.size(), "%s", message);
  calls.pushError(function, message);
}

/// Calls work(); false and an entry on HDF5's error stack when it throws.
template <class Work>
bool guarded(const Calls& calls, const char* function, Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    reportError(calls, function, "out of memory");
  } catch (const std::exception& error) {
    reportError(calls, function, error.what());
  } catch (...) {
    reportError(calls, function, "unknown failure");
  }
  return false;
}

void require(bool holds, const char* what) {
  if (!holds) {
    throw Error(ErrorCode::kUnsupported, what);
  }
}

DataType typeOf(const Calls& calls, Hid type, bool is_lossless) {
  const int type_class = calls.get_class(type);
  const std::size_t n_bytes = calls.get_size(type);
  const bool is_float = type_class == kClassFloat;
  const bool is_whole =
      type_class == kClassInteger || type_class == kClassBitfield || type_class == kClassEnum;
  require((is_float || is_whole) && (n_bytes == 1 || n_bytes == 2 || n_bytes == 4 || n_bytes == 8),
          "takes datasets of integers and floats of 1, 2, 4 or 8 bytes");
  const bool is_native = calls.get_order(type) == kOrderLittleEndian || n_bytes == 1;
  if (is_float && is_native && n_bytes >= 4) {
    return n_bytes == 4 ? DataType::FLOAT32 : DataType::FLOAT64;
  }
  require(is_lossless,
          "presets with a bound take little-endian floats of 4 and 8 bytes; the preset lossless "
          "takes any integers and floats");
  switch (n_bytes) {
    case 1:
      return DataType::UINT8;
    case 2:
      return DataType::UINT16;
    case 4:
      return DataType::UINT32;
    default:
      return DataType::UINT64;
  }
}

/// A fill value that the user chose. HDF5's own, zero, says nothing about the data.
std::optional<std::uint64_t> fillOf(const Calls& calls, Hid plist, Hid type, DataType element) {
  int status = 0;
  if (!isFloat(element) || calls.fill_defined(plist, &status) < 0 || status != kFillUserDefined) {
    return std::nullopt;
  }
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes = {};
  require(calls.get_fill(plist, type, bytes.data()) >= 0, "cannot read the fill value");
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), getDataTypeSize(element));
  return bits;
}

/// h5repack takes a dataset that cannot be created as a reason to copy it unfiltered, and ends with
/// 0. That is right for types that a preset does not take, and wrong for words that mean nothing.
bool isH5repack() {
  return std::string_view(program_invocation_short_name).starts_with("h5repack");
}

/// Completes cd_values for a dataset that is being created.
void describeDataset(const Calls& calls, Hid plist, Hid type) {
  require(
      calls.canDescribeDatasets(),
      "cannot ask this HDF5 about the dataset: it is older than 1.10, or it is linked into the "
      "program statically; link the shared library (h5cc -shlib, h5fc -shlib) or add -rdynamic");
  std::array<unsigned, FZ_HDF5_MAX_WORDS> words = {};
  std::size_t n_words = words.size();
  unsigned flags = 0;
  require(calls.get_filter_by_id(plist, FZ_HDF5_FILTER_ID, &flags, &n_words, words.data(), 0,
                                 nullptr, nullptr) >= 0,
          "cannot read the parameters of the filter");
  n_words = std::min(n_words, words.size());
  // What stands after the user's words may come from another dataset, whose chunks were others.
  const auto from_user = std::span(words).first(std::min<std::size_t>(n_words, FZ_HDF5_USER_WORDS));
  Settings settings;
  try {
    settings = parseValues(from_user);
  } catch (const Error&) {
    if (!isH5repack()) {
      throw;
    }
    // The first chunk is refused then, which ends it.
    require(calls.modify_filter(plist, FZ_HDF5_FILTER_ID, flags & ~kFlagOptional, from_user.size(),
                                from_user.data()) >= 0,
            "cannot set the parameters of the filter");
    return;
  }

  std::size_t none = 0;
  unsigned unused = 0;
  require(
      calls.get_filter(plist, 0, &unused, &none, nullptr, 0, nullptr, nullptr) == FZ_HDF5_FILTER_ID,
      "must be the first filter of a dataset: it needs values, not what another filter made");

  settings.type = typeOf(calls, type, settings.isLossless());
  std::array<std::uint64_t, FZ_HDF5_MAX_RANK> dims = {};
  const int rank = calls.get_chunk(plist, static_cast<int>(dims.size()), dims.data());
  require(rank > 0, "needs a chunked dataset");
  settings.chunk_dims.assign(dims.begin(), dims.begin() + rank);
  chunkBytes(settings);
  settings.fill_bits = fillOf(calls, plist, type, settings.type);
  checkPresetTakes(settings);

  const std::vector<unsigned> values = toValues(settings);
  // An optional filter that fails leaves chunks unfiltered in silence; ours says what is wrong.
  require(calls.modify_filter(plist, FZ_HDF5_FILTER_ID, flags & ~kFlagOptional, values.size(),
                              values.data()) >= 0,
          "cannot set the parameters of the filter");
}

/// Puts `bytes` into HDF5's buffer.
void replaceBuffer(const Calls& calls, ByteView bytes, std::size_t* buffer_bytes, void** buffer) {
  if (bytes.size() > *buffer_bytes) {
    void* memory = calls.takeMemory(bytes.size());
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    calls.giveMemory(*buffer);
    *buffer = memory;
    *buffer_bytes = bytes.size();
  }
  std::memcpy(*buffer, bytes.data(), bytes.size());
}

int setLocal(Hid plist, Hid type, Hid /*space*/) noexcept {
  const Calls& calls = callsOf(__builtin_return_address(0));
  return guarded(calls, "set_local", [&] { describeDataset(calls, plist, type); }) ? 1 : -1;
}

std::size_t runFilter(unsigned flags,
                      std::size_t n_values,
                      const unsigned* values,
                      std::size_t n_bytes,
                      std::size_t* buffer_bytes,
                      void** buffer) noexcept {
  const Calls& calls = callsOf(__builtin_return_address(0));
  std::size_t n_result = 0;
  const bool is_decoding = (flags & kFlagReverse) != 0;
  guarded(calls, is_decoding ? "decode" : "encode", [&] {
    const ByteView bytes(static_cast<const std::uint8_t*>(*buffer), n_bytes);
    const Settings settings = parseValues({values, n_values});
    if (is_decoding) {
      const Array array = decodeChunk(settings, bytes);
      replaceBuffer(calls, array.bytes(), buffer_bytes, buffer);
      n_result = array.bytes().size();
    } else {
      require(settings.hasChunk(), "cd_values lack the chunk; HDF5 fills it in for new datasets");
      const Frame frame = encodeChunk(settings, bytes);
      replaceBuffer(calls, frame.bytes(), buffer_bytes, buffer);
      n_result = frame.size();
    }
  });
  return n_result;
}

constexpr FilterClass kFilter = {
    kFilterClassVersion,
    FZ_HDF5_FILTER_ID,
    1,
    1,
    "fz: error-bounded compression (HDF5 filter)",
    nullptr,
    setLocal,
    runFilter,
};

}  // namespace

}  // namespace fz::hdf5

// Names that HDF5 and languages look up.
// NOLINTBEGIN(readability-identifier-naming)
FZ_HDF5_EXPORT int H5PLget_plugin_type() {
  return fz::hdf5::kPluginTypeFilter;
}

FZ_HDF5_EXPORT const void* H5PLget_plugin_info() {
  const fz::hdf5::Calls& calls = fz::hdf5::callsOf(__builtin_return_address(0));
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  // Before 1.10 an identifier had 32 bits, and every signature here would be wrong.
  if (calls.get_version != nullptr && calls.get_version(&major, &minor, &release) >= 0 &&
      major == 1 && minor < 10) {
    return nullptr;
  }
  return &fz::hdf5::kFilter;
}

FZ_HDF5_EXPORT std::size_t fz_hdf5_cd_values_from_text(const char* preset,
                                                       const char* bound,
                                                       unsigned flags,
                                                       unsigned* values,
                                                       std::size_t n_values_max,
                                                       char* message,
                                                       std::size_t message_bytes_max) {
  try {
    const std::vector<unsigned> words = fz::hdf5::toValues(fz::hdf5::settingsFromText(
        preset == nullptr ? "" : preset, bound == nullptr ? "" : bound, flags));
    if (words.size() <= n_values_max) {
      std::copy(words.begin(), words.end(), values);
      return words.size();
    }
    std::snprintf(message, message_bytes_max, "there must be room for %zu words", words.size());
  } catch (const std::exception& error) {
    std::snprintf(message, message_bytes_max, "%s", error.what());
  }
  return 0;
}

FZ_HDF5_EXPORT const char* fz_hdf5_last_error() {
  return fz::hdf5::last_error.data();
}
// NOLINTEND(readability-identifier-naming)
