// Archives that are read from front to back, as pipes are.
#include <algorithm>
#include <map>
#include <new>

#include "api/host_run.h"
#include "archive/box_copy.h"
#include "archive/chunk_frame.h"
#include "archive/chunk_slots.h"
#include "archive/index.h"
#include "core/require.h"
#include "format/frame_layout.h"

namespace fz {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
/// More than the entry of a chunk can take in the index, and what stands before the entries.
constexpr std::uint64_t kMostEntryBytes = 64;
constexpr std::uint64_t kMostIndexFront = 4096;

/// What is remembered of a frame until the index confirms it.
struct SeenFrame {
  ChunkEntry entry;
  Box box;
};

class StreamReader {
 public:
  StreamReader(const NextBytes& next, const DecompressOptions& options)
      : next_(next), options_(options) {}

  ArchiveInfo run(const TakeChunk& take) {
    while (fill(kMaxHeaderBytes) > 0 && isPart(held_)) {
      takeFrame(take);
    }
    FZ_REQUIRE(!seen_.empty(), ErrorCode::kUnsupported,
               "archive: it does not begin with a part of a larger array, so it is no archive of "
               "chunks");
    return checkIndex();
  }

 private:
  /// Up to n_bytes in held_; returns how many there are, less only at the end.
  std::size_t fill(std::uint64_t n_bytes) {
    while (held_.size() < n_bytes) {
      const std::size_t n_before = held_.size();
      const std::uint64_t n_missing = n_bytes - n_before;
      // A frame may claim any length; memory is taken as its bytes come.
      held_.resize(n_before + std::min<std::uint64_t>(n_missing, kPieceBytes));
      const std::size_t n = next_(MutableByteView(held_).subspan(n_before));
      held_.resize(n_before + n);
      if (n == 0) {
        break;
      }
    }
    return std::min<std::uint64_t>(held_.size(), n_bytes);
  }

