// R3 for archives of chunks: what index and frames claim is believed only as far as bytes are
// there, and an archive costs as much memory as its chunks.
#include <algorithm>
#include <functional>
#include <string>

#include "archive/chunk_grid.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/presets.h"
#include "trust/archives.h"
#include "trust/heap.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr std::size_t kMiB = 1u << 20;
constexpr std::size_t kBaseBytes = 16 * kMiB;
constexpr std::size_t kRefusedBytes = std::size_t{1} << 30;
constexpr std::uint64_t kClaims[] = {std::uint64_t{1} << 26, std::uint64_t{1} << 31,
                                     std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 40,
                                     std::uint64_t{1} << 59};

struct Cost {
  std::size_t peak_bytes = 0;
  bool is_done = false;
  std::string code;  ///< of the error
  std::string text;
};

Cost costOf(const std::function<void()>& call) {
  Cost cost;
  heap::refuseAbove(kRefusedBytes);
  heap::resetPeak();
  try {
    call();
    cost.is_done = true;
  } catch (const Error& error) {
    cost.code = errorCodeName(error.code());
    cost.text = error.what();
  } catch (const std::exception& error) {
    cost.code = "untyped";
    cost.text = error.what();
  }
  cost.peak_bytes = std::max(heap::peakBytes(), heap::largestRequest());
  heap::refuseAbove(0);
  return cost;
}

/// No way of reading believes the lie or takes memory for it.
void requireCheap(const Bytes& bytes,
                  const std::string& where,
                  bool is_recoverable,
                  Report& report) {
  const auto one = [&](const char* what, const std::function<void()>& call) {
    const Cost cost = costOf(call);
    report.atLeast("largest peak of a false claim in KiB", cost.peak_bytes / 1024);
    report.check(!cost.is_done, where + ", " + what + ": believed");
    report.check(cost.code != "untyped" && cost.code != errorCodeName(ErrorCode::kOutOfMemory),
                 where + ", " + what + ": " + cost.text);
    report.check(cost.peak_bytes <= kBaseBytes,
                 where + ", " + what + ": took " + std::to_string(cost.peak_bytes) + " bytes");
  };
  report.add("false claims");
  one("chunk", [&] { chunkValues(ArchiveReader(sourceOf(bytes)), 0); });
  one("parts", [&] {
    const ArchiveReader reader(sourceOf(bytes));
    const AxisValues& extents = reader.info().extents;
    reader.readParts(
        {AxisValues(extents.size(), 0), extents}, [](const Box&, ByteView) {}, plainDecoding());
  });
  one("box", [&] {
    const ArchiveReader reader(sourceOf(bytes));
    const std::size_t n_axes = reader.info().extents.size();
    Bytes out(getDataTypeSize(reader.info().type));
    reader.read({AxisValues(n_axes, 0), AxisValues(n_axes, 1)}, out, plainDecoding());
  });
  std::size_t n_read = 0;
  one("stream", [&] {
    readArchiveStream(
        [&](MutableByteView out) {
          const std::size_t n = std::min(out.size(), bytes.size() - n_read);
          std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(n_read), n, out.begin());
          n_read += n;
          return n;
        },
        [](const StreamedChunk&) {}, plainDecoding());
  });
  BytesSink sink;
  const Cost recovery = costOf([&] { recoverArchive(*sourceOf(bytes), sink); });
  report.check(
      recovery.peak_bytes <= kBaseBytes && (recovery.is_done || !is_recoverable),
      where + ", recover: " + std::to_string(recovery.peak_bytes) + " bytes, " + recovery.text);
}

/// The index claims an array and chunks of any size; the frames are what they were.
void claimInIndex(const ChunkedArchive& archive, Report& report) {
  const ByteView frames = ByteView(archive.bytes).first(archive.frames_end);
  for (const std::uint64_t claim : kClaims) {
    for (const bool grows_chunk : {false, true}) {
      ArchiveIndex index = archive.index;
      AxisValues extents = index.grid.extents();
      AxisValues chunk = index.grid.chunk();
      const std::uint64_t plane = std::max<std::uint64_t>(1, valueCount(extents) / extents.back());
      extents.back() = claim / plane;
      chunk.front() = grows_chunk ? extents.front() : chunk.front();
      chunk.back() = grows_chunk ? extents.back() : chunk.back();
      const std::string where =
          archive.name + ", index claims " + extentsText(extents) + " by " + extentsText(chunk);
      index.grid = ChunkGrid(index.type, extents, chunk);
      // Claims of more chunks than the index has room for stand beside as few entries as before.
      index.chunks.resize(std::min<std::uint64_t>(index.grid.count(), index.chunks.size()));
      requireCheap(withIndex(frames, index), where, true, report);
    }
  }
}

