#include "archive_output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "archive/chunk_slots.h"
#include "failure.h"
#include "field_io.h"
#include "format/file_io.h"
#include "memory_check.h"
#include "npy.h"
#include "output_io.h"
#include "progress.h"
#include "text_bytes.h"

namespace fz::cli {

namespace {

/// Bytes of standard input as a source, which keeps them.
class HeldSource : public ByteSource {
 public:
  explicit HeldSource(InputBytes bytes) : bytes_(std::move(bytes)), source_(sourceOf(bytes_)) {}
  std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    source_->read(offset, out);
  }

 private:
  InputBytes bytes_;
  std::shared_ptr<const ByteSource> source_;
};

DecompressOptions decodeOptions(const CommonOptions& common) {
  return {
      .limits = common.limits, .backend = parseBackend(common.backend), .threads = common.threads};
}

/// What one chunk takes besides its decoder, within --max-memory.
DecompressOptions optionsBeside(const CommonOptions& common, std::uint64_t n_bytes) {
  DecompressOptions options = decodeOptions(common);
  options.limits = limitsBesideResult(common.limits, n_bytes);
  return options;
}

/// Of the largest.
std::uint64_t chunkBytes(const ArchiveInfo& info) {
  return valueCount(info.chunk) * (isKnown(info.type) ? getDataTypeSize(info.type) : 1);
}

void writeToFile(const ArchiveReader& reader,
                 const Box& box,
                 AtomicFile& file,
                 std::uint64_t begin,
                 const CommonOptions& common,
                 Progress& progress) {
  const ArchiveInfo& info = reader.info();
  const std::size_t value_bytes = isKnown(info.type) ? getDataTypeSize(info.type) : 1;
  const auto write = [&](const Box& part, ByteView values) {
    forRuns(box, part, value_bytes, [&](std::uint64_t offset, std::size_t n_done, std::size_t n) {
      file.writeAt(begin + offset, values.subspan(n_done, n));
    });
  };
  reader.readParts(
      box,
      [&](const Box& part, ByteView values) {
        write(part, values);
        progress.add(values.size());
      },
      optionsBeside(common, chunkBytes(info)));
}

/// All chunks that begin at one place of the slowest axis at a time.
void writeInOrder(const ArchiveReader& reader,
                  const Box& box,
                  const CommonOptions& common,
                  const std::function<void(ByteView)>& write,
                  Progress& progress) {
  const ArchiveInfo& info = reader.info();
  const std::size_t value_bytes = isKnown(info.type) ? getDataTypeSize(info.type) : 1;
  if (valueCount(box.extents) == 0) {
    return;
  }
  const bool is_single = box.extents.empty();
  const std::uint64_t end = is_single ? 1 : box.origin.back() + box.extents.back();
  KeptBytes memory;  // which nobody clears first: its pages are made by the threads that decode
  for (std::uint64_t at = is_single ? 0 : box.origin.back(); at < end;) {
    Box slab = box;
    std::uint64_t next = end;
    if (!is_single) {
      next = std::min(end, (at / info.chunk.back() + 1) * info.chunk.back());
      slab.origin.back() = at;
      slab.extents.back() = next - at;
    }
    const std::uint64_t n_bytes = valueCount(slab.extents) * value_bytes;
    checkMemory({n_bytes, "holding the chunks that are written together"},
                common.limits.max_memory_bytes);
    const DecompressOptions options = optionsBeside(common, n_bytes);
    const MutableByteView values = memory.take(n_bytes);
    reader.read(slab, values, options);
    write(values);
    progress.add(values.size());
    at = next;
  }
}

}  // namespace

bool isChunkedFile(const std::string& input) {
  std::error_code ignored;
  return input != kStandardStream && std::filesystem::is_regular_file(input, ignored) &&
         reading([&] { return isChunkedArchive(*openSource(input)); });
}

ArchiveReader openArchive(const std::string& input,
                          const DecodeLimits& limits,
                          Progress* progress) {
  std::error_code ignored;
  if (input != kStandardStream && std::filesystem::is_regular_file(input, ignored)) {
    return ArchiveReader(reading([&] { return openSource(input); }), limits);
  }
  return ArchiveReader(std::make_shared<const HeldSource>(readBytes(input, progress)), limits);
}

std::uint64_t writeBox(const ArchiveReader& reader,
                       const BoxChoice& choice,
                       const BoxTarget& target,
                       const CommonOptions& common,
                       Progress& progress) {
  const std::string& output = target.output;
  const ArchiveInfo& info = reader.info();
  const std::string header =
      isNpyName(output) ? makeNpyHeader(info.type, shapeOf(choice.kept_extents)) : std::string();
  const std::size_t value_bytes = isKnown(info.type) ? getDataTypeSize(info.type) : 1;
  const std::uint64_t n_bytes = valueCount(choice.box.extents) * value_bytes;
  const std::uint64_t most = common.limits.max_output_bytes;
  if (most != 0 && n_bytes > most) {
    throw Failure(ExitCode::kMemory,
                  fmt::format("decodes to {} bytes, the limit is {}; raise --max-output, or take a "
                              "part with --box",
                              n_bytes, most));
  }
  progress.beginBytes("decompressing", n_bytes);
  if (isReplaceable(output)) {
    AtomicFile file(behindLinks(output));
    file.keepAttributesOf(target.like);
    file.write(bytesOf(header));
    writeToFile(reader, choice.box, file, header.size(), common, progress);
    if (!writingWith(common).syncs) {
      file.skipSync();
    }
    file.commit(existingWith(common.force));
    return n_bytes;
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(
      output == kStandardStream ? stdout : std::fopen(output.c_str(), "wb"),
      output == kStandardStream ? &std::fflush : &std::fclose);
  const auto write = [&](ByteView bytes) {
    if (stream == nullptr ||
        (!bytes.empty() &&
         std::fwrite(bytes.data(), 1, bytes.size(), stream.get()) != bytes.size()) ||
        std::fflush(stream.get()) != 0) {
      throw Failure(ExitCode::kIo,
                    fmt::format("cannot write {}: {}; check the free space",
                                output == kStandardStream ? "standard output" : output,
                                std::strerror(errno)));
    }
  };
  write(bytesOf(header));
  writeInOrder(reader, choice.box, common, write, progress);
  return n_bytes;
}

void testChunks(const ArchiveReader& reader, const CommonOptions& common, Progress& progress) {
  const ArchiveInfo& info = reader.info();
  progress.beginBytes("testing", info.original_bytes);
  reader.readParts(
      {AxisValues(info.extents.size(), 0), info.extents},
      [&](const Box& /*part*/, ByteView values) { progress.add(values.size()); },
      optionsBeside(common, chunkBytes(info)));
}

}  // namespace fz::cli
