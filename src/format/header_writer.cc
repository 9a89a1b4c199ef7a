#include "core/require.h"
#include "format/compact_header.h"
#include "format/crc32.h"
#include "format/frame_header.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

void putCore(ByteWriter& out, const FZMHeaderCore& core) {
  out.u32(core.magic).u16(core.version).u16(core.num_buffers);
  out.u64(core.uncompressed_size).u64(core.compressed_size).u64(core.header_size);
  out.u32(core.num_stages).u16(core.num_sources).u16(core.flags);
  for (const std::uint64_t n : core.source_uncompressed_sizes) {
    out.u64(n);
  }
  out.u32(core.data_checksum).u32(core.header_checksum);
}

void putStage(ByteWriter& out, const FZMStageInfo& stage) {
  out.u16(stage.stage_type).u16(stage.stage_version);
  out.u8(stage.num_inputs).u8(stage.num_outputs).u16(0);
  for (const std::uint16_t id : stage.input_buffer_ids) {
    out.u16(id);
  }
  for (const std::uint16_t id : stage.output_buffer_ids) {
    out.u16(id);
  }
  out.raw(stage.stage_config).u32(stage.config_size).raw(stage.reserved);
}

void putBuffer(ByteWriter& out, const FZMBufferEntry& buffer) {
  out.u16(buffer.stage_type).u16(buffer.stage_version);
  out.u8(buffer.data_type).u8(buffer.producer_output_idx).u16(buffer.dag_buffer_id);
  for (const char c : buffer.name) {
    out.u8(static_cast<std::uint8_t>(c));
  }
  out.u64(buffer.data_size).u64(buffer.allocated_size);
  out.u64(buffer.uncompressed_size).u64(buffer.byte_offset);
  out.raw(buffer.stage_config).u32(buffer.config_size).zeros(kBufferTailBytes);
}

void putDescription(const FrameDescription& description, FZMStageInfo& first) {
  first.reserved.fill(0);
  ByteWriter out(first.reserved);
  out.u32(kDescriptionVersion);
  out.u8(static_cast<std::uint8_t>(description.type)).u8(description.ndim);
  out.u8(description.bound ? static_cast<std::uint8_t>(description.bound->mode) : kNoBound).u8(0);
  out.u64(description.original_bytes);
  for (const std::uint64_t extent : description.dims) {
    out.u64(extent);
  }
  out.f64(description.bound ? description.bound->requested : 0.0);
  out.f64(description.bound ? description.bound->absolute : 0.0);
}

void putRecords(FrameHeader& header, ByteWriter& out) {
  putDescription(header.description, header.stages.front());
  putCore(out, header.core);
  for (const FZMStageInfo& stage : header.stages) {
    putStage(out, stage);
  }
  for (const FZMBufferEntry& buffer : header.buffers) {
    putBuffer(out, buffer);
  }
}

}  // namespace

std::size_t headerBytes(const FrameHeader& header) {
  return isCompactForm(header)
             ? compactHeaderBytes(header)
             : kCoreBytes + kRecordBytes * (header.stages.size() + header.buffers.size());
}

void writeHeader(FrameHeader& header, MutableByteView out) {
  FZMHeaderCore& core = header.core;
  FZ_ASSERT(!header.stages.empty());
  const bool is_compact = isCompactForm(header);
  core.version = is_compact ? FZM_VERSION_COMPACT : FZM_VERSION;
  core.num_stages = static_cast<std::uint32_t>(header.stages.size());
  core.num_buffers = static_cast<std::uint16_t>(header.buffers.size());
  core.header_size = headerBytes(header);
  core.flags = FZM_FLAG_DATA_CHECKSUM | FZM_FLAG_HEADER_CHECKSUM;
  core.header_checksum = 0;
  FZ_ASSERT(out.size() >= core.header_size);
  ByteWriter writer(out.first(core.header_size));
  if (is_compact) {
    if (header.description.place) {
      core.flags |= FZM_FLAG_PLACE;
    }
    putCompact(header, writer);
  } else {
    putRecords(header, writer);
  }
  FZ_ASSERT(!writer.overflowed() && writer.position() == core.header_size);
  core.header_checksum = crc32(out.first(core.header_size));
  ByteWriter(out.subspan(kHeaderChecksumOffset, 4)).u32(core.header_checksum);
}

}  // namespace fz
