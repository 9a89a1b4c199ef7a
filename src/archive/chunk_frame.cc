#include "archive/chunk_frame.h"

#include <algorithm>

#include "core/require.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"

namespace fz {

std::vector<std::uint8_t> headerWith(FrameHeader& header,
                                     const AxisValues& extents,
                                     const std::optional<FramePlace>& place) {
  FrameDescription& description = header.description;
  const std::size_t value_bytes = isKnown(description.type) ? getDataTypeSize(description.type) : 1;
  const std::uint64_t n_values = description.original_bytes / value_bytes;
  FZ_REQUIRE(extents.size() <= kMaxAxes && valueCount(extents) == n_values, ErrorCode::kBadSize,
             "compress: {} values, but extents of {}", n_values, extentsText(extents));
  description.shape = {};
  description.shape.n_axes = static_cast<std::uint8_t>(extents.size());
  std::copy(extents.begin(), extents.end(), description.shape.extents.begin());
  description.ndim = std::clamp<std::uint8_t>(description.shape.n_axes, 1, 3);
  const std::array<std::size_t, 3> dims = foldedDims(extents);
  std::copy(dims.begin(), dims.end(), description.dims.begin());
  description.place = place;
  std::vector<std::uint8_t> bytes(headerBytes(header));
  writeHeader(header, bytes);
  return bytes;
}

Frame withShape(const Frame& frame, const AxisValues& extents) {
  FrameHeader header = readHeader(frame.bytes(), frame.size());
  const FrameShape& shape = header.description.shape;
  if (std::equal(extents.begin(), extents.end(), shape.extents.begin(),
                 shape.extents.begin() + shape.n_axes)) {
    return frame;
  }
  const ByteView payload = frame.bytes().subspan(header.core.header_size);
  std::vector<std::uint8_t> bytes = headerWith(header, extents, std::nullopt);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return Frame(std::move(bytes));
}

bool isPart(ByteView front) {
  if (front.size() < kCoreBytes) {
    return false;
  }
  const auto magic = loadLe<std::uint32_t>(front.data());
  const auto version = loadLe<std::uint16_t>(front.data() + 4);
  const auto flags = loadLe<std::uint16_t>(front.data() + kCompactFlagsOffset);
  return magic == FZM_MAGIC && version == FZM_VERSION_COMPACT && (flags & FZM_FLAG_PLACE) != 0;
}

std::uint64_t frameBytesOf(ByteView front) {
  std::uint64_t n_bytes = 0;
  if (front.size() < kCoreBytes ||
      __builtin_add_overflow(loadLe<std::uint64_t>(front.data() + kCompressedSizeOffset),
                             loadLe<std::uint64_t>(front.data() + kHeaderSizeOffset), &n_bytes)) {
    return ~std::uint64_t{0};
  }
  return n_bytes;
}

FramePlace placeOf(const Box& box, const AxisValues& whole, std::uint64_t array_id) {
  FramePlace place;
  place.array_id = array_id;
  std::copy(box.origin.begin(), box.origin.end(), place.origin.begin());
  std::copy(whole.begin(), whole.end(), place.whole.begin());
  return place;
}

void checkChunk(const FrameHeader& header, const ArchiveIndex& index, std::uint64_t chunk) {
  const FrameDescription& description = header.description;
  FZ_REQUIRE(header.core.header_checksum == index.chunks[chunk].header_checksum,
             ErrorCode::kCorrupt, "another frame than the index says (checksum {:08x}, not {:08x})",
             header.core.header_checksum, index.chunks[chunk].header_checksum);
  FZ_REQUIRE(description.place && description.place->array_id == index.array_id,
             ErrorCode::kCorrupt, "its frame belongs to another array");
  FZ_REQUIRE(description.type == index.type, ErrorCode::kCorrupt, "its frame holds {}, not {}",
             dataTypeToString(description.type), dataTypeToString(index.type));
  const Box box = index.grid.boxOf(chunk);
  const std::size_t n_axes = index.grid.axisCount();
  bool is_its_place = description.shape.n_axes == n_axes;
  for (std::size_t axis = 0; is_its_place && axis < n_axes; ++axis) {
    const bool is_slowest = axis + 1 == n_axes;  // it may have grown, or been cut, since
    is_its_place = description.place->origin[axis] == box.origin[axis] &&
                   description.shape.extents[axis] == box.extents[axis] &&
                   (is_slowest || description.place->whole[axis] == index.grid.extents()[axis]);
  }
  FZ_REQUIRE(is_its_place, ErrorCode::kCorrupt, "its frame is of another place");
}

}  // namespace fz
