// Arrays to archives of chunks.
#include <algorithm>
#include <cstring>
#include <future>
#include <mutex>
#include <new>
#include <utility>

#include "api/host_run.h"
#include "archive/bound_of_whole.h"
#include "archive/box_copy.h"
#include "archive/chunk_frame.h"
#include "archive/index.h"
#include "core/require.h"
#include "format/file_io.h"
#include "pipeline/bound_check.h"

namespace fz {

namespace {

class FileSink : public ByteSink {
 public:
  FileSink(const std::string& path, bool replace)
      : file_(path, replace ? TemporaryName::kReplacePart : TemporaryName::kPart),
        existing_(replace ? Existing::kReplace : Existing::kKeep) {}

  void write(ByteView bytes) override { file_.write(bytes); }
  void commit() { file_.commit(existing_); }

 private:
  AtomicFile file_;
  Existing existing_;
};

/// What stands in for an extent that is not known yet: more than any chunk has.
constexpr std::uint64_t kOpenValues = std::uint64_t{1} << 50;

/// Of everything that the parts of one array have in common (FNV-1a).
std::uint64_t makeArrayId(DataType type,
                          const ArchiveOptions& options,
                          const AxisValues& chunk,
                          const std::optional<BoundInfo>& bound) {
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&](std::uint64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (value >> shift & 0xFFu)) * 0x100000001B3;
    }
  };
  add(static_cast<std::uint64_t>(type));
  for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
    add(options.extents[axis]);
    add(chunk[axis]);
  }
  add(bound ? static_cast<std::uint64_t>(bound->mode) : ~std::uint64_t{0});
  add(__builtin_bit_cast(std::uint64_t, bound ? bound->requested : 0.0));
  for (const char c : options.compress.config_toml.empty() ? options.compress.preset
                                                           : options.compress.config_toml) {
    add(static_cast<unsigned char>(c));
  }
  return std::max<std::uint64_t>(1, hash);
}

}  // namespace

struct ArchiveWriter::State {
  State(DataType data_type, const ArchiveOptions& how);

  /// Compresses one chunk and gives it its place; in any thread.
  void encode(std::uint64_t chunk, const Box& box, ByteView values);
  /// Values of a chunk that stands in a slab: all of the array but for the slowest axis.
  void encodeSlab(ByteView slab, std::uint64_t n_planes);
  void emit(std::uint64_t chunk, FrameHeader& header, ByteView header_bytes, ByteView payload);
  void emitHeld();
  void verify(const FrameInfo& info, const Frame& frame, ByteView values, const Box& box);
  void note(const FrameInfo& info);
  void requireOpen(const char* call) const;
  void closeGrid();

  std::uint64_t planeValues() const;
  std::uint64_t chunksInSlab() const {
    return grid.count() / std::max<std::uint64_t>(1, slowCount());
  }
  std::uint64_t slowCount() const {
    return grid.axisCount() == 0 ? 1 : grid.countAlong(grid.axisCount() - 1);
  }
  /// Whether the array is a plain frame.
  bool isOne() const { return !grows && grid.count() == 1; }

  DataType type;
  ArchiveOptions options;
  CompressOptions chunk_options;
  bool grows = false;
  ChunkGrid grid;  // while it grows, of an array without end
  std::uint64_t array_id = 0;

  ByteSink* sink = nullptr;
  std::unique_ptr<FileSink> file;

  std::mutex mutex;  // of what follows
  std::vector<ChunkEntry> entries;
  std::optional<BoundInfo> bound;
  MissingInfo missing;
  double largest_error = 0.0;
  std::uint64_t position = 0;
  bool is_finished = false;
  bool has_failed = false;

  // For append().
  std::vector<std::uint8_t> pending;
  std::uint64_t n_planes_done = 0;
  std::vector<std::uint8_t> gathered;
  /// The first frame of an array that may turn out to have no other.
  std::optional<Frame> held;
};