  void takeFrame(const TakeChunk& take) try {
    const std::uint64_t n_bytes = frameBytesOf(held_);
    const FrameHeader header = readHeader(held_, n_bytes);
    requireSameArray(header.description);
    const FrameDescription& description = header.description;
    const std::uint64_t limit = options_.limits.max_memory_bytes;
    FZ_REQUIRE(limit == 0 || (n_bytes < limit && description.original_bytes < limit - n_bytes),
               ErrorCode::kLimit, "a frame of {} bytes that decodes to {}, the limit is {}",
               n_bytes, description.original_bytes, limit);
    FZ_REQUIRE(fill(n_bytes) == n_bytes, ErrorCode::kCorrupt,
               "its frame ends after {} of {} bytes, so the archive was cut off", held_.size(),
               n_bytes);
    const auto axes = [&](const auto& values) {
      return AxisValues(values.begin(), values.begin() + description.shape.n_axes);
    };
    const Box box{axes(description.place->origin), axes(description.shape.extents)};
    decode(box, axes(description.place->whole), ByteView(held_).first(n_bytes), take);
    seen_.push_back({{position_, n_bytes, header.core.header_checksum}, box});
    position_ += n_bytes;
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(n_bytes));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kIo || error.code() == ErrorCode::kCancelled) {
      throw;  // of the caller
    }
    throw Error(error.code(),
                fmt::format("archive: the chunk at byte {}, number {} in the file: {}", position_,
                            seen_.size(), error.what()));
  }

  void requireSameArray(const FrameDescription& description) {
    if (seen_.empty()) {
      first_ = description;
      return;
    }
    bool is_same = first_.type == description.type &&
                   first_.shape.n_axes == description.shape.n_axes &&
                   first_.place->array_id == description.place->array_id;
    for (std::size_t axis = 0; is_same && axis + 1 < first_.shape.n_axes; ++axis) {
      is_same = first_.place->whole[axis] == description.place->whole[axis];
    }
    FZ_REQUIRE(is_same, ErrorCode::kCorrupt, "its frame belongs to another array");
  }

  void decode(const Box& box, const AxisValues& whole, ByteView frame, const TakeChunk& take) {
    const std::size_t value_bytes = isKnown(first_.type) ? getDataTypeSize(first_.type) : 1;
    const std::uint64_t n_wanted = valueCount(box.extents) * value_bytes;
    HostDecompression decompression(frame);
    DecompressOptions how = options_;
    if (how.limits.max_memory_bytes != 0) {
      how.limits.max_memory_bytes -= frame.size() + n_wanted;
    }
    MutableByteView values;
    const std::size_t n = decompression.into(
        slot_.pipeline,
        [&](std::size_t n_bytes) {
          values = slot_.values.take(n_bytes);
          return values.data();
        },
        how);
    FZ_REQUIRE(n == n_wanted, ErrorCode::kCorrupt, "decodes to {} bytes, not {}", n, n_wanted);
    take({first_.type, box, whole, values});
  }

  /// What came must be what the index says, no more and no less.
  ArchiveInfo checkIndex() {
    const std::uint64_t n_most = seen_.size() * kMostEntryBytes + kMostIndexFront;
    const std::size_t n_left = fill(n_most + 1);
    FZ_REQUIRE(n_left > 0, ErrorCode::kCorrupt,
               "archive: it has no index at its end, so it was cut off; 'fz recover' saves the "
               "chunks that are complete");
    FZ_REQUIRE(n_left <= n_most, ErrorCode::kCorrupt,
               "archive: neither a chunk nor the index follows the {} chunks that came",
               seen_.size());
    const std::uint64_t file_bytes = position_ + n_left;
    const ByteView rest = held_;
    const std::optional<IndexPlace> place =
        n_left < kArchiveTailBytes ? std::nullopt
                                   : findIndex(rest.last(kArchiveTailBytes), file_bytes);
    FZ_REQUIRE(place && place->offset == position_, ErrorCode::kCorrupt,
               "archive: neither a chunk nor the index follows the {} chunks that came",
               seen_.size());
    const ArchiveIndex index = getIndex(rest, file_bytes, options_.limits.max_memory_bytes);
    FZ_REQUIRE(index.type == first_.type && index.array_id == first_.place->array_id,
               ErrorCode::kCorrupt, "archive: the index belongs to another array");
    checkChunks(index);
    ArchiveInfo info;
    info.type = index.type;
    info.extents = index.grid.extents();
    info.chunk = index.grid.chunk();
    info.bound = index.bound;
    info.n_chunks = index.grid.count();
    info.array_id = index.array_id;
    info.original_bytes = index.grid.arrayBytes();
    info.archive_bytes = file_bytes;
    return info;
  }

  void checkChunks(const ArchiveIndex& index) const {
    std::map<std::uint64_t, const SeenFrame*> by_offset;
    for (const SeenFrame& frame : seen_) {
      by_offset.emplace(frame.entry.offset, &frame);
    }
    for (std::uint64_t chunk = 0; chunk < index.grid.count(); ++chunk) {
      const ChunkEntry& entry = index.chunks[chunk];
      const auto found = by_offset.find(entry.offset);
      const Box box = index.grid.boxOf(chunk);
      FZ_REQUIRE(entry.n_bytes != 0, ErrorCode::kCorrupt,
                 "archive: chunk {} of {}, {}: it is absent", chunk, index.grid.count(),
                 boxText(box));
      FZ_REQUIRE(found != by_offset.end() && found->second->entry.n_bytes == entry.n_bytes &&
                     found->second->entry.header_checksum == entry.header_checksum &&
                     found->second->box == box,
                 ErrorCode::kCorrupt,
                 "archive: chunk {} of {}, {}: another frame came than the index says", chunk,
                 index.grid.count(), boxText(box));
    }
    FZ_REQUIRE(seen_.size() == index.grid.count(), ErrorCode::kCorrupt,
               "archive: {} chunks came, the index says {}", seen_.size(), index.grid.count());
  }

  const NextBytes& next_;
  const DecompressOptions& options_;
  std::vector<std::uint8_t> held_;
  std::uint64_t position_ = 0;
  FrameDescription first_;
  std::vector<SeenFrame> seen_;
  ChunkSlot slot_;
};

}  // namespace

bool beginsChunked(ByteView front) {
  return isPart(front);
}

ArchiveInfo readArchiveStream(const NextBytes& next,
                              const TakeChunk& take,
                              const DecompressOptions& options) try {
  return StreamReader(next, options).run(take);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
