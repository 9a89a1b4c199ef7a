// Archives of chunks to arrays.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "api/host_run.h"
#include "archive/box_copy.h"
#include "archive/chunk_frame.h"
#include "archive/chunk_slots.h"
#include "archive/index.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "format/frame_layout.h"

namespace fz {

namespace {

std::vector<std::uint8_t> readPart(const ByteSource& source,
                                   std::uint64_t offset,
                                   std::uint64_t n_bytes) {
  FZ_REQUIRE(n_bytes <= source.size() && offset <= source.size() - n_bytes, ErrorCode::kCorrupt,
             "archive: {} bytes at {} of {}", n_bytes, offset, source.size());
  std::vector<std::uint8_t> bytes(n_bytes);
  source.read(offset, bytes);
  return bytes;
}

/// The whole file as an index of one chunk.
ArchiveIndex indexOfFrame(const FrameHeader& header, std::uint64_t file_bytes) {
  const FrameDescription& description = header.description;
  ArchiveIndex index;
  index.type = description.type;
  index.bound = description.bound;
  index.array_id = description.place ? description.place->array_id : 0;
  AxisValues extents(description.shape.extents.begin(),
                     description.shape.extents.begin() + description.shape.n_axes);
  if (header.minor() < 2) {
    extents = {description.original_bytes};  // as bytes: it names neither type nor shape
  }
  AxisValues chunk = extents;
  for (std::uint64_t& extent : chunk) {
    extent = std::max<std::uint64_t>(1, extent);
  }
  index.grid = ChunkGrid(index.type, extents, chunk);
  index.chunks = {{0, file_bytes, header.core.header_checksum}};
  return index;
}

std::ptrdiff_t offsetIn(const Box& box, const AxisValues& at, const ByteSteps& steps) {
  std::ptrdiff_t offset = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    offset += static_cast<std::ptrdiff_t>(at[axis] - box.origin[axis]) * steps[axis];
  }
  return offset;
}

}  // namespace

struct ArchiveReader::State {
  State(std::shared_ptr<const ByteSource> bytes, const DecodeLimits& limits);

  /// Front of the chunk's frame; its header, checked.
  FrameHeader openChunk(std::uint64_t chunk, std::vector<std::uint8_t>& front) const;
  Frame frame(std::uint64_t chunk) const;
  void decode(std::uint64_t chunk,
              const std::function<void*(std::size_t)>& provide,
              const DecompressOptions& options) const;
  void decode(std::uint64_t chunk, MutableByteView out, const DecompressOptions& options) const;
  /// On the calling thread: a source of the caller may rely on that. A frame counts for the memory
  /// limit, and the decoder gets what is left of it.
  void readFrame(ChunkSlot& slot, const DecodeLimits& limits) const;
  /// The frame that the slot has; in any thread.
  void decodeSlot(ChunkSlot& slot,
                  const std::function<void*(std::size_t)>& provide,
                  const DecompressOptions& options) const;
  /// The same into memory of the slot.
  ByteView decodeValues(ChunkSlot& slot, const DecompressOptions& options) const {
    MutableByteView values;
    decodeSlot(
        slot,
        [&](std::size_t n) {
          values = slot.values.take(n);
          return values.data();
        },
        options);
    return values;
  }
  /// Work on a chunk whose frame has been read: all of it, and what the box has of it.
  using Work = std::function<void(
      ChunkSlot& slot, const Box& whole, const Box& part, const DecompressOptions& how)>;
  void forTouched(const Box& box,
                  const DecompressOptions& options,
                  ArchiveProgress* progress,
                  const Work& work) const;
  /// When it throws, it leaves the chunks that are not done.
  void runTeam(std::vector<std::uint64_t>& chunks,
               const Box& box,
               const ChunkTeam& team,
               ArchiveProgress* progress,
               const Work& work) const;
  std::vector<std::uint64_t> touchedBy(const Box& box) const;
  std::uint64_t bytesOf(const Box& box) const {
    return valueCount(box.extents) * index.grid.valueBytes();
  }
  [[noreturn]] void blame(std::uint64_t chunk, const Error& error) const;

