// R4 for archives whose checksums fit and whose index or frames are not what they say: the chunk
// that does not fit is named, and the others stay readable.
#include <algorithm>
#include <functional>
#include <string>

#include "archive/chunk_grid.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "support/fields.h"
#include "trust/archives.h"
#include "trust/trust.h"

namespace fz::trust {
namespace {

/// An archive as it is about to be closed.
struct Open {
  Bytes frames;
  ArchiveIndex index;
  const ChunkedArchive& other;  ///< of the same shape and settings, with an id of its own

  /// A chunk's frame is another one, and the index knows it.
  void replace(std::uint64_t chunk, ByteView frame) {
    index.chunks[chunk] = {frames.size(), frame.size(),
                           loadLe<std::uint32_t>(frame.data() + kHeaderChecksumOffset)};
    frames.insert(frames.end(), frame.begin(), frame.end());
  }
};

constexpr int kRefused = -1;  // when it is opened

struct Lie {
  const char* name;
  std::function<void(Open&)> tell;
  int n_broken;  ///< chunks that cannot be read; kAll: none can
};
constexpr int kAll = 1000;

void regrid(ArchiveIndex& index, const AxisValues& extents, const AxisValues& chunk) {
  index.grid = ChunkGrid(index.type, extents, chunk);
  index.chunks.resize(index.grid.count());
}

std::vector<Lie> liesOfEntries() {
  return {
      {"two entries change places",
       [](Open& o) { std::swap(o.index.chunks[0], o.index.chunks[1]); }, 2},
      {"one frame for two chunks", [](Open& o) { o.index.chunks[1] = o.index.chunks[0]; },
       kRefused},
      {"frames overlap",
       [](Open& o) {
         --o.index.chunks[1].offset;
         ++o.index.chunks[1].n_bytes;
       },
       kRefused},
      {"a frame reaches into the index", [](Open& o) { ++o.index.chunks.back().n_bytes; },
       kRefused},
      {"a frame far away", [](Open& o) { o.index.chunks[1].offset = ~std::uint64_t{0} - 5; },
       kRefused},
      {"a frame too short", [](Open& o) { --o.index.chunks[0].n_bytes; }, 1},
      {"a frame of one byte", [](Open& o) { o.index.chunks[0].n_bytes = 1; }, 1},
      {"a frame begins later",
       [](Open& o) {
         ++o.index.chunks[1].offset;
         --o.index.chunks[1].n_bytes;
       },
       1},
      {"another checksum", [](Open& o) { o.index.chunks[2].header_checksum ^= 1; }, 1},
      {"an absent chunk", [](Open& o) { o.index.chunks[1] = {}; }, 1},
      {"no chunk is there",
       [](Open& o) { std::fill(o.index.chunks.begin(), o.index.chunks.end(), ChunkEntry{}); },
       kAll},
  };
}

std::vector<Lie> liesOfTheArray() {
  return {
      {"another id", [](Open& o) { ++o.index.array_id; }, kAll},
      {"another type",
       [](Open& o) {
         o.index.type = o.index.type == DataType::FLOAT32 ? DataType::FLOAT64 : DataType::FLOAT32;
       },
       kAll},
      {"one more chunk",
       [](Open& o) {
         AxisValues extents = o.index.grid.extents();
         extents.back() += o.index.grid.chunk().back();
         regrid(o.index, extents, o.index.grid.chunk());
       },
       1},
      {"other extents",
       [](Open& o) {
         AxisValues extents = o.index.grid.extents();
         AxisValues chunk = o.index.grid.chunk();
         ++extents.front();
         ++chunk.front();
         regrid(o.index, extents, chunk);
       },
       kAll},
      {"one axis more",
       [](Open& o) {
         AxisValues extents = o.index.grid.extents();
         AxisValues chunk = o.index.grid.chunk();
         extents.insert(extents.begin(), 1);
         chunk.insert(chunk.begin(), 1);
         regrid(o.index, extents, chunk);
       },
       kAll},
  };
}

std::vector<Lie> liesOfFrames() {
  return {
      {"a chunk of another array", [](Open& o) { o.replace(1, o.other.frame(1)); }, 1},
      {"the frame of another place",
       [](Open& o) {
         const ChunkEntry& entry = o.index.chunks[0];
         const Bytes frame(o.frames.begin(),
                           o.frames.begin() + static_cast<std::ptrdiff_t>(entry.n_bytes));
         o.replace(1, frame);
       },
       1},
      {"a frame that is no part",
       [](Open& o) {
         const test::Field field = test::smoothField(DataType::FLOAT32, {12, 10, 2});
         CompressOptions options;
         options.preset = "pfpl";
         options.error_bound = 1e-2;
         options.backend = Backend::CPU;
         options.threads = 1;
         o.replace(1, compress(field.type, field.bytes, options).bytes());
       },
       1},
      {"garbage for a frame", [](Open& o) { o.replace(1, Bytes(300, 0x5A)); }, 1},
      {"an archive for a frame", [](Open& o) { o.replace(1, Bytes(o.other.bytes)); }, 1},
  };
}

/// True: the chunk has its values. False: it is refused, and named.
bool isReadable(const ChunkedArchive& archive,
                const ArchiveReader& reader,
                std::uint64_t chunk,
                const std::string& where,
                Report& report) {
  try {
    const Bytes values = chunkValues(reader, chunk);
    report.check(chunk < archive.values.size() && values == archive.values[chunk],
                 where + ": chunk " + std::to_string(chunk) + " has other values");
    return true;
  } catch (const Error& error) {
    const std::string name =
        "chunk " + std::to_string(chunk) + " of " + std::to_string(reader.info().n_chunks);
    report.check(error.code() == ErrorCode::kCorrupt &&
                     std::string(error.what()).find(name) != std::string::npos,
                 where + ": " + error.what());
    report.add("chunks refused by name");
    return false;
  }
}

/// The first chunk that is wrong ends a call over all of them, also with several threads.
void readWhole(const ArchiveReader& reader,
               std::uint64_t first_broken,
               const std::string& where,
               Report& report) {
  const AxisValues& extents = reader.info().extents;
  for (const std::size_t n_threads : {1u, 3u}) {
    DecompressOptions options = plainDecoding();
    options.threads = n_threads;
    try {
      reader.readParts(
          {AxisValues(extents.size(), 0), extents}, [](const Box&, ByteView) {}, options);
      report.fail(where + ": all of it is accepted");
    } catch (const Error& error) {
      const std::string name = "chunk " + std::to_string(first_broken) + " of ";
      report.check(std::string(error.what()).find(name) != std::string::npos,
                   where + ": not the first: " + error.what());
    }
  }
}

void tryLie(const Lie& lie,
            const ChunkedArchive& archive,
            const ChunkedArchive& other,
            Report& report) {
  const std::string where = archive.name + ", " + lie.name;
  const auto frames_end = static_cast<std::ptrdiff_t>(archive.frames_end);
  Open open{Bytes(archive.bytes.begin(), archive.bytes.begin() + frames_end), archive.index, other};
  lie.tell(open);
  const Bytes bytes = withIndex(open.frames, open.index);
  report.add("lies");
  try {
    const ArchiveReader reader(sourceOf(bytes));
    report.check(lie.n_broken != kRefused, where + ": opened");
    std::uint64_t n_broken = 0;
    std::uint64_t first_broken = 0;
    for (std::uint64_t chunk = reader.info().n_chunks; chunk-- > 0;) {
      if (!isReadable(archive, reader, chunk, where, report)) {
        ++n_broken;
        first_broken = chunk;
      } else {
        report.add("chunks read beside a lie");
      }
    }
    const std::uint64_t n_expected =
        lie.n_broken == kAll ? reader.info().n_chunks : static_cast<std::uint64_t>(lie.n_broken);
    report.check(n_broken == n_expected,
                 where + ": " + std::to_string(n_broken) + " chunks are refused");
    readWhole(reader, first_broken, where, report);
  } catch (const Error& error) {
    report.check(lie.n_broken == kRefused && error.code() == ErrorCode::kCorrupt,
                 where + ": " + error.what());
    report.add("archives refused when opened");
  }
}

template <class Call>
void requireArgument(const Call& call, const std::string& where, Report& report) {
  report.add("places outside");
  try {
    call();
    report.fail(where + ": accepted");
  } catch (const InvalidArgument&) {
    return;
  } catch (const std::exception& error) {
    report.fail(where + ": " + error.what());
  }
}

/// What the caller asks for is outside, though the archive is sound.
void askOutside(const ChunkedArchive& archive, Report& report) {
  const ArchiveReader reader(sourceOf(archive.bytes));
  const AxisValues& extents = reader.info().extents;
  const std::uint64_t n = reader.info().n_chunks;
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  Bytes out(getDataTypeSize(reader.info().type));
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    for (const std::uint64_t at : {extents[axis], extents[axis] + 1, kMost, kMost / 2 + 1}) {
      Box box{AxisValues(extents.size(), 0), AxisValues(extents.size(), 1)};
      box.origin[axis] = at;
      requireArgument([&] { reader.read(box, out, plainDecoding()); }, archive.name, report);
      requireArgument(
          [&] {
            reader.readParts(
                box, [](const Box&, ByteView) {}, plainDecoding());
          },
          archive.name, report);
    }
  }
  for (const std::uint64_t chunk : {n, n + 1, kMost}) {
    requireArgument([&] { chunkValues(reader, chunk); }, archive.name, report);
    requireArgument([&] { static_cast<void>(reader.frame(chunk)); }, archive.name, report);
    requireArgument([&] { static_cast<void>(reader.inspect(chunk)); }, archive.name, report);
    requireArgument([&] { static_cast<void>(reader.hasChunk(chunk)); }, archive.name, report);
    requireArgument([&] { static_cast<void>(reader.chunkBox(chunk)); }, archive.name, report);
  }
}

const RegisterGoal kLies(
    "R4-lies",
    "an index that lies, chunks that overlap, are missing, of another place or array, and places "
    "outside are typed errors that name the chunk; the others stay readable",
    [](const Settings& /*settings*/, Report& report) {
      const ChunkedShape shapes[] = {
          {{12, 10, 6}, {12, 10, 2}}, {{90}, {30}}, {{6, 5, 4, 3}, {6, 5, 4, 1}}};
      std::vector<Lie> lies = liesOfEntries();
      for (const auto& more : {liesOfTheArray(), liesOfFrames()}) {
        lies.insert(lies.end(), more.begin(), more.end());
      }
      for (const char* preset : {"pfpl", "balanced", "cuszp2", "lossless"}) {
        for (const ChunkedShape& shape : shapes) {
          const ChunkedArchive archive = makeChunked(preset, DataType::FLOAT32, shape);
          const ChunkedArchive other = makeChunked(preset, DataType::FLOAT32, shape, 77);
          for (const Lie& lie : lies) {
            tryLie(lie, archive, other, report);
          }
          askOutside(archive, report);
          report.add("archives");
        }
      }
      for (const char* what : {"lies", "chunks refused by name", "chunks read beside a lie",
                               "archives refused when opened", "places outside"}) {
        report.check(report.counts().count(what) != 0, std::string("never: ") + what);
      }
    });

}  // namespace
}  // namespace fz::trust
