// R1 and R3 for archives of chunks: mutants whose frames, index or order were changed, half of them
// with checksums that fit again, end in values or a typed error for every way to read them.
#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "archive/chunk_grid.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "trust/archives.h"
#include "trust/heap.h"
#include "trust/mutate.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kBaseBytes = 16 * kMiB;
constexpr std::uint64_t kRefusedBytes = std::uint64_t{1} << 30;  // more is not given in the tests
constexpr std::uint64_t kLimits[] = {0, 64 * 1024, kMiB, 8 * kMiB};
constexpr std::uint64_t kMostChunks = 32;  // read of one mutant
constexpr std::uint64_t kEntryBytes = 32;  // in memory, for a byte of the index

std::uint64_t below(std::mt19937_64& rng, std::uint64_t n) {
  return n == 0 ? 0 : rng() % n;
}

std::uint64_t oddValue(std::mt19937_64& rng, std::uint64_t value) {
  switch (rng() % 6) {
    case 0:
      return value + 1;
    case 1:
      return value - 1;
    case 2:
      return 0;
    case 3:
      return std::uint64_t{1} << (rng() % 64);
    case 4:
      return ~std::uint64_t{0} >> (rng() % 60);
    default:
      return value ^ std::uint64_t{1} << (rng() % 32);
  }
}

/// The corpus, and its frames for the mutants of frames.
struct Corpus {
  std::vector<ChunkedArchive> archives;
  std::vector<Seed> frames;
  std::vector<std::size_t> first_frame;  ///< of every archive
};

Corpus makeCorpus() {
  Corpus corpus;
  corpus.archives = chunkedArchives(40);
  for (const ChunkedArchive& archive : corpus.archives) {
    corpus.first_frame.push_back(corpus.frames.size());
    for (std::uint64_t chunk = 0; chunk < archive.index.grid.count(); ++chunk) {
      const ByteView frame = archive.frame(chunk);
      corpus.frames.push_back({archive.name, Bytes(frame.begin(), frame.end()), {}});
    }
  }
  return corpus;
}

struct ArchiveMutant {
  Bytes bytes;
  std::size_t archive = 0;
  bool is_repaired = false;  ///< all checksums fit
};

/// Frames of chunks in the order of the grid, and what the index will say of them.
struct Parts {
  std::vector<Bytes> frames;
  ArchiveIndex index;
};

void changeGrid(ArchiveIndex& index, std::mt19937_64& rng) {
  AxisValues extents = index.grid.extents();
  AxisValues chunk = index.grid.chunk();
  AxisValues& values = rng() % 2 == 0 ? extents : chunk;
  std::uint64_t& value = values[below(rng, values.size())];
  value = oddValue(rng, value);
  try {
    index.grid = ChunkGrid(index.type, extents, chunk);
  } catch (const std::exception&) {
    return;  // what no writer can write; raw changes make such
  }
  if (index.grid.count() < 4096) {
    index.chunks.resize(index.grid.count());
  }
}

void changeEntry(ArchiveIndex& index, std::mt19937_64& rng) {
  ChunkEntry& entry = index.chunks[below(rng, index.chunks.size())];
  switch (rng() % 5) {
    case 0:
      entry.offset = oddValue(rng, entry.offset);
      break;
    case 1:
      entry.n_bytes = oddValue(rng, entry.n_bytes);
      break;
    case 2:
      entry.header_checksum ^= 1u << rng() % 32;
      break;
    case 3:
      entry = {};
      break;
    default:
      std::swap(entry, index.chunks[below(rng, index.chunks.size())]);
  }
}

void changeIndex(ArchiveIndex& index, std::mt19937_64& rng) {
  if (index.chunks.empty()) {
    return;
  }
  switch (rng() % 8) {
    case 0:
      index.array_id = oddValue(rng, index.array_id);
      break;
    case 1:
      index.type = static_cast<DataType>(rng() % 12);
      break;
    case 2:
    case 3:
      return changeGrid(index, rng);
    default:
      return changeEntry(index, rng);
  }
}

void changeFrames(Parts& parts, const Corpus& corpus, std::size_t archive, std::mt19937_64& rng) {
  Bytes& frame = parts.frames[below(rng, parts.frames.size())];
  switch (rng() % 6) {
    case 0:
      std::swap(frame, parts.frames[below(rng, parts.frames.size())]);
      break;
    case 1:
      frame = corpus.frames[below(rng, corpus.frames.size())].frame;
      break;
    case 2:
      frame.clear();
      break;
    default: {
      const std::size_t first = corpus.first_frame[archive];
      const std::vector<Seed> own(
          corpus.frames.begin() + static_cast<std::ptrdiff_t>(first),
          corpus.frames.begin() + static_cast<std::ptrdiff_t>(first + parts.frames.size()));
      frame = makeMutant(own, rng).bytes;
    }
  }
}

