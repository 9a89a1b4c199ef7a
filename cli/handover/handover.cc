#include "handover/handover.h"

#include <filesystem>
#include <fmt/format.h>

#include "archive/assemble.h"
#include "archive_output.h"
#include "core/require.h"
#include "failure.h"
#include "format/file_io.h"
#include "handover/hdf5_chunks.h"
#include "handover/recode.h"
#include "handover/zarr_chunks.h"
#include "hdf5_io.h"
#include "output_io.h"
#include "progress.h"

namespace fz::cli {

namespace {

class FileSink : public ByteSink {
 public:
  explicit FileSink(const std::string& path) : file(path) {}
  void write(ByteView bytes) override { file.write(bytes); }

  AtomicFile file;
};

/// Runs f on a chunk; what goes wrong names it.
template <class F>
auto ofChunk(const StoredArray& about, std::uint64_t chunk, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("chunk {} of {}, {}: {}", chunk, about.grid.count(),
                                          boxText(about.grid.boxOf(chunk)), error.what()));
  }
}

std::unique_ptr<ChunkSource> openChunks(const std::string& input, const CommonOptions& common) {
  return reading([&]() -> std::unique_ptr<ChunkSource> {
    if (const auto zarr = zarrName(input)) {
      return openZarr(*zarr, common.limits);
    }
    return openHdf5Chunks(*hdf5Name(input));
  });
}

std::unique_ptr<ChunkTarget> createChunks(const std::string& output,
                                          const StoredArray& about,
                                          const CommonOptions& common) {
  if (const auto zarr = zarrName(output)) {
    return createZarr(*zarr, about, existingWith(common.force));
  }
  return createHdf5Chunks(*hdf5Name(output), about);
}

/// What an archive says that the metadata of other formats have room for.
StoredArray aboutOf(const ArchiveReader& archive) {
  const ArchiveInfo& info = archive.info();
  if (!isKnown(info.type)) {
    throw Failure(ExitCode::kUsage,
                  "it is of an old format that names no type, so its frames cannot be handed over; "
                  "--decode writes plain values");
  }
  if (info.n_absent > 0) {
    throw Failure(ExitCode::kCorrupt,
                  fmt::format("{} of its {} chunks are absent; elsewhere that would mean a fill "
                              "value",
                              info.n_absent, info.n_chunks));
  }
  StoredArray about;
  about.type = info.type;
  about.grid = ChunkGrid(info.type, info.extents, info.chunk);
  about.stored_chunk = info.chunk;
  about.bound = info.bound;
  about.fill = declaredFill(archive);
  return about;
}

/// Frames of one array share a number. Where none of them says one, it is made of the first.
std::uint64_t arrayIdOf(const ChunkSource& source) {
  const StoredArray& about = source.about();
  std::uint64_t made = 1;
  for (std::uint64_t chunk = 0; chunk < about.grid.count(); ++chunk) {
    const auto front = source.read(chunk, kMaxHeaderBytes);
    if (!front) {
      break;  // which is told when its turn comes
    }
    try {
      const FrameHeader header = readHeader(*front, source.sizeOf(chunk));
      if (header.description.place) {
        return header.description.place->array_id;
      }
      made = chunk == 0 ? (std::uint64_t{1} << 32 | header.core.header_checksum) : made;
    } catch (const Error&) {
      continue;  // damage is told later as well
    }
  }
  return made;
}

/// A frame that the archive takes, and whether it had to be made anew.
struct Taken {
  std::vector<std::uint8_t> bytes;
  bool is_recoded = false;
};

void checkFrameBytes(std::uint64_t n_bytes, const CommonOptions& common) {
  const std::uint64_t limit = common.limits.max_memory_bytes;
  FZ_REQUIRE(limit == 0 || n_bytes < limit, ErrorCode::kLimit,
             "its frame takes {} bytes, the limit is {}", n_bytes, limit);
}

