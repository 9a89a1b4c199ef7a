#include "trust/archives.h"

#include <algorithm>

#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "format/crc32.h"
#include "fz/byte_io.h"
#include "fz/presets.h"
#include "support/fields.h"

namespace fz::trust {

namespace {

constexpr std::size_t kTailCrcOffset = 24;

const std::vector<ChunkedShape>& shapes() {
  static const std::vector<ChunkedShape> kAll = {
      {{12, 10, 6}, {12, 10, 2}, ChunkedShape::kAppended},
      {{90}, {30}, ChunkedShape::kAppended},
      {{9, 8, 4}, {5, 8, 2}, ChunkedShape::kPutBackwards},
      {{20, 9}, {20, 4}, ChunkedShape::kGrown},
      {{6, 5, 4, 3}, {6, 5, 4, 1}, ChunkedShape::kAppended},
      {{7, 6, 5}, {4, 6, 2}, ChunkedShape::kGrown},
  };
  return kAll;
}

void putBackwards(ArchiveWriter& writer, const test::Field& field, const AxisValues& extents) {
  const std::size_t value_bytes = getDataTypeSize(field.type);
  const ByteSteps steps = denseSteps(extents, value_bytes);
  for (std::uint64_t chunk = writer.chunkCount(); chunk-- > 0;) {
    const Box box = writer.chunkBox(chunk);
    std::ptrdiff_t offset = 0;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      offset += static_cast<std::ptrdiff_t>(box.origin[axis]) * steps[axis];
    }
    Bytes values(valueCount(box.extents) * value_bytes);
    copyValues(values.data(), denseSteps(box.extents, value_bytes), field.bytes.data() + offset,
               steps, box.extents, value_bytes);
    writer.put(chunk, values);
  }
}

}  // namespace

std::uint64_t ChunkedArchive::chunkAt(const Box& box) const {
  std::uint64_t chunk = 0;
  while (chunk < index.grid.count() && !(index.grid.boxOf(chunk) == box)) {
    ++chunk;
  }
  return chunk;
}

ArchiveOptions chunkedOptions(const std::string& preset,
                              const AxisValues& extents,
                              const AxisValues& chunk) {
  ArchiveOptions options;
  options.compress.preset = preset;
  if (preset != losslessPreset().name) {
    options.compress.error_bound = 1e-2;
    options.compress.mode = ErrorBoundMode::ABS;
  }
  options.compress.backend = Backend::CPU;
  options.compress.threads = 1;
  options.extents = extents;
  options.chunk = chunk;
  return options;
}

ChunkedArchive makeChunked(const std::string& preset,
                           DataType type,
                           const ChunkedShape& shape,
                           std::uint64_t array_id) {
  const test::Field field = test::smoothField(type, foldedDims(shape.extents));
  ArchiveOptions options = chunkedOptions(preset, shape.extents, shape.chunk);
  options.array_id = array_id;
  if (shape.way == ChunkedShape::kGrown) {
    options.extents.back() = 0;
  }
  BytesSink sink;
  ArchiveWriter writer(type, options, sink);
  if (shape.way == ChunkedShape::kPutBackwards) {
    putBackwards(writer, field, shape.extents);
  } else {
    writer.append(field.bytes);
  }
  writer.finish();
  ChunkedArchive made;
  made.name = preset + "<" + std::string(dataTypeToString(type)) + "> " +
              extentsText(shape.extents) + " by " + extentsText(shape.chunk);
  made.bytes = std::move(sink.bytes);
  const IndexPlace place = findIndex(made.bytes, made.bytes.size()).value();
  made.index = getIndex(ByteView(made.bytes).subspan(place.offset), made.bytes.size());
  made.frames_end = place.offset;
  const ArchiveReader reader(sourceOf(made.bytes));
  for (std::uint64_t chunk = 0; chunk < made.index.grid.count(); ++chunk) {
    made.values.push_back(chunkValues(reader, chunk));
  }
  return made;
}

std::vector<ChunkedArchive> chunkedArchives(std::size_t n_wanted) {
  std::vector<std::string> presets = {std::string(losslessPreset().name)};
  for (const Preset& preset : allPresets()) {
    presets.emplace_back(preset.name);
  }
  std::vector<ChunkedArchive> all;
  // Steps without a common divisor, so that few archives already mix presets, types and shapes.
  for (std::size_t i = 0; all.size() < n_wanted; ++i) {
    const std::string& preset = presets[i * 5 % presets.size()];
    const DataType type = (i + i / presets.size()) % 3 == 1 ? DataType::FLOAT64 : DataType::FLOAT32;
    try {
      const std::size_t shape = i + i / shapes().size();
      all.push_back(makeChunked(preset, type, shapes()[shape % shapes().size()]));
    } catch (const InvalidArgument&) {
      continue;  // a preset that does not take this mode or type
    } catch (const Error&) {
      continue;
    }
  }
  return all;
}

Bytes withIndex(ByteView frames, const ArchiveIndex& index) {
  Bytes bytes(frames.begin(), frames.end());
  const std::vector<std::uint8_t> end = putIndex(index, frames.size());
  bytes.insert(bytes.end(), end.begin(), end.end());
  return bytes;
}

void repairIndex(Bytes& archive) {
  if (archive.size() < kArchiveTailBytes) {
    return;
  }
  std::uint8_t* const tail = archive.data() + archive.size() - kArchiveTailBytes;
  const auto offset = loadLe<std::uint64_t>(tail);
  if (offset > archive.size() - kArchiveTailBytes) {
    return;
  }
  const std::uint64_t n_index = archive.size() - kArchiveTailBytes - offset;
  storeLe(tail + 8, n_index);
  storeLe(tail + 16, std::uint64_t{archive.size()});
  storeLe(tail + kTailCrcOffset,
          crc32(ByteView(archive).subspan(offset, n_index + kTailCrcOffset)));
  storeLe(tail + kTailCrcOffset + 4, kArchiveTailMagic);
}

DecompressOptions plainDecoding() {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = 1;
  return options;
}

Bytes chunkValues(const ArchiveReader& reader,
                  std::uint64_t chunk,
                  const DecompressOptions& options) {
  Bytes values;
  reader.readChunk(
      chunk,
      [&](std::size_t n_bytes) -> void* {
        values.resize(n_bytes);
        return values.data();
      },
      options);
  return values;
}

}  // namespace fz::trust
