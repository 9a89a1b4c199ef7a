// Chunks to frames with their places.
#include "archive/writer_state.h"

#include <algorithm>
#include <utility>

#include "api/host_run.h"
#include "archive/bound_of_whole.h"
#include "archive/box_copy.h"
#include "archive/chunk_frame.h"
#include "core/require.h"
#include "fz/presets.h"
#include "pipeline/bound_check.h"
#include "pipeline/compressor.h"

namespace fz {

namespace {

/// What stands in for an extent that is not known yet: more than any chunk has.
constexpr std::uint64_t kOpenValues = std::uint64_t{1} << 50;

// Ratios of chunks that are of one kind differ by less.
constexpr double kLeastChange = 0.75;
constexpr double kMostChange = 1.5;

/// Whether a stage looks for a plan by itself.
bool searchesPlan(DataType type, const CompressOptions& options) {
  CompressOptions probe = options;
  probe.backend = Backend::CPU;
  probe.extents.reset();
  probe.dims = {0, 1, 1};
  Pipeline pipeline;
  configure(pipeline, type, probe);
  const std::string text = pipeline.saveConfigText();
  return text.find("plan = \"auto\"") != std::string::npos ||
         text.find("plan = \"lorenzo:auto\"") != std::string::npos;
}

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

ArchiveWriter::State::State(DataType data_type, const ArchiveOptions& how)
    : type(data_type), options(how) {
  FZ_REQUIRE_ARG(isKnown(type), "archive: the type of the values must be known");
  if (options.compress.preset.empty() && options.compress.config_toml.empty()) {
    options.compress.preset = defaultPreset(options.compress.mode).name;
  }
  grows = !options.extents.empty() && options.extents.back() == 0 &&
          std::find(options.extents.begin(), options.extents.end() - 1, 0u) ==
              options.extents.end() - 1;
  AxisValues extents = options.extents;
  if (grows) {
    // append() keeps as many whole planes as a chunk has: no more than a chunk, or one.
    extents.back() =
        std::max<std::uint64_t>(1, kDefaultChunkBytes / getDataTypeSize(type) / planeValues());
  }
  AxisValues chunk = options.chunk.empty() ? chooseChunk(type, extents) : options.chunk;
  if (grows) {
    extents.back() = std::max<std::uint64_t>(1, kOpenValues / planeValues());
  }
  FZ_REQUIRE_ARG(chunk.size() == extents.size(), "archive: chunks of {} axes for an array of {}",
                 chunk.size(), extents.size());
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    chunk[axis] = std::min(chunk[axis], std::max<std::uint64_t>(1, extents[axis]));
  }
  grid = ChunkGrid(type, extents, chunk);
  FZ_REQUIRE(grid.chunkBytes() <= SIZE_MAX / 4, ErrorCode::kBadSize,
             "archive: chunks of {} bytes are too large", grid.chunkBytes());
  chunk_options = isOne() && !options.range ? options.compress : optionsForChunks(type, options);
  searches_plan = !isOne() && searchesPlan(type, options.compress);
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
  const Frame frame = compressChunk(box, values);
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
  AxisValues whole = grid.extents();
  if (grows) {
    whole.back() = box.origin.back() + box.extents.back();
  }
  FrameHeader header = readHeader(frame.bytes(), frame.size());
  const ByteView payload = frame.bytes().subspan(header.core.header_size);
  const std::vector<std::uint8_t> bytes =
      headerWith(header, box.extents, placeOf(box, whole, array_id));
  emitHeld();
  emit(chunk, header, bytes, payload);
}

Frame ArchiveWriter::State::compressChunk(const Box& box, ByteView values) {
  CompressOptions how = chunk_options;
  how.extents = box.extents;
  if (!is_ordered || !searches_plan) {
    return HostCompression(type, values, how).run();
  }
  if (!plan.text.empty()) {
    CompressOptions with_plan = how;
    with_plan.params.emplace_back("plan", plan.text);
    try {
      Frame frame = HostCompression(type, values, with_plan).run();
      const double ratio = inspect(frame).ratio();
      if (ratio < plan.ratio * kLeastChange || ratio > plan.ratio * kMostChange) {
        plan = {};  // these values are of another kind, so the next chunk looks again
      }
      return frame;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) {
        throw;  // another plan would give other bytes
      }
      // A chunk at an end of the array may be too small for the plan. What else is wrong shows
      // without it as well.
    }
  }
  Frame frame = HostCompression(type, values, how).run();
  const FrameInfo info = inspect(frame);
  for (const FrameStageInfo& stage : info.stages) {
    for (const auto& [key, value] : stage.params) {
      if (key == "plan") {
        plan = {std::get<std::string>(value), info.ratio()};
      }
    }
  }
  return frame;
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
  errors.largest = std::max(errors.largest, check.stats.max_error);
  errors.sum_of_squares += check.stats.mse * static_cast<double>(check.n_finite);
  errors.n_finite += check.n_finite;
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
  FrameHeader header = readHeader(held->bytes(), held->size());
  const ByteView payload = held->bytes().subspan(header.core.header_size);
  const AxisValues extents = inspect(*held).extents;
  const Box box{AxisValues(extents.size(), 0), extents};
  const std::vector<std::uint8_t> bytes =
      headerWith(header, extents, placeOf(box, extents, array_id));
  emit(0, header, bytes, payload);
  held.reset();
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

void ArchiveWriter::State::take(ByteView values) {
  const std::size_t plane_bytes = planeValues() * grid.valueBytes();
  const std::uint64_t slab_planes = grid.axisCount() == 0 ? 1 : grid.chunk().back();
  while (!values.empty()) {
    std::uint64_t n_planes = slab_planes;
    if (!grows) {
      const std::uint64_t n_all = grid.axisCount() == 0 ? 1 : grid.extents().back();
      FZ_REQUIRE(n_planes_done < n_all && grid.arrayBytes() > 0, ErrorCode::kBadSize,
                 "ArchiveWriter::append: more values than the {} of the array",
                 valueCount(grid.extents()));
      n_planes = std::min(slab_planes, n_all - n_planes_done);
    }
    const std::size_t n_wanted = n_planes * plane_bytes;
    if (pending.empty() && values.size() >= n_wanted) {
      encodeSlab(values.first(n_wanted), n_planes);
      values = values.subspan(n_wanted);
      continue;
    }
    const std::size_t n_taken = std::min(values.size(), n_wanted - pending.size());
    pending.reserve(n_wanted);
    pending.insert(pending.end(), values.begin(),
                   values.begin() + static_cast<std::ptrdiff_t>(n_taken));
    values = values.subspan(n_taken);
    if (pending.size() == n_wanted) {
      encodeSlab(pending, n_planes);
      pending.clear();
    }
  }
}

void ArchiveWriter::State::encodeSlab(ByteView slab, std::uint64_t n_planes) {
  const std::uint64_t before = position;
  try {
    encodeChunks(slab, n_planes);
  } catch (...) {
    const std::lock_guard lock(mutex);
    has_failed = has_failed || position != before;  // some of its chunks are written, others not
    throw;
  }
  n_planes_done += n_planes;
}

void ArchiveWriter::State::encodeChunks(ByteView slab, std::uint64_t n_planes) {
  if (grid.axisCount() == 0) {
    encode(0, {}, slab);
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

}  // namespace fz
