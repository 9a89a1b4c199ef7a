// R10 for archives of chunks: memory that runs out anywhere in writer, reader and recovery.
#include <memory>
#include <optional>
#include <string>

#include "archive/chunk_grid.h"
#include "fz/error.h"
#include "fz/presets.h"
#include "support/fields.h"
#include "support/pipelines.h"
#include "trust/archives.h"
#include "trust/heap.h"
#include "trust/no_memory.h"

namespace fz::trust {
namespace {

/// Memory of the test, which never fails.
struct CalmSink : ByteSink {
  void write(ByteView view) override {
    const heap::Pause pause;
    bytes.insert(bytes.end(), view.begin(), view.end());
  }

  Bytes bytes;
};

constexpr std::size_t kX = 12;
constexpr std::size_t kY = 10;
constexpr std::size_t kZ = 4;

/// What a writer is told to do; each step may be made again.
enum class Way { kAppend, kGrow, kPut };

/// A whole life of a writer. A step that runs out of memory is made once more on the same writer,
/// which then works, or refuses to go on: what it must not do is write anything else.
Bytes written(const ArchiveOptions& options, Way way, const test::Field& field, bool again) {
  CalmSink sink;
  std::optional<Error> first;
  const auto step = [&](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      if (!again || error.code() != ErrorCode::kOutOfMemory) {
        throw;
      }
      const heap::Pause pause;
      first = error;
    }
    if (first) {
      const heap::Pause pause;
      try {
        call();
        first.reset();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kInvalidState) {
          throw;
        }
        throw Error(ErrorCode::kOutOfMemory, first->what());  // it has said so, and went no further
      }
    }
  };
  std::optional<ArchiveWriter> writer;
  step([&] { writer.emplace(field.type, options, sink); });
  const ByteView values(field.bytes);
  const std::size_t plane_bytes = kX * kY * getDataTypeSize(field.type);
  switch (way) {
    case Way::kPut: {
      const std::size_t chunk_bytes = 2 * plane_bytes;
      for (std::uint64_t chunk = writer->chunkCount(); chunk-- > 0;) {
        step([&] { writer->put(chunk, values.subspan(chunk * chunk_bytes, chunk_bytes)); });
      }
      break;
    }
    default:
      // Three planes and a bit at a time, which are never whole chunks.
      for (std::size_t at = 0; at < values.size();) {
        const std::size_t n = std::min(values.size() - at, 3 * plane_bytes + 8);
        step([&] { writer->append(values.subspan(at, n)); });
        at += n;
      }
  }
  step([&] { writer->finish(); });
  return std::move(sink.bytes);
}

void addWriters(std::vector<Scenario>& all, bool is_release) {
  const auto field =
      std::make_shared<test::Field>(test::smoothField(DataType::FLOAT32, {kX, kY, kZ}));
  struct Writing {
    const char* name;
    const char* preset;
    Way way;
    AxisValues extents;
    AxisValues chunk;
    bool again;
    bool is_long;  ///< only at the size of a release
  };
  const Writing kinds[] = {
      {"put", "pfpl", Way::kPut, {kX, kY, kZ}, {kX, kY, 2}, true, false},
      {"append", "cuszp2", Way::kAppend, {kX, kY, kZ}, {kX, 5, 2}, true, false},
      {"grow", "pfpl", Way::kGrow, {kX, kY, 0}, {kX, kY, 2}, true, false},
      {"grow to one chunk", "pfpl", Way::kGrow, {kX, kY, 0}, {kX, kY, 50}, true, false},
      {"grow to a part of a chunk", "fast", Way::kGrow, {kX, kY, 0}, {kX, kY, 4}, true, true},
      {"append with a plan", "balanced", Way::kAppend, {kX, kY, kZ}, {kX, kY, 3}, false, true},
  };
  for (const Writing& kind : kinds) {
    if (kind.is_long && !is_release) {
      continue;
    }
    all.push_back(
        {std::string("write: ") + kind.name,
         [=] {
           const ArchiveOptions options = chunkedOptions(kind.preset, kind.extents, kind.chunk);
           return [=]() -> Bytes { return written(options, kind.way, *field, kind.again); };
         },
         true});
  }
  for (const char* preset : {"pfpl", "cuszp2"}) {  // whose stages take a range, and do not
    if (!is_release && preset == std::string("cuszp2")) {
      continue;
    }
    all.push_back({std::string("write: bound of the range, ") + preset,
                   [=] {
                     ArchiveOptions options = chunkedOptions(preset, {kX, kY, kZ}, {kX, kY, 3});
                     options.compress.mode = ErrorBoundMode::NOA;
                     options.range = ValueRange{-80.0, 80.0};
                     return
                         [=]() -> Bytes { return written(options, Way::kAppend, *field, false); };
                   },
                   true});
  }
  if (!is_release) {
    return;  // every file is synced
  }
  all.push_back({"write and verify a file",
                 [=] {
                   ArchiveOptions options = chunkedOptions("pfpl", {kX, kY, kZ}, {kX, kY, 3});
                   options.verify = true;
                   const auto folder = std::make_shared<test::TempFolder>();
                   return [=, path = folder->file("a.fzm")]() -> Bytes {
                     {
                       ArchiveWriter writer(field->type, options, path);
                       writer.append(field->bytes);
                       writer.finish();
                     }
                     const heap::Pause pause;
                     static_cast<void>(folder);  // stays until the last call
                     return test::readBytes(path);
                   };
                 },
                 true});
}

using Read = std::function<Bytes(const ArchiveReader&)>;

