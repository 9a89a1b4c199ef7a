// Archives of frames that somebody else kept.
#include "archive/assemble.h"

#include <algorithm>
#include <utility>

#include "core/require.h"
#include "format/crc32.h"

namespace fz {

ReadyFrame checkedFrame(ByteView frame) {
  ReadyFrame ready;
  ready.header = readHeader(frame, frame.size());
  const ByteView header = frame.first(ready.header.core.header_size);
  ready.payload = frame.subspan(header.size());
  verifyPayloadCrc(ready.header, crc32(ready.payload));
  ready.header_bytes.assign(header.begin(), header.end());
  return ready;
}

ArchiveAssembler::ArchiveAssembler(DataType type,
                                   ChunkGrid grid,
                                   std::uint64_t array_id,
                                   ByteSink& sink)
    : sink_(&sink) {
  index_.type = type;
  index_.array_id = array_id;
  index_.grid = std::move(grid);
}

void ArchiveAssembler::checkPlace(const FrameDescription& description, const Box& box) const {
  const FramePlace& place = *description.place;
  FZ_REQUIRE(place.array_id == index_.array_id, ErrorCode::kCorrupt,
             "its frame belongs to another array");
  const std::size_t n_axes = index_.grid.axisCount();
  bool is_its_place = description.shape.n_axes == n_axes;
  for (std::size_t axis = 0; is_its_place && axis < n_axes; ++axis) {
    const bool is_slowest = axis + 1 == n_axes;  // it may have grown, or been cut, since
    is_its_place = place.origin[axis] == box.origin[axis] &&
                   description.shape.extents[axis] == box.extents[axis] &&
                   (is_slowest || place.whole[axis] == index_.grid.extents()[axis]);
  }
  FZ_REQUIRE(is_its_place, ErrorCode::kCorrupt, "its frame is of another place");
}

void ArchiveAssembler::put(ReadyFrame frame) {
  const std::uint64_t chunk = index_.chunks.size();
  const Box box = index_.grid.boxOf(chunk);
  const bool is_one = index_.grid.count() == 1;
  FrameDescription& description = frame.header.description;
  FZ_REQUIRE(description.type == index_.type, ErrorCode::kCorrupt, "its frame holds {}, not {}",
             dataTypeToString(description.type), dataTypeToString(index_.type));
  const std::uint64_t n_bytes = valueCount(box.extents) * index_.grid.valueBytes();
  FZ_REQUIRE(description.original_bytes == n_bytes, ErrorCode::kCorrupt,
             "its frame holds {} bytes, not {}", description.original_bytes, n_bytes);
  const AxisValues extents(description.shape.extents.begin(),
                           description.shape.extents.begin() + description.shape.n_axes);
  if (description.place && !is_one) {
    checkPlace(description, box);
  } else if (!is_one) {
    const FramePlace place = placeOf(box, index_.grid.extents(), index_.array_id);
    frame.header_bytes = headerWith(frame.header, box.extents, place);
  } else if (description.place || extents != box.extents) {
    frame.header_bytes = headerWith(frame.header, box.extents, std::nullopt);
  }
  sink_->write(frame.header_bytes);
  sink_->write(frame.payload);
  const std::uint64_t n_frame = frame.header_bytes.size() + frame.payload.size();
  index_.chunks.push_back({position_, n_frame, frame.header.core.header_checksum});
  position_ += n_frame;
  if (const std::optional<BoundInfo>& own = description.bound) {
    index_.bound = index_.bound ? index_.bound : own;
    index_.bound->absolute = std::max(index_.bound->absolute, own->absolute);
  }
}

std::uint64_t ArchiveAssembler::finish() {
  FZ_REQUIRE(index_.chunks.size() == index_.grid.count(), ErrorCode::kBadSize,
             "archive: {} chunks of {}", index_.chunks.size(), index_.grid.count());
  if (index_.grid.count() > 1) {
    const std::vector<std::uint8_t> bytes = putIndex(index_, position_);
    sink_->write(bytes);
    position_ += bytes.size();
  }
  return position_;
}

}  // namespace fz
