#include "format/compact_header.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

#include "core/require.h"
#include "format/frame_layout.h"
#include "format/varint.h"
#include "shared/bits.h"

namespace fz {

namespace {

std::size_t nameBytes(const FZMBufferEntry& buffer) {
  return static_cast<std::size_t>(std::find(buffer.name.begin(), buffer.name.end(), '\0') -
                                  buffer.name.begin());
}

void putCore(const FrameHeader& header, ByteWriter& out) {
  const FZMHeaderCore& core = header.core;
  const FrameDescription& description = header.description;
  out.u32(core.magic).u16(core.version).u16(core.num_buffers);
  out.u64(core.uncompressed_size).u64(core.compressed_size).u64(core.header_size);
  out.u8(static_cast<std::uint8_t>(core.num_stages)).u8(description.shape.n_axes);
  out.u8(static_cast<std::uint8_t>(description.type));
  out.u8(description.bound ? static_cast<std::uint8_t>(description.bound->mode) : kNoBound);
  out.u16(core.num_sources).u16(core.flags);
  out.u64(description.original_bytes);
  out.f64(description.bound ? description.bound->requested : 0.0);
  out.f64(description.bound ? description.bound->absolute : 0.0);
  out.u64(description.place ? description.place->array_id : 0);
  out.u32(core.data_checksum).u32(core.header_checksum);
}

void getCore(ByteReader& in, FrameHeader& header) {
  FZMHeaderCore& core = header.core;
  FrameDescription& description = header.description;
  core.magic = in.u32();
  core.version = in.u16();
  core.num_buffers = in.u16();
  core.uncompressed_size = in.u64();
  core.compressed_size = in.u64();
  core.header_size = in.u64();
  core.num_stages = in.u8();
  description.shape.n_axes = in.u8();
  description.type = static_cast<DataType>(in.u8());
  const std::uint8_t mode = in.u8();
  core.num_sources = in.u16();
  core.flags = in.u16();
  description.original_bytes = in.u64();
  const double requested = in.f64();
  const double absolute = in.f64();
  const std::uint64_t array_id = in.u64();
  core.data_checksum = in.u32();
  core.header_checksum = in.u32();
  core.source_uncompressed_sizes = {core.uncompressed_size};
  FZ_REQUIRE(description.shape.n_axes <= FZM_MAX_AXES, ErrorCode::kCorrupt,
             "frame: {} axes; at most {} are allowed", description.shape.n_axes, FZM_MAX_AXES);
  FZ_REQUIRE(mode == kNoBound || mode <= 2, ErrorCode::kCorrupt, "frame: bound mode {}", mode);
  if (mode != kNoBound) {
    description.bound = BoundInfo{static_cast<ErrorBoundMode>(mode), requested, absolute};
  }
  const auto isZero = [](double value) { return __builtin_bit_cast(std::uint64_t, value) == 0; };
  FZ_REQUIRE(mode != kNoBound || (isZero(requested) && isZero(absolute)), ErrorCode::kCorrupt,
             "frame: a bound without a mode");
  if ((core.flags & FZM_FLAG_PLACE) != 0) {
    description.place = FramePlace{};
    description.place->array_id = array_id;
  }
  FZ_REQUIRE(description.place || array_id == 0, ErrorCode::kCorrupt,
             "frame: an array id without a place");
}

void getShape(ByteReader& in, FrameDescription& description) {
  for (std::size_t k = 0; k < description.shape.n_axes; ++k) {
    const std::uint64_t extent = getVarint(in);
    description.shape.extents[k] = extent;
    if (description.place) {
      FramePlace& place = *description.place;
      place.origin[k] = getVarint(in);
      place.whole[k] = getVarint(in);
      FZ_REQUIRE(place.origin[k] <= place.whole[k] && extent <= place.whole[k] - place.origin[k],
                 ErrorCode::kCorrupt, "frame: its part of axis {} is {} to {} + {} of {}", k,
                 place.origin[k], place.origin[k], extent, place.whole[k]);
    }
  }
}

void putStage(const FZMStageInfo& stage, ByteWriter& out) {
  out.u16(stage.stage_type).u16(stage.stage_version);
  out.u8(static_cast<std::uint8_t>(stage.num_inputs << 4 | stage.num_outputs));
  for (std::size_t i = 0; i < stage.num_inputs; ++i) {
    out.u16(stage.input_buffer_ids[i]);
  }
  out.u8(static_cast<std::uint8_t>(stage.config_size));
  out.raw(std::span(stage.stage_config).first(stage.config_size));
}

/// Outputs have the next ids.
FZMStageInfo getStage(ByteReader& in, std::uint16_t& next_id) {
  FZMStageInfo stage;
  stage.input_buffer_ids.fill(FZM_UNUSED_BUFFER_ID);
  stage.output_buffer_ids.fill(FZM_UNUSED_BUFFER_ID);
  stage.stage_type = in.u16();
  stage.stage_version = in.u16();
  const std::uint8_t ports = in.u8();
  stage.num_inputs = ports >> 4;
  stage.num_outputs = ports & 15u;
  FZ_REQUIRE(stage.num_inputs <= FZM_MAX_PORTS && stage.num_outputs <= FZM_MAX_PORTS,
             ErrorCode::kCorrupt, "frame: stage of type {} with {} inputs and {} outputs",
             stage.stage_type, stage.num_inputs, stage.num_outputs);
  for (std::size_t i = 0; i < stage.num_inputs; ++i) {
    stage.input_buffer_ids[i] = in.u16();
  }
  for (std::size_t i = 0; i < stage.num_outputs; ++i) {
    stage.output_buffer_ids[i] = next_id++;
  }
  stage.config_size = in.u8();
  FZ_REQUIRE(stage.config_size <= FZM_STAGE_CONFIG_SIZE, ErrorCode::kCorrupt,
             "frame: stage of type {} with a config of {} bytes", stage.stage_type,
             stage.config_size);
  for (std::size_t i = 0; i < stage.config_size; ++i) {
    stage.stage_config[i] = in.u8();
  }
  return stage;
}

void putSegment(const FZMBufferEntry& buffer, ByteWriter& out) {
  out.u16(buffer.dag_buffer_id).u8(buffer.data_type);
  const std::size_t n_name = nameBytes(buffer);
  out.u8(static_cast<std::uint8_t>(n_name));
  for (std::size_t i = 0; i < n_name; ++i) {
    out.u8(static_cast<std::uint8_t>(buffer.name[i]));
  }
  out.u64(buffer.data_size);
}

/// What else a record of the other form says follows from the stage that makes the segment.
FZMBufferEntry getSegment(ByteReader& in,
                          std::span<const FZMStageInfo> stages,
                          std::uint64_t offset) {
  FZMBufferEntry buffer;
  buffer.dag_buffer_id = in.u16();
  buffer.data_type = in.u8();
  const std::size_t n_name = in.u8();
  FZ_REQUIRE(n_name < FZM_MAX_NAME_LEN, ErrorCode::kCorrupt, "frame: segment name of {} bytes",
             n_name);
  for (std::size_t i = 0; i < n_name; ++i) {
    buffer.name[i] = static_cast<char>(in.u8());
    FZ_REQUIRE(buffer.name[i] != '\0', ErrorCode::kCorrupt, "frame: segment name with a zero");
  }
  buffer.data_size = in.u64();
  buffer.allocated_size = buffer.data_size;
  buffer.uncompressed_size = buffer.data_size;
  buffer.byte_offset = offset;
  std::size_t first_id = 0;
  for (const FZMStageInfo& stage : stages) {
    if (buffer.dag_buffer_id < first_id + stage.num_outputs) {
      buffer.stage_type = stage.stage_type;
      buffer.stage_version = stage.stage_version;
      buffer.producer_output_idx = static_cast<std::uint8_t>(buffer.dag_buffer_id - first_id);
      buffer.stage_config = stage.stage_config;
      buffer.config_size = stage.config_size;
      return buffer;
    }
    first_id += stage.num_outputs;
  }
  throw Error(ErrorCode::kCorrupt, fmt::format("frame: segment for buffer {}, which no stage makes",
                                               buffer.dag_buffer_id));
}

/// Whether three extents say the shape.
bool isShapeOfDims(const FrameDescription& description) {
  const FrameShape& shape = description.shape;
  return shape.n_axes == description.ndim &&
         std::equal(shape.extents.begin(), shape.extents.begin() + shape.n_axes,
                    description.dims.begin());
}

}  // namespace

bool isCompactForm(const FrameHeader& header) {
  return header.description.place || !isShapeOfDims(header.description) ||
         std::any_of(header.stages.begin(), header.stages.end(), [](const FZMStageInfo& stage) {
           return stage.stage_type >= FZM_FIRST_OWN_STAGE;
         });
}

std::size_t compactShapeBytes(const FrameDescription& description) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < description.shape.n_axes; ++k) {
    n += varintBytes(description.shape.extents[k]);
    if (description.place) {
      n += varintBytes(description.place->origin[k]) + varintBytes(description.place->whole[k]);
    }
  }
  return n;
}

