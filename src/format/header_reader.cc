#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>

#include "core/require.h"
#include "format/compact_header.h"
#include "format/crc32.h"
#include "format/frame_header.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

constexpr std::size_t kFrontBytes = 8;  // magic and version
constexpr unsigned kChecksumFlags = FZM_FLAG_DATA_CHECKSUM | FZM_FLAG_HEADER_CHECKSUM;

FZMHeaderCore getCore(ByteReader& in, bool has_checksums) {
  FZMHeaderCore core;
  core.magic = in.u32();
  core.version = in.u16();
  core.num_buffers = in.u16();
  core.uncompressed_size = in.u64();
  core.compressed_size = in.u64();
  core.header_size = in.u64();
  core.num_stages = in.u32();
  core.num_sources = in.u16();
  core.flags = in.u16();
  for (std::uint64_t& n : core.source_uncompressed_sizes) {
    n = in.u64();
  }
  if (has_checksums) {
    core.data_checksum = in.u32();
    core.header_checksum = in.u32();
  }
  return core;
}

template <std::size_t N>
void getBytes(ByteReader& in, std::array<std::uint8_t, N>& bytes) {
  for (std::uint8_t& b : bytes) {
    b = in.u8();
  }
}

FZMStageInfo getStage(ByteReader& in) {
  FZMStageInfo stage;
  stage.stage_type = in.u16();
  stage.stage_version = in.u16();
  stage.num_inputs = in.u8();
  stage.num_outputs = in.u8();
  stage.reserved1 = in.u16();
  for (std::uint16_t& id : stage.input_buffer_ids) {
    id = in.u16();
  }
  for (std::uint16_t& id : stage.output_buffer_ids) {
    id = in.u16();
  }
  getBytes(in, stage.stage_config);
  stage.config_size = in.u32();
  getBytes(in, stage.reserved);
  return stage;
}

FZMBufferEntry getBuffer(ByteReader& in) {
  FZMBufferEntry buffer;
  buffer.stage_type = in.u16();
  buffer.stage_version = in.u16();
  buffer.data_type = in.u8();
  buffer.producer_output_idx = in.u8();
  buffer.dag_buffer_id = in.u16();
  for (char& c : buffer.name) {
    c = static_cast<char>(in.u8());
  }
  buffer.data_size = in.u64();
  buffer.allocated_size = in.u64();
  buffer.uncompressed_size = in.u64();
  buffer.byte_offset = in.u64();
  getBytes(in, buffer.stage_config);
  buffer.config_size = in.u32();
  in.skip(kBufferTailBytes);
  return buffer;
}

void getRecords(ByteReader& in, FrameHeader& header) {
  for (std::uint32_t i = 0; i < header.core.num_stages; ++i) {
    header.stages.push_back(getStage(in));
  }
  for (std::uint16_t i = 0; i < header.core.num_buffers; ++i) {
    header.buffers.push_back(getBuffer(in));
  }
  FZ_ASSERT(!in.failed());
}

/// The shape is the caller's to trust: it must describe exactly the bytes that decoding gives.
void checkShape(const FrameDescription& description) {
  const auto& dims = description.dims;
  std::uint64_t n_values = 0;
  const bool overflows = __builtin_mul_overflow(dims[0], dims[1], &n_values) ||
                         __builtin_mul_overflow(n_values, dims[2], &n_values);
  const std::uint64_t value_bytes =
      isKnown(description.type) ? getDataTypeSize(description.type) : 1;
  FZ_REQUIRE(!overflows && n_values == description.original_bytes / value_bytes,
             ErrorCode::kCorrupt, "frame: dims {} x {} x {} of {}-byte values, but {} bytes",
             dims[0], dims[1], dims[2], value_bytes, description.original_bytes);
  const int needed = dims[2] != 1 ? 3 : dims[1] != 1 ? 2 : 1;
  FZ_REQUIRE(description.ndim <= 3 && description.ndim >= needed, ErrorCode::kCorrupt,
             "frame: {} dimensions, but dims {} x {} x {}", description.ndim, dims[0], dims[1],
             dims[2]);
}

