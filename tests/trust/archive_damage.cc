// R4 for archives of chunks: every truncation and every flipped bit is noticed, the chunks beside
// it stay readable, and recovering one believes nothing without a check.
#include <algorithm>
#include <string>

#include "fz/error.h"
#include "trust/archives.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

bool isRefusal(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kUnsupported;
}

/// An archive with a damage, and what of it is still there.
struct Damaged {
  const ChunkedArchive& archive;
  const Bytes& bytes;
  std::string where;
  std::vector<bool> is_sound = {};  ///< of every chunk
  bool has_index = false;
  bool is_cut = false;
};

bool isNamed(const Error& error, const ChunkedArchive& archive, std::uint64_t chunk) {
  const std::string text =
      "chunk " + std::to_string(chunk) + " of " + std::to_string(archive.index.grid.count());
  return std::string(error.what()).find(text) != std::string::npos;
}

/// Cut behind its first frame, an archive is a frame, which says that it is a part.
bool isFirstFrame(const Damaged& damaged, const ArchiveReader& reader) {
  const ChunkedArchive& archive = damaged.archive;
  for (std::uint64_t chunk = 0; chunk < archive.index.grid.count(); ++chunk) {
    if (archive.index.chunks[chunk].offset == 0) {
      return damaged.is_cut && reader.info().is_frame && inspect(damaged.bytes).place &&
             damaged.bytes.size() == archive.index.chunks[chunk].n_bytes &&
             chunkValues(reader, 0) == archive.values[chunk];
    }
  }
  return false;
}

void readDamaged(const Damaged& damaged, Report& report) try {
  const ChunkedArchive& archive = damaged.archive;
  const ArchiveReader reader(sourceOf(damaged.bytes));
  if (!damaged.has_index) {
    report.check(isFirstFrame(damaged, reader), damaged.where + ": opened");
    return;
  }
  for (std::uint64_t chunk = 0; chunk < archive.index.grid.count(); ++chunk) {
    const std::string where = damaged.where + ": chunk " + std::to_string(chunk);
    try {
      const bool is_right = chunkValues(reader, chunk) == archive.values[chunk];
      report.check(damaged.is_sound[chunk], where + " accepted");
      report.check(is_right, where + " has other values");
      report.add("chunks read beside the damage");
    } catch (const Error& error) {
      report.check(!damaged.is_sound[chunk], where + " is not readable any more");
      report.check(isRefusal(error) && isNamed(error, archive, chunk), where + ": " + error.what());
      report.add("damaged chunks named");
    }
  }
} catch (const Error& error) {
  report.check(!damaged.has_index && isRefusal(error), damaged.where + ": " + error.what());
  report.add("refused when opened");
}

/// Chunks up to the first plane of the slowest axis that is not all there.
std::uint64_t completeChunks(const Damaged& damaged) {
  const auto& grid = damaged.archive.index.grid;
  const std::uint64_t n_slab = grid.count() / grid.countAlong(grid.axisCount() - 1);
  std::uint64_t n_done = 0;
  while (n_done < grid.count() && damaged.is_sound[n_done]) {
    ++n_done;
  }
  return n_done / n_slab * n_slab;
}

void recoverDamaged(const Damaged& damaged, Report& report) {
  const ChunkedArchive& archive = damaged.archive;
  const std::uint64_t n_expected = completeChunks(damaged);
  BytesSink sink;
  try {
    recoverArchive(*sourceOf(damaged.bytes), sink);
  } catch (const Error& error) {
    report.check(n_expected == 0 && isRefusal(error),
                 damaged.where + ": not recovered: " + error.what());
    report.add("nothing to recover");
    return;
  }
  const ArchiveReader reader(sourceOf(sink.bytes));
  report.check(reader.info().n_chunks == n_expected,
               damaged.where + ": " + std::to_string(reader.info().n_chunks) +
                   " chunks recovered of " + std::to_string(n_expected));
  for (std::uint64_t chunk = 0; chunk < reader.info().n_chunks; ++chunk) {
    const std::uint64_t original = archive.chunkAt(reader.chunkBox(chunk));
    const bool is_known = original < archive.index.grid.count();
    const Frame frame = reader.frame(chunk);
    report.check(
        is_known && std::equal(frame.bytes().begin(), frame.bytes().end(),
                               archive.frame(original).begin(), archive.frame(original).end()),
        damaged.where + ": recovered chunk " + std::to_string(chunk) + " is another");
    report.add("chunks recovered");
  }
}

