#include "pipeline/frame/device_fields.h"

#include <algorithm>

#include "format/frame_layout.h"
#include "format/header_places.h"

namespace fz {

std::vector<HeaderFieldOnDevice> listDeviceFields(
    const FrameHeader& header, const std::vector<std::vector<DeviceField>>& fields_of_stage) {
  using Kind = HeaderFieldOnDevice::Kind;
  std::vector<HeaderFieldOnDevice> fields;
  const auto add = [&](HeaderFieldOnDevice field, std::size_t offset) {
    field.offset = static_cast<std::uint32_t>(offset);
    fields.push_back(field);
  };
  const HeaderPlaces places = placesIn(header);
  add({Kind::kPayloadBytes, 0, 8}, kCompressedSizeOffset);
  for (std::size_t i = 0; i < header.buffers.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    bool is_copy = false;
    for (const std::size_t offset : places.segments[i].sizes) {
      add({Kind::kSegmentBytes, 0, 8, index, 0, is_copy}, offset);
      is_copy = true;
    }
    for (const std::size_t offset : places.segments[i].offset) {
      add({Kind::kSegmentOffset, 0, 8, index}, offset);
    }
  }
  for (std::size_t s = 0; s < header.stages.size(); ++s) {
    const auto index = static_cast<std::uint32_t>(s);
    const FZMStageInfo& stage = header.stages[s];
    const auto outputs_end = stage.output_buffer_ids.begin() + stage.num_outputs;
    for (const DeviceField& field : fields_of_stage[s]) {
      if (field.config_offset == DeviceField::kAbsoluteBound) {
        add({Kind::kAbsoluteBound, 0, 8, index, field.slot}, places.absolute_bound);
        continue;
      }
      const bool is_version = field.config_offset == DeviceField::kStageVersion;
      const auto within = [&](const HeaderPlaces::Record& record) {
        return is_version ? record.version : record.config + field.config_offset;
      };
      HeaderFieldOnDevice entry{Kind::kStageValue, 0, field.n_bytes, index, field.slot};
      add(entry, within(places.stages[s]));
      entry.is_copy = true;
      for (std::size_t i = 0; i < header.buffers.size(); ++i) {
        if (std::find(stage.output_buffer_ids.begin(), outputs_end,
                      header.buffers[i].dag_buffer_id) == outputs_end) {
          continue;
        }
        for (const HeaderPlaces::Record& record : places.segments[i].producer) {
          add(entry, within(record));
        }
      }
    }
  }
  return fields;
}

}  // namespace fz
