#include "archive/index.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/require.h"
#include "format/crc32.h"
#include "format/frame_layout.h"
#include "format/varint.h"

namespace fz {

namespace {

constexpr std::uint32_t kIndexMagic = 0x49415A46;
constexpr std::uint16_t kIndexVersion = 1;
constexpr std::size_t kFixedBytes = 40;    // before the extents
constexpr std::size_t kCheckedTail = 24;   // what the checksum covers of the tail
constexpr std::size_t kLeastPerChunk = 1;  // an absent one

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t fromZigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

void putFixed(const ArchiveIndex& index, ByteWriter& out) {
  out.u32(kIndexMagic).u16(kIndexVersion);
  out.u8(static_cast<std::uint8_t>(index.type));
  out.u8(static_cast<std::uint8_t>(index.grid.axisCount()));
  out.u8(index.bound ? static_cast<std::uint8_t>(index.bound->mode) : kNoBound).zeros(7);
  out.u64(index.array_id);
  out.f64(index.bound ? index.bound->requested : 0.0);
  out.f64(index.bound ? index.bound->absolute : 0.0);
}

std::optional<BoundInfo> getBound(std::uint8_t mode, double requested, double absolute) {
  if (mode == kNoBound) {
    FZ_REQUIRE(requested == 0.0 && absolute == 0.0, ErrorCode::kCorrupt,
               "archive: a bound without a mode in its index");
    return std::nullopt;
  }
  FZ_REQUIRE(mode <= 2 && std::isfinite(requested) && requested >= 0.0 && std::isfinite(absolute) &&
                 absolute >= 0.0,
             ErrorCode::kCorrupt, "archive: bound {} of mode {} in its index", requested, mode);
  return BoundInfo{static_cast<ErrorBoundMode>(mode), requested, absolute};
}

ChunkGrid getGrid(ByteReader& in, DataType type, std::size_t n_axes) {
  AxisValues extents;
  AxisValues chunk;
  for (std::size_t axis = 0; axis < n_axes; ++axis) {
    extents.push_back(getVarint(in));
    chunk.push_back(getVarint(in));
  }
  try {
    return ChunkGrid(type, extents, chunk);
  } catch (const InvalidArgument& error) {
    throw Error(ErrorCode::kCorrupt, error.what());
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorrupt, error.what());
  }
}

ChunkEntry getEntry(ByteReader& in, std::uint64_t expected, std::uint64_t frames_end) {
  ChunkEntry entry;
  entry.n_bytes = getVarint(in);
  if (entry.n_bytes == 0) {
    return entry;
  }
  entry.offset = expected + static_cast<std::uint64_t>(fromZigzag(getVarint(in)));
  entry.header_checksum = in.u32();
  FZ_REQUIRE(entry.offset <= frames_end && entry.n_bytes <= frames_end - entry.offset,
             ErrorCode::kCorrupt, "archive: a frame of {} bytes at {}, but frames end at {}",
             entry.n_bytes, entry.offset, frames_end);
  return entry;
}

/// Frames that share bytes would let a short file claim to hold any number of chunks.
void requireApart(const std::vector<ChunkEntry>& chunks) {
  const auto isBefore = [](const ChunkEntry& a, const ChunkEntry& b) {
    return a.offset < b.offset;
  };
  std::vector<ChunkEntry> there;
  if (!std::is_sorted(chunks.begin(), chunks.end(), isBefore)) {
    std::copy_if(chunks.begin(), chunks.end(), std::back_inserter(there),
                 [](const ChunkEntry& entry) { return entry.n_bytes != 0; });
    std::sort(there.begin(), there.end(), isBefore);
  }
  std::uint64_t end = 0;
  for (const ChunkEntry& entry : there.empty() ? chunks : there) {
    if (entry.n_bytes != 0) {
      FZ_REQUIRE(entry.offset >= end, ErrorCode::kCorrupt,
                 "archive: two of its frames share the bytes at {}", entry.offset);
      end = entry.offset + entry.n_bytes;
    }
  }
}

}  // namespace

std::vector<std::uint8_t> putIndex(const ArchiveIndex& index, std::uint64_t frames_end) {
  std::size_t n_bytes = kFixedBytes;
  for (std::size_t axis = 0; axis < index.grid.axisCount(); ++axis) {
    n_bytes += varintBytes(index.grid.extents()[axis]) + varintBytes(index.grid.chunk()[axis]);
  }
  std::uint64_t expected = 0;
  const auto stepTo = [&](const ChunkEntry& entry) {
    const std::uint64_t step = zigzag(static_cast<std::int64_t>(entry.offset - expected));
    expected = entry.offset + entry.n_bytes;
    return step;
  };
  for (const ChunkEntry& entry : index.chunks) {
    n_bytes += entry.n_bytes == 0 ? 1 : varintBytes(entry.n_bytes) + varintBytes(stepTo(entry)) + 4;
  }
  std::vector<std::uint8_t> bytes(n_bytes + kArchiveTailBytes);
  ByteWriter out(bytes);
  putFixed(index, out);
  for (std::size_t axis = 0; axis < index.grid.axisCount(); ++axis) {
    putVarint(out, index.grid.extents()[axis]);
    putVarint(out, index.grid.chunk()[axis]);
  }
  expected = 0;
  for (const ChunkEntry& entry : index.chunks) {
    putVarint(out, entry.n_bytes);
    if (entry.n_bytes != 0) {
      putVarint(out, stepTo(entry));
      out.u32(entry.header_checksum);
    }
  }
  FZ_ASSERT(out.position() == n_bytes);
  out.u64(frames_end).u64(n_bytes).u64(frames_end + bytes.size());
  out.u32(crc32(ByteView(bytes).first(n_bytes + kCheckedTail))).u32(kArchiveTailMagic);
  FZ_ASSERT(!out.overflowed() && out.position() == bytes.size());
  return bytes;
}