ArchiveWriter::State::State(DataType data_type, const ArchiveOptions& how)
    : type(data_type), options(how) {
  FZ_REQUIRE_ARG(isKnown(type), "archive: the type of the values must be known");
  grows = !options.extents.empty() && options.extents.back() == 0 &&
          std::find(options.extents.begin(), options.extents.end() - 1, 0u) ==
              options.extents.end() - 1;
  AxisValues extents = options.extents;
  if (grows) {
    extents.back() = std::max<std::uint64_t>(1, kOpenValues / planeValues());
  }
  AxisValues chunk = options.chunk.empty() ? chooseChunk(type, extents) : options.chunk;
  FZ_REQUIRE_ARG(chunk.size() == extents.size(), "archive: chunks of {} axes for an array of {}",
                 chunk.size(), extents.size());
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    chunk[axis] = std::min(chunk[axis], std::max<std::uint64_t>(1, extents[axis]));
  }
  grid = ChunkGrid(type, extents, chunk);
  FZ_REQUIRE(grid.chunkBytes() <= SIZE_MAX / 4, ErrorCode::kBadSize,
             "archive: chunks of {} bytes are too large", grid.chunkBytes());
  chunk_options = isOne() && !options.range ? options.compress : optionsForChunks(type, options);
  const std::optional<BoundInfo> asked = boundOf(type, options.compress);
  array_id =
      options.array_id != 0 ? options.array_id : makeArrayId(type, options, grid.chunk(), asked);
  if (!grows) {
    entries.resize(grid.count());
  }
  if (options.progress != nullptr) {
    options.progress->n_bytes = grows ? 0 : grid.arrayBytes();
    options.progress->n_bytes_done = 0;
  }
}

std::uint64_t ArchiveWriter::State::planeValues() const {
  AxisValues plane = options.extents;
  if (!plane.empty()) {
    plane.pop_back();
  }
  return std::max<std::uint64_t>(1, valueCount(plane));
}

void ArchiveWriter::State::requireOpen(const char* call) const {
  FZ_REQUIRE(!is_finished && !has_failed, ErrorCode::kInvalidState,
             "ArchiveWriter::{}: the archive {}", call,
             is_finished ? "is finished" : "could not be written");
  FZ_REQUIRE(options.progress == nullptr || !options.progress->is_cancelled, ErrorCode::kCancelled,
             "ArchiveWriter::{}: stopped as asked", call);
}

void ArchiveWriter::State::encode(std::uint64_t chunk, const Box& box, ByteView values) {
  CompressOptions how = chunk_options;
  how.extents = box.extents;
  const Frame frame = HostCompression(type, values, how).run();
  const FrameInfo info = inspect(frame);
  if (options.verify) {
    verify(info, frame, values, box);
  }
  note(info);
  if (isOne()) {
    FrameHeader header = readHeader(frame.bytes(), frame.size());
    emit(chunk, header, {}, frame.bytes());
    return;
  }
  if (grows && chunk == 0 && chunksInSlab() == 1) {
    held = frame;
    return;
  }
  emitHeld();
  AxisValues whole = grid.extents();
  if (grows) {
    whole.back() = box.origin.back() + box.extents.back();
  }
  FrameHeader header = readHeader(frame.bytes(), frame.size());
  const ByteView payload = frame.bytes().subspan(header.core.header_size);
  const std::vector<std::uint8_t> bytes =
      headerWith(header, box.extents, placeOf(box, whole, array_id));
  emit(chunk, header, bytes, payload);
}

void ArchiveWriter::State::verify(const FrameInfo& info,
                                  const Frame& frame,
                                  ByteView values,
                                  const Box& box) {
  const std::optional<BoundRule> rule = ruleOfFrame(info);
  FZ_REQUIRE_ARG(rule.has_value(),
                 "archive: this pipeline promises no bound that could be verified");
  const Array decoded =
      decompress(frame, {.backend = chunk_options.backend, .threads = chunk_options.threads});
  FZ_REQUIRE(decoded.bytes().size() == values.size(), ErrorCode::kInternal,
             "archive: {} bytes decoded to {}", values.size(), decoded.bytes().size());
  const CheckReport check = checkValues(type, values, decoded.bytes(), *rule);
  FZ_REQUIRE(check.passed(), ErrorCode::kBoundViolation, "archive: verify {}: {}", boxText(box),
             violationText(check));
  const std::lock_guard lock(mutex);
  largest_error = std::max(largest_error, check.stats.max_error);
}