/// What comes before the damage is handed out, and it is right; then the stream is refused.
void streamDamaged(const Damaged& damaged, Report& report) {
  const ChunkedArchive& archive = damaged.archive;
  std::size_t n_read = 0;
  try {
    readArchiveStream(
        [&](MutableByteView out) {
          const std::size_t n = std::min(out.size(), damaged.bytes.size() - n_read);
          std::copy_n(damaged.bytes.begin() + static_cast<std::ptrdiff_t>(n_read), n, out.begin());
          n_read += n;
          return n;
        },
        [&](const StreamedChunk& chunk) {
          const std::uint64_t original = archive.chunkAt(chunk.box);
          report.check(
              original < archive.index.grid.count() &&
                  std::equal(chunk.values.begin(), chunk.values.end(),
                             archive.values[original].begin(), archive.values[original].end()),
              damaged.where + ": the stream hands out other values");
        },
        plainDecoding());
    report.fail(damaged.where + ": the stream is accepted");
  } catch (const Error& error) {
    report.check(isRefusal(error), damaged.where + ": stream: " + error.what());
  }
  report.add("streams refused");
}

void tryDamage(const Damaged& damaged, bool as_stream, Report& report) try {
  readDamaged(damaged, report);
  recoverDamaged(damaged, report);
  if (as_stream) {
    streamDamaged(damaged, report);
  }
} catch (const std::exception& error) {
  report.fail(damaged.where + ": untyped " + error.what());
}

void cutAt(const ChunkedArchive& archive, std::size_t n_bytes, Report& report) {
  const Bytes cut(archive.bytes.begin(),
                  archive.bytes.begin() + static_cast<std::ptrdiff_t>(n_bytes));
  Damaged damaged{archive, cut, archive.name + ": cut to " + std::to_string(n_bytes) + " bytes"};
  damaged.is_cut = true;
  for (const ChunkEntry& entry : archive.index.chunks) {
    damaged.is_sound.push_back(entry.offset + entry.n_bytes <= n_bytes);
  }
  tryDamage(damaged, true, report);
  report.add("truncations");
}

void flip(const ChunkedArchive& archive, Bytes& bytes, std::size_t at, Report& report) {
  for (unsigned bit = 0; bit < 8; ++bit) {
    bytes[at] ^= static_cast<std::uint8_t>(1u << bit);
    Damaged damaged{
        archive, bytes,
        archive.name + ": bit " + std::to_string(bit) + " of byte " + std::to_string(at)};
    damaged.has_index = at < archive.frames_end;
    for (const ChunkEntry& entry : archive.index.chunks) {
      damaged.is_sound.push_back(at < entry.offset || at >= entry.offset + entry.n_bytes);
    }
    tryDamage(damaged, bit == at % 8, report);
    bytes[at] ^= static_cast<std::uint8_t>(1u << bit);
    report.add("flipped bits");
  }
}

const RegisterGoal kDamage(
    "R4-archives",
    "every truncation and flipped bit of an archive of chunks is noticed, the other chunks stay "
    "readable, and what is recovered are chunks of the original",
    [](const Settings& settings, Report& report) {
      constexpr std::size_t kPartBytes = 128;
      const std::vector<ChunkedArchive> all = chunkedArchives(settings.trials(8, 120));
      struct Part {
        std::size_t archive;
        std::size_t first_byte;
      };
      std::vector<Part> parts;
      for (std::size_t i = 0; i < all.size(); ++i) {
        report.add("archives");
        report.add("archive bytes", all[i].bytes.size());
        for (std::size_t at = 0; at < all[i].bytes.size(); at += kPartBytes) {
          parts.push_back({i, at});
        }
      }
      runInProcesses(parts.size(), settings, report, [&](std::uint64_t trial, Report& mine) {
        const ChunkedArchive& archive = all[parts[trial].archive];
        const std::size_t first = parts[trial].first_byte;
        Bytes bytes = archive.bytes;
        for (std::size_t at = first; at < std::min(first + kPartBytes, bytes.size()); ++at) {
          cutAt(archive, at, mine);
          flip(archive, bytes, at, mine);
        }
      });
      for (const char* what : {"truncations", "flipped bits", "damaged chunks named",
                               "chunks read beside the damage", "chunks recovered"}) {
        report.check(report.counts().count(what) != 0, std::string("never: ") + what);
      }
    });

}  // namespace
}  // namespace fz::trust
