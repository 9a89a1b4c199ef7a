// What is left of an archive without its index.
#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <optional>

#include "archive/chunk_frame.h"
#include "archive/index.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "format/crc32.h"
#include "format/file_io.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

struct RecoveredFile : ByteSink {
  explicit RecoveredFile(const std::string& path) : file(path) {}
  void write(ByteView bytes) override { file.write(bytes); }

  AtomicFile file;
};

constexpr std::size_t kScanBytes = std::size_t{1} << 20;
constexpr std::array<std::uint8_t, 4> kMagic = {0x32, 0x5A, 0x4D, 0x46};

struct Found {
  ChunkEntry entry;
  FrameDescription description;
};

/// Reads through a file from front to back.
class Scanner {
 public:
  explicit Scanner(const ByteSource& source) : source_(source) {}

  std::vector<Found> run() {
    while (at_ < source_.size()) {
      if (!takeFrame()) {
        skip();
      }
    }
    return std::move(found_);
  }
  std::uint64_t skippedBytes() const { return n_skipped_; }

 private:
  std::vector<std::uint8_t> readAt(std::uint64_t offset, std::uint64_t n_most) const {
    std::vector<std::uint8_t> bytes(std::min(n_most, source_.size() - offset));
    source_.read(offset, bytes);
    return bytes;
  }

  /// False when no sound part of an array begins here.
  bool takeFrame() {
    const std::vector<std::uint8_t> core = readAt(at_, kCoreBytes);
    const std::uint64_t n_bytes = isPart(core) ? frameBytesOf(core) : 0;
    if (n_bytes == 0 || n_bytes > source_.size() - at_) {
      return false;
    }
    try {
      FrameHeader header = readHeader(readAt(at_, kMaxHeaderBytes), n_bytes);
      if (header.description.shape.n_axes == 0 ||  // no part of anything
          (!found_.empty() && !isSameArray(header.description))) {
        return false;
      }
      verifyPayloadCrc(header, payloadCrc(header));
      found_.push_back({{at_, n_bytes, header.core.header_checksum}, header.description});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt && error.code() != ErrorCode::kUnsupported) {
        throw;
      }
      return false;
    }
    at_ += n_bytes;
    return true;
  }

  bool isSameArray(const FrameDescription& other) const {
    const FrameDescription& first = found_.front().description;
    bool is_same = first.type == other.type && first.shape.n_axes == other.shape.n_axes &&
                   first.place->array_id == other.place->array_id;
    for (std::size_t axis = 0; is_same && axis + 1 < first.shape.n_axes; ++axis) {
      is_same = first.place->whole[axis] == other.place->whole[axis];
    }
    return is_same;
  }

  std::uint32_t payloadCrc(const FrameHeader& header) const {
    std::uint32_t crc = 0;
    std::uint64_t offset = at_ + header.core.header_size;
    const std::uint64_t end = at_ + header.frameBytes();
    while (offset < end) {
      const std::vector<std::uint8_t> piece =
          readAt(offset, std::min<std::uint64_t>(kScanBytes, end - offset));
      crc = crc32(piece, crc);
      offset += piece.size();
    }
    return crc;
  }

  /// To the next place where a frame may begin.
  void skip() {
    const std::uint64_t begin = at_++;
    while (source_.size() - at_ >= kMagic.size()) {
      // Kept: bytes that look like a frame may stand every few bytes.
      if (at_ < piece_at_ || at_ + kMagic.size() > piece_at_ + piece_.size()) {
        piece_ = readAt(at_, kScanBytes);
        piece_at_ = at_;
      }
      const auto from = piece_.begin() + static_cast<std::ptrdiff_t>(at_ - piece_at_);
      const auto hit = std::search(from, piece_.end(), kMagic.begin(), kMagic.end());
      if (hit != piece_.end()) {
        at_ += static_cast<std::uint64_t>(hit - from);
        n_skipped_ += at_ - begin;
        return;
      }
      // A magic may stand across the border of two pieces.
      at_ = piece_at_ + piece_.size() - (kMagic.size() - 1);
    }
    at_ = source_.size();
    n_skipped_ += at_ - begin;
  }

  const ByteSource& source_;
  std::uint64_t at_ = 0;
  std::uint64_t n_skipped_ = 0;
  std::vector<std::uint8_t> piece_;  // that skip() looks through
  std::uint64_t piece_at_ = 0;
  std::vector<Found> found_;
};

/// Extents of the chunks: of those that are not the last along an axis, which is the most.
AxisValues chunkOf(const std::vector<Found>& found) {
  AxisValues chunk(found.front().description.shape.n_axes, 1);
  for (const Found& one : found) {
    for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
      chunk[axis] = std::max(chunk[axis], one.description.shape.extents[axis]);
    }
  }
  return chunk;
}

