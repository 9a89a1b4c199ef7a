#include "format/header_places.h"

#include <cstring>
#include <iterator>

#include "format/compact_header.h"
#include "format/frame_layout.h"

namespace fz {

namespace {

HeaderPlaces placesInRecords(const FrameHeader& header) {
  HeaderPlaces places;
  places.absolute_bound = kCoreBytes + kDescriptionBoundOffset;
  std::size_t at = kCoreBytes;
  for (std::size_t s = 0; s < header.stages.size(); ++s, at += kRecordBytes) {
    places.stages.push_back({at + kRecordVersionOffset, at + kStageConfigOffset});
  }
  for (std::size_t i = 0; i < header.buffers.size(); ++i, at += kRecordBytes) {
    HeaderPlaces::Segment segment;
    for (const std::size_t offset : kBufferSizeOffsets) {
      segment.sizes.push_back(at + offset);
    }
    segment.offset = {at + kBufferPlaceOffset};
    segment.producer = {{at + kRecordVersionOffset, at + kBufferConfigOffset}};
    places.segments.push_back(segment);
  }
  return places;
}

HeaderPlaces placesInCompact(const FrameHeader& header) {
  HeaderPlaces places;
  places.absolute_bound = kCompactBoundOffset;
  std::size_t at = kCoreBytes + compactShapeBytes(header.description);
  for (const FZMStageInfo& stage : header.stages) {
    const std::size_t config = at + kCompactStageBytes + std::size_t{2} * stage.num_inputs;
    places.stages.push_back({at + kRecordVersionOffset, config});
    at = config + stage.config_size;
  }
  for (const FZMBufferEntry& buffer : header.buffers) {
    const std::size_t n_name = strnlen(buffer.name.data(), buffer.name.size());
    places.segments.push_back({{at + kCompactNameOffset + n_name}, {}, {}});
    at += kCompactSegmentBytes + n_name;
  }
  return places;
}

}  // namespace

HeaderPlaces placesIn(const FrameHeader& header) {
  return header.isCompact() ? placesInCompact(header) : placesInRecords(header);
}

}  // namespace fz