/// The first frame claims to hold more values than it does, and the index agrees.
void claimInFrame(const ChunkedArchive& archive, Report& report) {
  const ByteView view = archive.frame(0);
  const OpenFrame truth(Bytes(view.begin(), view.end()));
  const std::uint64_t value_bytes = getDataTypeSize(truth.header.description.type);
  std::vector<std::pair<std::size_t, std::size_t>> words = {{0, ~std::size_t{0}}};  // none
  for (std::size_t s = 0; s < truth.header.stages.size(); ++s) {
    for (std::size_t at = 0; at + 4 <= truth.header.stages[s].config_size; at += 4) {
      words.emplace_back(s, at);
    }
  }
  for (const std::uint64_t claim : kClaims) {
    for (const auto& [stage, at] : words) {
      OpenFrame lie = truth;
      FrameDescription& description = lie.header.description;
      const std::size_t slowest = description.shape.n_axes - 1u;
      const std::uint64_t plane =
          description.original_bytes / value_bytes / description.shape.extents[slowest];
      const std::uint64_t n_planes = claim / plane;
      const FrameShape shape = description.shape;
      lie.claimLength(n_planes * plane, value_bytes);
      description.shape = shape;
      description.shape.extents[slowest] = n_planes;
      description.place->whole[slowest] = n_planes + description.place->whole[slowest];
      if (at != ~std::size_t{0}) {
        storeLe(lie.header.stages[stage].stage_config.data() + at,
                static_cast<std::uint32_t>(claim));
      }
      const Bytes frame = lie.close();
      ArchiveIndex index = archive.index;
      AxisValues extents = index.grid.extents();
      AxisValues chunk = index.grid.chunk();
      extents.back() = 2 * n_planes;
      chunk.back() = n_planes;
      index.grid = ChunkGrid(index.type, extents, chunk);
      index.chunks.assign(index.grid.count(), {});
      index.chunks[0] = {0, frame.size(),
                         loadLe<std::uint32_t>(frame.data() + kHeaderChecksumOffset)};
      requireCheap(withIndex(frame, index),
                   archive.name + ", frame claims " + std::to_string(claim) + " values, word " +
                       std::to_string(at) + " of stage " + std::to_string(stage),
                   false, report);
    }
  }
}

/// Zeros are small and decode to a lot: memory is that of a chunk, and the limit comes first.
void tryTrueBomb(const std::string& preset, Report& report) {
  constexpr std::size_t kChunkBytes = 4 * kMiB;
  constexpr std::size_t kChunks = 8;
  const ArchiveOptions options =
      chunkedOptions(preset, {1024, kChunkBytes / 4096 * kChunks}, {1024, kChunkBytes / 4096});
  BytesSink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  const Bytes zeros(kChunkBytes);
  for (std::size_t i = 0; i < kChunks; ++i) {
    writer.append(zeros);
  }
  writer.finish();
  std::uint64_t n_values = 0;
  const auto read = [&](const DecodeLimits& limits) {
    return costOf([&] {
      const ArchiveReader reader(sourceOf(sink.bytes), limits);
      DecompressOptions how = plainDecoding();
      how.limits = limits;
      reader.readParts(
          {{0, 0}, options.extents},
          [&](const Box&, ByteView values) { n_values += values.size() / 4; }, how);
    });
  };
  const Cost limited = read({.max_output_bytes = kMiB, .max_memory_bytes = 0});
  report.check(
      limited.code == errorCodeName(ErrorCode::kLimit) && n_values == 0 &&
          limited.peak_bytes <= kBaseBytes,
      preset + ": output limit, peak " + std::to_string(limited.peak_bytes) + ", " + limited.text);
  const Cost full = read({});
  report.check(full.is_done && n_values == kChunks * kChunkBytes / 4 &&
                   full.peak_bytes <= kBaseBytes + 3 * kChunkBytes,
               preset + ": peak " + std::to_string(full.peak_bytes) + ", " + full.text);
  report.atLeast("largest peak of 32 MiB in chunks of 4 in MiB", full.peak_bytes / kMiB);
  report.add("true bombs", 2);
}

const RegisterGoal kArchiveBombs(
    "R3-archives",
    "memory while reading an archive stays below 16 MiB + 3 x a chunk; what index and frames claim "
    "falsely costs nothing",
    [](const Settings& settings, Report& report) {
      const std::vector<ChunkedArchive> all = chunkedArchives(settings.trials(24, 120));
      const auto presets = allPresets();
      runInProcesses(all.size() + presets.size(), settings, report,
                     [&](std::uint64_t trial, Report& mine) {
                       if (trial >= all.size()) {
                         return tryTrueBomb(std::string(presets[trial - all.size()].name), mine);
                       }
                       claimInIndex(all[trial], mine);
                       claimInFrame(all[trial], mine);
                     });
      for (const char* what : {"false claims", "true bombs"}) {
        report.check(report.counts().count(what) != 0, std::string("never: ") + what);
      }
    });

}  // namespace
}  // namespace fz::trust