/// Chunks by their place in the array; one that is there twice counts once.
std::map<AxisValues, const Found*> byPlace(const std::vector<Found>& found) {
  std::map<AxisValues, const Found*> places;
  for (const Found& one : found) {
    const auto& origin = one.description.place->origin;
    places.emplace(AxisValues(origin.begin(), origin.begin() + one.description.shape.n_axes), &one);
  }
  return places;
}

/// Planes of the slowest axis that are there without a gap.
std::uint64_t completePlanes(const std::map<AxisValues, const Found*>& places,
                             const AxisValues& whole,
                             const AxisValues& chunk) {
  const std::size_t slowest = whole.size() - 1;
  std::uint64_t n_done = 0;
  while (n_done < whole[slowest]) {
    std::optional<std::uint64_t> n_next;
    AxisValues at(whole.size(), 0);
    at[slowest] = n_done;
    while (true) {
      const auto it = places.find(at);
      if (it == places.end()) {
        return n_done;
      }
      const FrameDescription& description = it->second->description;
      for (std::size_t axis = 0; axis < slowest; ++axis) {
        if (description.shape.extents[axis] != std::min(chunk[axis], whole[axis] - at[axis])) {
          return n_done;
        }
      }
      n_next = n_next.value_or(description.shape.extents[slowest]);
      if (*n_next != description.shape.extents[slowest]) {
        return n_done;
      }
      std::size_t axis = 0;
      for (; axis < slowest; ++axis) {
        if (chunk[axis] < whole[axis] - at[axis]) {  // not the sum, which may exceed 64 bits
          at[axis] += chunk[axis];
          break;
        }
        at[axis] = 0;
      }
      if (axis == slowest) {
        break;
      }
    }
    n_done += *n_next;
    if (*n_next < chunk[slowest]) {
      break;  // the last ones
    }
  }
  return n_done;
}

void copyFrame(const ByteSource& source, const ChunkEntry& entry, ByteSink& sink) {
  std::vector<std::uint8_t> piece;
  for (std::uint64_t done = 0; done < entry.n_bytes; done += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kScanBytes, entry.n_bytes - done));
    source.read(entry.offset + done, piece);
    sink.write(piece);
  }
}

}  // namespace

bool isChunkedArchive(const ByteSource& source) {
  std::array<std::uint8_t, kCoreBytes> front;
  if (source.size() < front.size()) {
    return false;
  }
  source.read(0, front);
  return isPart(front);
}

Recovery recoverArchive(const ByteSource& source, ByteSink& sink) try {
  Scanner scanner(source);
  const std::vector<Found> found = scanner.run();
  FZ_REQUIRE(!found.empty(), ErrorCode::kCorrupt,
             "recover: no complete chunk of an archive is in these {} bytes", source.size());
  Recovery recovery;
  recovery.n_damaged_bytes = scanner.skippedBytes();
  const FrameDescription& first = found.front().description;
  AxisValues whole(first.place->whole.begin(), first.place->whole.begin() + first.shape.n_axes);
  for (const Found& one : found) {
    whole.back() = std::max(whole.back(), one.description.place->whole[whole.size() - 1]);
  }
  const AxisValues chunk = chunkOf(found);
  const auto places = byPlace(found);
  recovery.whole = whole;
  recovery.extents = whole;
  recovery.extents.back() = completePlanes(places, whole, chunk);
  FZ_REQUIRE(
      recovery.extents.back() > 0, ErrorCode::kCorrupt,
      "recover: {} chunks are complete, but none of the first {} of the slowest axis are all "
      "there",
      found.size(), chunk.back());
  AxisValues new_chunk = chunk;
  new_chunk.back() = std::min(new_chunk.back(), recovery.extents.back());
  ArchiveIndex index;
  index.type = first.type;
  index.array_id = first.place->array_id;
  index.grid = ChunkGrid(first.type, recovery.extents, new_chunk);
  std::uint64_t position = 0;
  for (std::uint64_t number = 0; number < index.grid.count(); ++number) {
    const Found& one = *places.at(index.grid.boxOf(number).origin);
    copyFrame(source, one.entry, sink);
    index.chunks.push_back({position, one.entry.n_bytes, one.entry.header_checksum});
    position += one.entry.n_bytes;
    if (const std::optional<BoundInfo>& own = one.description.bound) {
      index.bound = index.bound ? index.bound : own;
      index.bound->absolute = std::max(index.bound->absolute, own->absolute);
    }
  }
  sink.write(putIndex(index, position));
  recovery.n_chunks = index.grid.count();
  recovery.n_dropped = places.size() - recovery.n_chunks;
  return recovery;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

Recovery recoverArchive(const ByteSource& source, const std::string& path, bool replace) try {
  RecoveredFile sink(path);  // not `path.part`, which may be the source
  Recovery recovery = recoverArchive(source, sink);
  sink.file.commit(replace ? Existing::kReplace : Existing::kKeep);
  return recovery;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
