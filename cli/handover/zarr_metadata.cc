#include "handover/zarr_metadata.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kCodec = "fz.frame";
constexpr const char* kIndent = "  ";

constexpr std::array<std::pair<std::string_view, DataType>, 10> kTypes = {{
    {"float32", DataType::FLOAT32},
    {"float64", DataType::FLOAT64},
    {"int8", DataType::INT8},
    {"int16", DataType::INT16},
    {"int32", DataType::INT32},
    {"int64", DataType::INT64},
    {"uint8", DataType::UINT8},
    {"uint16", DataType::UINT16},
    {"uint32", DataType::UINT32},
    {"uint64", DataType::UINT64},
}};

Json slowestFirst(const AxisValues& values) {
  return AxisValues(values.rbegin(), values.rend());
}

/// How the codec writes chunks that are changed later: within what the archive kept to.
Json codecOf(const StoredArray& array) {
  std::string bound = "lossless";
  if (array.bound && array.bound->mode == ErrorBoundMode::REL && array.bound->absolute == 0.0) {
    bound = fmt::format("rel:{}", array.bound->requested);
  } else if (array.bound && array.bound->absolute > 0.0) {
    bound = fmt::format("abs:{}", array.bound->absolute);
  }
  Json settings = {{"bound", bound}};
  if (!array.fill.empty()) {
    settings["exact"] = array.fill;
  }
  settings["fallback"] = "pfpl";
  return {{"name", kCodec}, {"configuration", settings}};
}

/// The bits of a double in base64, which is how xarray has _FillValue in Zarr of format 3.
std::string base64Of(double value) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<std::uint8_t, 9> bytes = {};  // a multiple of 3
  storeLe(bytes.data(), value);
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t group = static_cast<std::uint32_t>(bytes[at]) << 16 |
                                static_cast<std::uint32_t>(bytes[at + 1]) << 8 | bytes[at + 2];
    for (const unsigned shift : {18u, 12u, 6u, 0u}) {
      text += kDigits[group >> shift & 63u];
    }
  }
  text.back() = '=';  // the ninth byte is none
  return text;
}

Json attributesOf(const StoredArray& array) {
  Json attributes = Json::object();
  if (!array.fill.empty()) {
    // Readers compare it with the values, which have no more digits than their type.
    const double fill = array.fill.front();
    attributes["_FillValue"] = base64Of(
        array.type == DataType::FLOAT32 ? static_cast<double>(static_cast<float>(fill)) : fill);
  }
  return attributes;
}

std::string quoted(const Json& json) {
  constexpr std::size_t kMaxQuoted = 100;
  return json.dump(-1, ' ', true).substr(0, kMaxQuoted);  // ASCII
}

[[noreturn]] void failUnsupported(const std::string& what) {
  detail::throwError(ErrorCode::kUnsupported, "zarr.json: " + what);
}

/// Throws nlohmann's exceptions for what is missing or of another type, which become kCorrupt.
AxisValues extentsIn(const Json& json) {
  AxisValues extents;
  FZ_REQUIRE(json.is_array() && json.size() <= kMaxAxes, ErrorCode::kUnsupported,
             "zarr.json: arrays of up to {} axes can be archives", kMaxAxes);
  for (auto at = json.rbegin(); at != json.rend(); ++at) {
    FZ_REQUIRE(at->is_number_unsigned(), ErrorCode::kCorrupt,
               "zarr.json: an extent that is no whole number");
    extents.push_back(at->get<std::uint64_t>());
  }
  return extents;
}

DataType typeIn(const Json& json) {
  if (json.is_string()) {
    for (const auto& [name, type] : kTypes) {
      if (json.get_ref<const std::string&>() == name) {
        return type;
      }
    }
  }
  failUnsupported(fmt::format("values of type {} have no place in archives", quoted(json)));
}

void readGrid(const Json& json, StoredArray& into) {
  const Json& grid = json.at("chunk_grid");
  if (grid.at("name") != "regular") {
    failUnsupported(fmt::format("a chunk grid {} instead of regular", quoted(grid.at("name"))));
  }
  const AxisValues extents = extentsIn(json.at("shape"));
  AxisValues chunk = extentsIn(grid.at("configuration").at("chunk_shape"));
  FZ_REQUIRE(chunk.size() == extents.size(), ErrorCode::kCorrupt,
             "zarr.json: chunks of {} axes in an array of {}", chunk.size(), extents.size());
  for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
    FZ_REQUIRE(chunk[axis] > 0, ErrorCode::kCorrupt, "zarr.json: chunks without values");
  }
  into.stored_chunk = chunk;
  for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
    chunk[axis] = std::min(chunk[axis], std::max<std::uint64_t>(1, extents[axis]));
  }
  into.grid = ChunkGrid(into.type, extents, std::move(chunk));
}

/// As python/fz/_chunks.py does: others need no markers.
void addMarked(double value, StoredArray& into) {
  const bool is_new = std::find(into.marked.begin(), into.marked.end(), value) == into.marked.end();
  if (value != 0.0 && std::isfinite(value) && is_new) {
    into.marked.push_back(value);
  }
}

