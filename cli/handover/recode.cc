#include "handover/recode.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "archive/box_copy.h"
#include "archive/chunk_frame.h"
#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::cli {

namespace {

// As python/fz/_chunks.py has them.
constexpr std::uint32_t kMarker32 = 0x7FC0F500;
constexpr std::uint64_t kMarker64 = 0x7FF800000000F500;

std::uint64_t storedBytes(const StoredArray& about) {
  std::uint64_t n_bytes = 0;
  FZ_REQUIRE(
      !__builtin_mul_overflow(valueCount(about.stored_chunk), about.grid.valueBytes(), &n_bytes),
      ErrorCode::kBadSize, "chunks beyond 64 bits");
  return n_bytes;
}

/// Whether NaN of the frame may stand for other values: those of frames that archives write, or
/// that declare these values themselves, do not.
bool mayBeMarked(const StoredArray& about, const FrameInfo& info) {
  return !info.place && std::any_of(about.marked.begin(), about.marked.end(), [&](double value) {
    return !info.missing || std::find(info.missing->fill.begin(), info.missing->fill.end(),
                                      value) == info.missing->fill.end();
  });
}

template <class T, class Bits>
bool restore(std::vector<std::uint8_t>& values, const std::vector<double>& marked, Bits marker) {
  bool has_any = false;
  for (std::size_t at = 0; at + sizeof(T) <= values.size(); at += sizeof(T)) {
    const Bits number = loadLe<Bits>(values.data() + at) - marker;
    if (number < marked.size()) {
      storeLe(values.data() + at, static_cast<T>(marked[number]));
      has_any = true;
    }
  }
  return has_any;
}

bool restoreMarked(const StoredArray& about, std::vector<std::uint8_t>& values) {
  return about.type == DataType::FLOAT32 ? restore<float>(values, about.marked, kMarker32)
                                         : restore<double>(values, about.marked, kMarker64);
}

std::vector<std::uint8_t> losslessFrame(DataType type,
                                        ByteView values,
                                        const AxisValues& extents,
                                        const std::optional<BoundInfo>& bound,
                                        const DecompressOptions& how) {
  CompressOptions options;
  options.preset = "lossless";
  options.extents = extents;
  options.backend = how.backend;
  options.threads = how.threads;
  options.max_memory_bytes = how.limits.max_memory_bytes;
  const Frame frame = compress(type, values, options);
  if (!bound) {
    return {frame.bytes().begin(), frame.bytes().end()};
  }
  // What the values once lost still holds; a bound beside stages without loss says that.
  FrameHeader header = readHeader(frame.bytes(), frame.size());
  const ByteView payload = frame.bytes().subspan(header.core.header_size);
  header.description.bound = bound;
  std::vector<std::uint8_t> bytes = headerWith(header, extents, std::nullopt);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

}  // namespace

bool needsRecoding(const StoredArray& about, std::uint64_t chunk, ByteView frame) {
  const FrameInfo info = inspect(frame);
  const Box box = about.grid.boxOf(chunk);
  const std::uint64_t n_here = about.bytesOf(box);
  const bool is_whole = info.original_bytes == n_here;
  FZ_REQUIRE(is_whole || (!info.place && info.original_bytes == storedBytes(about)),
             ErrorCode::kCorrupt, "its frame holds {} bytes, the chunk {}", info.original_bytes,
             n_here);
  const bool is_bits = about.integers_are_bits && info.lossless && !isFloat(info.type) &&
                       getDataTypeSize(info.type) == about.grid.valueBytes();
  FZ_REQUIRE(info.type == about.type || is_bits, ErrorCode::kCorrupt,
             "its frame holds {}, the array {}", dataTypeToString(info.type),
             dataTypeToString(about.type));
  return !is_whole || info.type != about.type || mayBeMarked(about, info);
}

std::vector<std::uint8_t> recode(const StoredArray& about,
                                 std::uint64_t chunk,
                                 ByteView frame,
                                 const DecompressOptions& how) {
  const FrameInfo info = inspect(frame);
  const Box box = about.grid.boxOf(chunk);
  const Array decoded = decompress(frame, how);
  std::vector<std::uint8_t> values(decoded.bytes().begin(), decoded.bytes().end());
  const bool is_whole = values.size() == about.bytesOf(box);
  FZ_REQUIRE(is_whole || values.size() == storedBytes(about), ErrorCode::kCorrupt,
             "its frame decodes to {} bytes", values.size());
  const bool was_marked = mayBeMarked(about, info) && restoreMarked(about, values);
  if (is_whole && !was_marked && info.type == about.type) {
    return {frame.begin(), frame.end()};
  }
  if (!is_whole) {
    const std::size_t value_bytes = about.grid.valueBytes();
    std::vector<std::uint8_t> inside(about.bytesOf(box));
    copyValues(inside.data(), denseSteps(box.extents, value_bytes), values.data(),
               denseSteps(about.stored_chunk, value_bytes), box.extents, value_bytes);
    values = std::move(inside);
  }
  return losslessFrame(about.type, values, box.extents, info.bound, how);
}

std::vector<std::uint8_t> emptyFrame(const StoredArray& about) {
  return losslessFrame(about.type, {}, about.grid.extents(), std::nullopt, {});
}

}  // namespace fz::cli
