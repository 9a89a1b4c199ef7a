#include "npy.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <limits>
#include <optional>
#include <tuple>

#include "failure.h"
#include "options.h"

namespace fz::cli {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // NumPy starts the values at a multiple of this

[[noreturn]] void failCorrupt(const std::string& what) {
  throw Failure(ExitCode::kCorrupt,
                fmt::format("broken .npy file: {}; write it again with numpy.save", what));
}

[[noreturn]] void failUnsupported(const std::string& what) {
  throw Failure(ExitCode::kUsage, what);
}

/// Text of the header after 'key':, without leading blanks.
std::string_view valueOf(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{}{}{}", quote, key, quote);
    const std::size_t at = header.find(quoted);
    if (at == std::string_view::npos) {
      continue;
    }
    std::string_view rest = header.substr(at + quoted.size());
    const std::size_t colon = rest.find_first_not_of(' ');
    if (colon == std::string_view::npos || rest[colon] != ':') {
      break;
    }
    rest.remove_prefix(colon + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }
  failCorrupt(fmt::format("its header has no '{}'", key));
}

/// The type, and whether it is big-endian.
std::pair<DataType, bool> readDescr(std::string_view value) {
  if (value.empty() || (value[0] != '\'' && value[0] != '"')) {
    failUnsupported("structured .npy data are not supported; save one f4 or f8 field at a time");
  }
  const std::string_view descr = value.substr(1, value.find(value[0], 1) - 1);
  if (descr == "<f4" || descr == ">f4") {
    return {DataType::FLOAT32, descr[0] == '>'};
  }
  if (descr == "<f8" || descr == ">f8") {
    return {DataType::FLOAT64, descr[0] == '>'};
  }
  if (descr.size() > 1 && descr[1] == 'c') {
    failUnsupported(
        fmt::format("complex .npy data ('{}') are not supported; save their two parts, array.real "
                    "and array.imag, as files of their own",
                    descr));
  }
  if (descr.size() > 1 && std::string_view("iu").find(descr[1]) != std::string_view::npos) {
    failUnsupported(
        fmt::format(".npy data of type '{}' are not supported; array.astype('<f8') keeps integers "
                    "below 2^53, and Python's fz.save(path, array, 'lossless') takes integers",
                    descr));
  }
  failUnsupported(
      fmt::format(".npy data of type '{}' are not supported; convert with "
                  "array.astype('<f4') or array.astype('<f8')",
                  descr));
}

std::vector<std::size_t> readShape(std::string_view value) {
  const std::size_t end = value.find(')');
  if (value.empty() || value[0] != '(' || end == std::string_view::npos) {
    failCorrupt("its shape is not a tuple");
  }
  std::vector<std::size_t> shape;
  const char* at = value.data() + 1;
  const char* const last = value.data() + end;
  while (at != last) {
    if (*at == ' ' || *at == ',' || *at == 'L') {  // Python 2 wrote 3L
      ++at;
      continue;
    }
    std::size_t extent = 0;
    const auto [stop, error] = std::from_chars(at, last, extent);
    if (error != std::errc()) {
      failCorrupt("its shape has an entry that is not an extent");
    }
    shape.push_back(extent);
    at = stop;
  }
  return shape;
}

std::string_view descrOf(DataType type) {
  switch (type) {
    case DataType::UINT8:
      return "|u1";
    case DataType::UINT16:
      return "<u2";
    case DataType::UINT32:
      return "<u4";
    case DataType::UINT64:
      return "<u8";
    case DataType::INT8:
      return "|i1";
    case DataType::INT16:
      return "<i2";
    case DataType::INT32:
      return "<i4";
    case DataType::INT64:
      return "<i8";
    case DataType::FLOAT32:
      return "<f4";
    case DataType::FLOAT64:
      return "<f8";
    case DataType::UNKNOWN:
      break;
  }
  failUnsupported(
      "the archive does not say its element type, which .npy needs; choose another "
      "name with -o for the plain bytes");
}

}  // namespace