/// The number that "0x..." has the bits of; 0 for NaN and infinities by their names.
double valueOfBits(const std::string& text, DataType type) {
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  if (!text.starts_with("0x") || std::from_chars(text.data() + 2, end, bits, 16).ptr != end) {
    return 0.0;
  }
  return type == DataType::FLOAT32 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                                   : std::bit_cast<double>(bits);
}

/// The only codec must be ours: what another one did before or after it is not in the frames.
void readCodec(const Json& json, StoredArray& into) {
  const Json& codecs = json.at("codecs");
  if (!codecs.is_array() || codecs.size() != 1 || !codecs[0].is_object() ||
      codecs[0].value("name", "") != kCodec) {
    failUnsupported(fmt::format("its only codec must be {}, not {}", kCodec, quoted(codecs)));
  }
  if (!isFloat(into.type)) {
    return;
  }
  const Json settings = codecs[0].value("configuration", Json::object());
  for (const Json& value : settings.value("exact", Json::array())) {
    addMarked(value.get<double>(), into);
  }
  // The codec takes the array's own fill value for the last of them.
  const Json fill = json.value("fill_value", Json(nullptr));
  if (fill.is_number()) {
    addMarked(fill.get<double>(), into);
  } else if (fill.is_string()) {
    addMarked(valueOfBits(fill.get<std::string>(), into.type), into);
  }
}

char separatorIn(const Json& json) {
  const Json& encoding = json.at("chunk_key_encoding");
  if (encoding.at("name") != "default") {
    failUnsupported(
        fmt::format("a chunk key encoding {} instead of default", quoted(encoding.at("name"))));
  }
  const std::string separator =
      encoding.value("configuration", Json::object()).value("separator", "/");
  FZ_REQUIRE(separator == "/" || separator == ".", ErrorCode::kCorrupt,
             "zarr.json: a separator that is neither / nor .");
  return separator[0];
}

ZarrArray fromJson(const Json& json) {
  FZ_REQUIRE(json.is_object() && json.value("zarr_format", 0) == 3, ErrorCode::kUnsupported,
             "zarr.json: not of Zarr's format 3");
  FZ_REQUIRE(json.at("node_type") == "array", ErrorCode::kUnsupported,
             "zarr.json: it describes no array");
  if (!json.value("storage_transformers", Json::array()).empty()) {
    failUnsupported("storage transformers");
  }
  ZarrArray array;
  array.about.type = typeIn(json.at("data_type"));
  readGrid(json, array.about);
  array.separator = separatorIn(json);
  readCodec(json, array.about);
  return array;
}

}  // namespace

std::string zarrArrayText(const StoredArray& array) {
  const ChunkGrid& grid = array.grid;
  std::string_view type = "float32";
  for (const auto& [name, number] : kTypes) {
    type = number == array.type ? name : type;
  }
  Json names = Json::array();
  for (std::size_t axis = 0; axis < grid.axisCount(); ++axis) {
    names.push_back(fmt::format("dim_{}", axis));
  }
  // NaN is exact as it is. Any other fill value would be one that a codec replaces NaN by.
  const Json fill = isFloat(array.type) ? Json("NaN") : Json(0);
  const Json json = {
      {"shape", slowestFirst(grid.extents())},
      {"data_type", type},
      {"chunk_grid",
       {{"name", "regular"}, {"configuration", {{"chunk_shape", slowestFirst(grid.chunk())}}}}},
      {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
      {"fill_value", fill},
      {"codecs", Json::array({codecOf(array)})},
      {"attributes", attributesOf(array)},
      {"dimension_names", names},
      {"zarr_format", 3},
      {"node_type", "array"},
      {"storage_transformers", Json::array()}};
  return json.dump(static_cast<int>(std::string_view(kIndent).size()));
}

std::string zarrGroupText() {
  return Json({{"attributes", Json::object()}, {"zarr_format", 3}, {"node_type", "group"}})
      .dump(static_cast<int>(std::string_view(kIndent).size()));
}

std::string ZarrArray::chunkKey(std::uint64_t chunk) const {
  const ChunkGrid& grid = about.grid;
  const Box box = grid.boxOf(chunk);
  std::string key = "c";
  for (std::size_t axis = grid.axisCount(); axis-- > 0;) {
    key += fmt::format("{}{}", separator, box.origin[axis] / grid.chunk()[axis]);
  }
  return key;
}

ZarrArray readZarrArray(ByteView text) {
  try {
    return fromJson(Json::parse(text.begin(), text.end()));
  } catch (const Json::parse_error& error) {
    // Its words quote the text, which may be anything.
    throw Error(ErrorCode::kCorrupt, fmt::format("zarr.json: no JSON from byte {} on", error.byte));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kCorrupt, fmt::format("zarr.json: {}", error.what()));
  } catch (const InvalidArgument& error) {
    throw Error(ErrorCode::kCorrupt, fmt::format("zarr.json: {}", error.what()));
  }
}

}  // namespace fz::cli