void checkBound(const BoundInfo& bound) {
  FZ_REQUIRE(std::isfinite(bound.requested) && bound.requested >= 0.0 &&
                 std::isfinite(bound.absolute) && bound.absolute >= 0.0,
             ErrorCode::kCorrupt, "frame: bound {}, absolute {}", bound.requested, bound.absolute);
}

void checkDescription(const FrameDescription& description, const FZMHeaderCore& core) {
  FZ_REQUIRE(isKnown(description.type) || description.type == DataType::UNKNOWN,
             ErrorCode::kCorrupt, "frame: unknown element type");
  FZ_REQUIRE(description.original_bytes <= core.uncompressed_size, ErrorCode::kCorrupt,
             "frame: original length {} exceeds the decoded length {}", description.original_bytes,
             core.uncompressed_size);
  checkShape(description);
  if (description.bound) {
    checkBound(*description.bound);
  }
}

/// Axes beyond the third, which predictors do not see, are part of the third.
void foldShape(FrameDescription& description) {
  const FrameShape& shape = description.shape;
  description.ndim = std::clamp<std::uint8_t>(shape.n_axes, 1, 3);
  description.dims = {1, 1, 1};
  for (std::size_t k = 0; k < shape.n_axes; ++k) {
    std::uint64_t& extent = description.dims[std::min<std::size_t>(k, 2)];
    FZ_REQUIRE(!__builtin_mul_overflow(extent, shape.extents[k], &extent), ErrorCode::kCorrupt,
               "frame: extents beyond 64 bits");
  }
}

FrameDescription getDescription(const FrameHeader& header) {
  FrameDescription description;
  if (header.minor() < 2) {
    description.original_bytes = header.core.uncompressed_size;
    return description;
  }
  ByteReader in(header.stages.front().reserved);
  FZ_REQUIRE(in.u32() == kDescriptionVersion, ErrorCode::kUnsupported,
             "frame: unknown version of its description");
  description.type = static_cast<DataType>(in.u8());
  description.ndim = in.u8();
  const std::uint8_t mode = in.u8();
  in.u8();
  description.original_bytes = in.u64();
  for (std::uint64_t& extent : description.dims) {
    extent = in.u64();
  }
  const double requested = in.f64();
  const double absolute = in.f64();
  FZ_REQUIRE(mode == kNoBound || mode <= 2, ErrorCode::kCorrupt, "frame: bound mode {}", mode);
  if (mode != kNoBound) {
    description.bound = BoundInfo{static_cast<ErrorBoundMode>(mode), requested, absolute};
  }
  checkDescription(description, header.core);
  description.shape.n_axes = description.ndim;
  std::copy_n(description.dims.begin(), description.ndim, description.shape.extents.begin());
  return description;
}

void checkVersion(std::uint32_t magic, std::uint16_t version) {
  FZ_REQUIRE(magic == FZM_MAGIC, ErrorCode::kCorrupt,
             "frame: does not start with the FZM magic number");
  const unsigned major = version <= 0xFF ? version : version >> 8;
  const unsigned minor = version <= 0xFF ? 0 : version & 0xFFu;
  FZ_REQUIRE(major == FZM_VERSION_MAJOR && minor <= FZM_VERSION_MINOR, ErrorCode::kUnsupported,
             "frame: version {}.{}; this build reads 3.0 to {}.{}", major, minor, FZM_VERSION_MAJOR,
             FZM_VERSION_MINOR);
}

