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
Box ArchiveWriter::chunkBox(std::uint64_t chunk) const try {
  return state_->grid.boxOf(chunk);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

double ArchiveWriter::largestError() const {
  const std::lock_guard lock(state_->mutex);
  return state_->errors.largest;
}
double ArchiveWriter::meanSquaredError() const {
  const std::lock_guard lock(state_->mutex);
  const State::Errors& errors = state_->errors;
  return errors.n_finite == 0 ? 0.0 : errors.sum_of_squares / static_cast<double>(errors.n_finite);
}
std::optional<BoundInfo> ArchiveWriter::bound() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bound;
}
MissingInfo ArchiveWriter::missing() const try {
  const std::lock_guard lock(state_->mutex);
  return state_->missing;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveWriter::append(ByteView values) try {
  State& s = *state_;
  s.requireOpen("append");
  s.is_ordered = true;
  const std::size_t n_pending = s.pending.size();
  const std::uint64_t n_planes = s.n_planes_done;
  try {
    s.take(values);
  } catch (...) {
    // Either it has none of the values, and the call can be made again, or only some of them.
    if (s.n_planes_done == n_planes) {
      s.pending.resize(n_pending);
    } else {
      s.has_failed = true;
    }
    throw;
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
    s.closeGrid();
  }
  if (s.entries.empty()) {
    s.entries.resize(1);
  }
  if (s.held) {
    FrameHeader header = readHeader(s.held->bytes(), s.held->size());
    s.emit(0, header, {}, s.held->bytes());
    s.held.reset();
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
  const std::vector<std::uint8_t> end =
      s.isOne() ? std::vector<std::uint8_t>()
                : putIndex({s.type, s.bound, s.array_id, s.grid, s.entries}, s.position);
  s.has_failed = true;  // unless all of it succeeds: there is no second end
  if (!end.empty()) {
    s.sink->write(end);
    s.position += end.size();
  }
  if (s.file != nullptr) {
    s.file->commit();
  }
  s.has_failed = false;
  s.is_finished = true;
  return s.position;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