/// Frames one after the other, and an index that knows them.
Bytes closed(Parts& parts, std::mt19937_64& rng, std::size_t n_lies) {
  Bytes bytes;
  for (std::size_t i = 0; i < parts.frames.size(); ++i) {
    const Bytes& frame = parts.frames[i];
    parts.index.chunks[i] = {bytes.size(), frame.size(),
                             frame.size() < kHeaderChecksumOffset + 4
                                 ? 0
                                 : loadLe<std::uint32_t>(frame.data() + kHeaderChecksumOffset)};
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  for (std::size_t i = 0; i < n_lies; ++i) {
    changeIndex(parts.index, rng);
  }
  return withIndex(bytes, parts.index);
}

/// Bytes of the file, anywhere or in index and tail alone.
void changeBytes(Bytes& bytes, std::size_t first, std::mt19937_64& rng) {
  const std::size_t at = first + below(rng, bytes.size() - first);
  switch (rng() % 6) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(rng, 40),
                   static_cast<std::uint8_t>(rng()));
      break;
    case 2: {
      const std::size_t n = std::min<std::size_t>(bytes.size() - at, 1 + below(rng, 300));
      const Bytes block(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
      const std::size_t to = first + below(rng, bytes.size() - n - first + 1);
      std::copy(block.begin(), block.end(), bytes.begin() + static_cast<std::ptrdiff_t>(to));
      break;
    }
    case 3:
      bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                      bytes.size(), at + 1 + below(rng, 40))));
      break;
    default:
      bytes[at] ^= static_cast<std::uint8_t>(1u << rng() % 8);
  }
}

ArchiveMutant makeArchiveMutant(const Corpus& corpus, std::mt19937_64& rng) {
  ArchiveMutant mutant;
  mutant.archive = below(rng, corpus.archives.size());
  const ChunkedArchive& archive = corpus.archives[mutant.archive];
  mutant.is_repaired = rng() % 2 == 0;
  if (!mutant.is_repaired) {
    mutant.bytes = archive.bytes;
    const std::size_t n = 1 + below(rng, 3);
    for (std::size_t i = 0; i < n && !mutant.bytes.empty(); ++i) {
      changeBytes(mutant.bytes, 0, rng);
    }
    return mutant;
  }
  Parts parts{{}, archive.index};
  for (std::uint64_t chunk = 0; chunk < archive.index.grid.count(); ++chunk) {
    const ByteView frame = archive.frame(chunk);
    parts.frames.emplace_back(frame.begin(), frame.end());
  }
  const std::uint64_t kind = below(rng, 4);  // frames, index, both, or bytes of the index
  const std::size_t n = kind % 2 == 0 ? 1 + below(rng, 3) : 0;
  for (std::size_t i = 0; i < n; ++i) {
    changeFrames(parts, corpus, mutant.archive, rng);
  }
  mutant.bytes = closed(parts, rng, kind == 1 || kind == 2 ? 1 + below(rng, 3) : 0);
  if (kind == 3) {
    changeBytes(mutant.bytes, archive.frames_end, rng);
    repairIndex(mutant.bytes);
  }
  return mutant;
}

/// One mutant, its limit, and where what happens to it is counted.
struct Trial {
  const ArchiveMutant& mutant;
  const ChunkedArchive& archive;
  std::uint64_t limit;
  std::string where;
  Report& report;

  DecompressOptions options() const {
    DecompressOptions how = plainDecoding();
    how.limits = {.max_output_bytes = limit, .max_memory_bytes = 2 * limit};
    return how;
  }
  /// Damage that checksums tell changes no value.
  void requireTrue(const Box& box, ByteView values) const {
    report.add("chunks decoded");
    if (mutant.is_repaired) {
      return;
    }
    const std::uint64_t chunk = archive.chunkAt(box);
    report.check(chunk < archive.values.size() &&
                     std::equal(values.begin(), values.end(), archive.values[chunk].begin(),
                                archive.values[chunk].end()),
                 where + ": other values without a repaired checksum");
  }
};

/// Counts how a call ended; false: with an error.
bool guarded(const Trial& trial, const char* what, const std::function<void()>& call) {
  Report& report = trial.report;
  try {
    call();
    return true;
  } catch (const Error& error) {
    report.add(std::string("refused: ") + errorCodeName(error.code()));
    report.check(error.code() != ErrorCode::kInternal,
                 trial.where + ", " + what + ": " + error.what());
  } catch (const std::exception& error) {
    report.fail(trial.where + ", " + what + ": untyped " + error.what());
  }
  return false;
}