std::optional<IndexPlace> findIndex(ByteView tail, std::uint64_t file_bytes) {
  if (tail.size() < kArchiveTailBytes) {
    return std::nullopt;
  }
  ByteReader in(tail.last(kArchiveTailBytes));
  IndexPlace place;
  place.offset = in.u64();
  place.n_bytes = in.u64();
  const std::uint64_t total = in.u64();
  in.u32();
  if (in.u32() != kArchiveTailMagic) {
    return std::nullopt;
  }
  FZ_REQUIRE(total == file_bytes && place.offset <= total && place.n_bytes <= total &&
                 kArchiveTailBytes <= total &&
                 place.offset + place.n_bytes == total - kArchiveTailBytes,
             ErrorCode::kCorrupt,
             "archive: {} bytes long, but its end says {}, with an index of {} bytes at {}",
             file_bytes, total, place.n_bytes, place.offset);
  return place;
}

ArchiveIndex getIndex(ByteView bytes, std::uint64_t file_bytes, std::uint64_t max_memory_bytes) {
  FZ_REQUIRE(bytes.size() >= kFixedBytes + kArchiveTailBytes, ErrorCode::kCorrupt,
             "archive: an index of {} bytes is too short", bytes.size());
  const std::size_t n_index = bytes.size() - kArchiveTailBytes;
  ByteReader tail(bytes.subspan(n_index));
  const std::uint64_t frames_end = tail.u64();
  tail.skip(2 * sizeof(std::uint64_t));
  const std::uint32_t stated = tail.u32();
  const std::uint32_t crc = crc32(bytes.first(n_index + kCheckedTail));
  FZ_REQUIRE(crc == stated, ErrorCode::kCorrupt,
             "archive: checksum {:08x} of its index, computed {:08x}; 'fz recover' makes a new "
             "index from the chunks",
             stated, crc);
  FZ_REQUIRE(frames_end == file_bytes - bytes.size(), ErrorCode::kCorrupt,
             "archive: its index is elsewhere");
  ByteReader in(bytes.first(n_index));
  FZ_REQUIRE(in.u32() == kIndexMagic, ErrorCode::kCorrupt, "archive: no index where it should be");
  const std::uint16_t version = in.u16();
  FZ_REQUIRE(version == kIndexVersion, ErrorCode::kUnsupported,
             "archive: version {} of the index; this library reads {}", version, kIndexVersion);
  ArchiveIndex index;
  index.type = static_cast<DataType>(in.u8());
  const std::size_t n_axes = in.u8();
  const std::uint8_t mode = in.u8();
  for (int i = 0; i < 7; ++i) {
    FZ_REQUIRE(in.u8() == 0, ErrorCode::kCorrupt, "archive: unknown content in its index");
  }
  index.array_id = in.u64();
  const double requested = in.f64();
  index.bound = getBound(mode, requested, in.f64());
  FZ_REQUIRE(isKnown(index.type) || index.type == DataType::UNKNOWN, ErrorCode::kCorrupt,
             "archive: unknown element type");
  FZ_REQUIRE(n_axes >= 1 && n_axes <= kMaxAxes, ErrorCode::kCorrupt,
             "archive: {} axes; 1 to {} are allowed", n_axes, kMaxAxes);
  index.grid = getGrid(in, index.type, n_axes);
  FZ_REQUIRE(index.grid.count() <= in.remaining() / kLeastPerChunk, ErrorCode::kCorrupt,
             "archive: {} chunks in an index of {} bytes", index.grid.count(), n_index);
  const std::uint64_t n_memory = bytes.size() + index.grid.count() * sizeof(ChunkEntry);
  FZ_REQUIRE(max_memory_bytes == 0 || n_memory <= max_memory_bytes, ErrorCode::kLimit,
             "archive: the index of {} chunks takes {} bytes, the limit is {}", index.grid.count(),
             n_memory, max_memory_bytes);
  index.chunks.reserve(index.grid.count());
  std::uint64_t expected = 0;
  for (std::uint64_t chunk = 0; chunk < index.grid.count(); ++chunk) {
    index.chunks.push_back(getEntry(in, expected, frames_end));
    if (index.chunks.back().n_bytes != 0) {
      expected = index.chunks.back().offset + index.chunks.back().n_bytes;
    }
  }
  FZ_REQUIRE(!in.failed() && in.remaining() == 0, ErrorCode::kCorrupt,
             "archive: an index of {} bytes whose records take {}", n_index, in.position());
  requireApart(index.chunks);
  return index;
}

}  // namespace fz