void ArchiveWriter::State::note(const FrameInfo& info) {
  if (info.missing) {
    const std::lock_guard lock(mutex);
    missing.fill = info.missing->fill;
    missing.n_missing += info.missing->n_missing;
    missing.n_filled += info.missing->n_filled;
  }
}

void ArchiveWriter::State::emitHeld() {
  if (!held) {
    return;
  }
  const Frame frame = *std::exchange(held, std::nullopt);
  FrameHeader header = readHeader(frame.bytes(), frame.size());
  const ByteView payload = frame.bytes().subspan(header.core.header_size);
  const AxisValues extents = inspect(frame).extents;
  const Box box{AxisValues(extents.size(), 0), extents};
  const std::vector<std::uint8_t> bytes =
      headerWith(header, extents, placeOf(box, extents, array_id));
  emit(0, header, bytes, payload);
}

void ArchiveWriter::State::emit(std::uint64_t chunk,
                                FrameHeader& header,
                                ByteView header_bytes,
                                ByteView payload) {
  const std::lock_guard lock(mutex);
  requireOpen("put");
  if (chunk >= entries.size()) {
    entries.resize(chunk + 1);
  }
  FZ_REQUIRE_ARG(entries[chunk].n_bytes == 0, "ArchiveWriter::put: chunk {} was there already",
                 chunk);
  has_failed = true;  // unless both parts are written
  if (!header_bytes.empty()) {
    sink->write(header_bytes);
  }
  sink->write(payload);
  has_failed = false;
  const std::uint64_t n_bytes = header_bytes.size() + payload.size();
  entries[chunk] = {position, n_bytes, header.core.header_checksum};
  position += n_bytes;
  const std::optional<BoundInfo>& own = header.description.bound;
  if (own) {
    bound = bound ? bound : own;
    bound->absolute = std::max(bound->absolute, own->absolute);
  }
  if (options.progress != nullptr) {
    options.progress->n_bytes_done += header.description.original_bytes;
  }
}

void ArchiveWriter::State::encodeSlab(ByteView slab, std::uint64_t n_planes) {
  if (grid.axisCount() == 0) {
    encode(0, {}, slab);
    n_planes_done += n_planes;
    return;
  }
  AxisValues extents = grid.extents();
  extents.back() = n_planes;
  const std::uint64_t n_inside = chunksInSlab();
  const std::uint64_t first = n_planes_done / grid.chunk().back() * n_inside;
  const ByteSteps steps = denseSteps(extents, grid.valueBytes());
  for (std::uint64_t k = 0; k < n_inside; ++k) {
    Box box = grid.boxOf(first + k);
    box.extents.back() = n_planes;
    if (n_inside == 1) {
      encode(first + k, box, slab);
      continue;
    }
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
      offset += static_cast<std::size_t>(steps[axis]) * box.origin[axis];
    }
    gathered.resize(valueCount(box.extents) * grid.valueBytes());
    copyValues(gathered.data(), denseSteps(box.extents, grid.valueBytes()), slab.data() + offset,
               steps, box.extents, grid.valueBytes());
    encode(first + k, box, gathered);
  }
  n_planes_done += n_planes;
}

/// Fixes the extent that was open.
void ArchiveWriter::State::closeGrid() {
  AxisValues extents = grid.extents();
  AxisValues chunk = grid.chunk();
  extents.back() = n_planes_done;
  chunk.back() = std::min(chunk.back(), std::max<std::uint64_t>(1, extents.back()));
  grid = ChunkGrid(type, extents, chunk);
  grows = false;
}

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