Taken takeChunk(const ChunkSource& source, std::uint64_t chunk, const CommonOptions& common) {
  const std::uint64_t n_bytes = source.sizeOf(chunk);
  checkFrameBytes(n_bytes, common);
  auto bytes = source.read(chunk, n_bytes);
  FZ_REQUIRE(bytes.has_value(), ErrorCode::kCorrupt,
             "it is absent, which stands for a fill value there; archives have every chunk");
  if (!needsRecoding(source.about(), chunk, *bytes)) {
    return {*std::move(bytes), false};
  }
  const DecompressOptions how = {
      .limits = common.limits, .backend = parseBackend(common.backend), .threads = common.threads};
  return {recode(source.about(), chunk, *bytes, how), true};
}

}  // namespace

#if !FZ_HAVE_HDF5

bool isFilteredHdf5(const Hdf5Name& /*name*/) {
  return false;
}
std::unique_ptr<ChunkSource> openHdf5Chunks(const Hdf5Name& name) {
  failNotBuilt(name);
}
std::unique_ptr<ChunkTarget> createHdf5Chunks(const Hdf5Name& name, const StoredArray& /*about*/) {
  failNotBuilt(name);
}

#endif

std::vector<double> declaredFill(const ArchiveReader& archive) {
  const ArchiveInfo& info = archive.info();
  for (std::uint64_t chunk = 0; chunk < info.n_chunks && isFloat(info.type); ++chunk) {
    const FrameInfo frame = archive.inspect(chunk);
    if (frame.missing && !frame.missing->fill.empty()) {
      return frame.missing->fill;
    }
  }
  return {};
}

bool takesFrames(const std::string& output) {
  return zarrName(output) || hdf5Name(output);
}

bool hasFrames(const std::string& input) {
  if (zarrName(input)) {
    return true;
  }
  const std::optional<Hdf5Name> dataset = hdf5Name(input);
  return dataset && isFilteredHdf5(*dataset);
}

Handover archiveToChunks(const std::string& input,
                         const std::string& output,
                         const CommonOptions& common,
                         Progress& progress) {
  const ArchiveReader archive = openArchive(input, common.limits, &progress);
  const ArchiveInfo& info = archive.info();
  const StoredArray about = aboutOf(archive);
  Handover done{info.type, info.extents, info.original_bytes};
  const std::unique_ptr<ChunkTarget> target = createChunks(output, about, common);
  progress.beginBytes("copying", info.archive_bytes);
  const std::uint64_t n_chunks = info.original_bytes == 0 ? 0 : info.n_chunks;
  for (; done.n_chunks < n_chunks; ++done.n_chunks) {
    checkFrameBytes(archive.inspect(done.n_chunks).frameBytes(), common);
    const Frame frame = archive.frame(done.n_chunks);
    ofChunk(about, done.n_chunks, [&] { checkedFrame(frame.bytes()); });
    target->put(done.n_chunks, frame.bytes());
    done.frame_bytes += frame.size();
    progress.add(frame.size());
  }
  target->commit();
  return done;
}

Handover chunksToArchive(const std::string& input,
                         const std::string& output,
                         const CommonOptions& common,
                         Progress& progress) {
  const std::unique_ptr<ChunkSource> source = openChunks(input, common);
  const StoredArray& about = source->about();
  const ChunkGrid& grid = about.grid;
  Handover done{about.type, grid.extents(), grid.arrayBytes()};
  FileSink sink(behindLinks(output));
  ArchiveAssembler archive(about.type, grid, grid.count() > 1 ? arrayIdOf(*source) : 0, sink);
  progress.beginBytes("copying", 0);
  for (; done.n_chunks < grid.count(); ++done.n_chunks) {
    ofChunk(about, done.n_chunks, [&] {
      const Taken taken = grid.arrayBytes() == 0 ? Taken{emptyFrame(about), true}
                                                 : takeChunk(*source, done.n_chunks, common);
      archive.put(checkedFrame(taken.bytes));
      done.n_recoded += taken.is_recoded && grid.arrayBytes() > 0 ? 1 : 0;
      progress.add(taken.bytes.size());
    });
  }
  done.frame_bytes = archive.finish();
  sink.file.commit(existingWith(common.force));
  return done;
}

}  // namespace fz::cli
