// Arrays to archives of chunks.
#include <algorithm>
#include <future>
#include <new>
#include <utility>

#include "archive/writer_state.h"
#include "core/require.h"

namespace fz {

ArchiveWriter::ArchiveWriter(DataType type, const ArchiveOptions& options, ByteSink& sink) try
    : state_(std::make_unique<State>(type, options)) {
  state_->sink = &sink;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

ArchiveWriter::ArchiveWriter(DataType type,
                             const ArchiveOptions& options,
                             const std::string& path,
                             bool replace) try
    : state_(std::make_unique<State>(type, options)) {
  state_->file = std::make_unique<FileSink>(path, replace);
  state_->sink = state_->file.get();
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

ArchiveWriter::~ArchiveWriter() = default;

const AxisValues& ArchiveWriter::chunkExtents() const {
  return state_->grid.chunk();
}
std::uint64_t ArchiveWriter::chunkCount() const {
  return state_->grows ? 0 : state_->grid.count();
}
Box ArchiveWriter::chunkBox(std::uint64_t chunk) const {
  return state_->grid.boxOf(chunk);
}

double ArchiveWriter::largestError() const {
  const std::lock_guard lock(state_->mutex);
  return state_->largest_error;
}
std::optional<BoundInfo> ArchiveWriter::bound() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bound;
}
MissingInfo ArchiveWriter::missing() const {
  const std::lock_guard lock(state_->mutex);
  return state_->missing;
}

void ArchiveWriter::append(ByteView values) try {
  State& s = *state_;
  s.requireOpen("append");
  s.is_ordered = true;
  const std::size_t plane_bytes = s.planeValues() * s.grid.valueBytes();
  const std::uint64_t slab_planes = s.grid.axisCount() == 0 ? 1 : s.grid.chunk().back();
  while (!values.empty()) {
    std::uint64_t n_planes = slab_planes;
    if (!s.grows) {
      const std::uint64_t n_all = s.grid.axisCount() == 0 ? 1 : s.grid.extents().back();
      FZ_REQUIRE(s.n_planes_done < n_all && s.grid.arrayBytes() > 0, ErrorCode::kBadSize,
                 "ArchiveWriter::append: more values than the {} of the array",
                 valueCount(s.grid.extents()));
      n_planes = std::min(slab_planes, n_all - s.n_planes_done);
    }
    const std::size_t n_wanted = n_planes * plane_bytes;
    if (s.pending.empty() && values.size() >= n_wanted) {
      s.encodeSlab(values.first(n_wanted), n_planes);
      values = values.subspan(n_wanted);
      continue;
    }
    const std::size_t n_taken = std::min(values.size(), n_wanted - s.pending.size());
    s.pending.reserve(n_wanted);
    s.pending.insert(s.pending.end(), values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(n_taken));
    values = values.subspan(n_taken);
    if (s.pending.size() == n_wanted) {
      s.encodeSlab(s.pending, n_planes);
      s.pending.clear();
    }
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveWriter::put(std::uint64_t chunk, ByteView values) try {
  State& s = *state_;
  FZ_REQUIRE(!s.grows, ErrorCode::kInvalidState,
             "ArchiveWriter::put: needs an array whose extents are known");
  const Box box = s.grid.boxOf(chunk);
  const std::uint64_t n_bytes = valueCount(box.extents) * s.grid.valueBytes();
  FZ_REQUIRE(values.size() == n_bytes, ErrorCode::kBadSize,
             "ArchiveWriter::put: {} bytes for chunk {} of {} values, {} bytes", values.size(),
             chunk, extentsText(box.extents), n_bytes);
  {
    const std::lock_guard lock(s.mutex);
    s.requireOpen("put");
    FZ_REQUIRE_ARG(s.entries[chunk].n_bytes == 0, "ArchiveWriter::put: chunk {} was there already",
                   chunk);
  }
  s.encode(chunk, box, values);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveWriter::putAll(
    const std::function<void(const Box& box, MutableByteView values)>& read) try {
  State& s = *state_;
  FZ_REQUIRE(!s.grows, ErrorCode::kInvalidState,
             "ArchiveWriter::putAll: needs an array whose extents are known");
  s.is_ordered = true;
  std::vector<std::uint8_t> now;
  std::vector<std::uint8_t> next;
  const auto readInto = [&](std::uint64_t chunk, std::vector<std::uint8_t>& values) {
    const Box box = s.grid.boxOf(chunk);
    values.resize(valueCount(box.extents) * s.grid.valueBytes());
    read(box, values);
  };
  readInto(0, now);
  for (std::uint64_t chunk = 0; chunk < s.grid.count(); ++chunk) {
    std::future<void> ahead;  // waits for its thread when an exception passes
    if (chunk + 1 < s.grid.count()) {
      ahead = std::async(std::launch::async, [&] { readInto(chunk + 1, next); });
    }
    put(chunk, now);
    if (ahead.valid()) {
      ahead.get();
    }
    std::swap(now, next);
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::uint64_t ArchiveWriter::finish() try {
  State& s = *state_;
  s.requireOpen("finish");
  const std::size_t plane_bytes = s.planeValues() * s.grid.valueBytes();
  if (s.grows) {
    FZ_REQUIRE(s.pending.size() % plane_bytes == 0, ErrorCode::kBadSize,
               "ArchiveWriter::finish: the values end inside a row or plane of {} bytes, {} bytes "
               "after its begin",
               plane_bytes, s.pending.size() % plane_bytes);
    if (!s.pending.empty()) {
      s.encodeSlab(s.pending, s.pending.size() / plane_bytes);
      s.pending.clear();
    }
    if (s.held || s.n_planes_done == 0) {
      s.closeGrid();
      const Frame frame = s.held ? *std::exchange(s.held, std::nullopt) : Frame();
      s.entries.assign(1, {});
      if (s.n_planes_done > 0) {
        FrameHeader header = readHeader(frame.bytes(), frame.size());
        s.emit(0, header, {}, frame.bytes());
      }
    } else {
      s.closeGrid();
    }
  }
  if (s.grid.arrayBytes() == 0 && s.entries[0].n_bytes == 0) {
    s.encode(0, s.grid.boxOf(0), {});  // no values are a frame too
  }
  const auto absent = std::find_if(s.entries.begin(), s.entries.end(),
                                   [](const ChunkEntry& entry) { return entry.n_bytes == 0; });
  FZ_REQUIRE(absent == s.entries.end() && s.entries.size() == s.grid.count(), ErrorCode::kBadSize,
             "ArchiveWriter::finish: chunk {} of {} is missing, {} of the array",
             absent - s.entries.begin(), s.grid.count(),
             boxText(s.grid.boxOf(static_cast<std::uint64_t>(absent - s.entries.begin()))));
  if (!s.isOne()) {
    const ArchiveIndex index{s.type, s.bound, s.array_id, s.grid, s.entries};
    const std::vector<std::uint8_t> bytes = putIndex(index, s.position);
    s.has_failed = true;
    s.sink->write(bytes);
    s.has_failed = false;
    s.position += bytes.size();
  }
  if (s.file != nullptr) {
    s.file->commit();
  }
  s.is_finished = true;
  return s.position;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