bool isNpyName(std::string_view path) {
  return path.ends_with(".npy");
}

bool hasNpyMagic(ByteView bytes) {
  return bytes.size() >= kMagic.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), kMagic.size()) == kMagic;
}

NpyHeader parseNpyHeader(ByteView bytes) {
  if (!hasNpyMagic(bytes)) {
    failCorrupt("it does not start with the NumPy magic");
  }
  constexpr std::size_t kVersionEnd = 8;
  if (bytes.size() < kVersionEnd) {
    failCorrupt("it ends within its header");
  }
  const unsigned major = bytes[6];
  if (major < 1 || major > 3) {
    failUnsupported(fmt::format(".npy version {} is not supported; 1 to 3 are", major));
  }
  const std::size_t n_length_bytes = major == 1 ? 2 : 4;
  const std::size_t text_at = kVersionEnd + n_length_bytes;
  if (bytes.size() < text_at) {
    failCorrupt("it ends within its header");
  }
  std::size_t n_text = 0;
  for (std::size_t i = 0; i < n_length_bytes; ++i) {
    n_text |= static_cast<std::size_t>(bytes[kVersionEnd + i]) << (8 * i);
  }
  if (bytes.size() - text_at < n_text) {
    failCorrupt("it ends within its header");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + text_at, n_text);
  NpyHeader header;
  header.n_header_bytes = text_at + n_text;
  std::tie(header.type, header.is_swapped) = readDescr(valueOf(text, "descr"));
  const std::string_view order = valueOf(text, "fortran_order");
  header.is_fortran = order.starts_with("True");
  if (!header.is_fortran && !order.starts_with("False")) {
    failCorrupt("fortran_order is neither True nor False");
  }
  header.shape = readShape(valueOf(text, "shape"));
  return header;
}

std::vector<std::uint8_t> plainValues(const NpyHeader& header, ByteView values) {
  const std::size_t value_bytes = getDataTypeSize(header.type);
  std::vector<std::uint8_t> plain(values.size());
  const std::size_t n_axes = header.shape.size();
  // Bytes between neighbours along each axis in the file; in the result the last axis is dense.
  std::vector<std::size_t> steps(n_axes, value_bytes);
  for (std::size_t i = 1; i < n_axes; ++i) {
    const std::size_t axis = header.is_fortran ? i : n_axes - 1 - i;
    const std::size_t faster = header.is_fortran ? i - 1 : axis + 1;
    steps[axis] = steps[faster] * header.shape[faster];
  }
  std::vector<std::size_t> at(n_axes, 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < plain.size(); to += value_bytes) {
    if (header.is_swapped) {
      std::reverse_copy(values.data() + from, values.data() + from + value_bytes,
                        plain.data() + to);
    } else {
      std::copy_n(values.data() + from, value_bytes, plain.data() + to);
    }
    for (std::size_t axis = n_axes; axis-- > 0;) {
      from += steps[axis];
      if (++at[axis] < header.shape[axis]) {
        break;
      }
      from -= at[axis] * steps[axis];
      at[axis] = 0;
    }
  }
  return plain;
}

std::array<std::size_t, 3> dimsOfShape(const std::vector<std::size_t>& shape) {
  std::array<std::size_t, 3> dims = {1, 1, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t extent = shape[shape.size() - 1 - i];
    std::size_t& axis = dims[std::min<std::size_t>(i, 2)];
    if (extent == 0) {
      return {0, 1, 1};
    }
    if (axis > std::numeric_limits<std::size_t>::max() / extent) {
      failCorrupt("its shape has more values than memory can address");
    }
    axis *= extent;
  }
  if (!countOf(dims)) {
    failCorrupt("its shape has more values than memory can address");
  }
  return dims;
}

std::string makeNpyHeader(DataType type, const std::vector<std::size_t>& shape) {
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descrOf(type),
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t kPrefixBytes = 10;
  const std::size_t n_total =
      (kPrefixBytes + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(n_total - kPrefixBytes - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace fz::cli