/// Counts, and lengths against each other; the records come after the checksum.
void checkCore(const FrameHeader& header, std::size_t core_bytes, std::uint64_t total_bytes) {
  const FZMHeaderCore& core = header.core;
  FZ_REQUIRE(core.num_stages >= 1 && core.num_stages <= FZM_MAX_STAGES &&
                 core.num_buffers <= FZM_MAX_BUFFERS,
             ErrorCode::kCorrupt, "frame: {} stages and {} segments; at most {} and {} are allowed",
             core.num_stages, core.num_buffers, FZM_MAX_STAGES, FZM_MAX_BUFFERS);
  const std::uint64_t wanted = core_bytes + kRecordBytes * (std::uint64_t{core.num_stages} +
                                                            std::uint64_t{core.num_buffers});
  FZ_REQUIRE(header.isCompact() || core.header_size == wanted, ErrorCode::kCorrupt,
             "frame: header size {}, but its records take {}", core.header_size, wanted);
  FZ_REQUIRE(core.header_size >= core_bytes && core.header_size <= kMaxHeaderBytes &&
                 (!header.isCompact() || core.header_size % kCompactAlignment == 0),
             ErrorCode::kCorrupt, "frame: header size {}", core.header_size);
  FZ_REQUIRE(
      total_bytes >= core.header_size && total_bytes - core.header_size == core.compressed_size,
      ErrorCode::kCorrupt, "frame: {} bytes long, but the header announces {} + {}", total_bytes,
      core.header_size, core.compressed_size);
  FZ_REQUIRE(core.num_sources == 1, ErrorCode::kUnsupported,
             "frame: {} sources, only 1 is supported", core.num_sources);
}

void checkChecksum(const FrameHeader& header, ByteView front) {
  if (header.minor() == 0) {
    return;  // 3.0 has no checksums
  }
  // Both are always written, so a cleared flag is damage and not a choice.
  const unsigned free_flags = header.isCompact() ? FZM_FLAG_PLACE : 0;
  FZ_REQUIRE((header.core.flags & ~free_flags) == kChecksumFlags, ErrorCode::kCorrupt,
             "frame: checksum flags are {:#x}, both must be set", header.core.flags);
  constexpr std::array<std::uint8_t, 4> kZeros = {};
  std::uint32_t crc = crc32(front.first(kHeaderChecksumOffset));
  crc = crc32(kZeros, crc);
  crc = crc32(front.subspan(kCoreBytes, header.core.header_size - kCoreBytes), crc);
  FZ_REQUIRE(crc == header.core.header_checksum, ErrorCode::kCorrupt,
             "frame: header checksum {:08x}, computed {:08x}", header.core.header_checksum, crc);
}

/// Ids of 16 bits, without memory from the heap.
class IdSet {
 public:
  /// False when it was there already.
  bool insert(std::uint16_t id) {
    const bool is_new = !has_[id];
    has_.set(id);
    return is_new;
  }

 private:
  std::bitset<0x10000> has_;
};

void checkStages(const FrameHeader& header) {
  IdSet produced;
  for (const FZMStageInfo& stage : header.stages) {
    FZ_REQUIRE(stage.num_inputs >= 1 && stage.num_inputs <= FZM_MAX_PORTS &&
                   stage.num_outputs >= 1 && stage.num_outputs <= FZM_MAX_PORTS,
               ErrorCode::kCorrupt, "frame: stage of type {} with {} inputs and {} outputs",
               stage.stage_type, stage.num_inputs, stage.num_outputs);
    FZ_REQUIRE(stage.config_size <= FZM_STAGE_CONFIG_SIZE, ErrorCode::kCorrupt,
               "frame: stage of type {} with a config of {} bytes", stage.stage_type,
               stage.config_size);
    for (std::size_t i = 0; i < stage.num_outputs; ++i) {
      const std::uint16_t id = stage.output_buffer_ids[i];
      FZ_REQUIRE(id != FZM_UNUSED_BUFFER_ID && produced.insert(id), ErrorCode::kCorrupt,
                 "frame: buffer {} is produced twice or has no id", id);
    }
  }
}