std::size_t compactHeaderBytes(const FrameHeader& header) {
  std::size_t n = kCoreBytes + compactShapeBytes(header.description);
  for (const FZMStageInfo& stage : header.stages) {
    n += kCompactStageBytes + std::size_t{2} * stage.num_inputs + stage.config_size;
  }
  for (const FZMBufferEntry& buffer : header.buffers) {
    n += kCompactSegmentBytes + nameBytes(buffer);
  }
  return bits::roundUp(n, kCompactAlignment);
}

void putCompact(const FrameHeader& header, ByteWriter& out) {
  const FrameDescription& description = header.description;
  putCore(header, out);
  for (std::size_t k = 0; k < description.shape.n_axes; ++k) {
    putVarint(out, description.shape.extents[k]);
    if (description.place) {
      putVarint(out, description.place->origin[k]);
      putVarint(out, description.place->whole[k]);
    }
  }
  for (const FZMStageInfo& stage : header.stages) {
    putStage(stage, out);
  }
  for (const FZMBufferEntry& buffer : header.buffers) {
    putSegment(buffer, out);
  }
  out.zeros(header.core.header_size - out.position());
}

void getCompact(ByteView front, FrameHeader& header) {
  ByteReader in(front);
  header.description = {};
  getCore(in, header);
  getShape(in, header.description);
  std::uint16_t next_id = 0;
  for (std::uint32_t i = 0; i < header.core.num_stages; ++i) {
    header.stages.push_back(getStage(in, next_id));
  }
  std::uint64_t offset = 0;
  for (std::uint16_t i = 0; i < header.core.num_buffers; ++i) {
    header.buffers.push_back(getSegment(in, header.stages, offset));
    // A sum beyond 64 bits ends at an offset that no payload has.
    if (__builtin_add_overflow(offset, header.buffers.back().data_size, &offset)) {
      offset = ~std::uint64_t{0};
    }
  }
  FZ_REQUIRE(!in.failed() && in.remaining() < kCompactAlignment, ErrorCode::kCorrupt,
             "frame: header of {} bytes, but its records take {}", front.size(), in.position());
  while (in.remaining() > 0) {
    FZ_REQUIRE(in.u8() == 0, ErrorCode::kCorrupt, "frame: bytes behind the records of its header");
  }
}

}  // namespace fz