  std::shared_ptr<const ByteSource> source;
  ArchiveIndex index;
  ArchiveInfo info;
};

ArchiveReader::State::State(std::shared_ptr<const ByteSource> bytes, const DecodeLimits& limits)
    : source(std::move(bytes)) {
  const std::uint64_t n_bytes = source->size();
  const std::vector<std::uint8_t> tail =
      readPart(*source, n_bytes - std::min<std::uint64_t>(n_bytes, kArchiveTailBytes),
               std::min<std::uint64_t>(n_bytes, kArchiveTailBytes));
  if (const std::optional<IndexPlace> place = findIndex(tail, n_bytes)) {
    const std::uint64_t limit = limits.max_memory_bytes;
    FZ_REQUIRE(limit == 0 || place->n_bytes < limit, ErrorCode::kLimit,
               "archive: its index takes {} bytes, the limit is {}", place->n_bytes, limit);
    index = getIndex(readPart(*source, place->offset, place->n_bytes + kArchiveTailBytes), n_bytes,
                     limit);
  } else {
    const std::vector<std::uint8_t> front =
        readPart(*source, 0, std::min<std::uint64_t>(n_bytes, kMaxHeaderBytes));
    FZ_REQUIRE(!isChunkedArchive(*source) || frameBytesOf(front) >= n_bytes, ErrorCode::kCorrupt,
               "archive: it has no index at its end, so it was cut off; 'fz recover' saves the "
               "chunks that are complete");
    index = indexOfFrame(readHeader(front, n_bytes), n_bytes);
    info.is_frame = true;
  }
  info.type = index.type;
  info.extents = index.grid.extents();
  info.chunk = index.grid.chunk();
  info.bound = index.bound;
  info.n_chunks = index.grid.count();
  info.n_absent = static_cast<std::uint64_t>(
      std::count_if(index.chunks.begin(), index.chunks.end(),
                    [](const ChunkEntry& entry) { return entry.n_bytes == 0; }));
  info.array_id = index.array_id;
  info.original_bytes = index.grid.arrayBytes();
  info.archive_bytes = n_bytes;
}