void addReaders(std::vector<Scenario>& all) {
  const auto archive = std::make_shared<ChunkedArchive>(
      makeChunked("pfpl", DataType::FLOAT32, {{kX, kY, kZ}, {kX, 5, 2}}));
  const auto onReader = [&](const char* name, const Read& call) {
    all.push_back({std::string("read: ") + name, [=] {
                     const auto reader = std::make_shared<ArchiveReader>(sourceOf(archive->bytes));
                     return [=]() -> Bytes {
                       static_cast<void>(archive);
                       return call(*reader);
                     };
                   }});
  };
  all.push_back({"read: open", [=] {
                   return [=]() -> Bytes {
                     const ArchiveReader reader(sourceOf(archive->bytes));
                     const heap::Pause pause;
                     return Bytes(reader.info().n_chunks);
                   };
                 }});
  onReader("box", [](const ArchiveReader& reader) {
    std::optional<heap::Pause> pause(std::in_place);
    Bytes out(7 * 8 * 2 * 4);
    const Box box{{3, 1, 1}, {7, 8, 2}};
    const DecompressOptions options = plainDecoding();
    pause.reset();
    reader.read(box, out, options);
    return out;
  });
  onReader("parts", [box = Box{{3, 1, 1}, {7, 8, 2}}](const ArchiveReader& reader) {
    Bytes out;
    reader.readParts(
        box,
        [&out](const Box&, ByteView values) {
          const heap::Pause pause;
          out.insert(out.end(), values.begin(), values.end());
        },
        plainDecoding());
    return out;
  });
  onReader("chunk", [](const ArchiveReader& reader) {
    const Box box = reader.chunkBox(3);
    const Frame frame = reader.frame(3);
    const FrameInfo info = reader.inspect(3);
    std::optional<heap::Pause> pause(std::in_place);
    Bytes out(valueCount(box.extents) * 4);
    pause.reset();
    reader.readChunk(3, out, plainDecoding());
    return out;
  });
  onReader("a place outside", [box = Box{{3, 1, 20}, {7, 8, 2}}](const ArchiveReader& reader) {
    try {
      reader.readParts(
          box, [](const Box&, ByteView) {}, plainDecoding());
    } catch (const InvalidArgument&) {
      const heap::Pause pause;
      return Bytes(1);
    }
    return Bytes();
  });
  all.push_back({"read: stream", [=] {
                   return [=]() -> Bytes {
                     std::size_t n_read = 0;
                     Bytes out;
                     readArchiveStream(
                         [&](MutableByteView to) {
                           const std::size_t n =
                               std::min(to.size(), archive->bytes.size() - n_read);
                           std::copy_n(archive->bytes.begin() + static_cast<std::ptrdiff_t>(n_read),
                                       n, to.begin());
                           n_read += n;
                           return n;
                         },
                         [&](const StreamedChunk& chunk) {
                           const heap::Pause pause;
                           out.insert(out.end(), chunk.values.begin(), chunk.values.end());
                         },
                         plainDecoding());
                     return out;
                   };
                 }});
}

void addRecoveries(std::vector<Scenario>& all) {
  const auto archive = std::make_shared<ChunkedArchive>(
      makeChunked("pfpl", DataType::FLOAT32, {{kX, kY, kZ}, {kX, kY, 2}}));
  for (const bool is_damaged : {false, true}) {
    all.push_back({is_damaged ? "recover, damaged" : "recover, cut", [=] {
                     const auto bytes = std::make_shared<Bytes>(archive->bytes);
                     if (is_damaged) {
                       (*bytes)[archive->index.chunks[1].offset + 5] ^= 1;
                     } else {
                       bytes->resize(archive->frames_end - 3);
                     }
                     return [=]() -> Bytes {
                       CalmSink sink;
                       const Recovery found = recoverArchive(*sourceOf(*bytes), sink);
                       return std::move(sink.bytes);
                     };
                   }});
  }
  all.push_back({"recover, a file", [=] {
                   const auto folder = std::make_shared<test::TempFolder>();
                   return [=, path = folder->file("a.fzm")]() -> Bytes {
                     const Recovery found = recoverArchive(*sourceOf(archive->bytes), path);
                     const heap::Pause pause;
                     static_cast<void>(folder);
                     return test::readBytes(path);
                   };
                 }});
  all.push_back({"range of an array", [] {
                   const auto field = std::make_shared<test::Field>(
                       test::smoothField(DataType::FLOAT32, {kX, kY, kZ}));
                   return [=]() -> Bytes {
                     std::optional<heap::Pause> pause(std::in_place);
                     std::vector<double> fill = {-9999.0};
                     pause.reset();
                     RangeScan scan(field->type, fill, 1);
                     scan.add(field->bytes);
                     scan.requireWithoutFill(1e-3);
                     const std::optional<ValueRange> range = scan.range();
                     return copyOf(&range->low, sizeof range->low);
                   };
                 }});
  all.push_back({"chunks are chosen", [] {
                   return [extents = AxisValues{1000, 1000, 1000, 7}]() -> Bytes {
                     const AxisValues chunk = chooseChunk(DataType::FLOAT32, extents, 1 << 20);
                     return copyOf(chunk.data(), chunk.size() * sizeof chunk[0]);
                   };
                 }});
}

const RegisterGoal kArchiveNoMemory(
    "R10-archives",
    "memory that runs out at any allocation of writer, reader or recovery is a typed error, the "
    "next call works, and a writer goes on rightly or not at all",
    [](const Settings& settings, Report& report) {
      std::vector<Scenario> all;
      addWriters(all, settings.release);
      addReaders(all);
      addRecoveries(all);
      runScenarios(all, settings, report);
    });

}  // namespace
}  // namespace fz::trust