void checkSegments(const FrameHeader& header) {
  IdSet seen;
  std::uint64_t offset = 0;
  for (const FZMBufferEntry& buffer : header.buffers) {
    FZ_REQUIRE(
        buffer.byte_offset == offset && buffer.data_size <= header.core.compressed_size - offset,
        ErrorCode::kCorrupt, "frame: segment at {} of {} bytes in a payload of {}",
        buffer.byte_offset, buffer.data_size, header.core.compressed_size);
    offset += buffer.data_size;
    FZ_REQUIRE(seen.insert(buffer.dag_buffer_id), ErrorCode::kCorrupt,
               "frame: two segments for buffer {}", buffer.dag_buffer_id);
    FZ_REQUIRE(buffer.name.back() == '\0', ErrorCode::kCorrupt, "frame: unterminated segment name");
    FZ_REQUIRE(buffer.config_size <= FZM_STAGE_CONFIG_SIZE, ErrorCode::kCorrupt,
               "frame: segment with a config of {} bytes", buffer.config_size);
  }
  FZ_REQUIRE(offset == header.core.compressed_size, ErrorCode::kCorrupt,
             "frame: segments take {} bytes of a payload of {}", offset,
             header.core.compressed_size);
}

}  // namespace

std::uint16_t FrameHeader::major() const {
  return core.version <= 0xFF ? core.version : static_cast<std::uint16_t>(core.version >> 8);
}
std::uint16_t FrameHeader::minor() const {
  return core.version <= 0xFF ? 0 : static_cast<std::uint16_t>(core.version & 0xFFu);
}

FrameHeader readHeader(ByteView front, std::uint64_t total_bytes) {
  FrameHeader header;
  readHeader(front, total_bytes, header);
  return header;
}

void readHeader(ByteView front, std::uint64_t total_bytes, FrameHeader& header) {
  FZ_REQUIRE(front.size() >= kFrontBytes, ErrorCode::kCorrupt,
             "frame: {} bytes are too few for a header", front.size());
  ByteReader peek(front);
  const std::uint32_t magic = peek.u32();
  checkVersion(magic, peek.u16());

  header.stages.clear();
  header.buffers.clear();
  ByteReader in(front);
  header.core.version = loadLe<std::uint16_t>(front.data() + 4);
  const bool has_checksums = header.minor() > 0;
  const std::size_t core_bytes = has_checksums ? kCoreBytes : kCoreBytesV30;
  header.core = getCore(in, has_checksums);
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "frame: {} bytes are too few for a header",
             front.size());
  if (header.isCompact()) {  // what else the other form has there is the description
    header.core.num_stages &= 0xFFu;
  }
  checkCore(header, core_bytes, total_bytes);
  FZ_REQUIRE(front.size() >= header.core.header_size, ErrorCode::kCorrupt,
             "frame: {} bytes are fewer than the {} of its header", front.size(),
             header.core.header_size);
  checkChecksum(header, front);
  if (header.isCompact()) {
    getCompact(front.first(header.core.header_size), header);
    foldShape(header.description);
    checkDescription(header.description, header.core);
  } else {
    getRecords(in, header);
  }
  checkStages(header);
  checkSegments(header);
  if (!header.isCompact()) {
    header.description = getDescription(header);
  }
}

void verifyPayload(const FrameHeader& header, ByteView payload, const CpuExecutor& executor) {
  FZ_REQUIRE(payload.size() == header.core.compressed_size, ErrorCode::kCorrupt,
             "frame: payload of {} bytes, the header announces {}", payload.size(),
             header.core.compressed_size);
  if (header.minor() != 0) {
    verifyPayloadCrc(header, crc32(payload, executor));
  }
}

void verifyPayloadCrc(const FrameHeader& header, std::uint32_t crc) {
  FZ_REQUIRE(header.minor() == 0 || crc == header.core.data_checksum, ErrorCode::kCorrupt,
             "frame: payload checksum {:08x}, computed {:08x}", header.core.data_checksum, crc);
}

}  // namespace fz