// Its callers are handlers, beside which no other one catches what is thrown here.
void ArchiveReader::State::blame(std::uint64_t chunk, const Error& error) const try {
  if (info.is_frame) {
    throw error;
  }
  throw Error(error.code(), fmt::format("archive: chunk {} of {}, {}: {}", chunk, info.n_chunks,
                                        boxText(index.grid.boxOf(chunk)), error.what()));
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

FrameHeader ArchiveReader::State::openChunk(std::uint64_t chunk,
                                            std::vector<std::uint8_t>& front) const {
  FZ_REQUIRE_ARG(chunk < info.n_chunks, "archive: chunk {} of {}", chunk, info.n_chunks);
  const ChunkEntry& entry = index.chunks[chunk];
  FZ_REQUIRE(entry.n_bytes != 0, ErrorCode::kCorrupt, "it is absent");
  front = readPart(*source, entry.offset, std::min<std::uint64_t>(entry.n_bytes, kMaxHeaderBytes));
  FrameHeader header = readHeader(front, entry.n_bytes);
  if (!info.is_frame) {
    checkChunk(header, index, chunk);
  }
  return header;
}

Frame ArchiveReader::State::frame(std::uint64_t chunk) const {
  std::vector<std::uint8_t> bytes;
  openChunk(chunk, bytes);
  const ChunkEntry& entry = index.chunks[chunk];
  const std::size_t n_front = bytes.size();
  bytes.resize(entry.n_bytes);
  source->read(entry.offset + n_front, MutableByteView(bytes).subspan(n_front));
  return Frame(std::move(bytes));
}

void ArchiveReader::State::decode(std::uint64_t chunk,
                                  const std::function<void*(std::size_t)>& provide,
                                  const DecompressOptions& options) const {
  ChunkSlot slot;
  slot.chunk = chunk;
  readFrame(slot, options.limits);
  decodeSlot(slot, provide, options);
}

void ArchiveReader::State::readFrame(ChunkSlot& slot, const DecodeLimits& limits) const try {
  std::vector<std::uint8_t> front;
  openChunk(slot.chunk, front);
  const ChunkEntry& entry = index.chunks[slot.chunk];
  FZ_REQUIRE(limits.max_memory_bytes == 0 || entry.n_bytes < limits.max_memory_bytes,
             ErrorCode::kLimit, "its frame takes {} bytes, the limit is {}", entry.n_bytes,
             limits.max_memory_bytes);
  const MutableByteView bytes = slot.frame_memory.take(entry.n_bytes);
  std::copy(front.begin(), front.end(), bytes.begin());
  source->read(entry.offset + front.size(), bytes.subspan(front.size()));
  slot.frame = bytes;
} catch (const Error& error) {
  blame(slot.chunk, error);
}

void ArchiveReader::State::decodeSlot(ChunkSlot& slot,
                                      const std::function<void*(std::size_t)>& provide,
                                      const DecompressOptions& options) const try {
  const std::uint64_t n_wanted = bytesOf(index.grid.boxOf(slot.chunk));
  const auto require = [&](std::size_t n) {
    FZ_REQUIRE(n == n_wanted, ErrorCode::kCorrupt, "decodes to {} bytes, not {}", n, n_wanted);
  };
  DecompressOptions how = options;
  if (how.limits.max_memory_bytes != 0) {
    how.limits.max_memory_bytes -= slot.frame.size();  // readFrame has seen that more is allowed
  }
  HostDecompression decompression(slot.frame);
  require(decompression.info().original_bytes);
  require(decompression.into(
      slot.pipeline,
      [&](std::size_t n) {
        require(n);
        return provide(n);
      },
      how));
} catch (const Error& error) {
  blame(slot.chunk, error);
}

std::vector<std::uint64_t> ArchiveReader::State::touchedBy(const Box& box) const {
  const ChunkGrid& grid = index.grid;
  const std::size_t n_axes = grid.axisCount();
  std::vector<std::uint64_t> chunks;
  if (valueCount(box.extents) == 0) {
    return chunks;
  }
  AxisValues first(n_axes);
  AxisValues last(n_axes);
  for (std::size_t axis = 0; axis < n_axes; ++axis) {
    first[axis] = box.origin[axis] / grid.chunk()[axis];
    last[axis] = (box.origin[axis] + box.extents[axis] - 1) / grid.chunk()[axis];
  }
  AxisValues at = first;
  while (true) {
    chunks.push_back(grid.numberOf(at));
    std::size_t axis = 0;
    while (axis < n_axes && ++at[axis] > last[axis]) {
      at[axis] = first[axis];
      ++axis;
    }
    if (axis == n_axes) {
      return chunks;
    }
  }
}

void ArchiveReader::State::runTeam(std::vector<std::uint64_t>& chunks,
                                   const Box& box,
                                   const ChunkTeam& team,
                                   ArchiveProgress* progress,
                                   const Work& work) const {
  std::vector<ChunkSlot> slots(team.n_at_once);
  std::vector<std::exception_ptr> failures(team.n_at_once);
  std::vector<std::uint64_t> left;
  left.reserve(team.n_at_once);  // where memory has run out, none is left for a second failure
  const std::unique_ptr<CpuExecutor> executor =
      makeCpuExecutor(team.n_at_once, defaultThreadBackend());
  for (std::size_t at = 0; at < chunks.size(); at += team.n_at_once) {
    FZ_REQUIRE(progress == nullptr || !progress->is_cancelled, ErrorCode::kCancelled,
               "ArchiveReader: stopped as asked");
    const std::size_t n_taken = std::min(team.n_at_once, chunks.size() - at);
    std::size_t n = n_taken;
    for (std::size_t i = 0; i < n; ++i) {
      try {
        slots[i].chunk = chunks[at + i];
        readFrame(slots[i], team.each.limits);
      } catch (...) {
        failures[i] = std::current_exception();
        n = i;  // those before come first, and may fail too
      }
    }
    parallelFor(*executor, n, [&](std::size_t i) {
      try {
        const Box whole = index.grid.boxOf(slots[i].chunk);
        const Box part = overlapOf(whole, box);
        work(slots[i], whole, part, team.each);
        if (progress != nullptr) {
          progress->n_bytes_done += bytesOf(part);
        }
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
    std::exception_ptr first;  // of the first chunk, whatever the threads did
    left.clear();
    for (std::size_t i = 0; i < n_taken; ++i) {
      first = first == nullptr ? failures[i] : first;
      if (failures[i] != nullptr || i >= n) {
        left.push_back(chunks[at + i]);
      }
    }
    if (first != nullptr) {
      chunks.erase(chunks.begin(), chunks.begin() + static_cast<std::ptrdiff_t>(at + n_taken));
      chunks.insert(chunks.begin(), left.begin(), left.end());
      std::rethrow_exception(first);
    }
  }
}

void ArchiveReader::State::forTouched(const Box& box,
                                      const DecompressOptions& options,
                                      ArchiveProgress* progress,
                                      const Work& work) const {
  const ChunkGrid& grid = index.grid;
  const std::size_t n_axes = grid.axisCount();
  FZ_REQUIRE_ARG(box.origin.size() == n_axes && box.extents.size() == n_axes,
                 "ArchiveReader::read: a box of {} axes for an array of {}", box.extents.size(),
                 n_axes);
  for (std::size_t axis = 0; axis < n_axes; ++axis) {
    const std::uint64_t extent = grid.extents()[axis];
    FZ_REQUIRE_ARG(box.origin[axis] <= extent && box.extents[axis] <= extent - box.origin[axis],
                   "ArchiveReader::read: the box {} is not inside the array of {}", boxText(box),
                   boxText({AxisValues(n_axes, 0), grid.extents()}));
  }
  if (progress != nullptr) {
    progress->n_bytes = bytesOf(box);
    progress->n_bytes_done = 0;
  }
  std::vector<std::uint64_t> chunks = touchedBy(box);
  // A share of the memory may be too little where all of it is enough for one chunk, and several
  // threads take more of it than one does.
  ChunkTeam team = teamFor(grid, chunks.size(), options);
  while (true) {
    try {
      runTeam(chunks, box, team, progress, work);
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kLimit || (team.n_at_once == 1 && team.each.threads == 1)) {
        throw;
      }
      const bool was_alone = team.n_at_once == 1;
      team = {1, options};
      team.each.threads = was_alone ? 1 : options.threads;
    }
  }
}

void ArchiveReader::State::decode(std::uint64_t chunk,
                                  MutableByteView out,
                                  const DecompressOptions& options) const {
  decode(
      chunk, [&](std::size_t /*n_bytes*/) -> void* { return out.data(); }, options);
}

ArchiveReader::ArchiveReader(std::shared_ptr<const ByteSource> source,
                             const DecodeLimits& limits) try
    : state_(std::make_unique<State>(std::move(source), limits)) {
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
ArchiveReader::ArchiveReader(const std::string& path, const DecodeLimits& limits)
    : ArchiveReader(openSource(path), limits) {
}
ArchiveReader::~ArchiveReader() = default;
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader& ArchiveReader::operator=(ArchiveReader&&) noexcept = default;

const ArchiveInfo& ArchiveReader::info() const {
  return state_->info;
}
Box ArchiveReader::chunkBox(std::uint64_t chunk) const try {
  return state_->index.grid.boxOf(chunk);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
bool ArchiveReader::hasChunk(std::uint64_t chunk) const {
  FZ_REQUIRE_ARG(chunk < state_->info.n_chunks, "archive: chunk {} of {}", chunk,
                 state_->info.n_chunks);
  return state_->index.chunks[chunk].n_bytes != 0;
}

Frame ArchiveReader::frame(std::uint64_t chunk) const try {
  return state_->frame(chunk);
} catch (const Error& error) {
  state_->blame(chunk, error);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

FrameInfo ArchiveReader::inspect(std::uint64_t chunk) const try {
  std::vector<std::uint8_t> front;
  return describeFrame(state_->openChunk(chunk, front));
} catch (const Error& error) {
  state_->blame(chunk, error);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveReader::readChunk(std::uint64_t chunk,
                              MutableByteView out,
                              const DecompressOptions& options) const try {
  const Box box = chunkBox(chunk);
  const std::uint64_t n_bytes = valueCount(box.extents) * state_->index.grid.valueBytes();
  FZ_REQUIRE(out.size() == n_bytes, ErrorCode::kBufferTooSmall,
             "ArchiveReader::readChunk: chunk {} has {} bytes, the buffer {}", chunk, n_bytes,
             out.size());
  state_->decode(chunk, out, options);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveReader::readChunk(std::uint64_t chunk,
                              const std::function<void*(std::size_t)>& provide,
                              const DecompressOptions& options) const try {
  chunkBox(chunk);  // refuses what is none
  state_->decode(chunk, provide, options);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveReader::read(const Box& box,
                         MutableByteView out,
                         const DecompressOptions& options,
                         ArchiveProgress* progress) const try {
  const std::uint64_t n_bytes = valueCount(box.extents) * state_->index.grid.valueBytes();
  FZ_REQUIRE(out.size() == n_bytes, ErrorCode::kBufferTooSmall,
             "ArchiveReader::read: the box has {} bytes, the buffer {}", n_bytes, out.size());
  read(box, out.data(), denseSteps(box.extents, state_->index.grid.valueBytes()), options,
       progress);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveReader::read(const Box& box,
                         void* out,
                         const std::vector<std::ptrdiff_t>& byte_steps,
                         const DecompressOptions& options,
                         ArchiveProgress* progress) const try {
  const ChunkGrid& grid = state_->index.grid;
  FZ_REQUIRE_ARG(byte_steps.size() == grid.axisCount(),
                 "ArchiveReader::read: {} steps for an array of {} axes", byte_steps.size(),
                 grid.axisCount());
  auto* const to = static_cast<std::uint8_t*>(out);
  state_->forTouched(
      box, options, progress,
      [&](ChunkSlot& slot, const Box& whole, const Box& part, const DecompressOptions& how) {
        const ByteSteps steps = denseSteps(whole.extents, grid.valueBytes());
        std::uint8_t* const begin = to + offsetIn(box, part.origin, byte_steps);
        if (part == whole && byte_steps == steps) {
          state_->decodeSlot(
              slot, [&](std::size_t /*n_bytes*/) -> void* { return begin; }, how);
          return;
        }
        const ByteView decoded = state_->decodeValues(slot, how);
        copyValues(begin, byte_steps, decoded.data() + offsetIn(whole, part.origin, steps), steps,
                   part.extents, grid.valueBytes());
      });
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void ArchiveReader::readParts(const Box& box,
                              const std::function<void(const Box& part, ByteView values)>& take,
                              const DecompressOptions& options,
                              ArchiveProgress* progress) const try {
  const ChunkGrid& grid = state_->index.grid;
  state_->forTouched(
      box, options, progress,
      [&](ChunkSlot& slot, const Box& whole, const Box& part, const DecompressOptions& how) {
        const ByteView decoded = state_->decodeValues(slot, how);
        if (part == whole) {
          take(part, decoded);
          return;
        }
        const ByteSteps steps = denseSteps(whole.extents, grid.valueBytes());
        const MutableByteView values = slot.part.take(state_->bytesOf(part));
        copyValues(values.data(), denseSteps(part.extents, grid.valueBytes()),
                   decoded.data() + offsetIn(whole, part.origin, steps), steps, part.extents,
                   grid.valueBytes());
        take(part, values);
      });
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