Box boxInside(const AxisValues& extents, std::mt19937_64& rng) {
  Box box;
  for (const std::uint64_t extent : extents) {
    box.origin.push_back(below(rng, extent));
    box.extents.push_back(std::min<std::uint64_t>(extent - box.origin.back(), 1 + below(rng, 5)));
  }
  return box;
}

void readArchive(const Trial& trial, ByteView bytes, std::mt19937_64& rng) {
  const bool is_open = guarded(trial, "opening", [&] {
    const ArchiveReader reader(sourceOf(bytes), trial.options().limits);
    trial.report.add("opened");
    const std::uint64_t n = std::min(reader.info().n_chunks, kMostChunks);
    for (std::uint64_t chunk = 0; chunk < n; ++chunk) {
      guarded(trial, "chunk", [&] {
        const FrameInfo info = reader.inspect(chunk);
        const Bytes values = chunkValues(reader, chunk, trial.options());
        // A frame that is all there is says itself which part it is.
        const Box box = info.place ? Box{info.place->origin, info.extents} : reader.chunkBox(chunk);
        trial.requireTrue(box, values);
      });
    }
    guarded(trial, "box", [&] {
      const Box box = boxInside(reader.info().extents, rng);
      Bytes out(valueCount(box.extents) *
                (isKnown(reader.info().type) ? getDataTypeSize(reader.info().type) : 1));
      reader.read(box, out, trial.options());
      trial.report.add("boxes read");
    });
  });
  trial.report.add(is_open ? "read" : "not opened");
}

void streamArchive(const Trial& trial) {
  std::size_t n_read = 0;
  const Bytes& bytes = trial.mutant.bytes;
  guarded(trial, "stream", [&] {
    readArchiveStream(
        [&](MutableByteView out) {
          const std::size_t n = std::min(out.size(), bytes.size() - n_read);
          std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(n_read), n, out.begin());
          n_read += n;
          return n;
        },
        [&](const StreamedChunk& chunk) { trial.requireTrue(chunk.box, chunk.values); },
        trial.options());
    trial.report.add("streams read");
  });
}

void recoverMutant(const Trial& trial, std::mt19937_64& rng) {
  BytesSink sink;
  const bool is_made =
      guarded(trial, "recover", [&] { recoverArchive(*sourceOf(trial.mutant.bytes), sink); });
  if (is_made) {
    trial.report.add("recovered");
    readArchive(trial, sink.bytes, rng);
  }
}

void tryMutant(const Corpus& corpus, const Settings& settings, std::uint64_t n, Report& report) {
  std::mt19937_64 rng(trialSeed(settings.seed, n));
  const ArchiveMutant mutant = makeArchiveMutant(corpus, rng);
  const ChunkedArchive& archive = corpus.archives[mutant.archive];
  const std::uint64_t limit = kLimits[rng() % std::size(kLimits)];
  const Trial trial{mutant, archive, limit,
                    "trial " + std::to_string(n) + " of seed " + std::to_string(settings.seed) +
                        " (" + archive.name + ")",
                    report};
  report.add("mutants");
  report.add(mutant.is_repaired ? "with repaired checksums" : "with checksums as they came out");
  heap::refuseAbove(kRefusedBytes);
  heap::resetPeak();
  try {
    readArchive(trial, mutant.bytes, rng);
    streamArchive(trial);
    recoverMutant(trial, rng);
  } catch (const std::exception& error) {
    report.fail(trial.where + ": untyped " + error.what());
  }
  const std::uint64_t peak = heap::peakBytes();
  heap::refuseAbove(0);
  report.atLeast("largest peak in KiB", peak / 1024);
  // No chunk may be larger than the limit; without one each is believed as far as R1 tells.
  if (limit != 0) {
    const std::uint64_t allowed = kBaseBytes + 3 * limit + kEntryBytes * mutant.bytes.size();
    report.check(peak <= allowed, trial.where + ": peak " + std::to_string(peak) +
                                      " bytes, allowed " + std::to_string(allowed));
  }
}

const RegisterGoal kArchiveMutants(
    "R1-archives",
    "reading, streaming and recovering mutated archives of chunks ends in a result or a typed "
    "error, and values come through without a repaired checksum only if they are the right ones",
    [](const Settings& settings, Report& report) {
      const Corpus corpus = makeCorpus();
      report.add("seeds", corpus.archives.size());
      runInProcesses(
          settings.trials(20'000, 1'000'000), settings, report,
          [&](std::uint64_t trial, Report& mine) { tryMutant(corpus, settings, trial, mine); });
      for (const char* what : {"mutants", "opened", "chunks decoded", "boxes read", "streams read",
                               "recovered", "with repaired checksums"}) {
        report.check(report.counts().count(what) != 0, std::string("never: ") + what);
      }
    });

}  // namespace
}  // namespace fz::trust
