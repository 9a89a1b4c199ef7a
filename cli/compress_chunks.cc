#include "compress_chunks.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>

#include "archive/bound_of_whole.h"
#include "archive/chunk_grid.h"
#include "failure.h"
#include "fz/bound_kind.h"
#include "memory_check.h"
#include "output_io.h"
#include "pipeline_options.h"
#include "progress.h"
#include "standard_streams.h"
#include "target.h"
#include "warnings.h"

namespace fz::cli {

namespace {

constexpr std::size_t kScanBytes = std::size_t{4} << 20;
constexpr std::uint64_t kLeastChunkBytes = std::uint64_t{64} << 10;

/// Standard output, or a device that must not be replaced by a file.
class StreamSink : public ByteSink {
 public:
  explicit StreamSink(const std::string& output)
      : stream_(output == kStandardStream ? stdout : std::fopen(output.c_str(), "wb"),
                output == kStandardStream ? &std::fflush : &std::fclose),
        name_(output == kStandardStream ? "standard output" : output) {
    if (stream_ == nullptr) {
      fail();
    }
  }

  void write(ByteView bytes) override {
    if (!bytes.empty() &&
        std::fwrite(bytes.data(), 1, bytes.size(), stream_.get()) != bytes.size()) {
      fail();
    }
  }
  void flush() {
    if (std::fflush(stream_.get()) != 0) {
      fail();
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw Failure(ExitCode::kIo, fmt::format("cannot write {}: {}; check the free space", name_,
                                             std::strerror(errno)));
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream_;
  std::string name_;
};

/// A file that is NAME.part until it is complete.
class PartSink : public ByteSink {
 public:
  PartSink(const std::string& path, bool replace)
      : file_(path, replace ? TemporaryName::kReplacePart : TemporaryName::kPart) {}
  void write(ByteView bytes) override { file_.write(bytes); }
  AtomicFile& file() { return file_; }

 private:
  AtomicFile file_;
};

/// How an array is cut, and what working on it takes.
struct Cut {
  AxisValues chunk;
  std::uint64_t memory_bytes = 0;
};

std::uint64_t planeBytes(const AxisValues& extents, std::size_t value_bytes) {
  AxisValues plane = extents;
  plane.pop_back();
  return valueCount(plane) * value_bytes;
}

Cut cutBy(const CompressJob& job,
          const ChunkedInput& input,
          const CompressOptions& options,
          bool decodes,
          std::uint64_t chunk_bytes) {
  const Field& field = input.field;
  const std::size_t value_bytes = getDataTypeSize(field.type);
  const bool is_open = field.extents.back() == 0;
  Cut cut;
  AxisValues extents = field.extents;
  if (is_open) {
    constexpr std::uint64_t kMany = std::uint64_t{1} << 50;
    extents.back() = kMany / std::max<std::uint64_t>(1, planeBytes(extents, 1));
  }
  cut.chunk =
      job.chunk.extents.empty() ? chooseChunk(field.type, extents, chunk_bytes) : job.chunk.extents;
  if (cut.chunk.size() != extents.size()) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("--chunk {} has {} axes, the array {}", dimsText(cut.chunk),
                              cut.chunk.size(), extents.size()));
  }
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    cut.chunk[axis] = std::min(cut.chunk[axis], extents[axis]);
  }
  const std::uint64_t n_chunk = valueCount(cut.chunk) * value_bytes;
  CompressOptions how = options;
  how.extents = cut.chunk;
  how.max_memory_bytes = 0;
  cut.memory_bytes = estimateMemory(field.type, n_chunk, how) + (decodes ? n_chunk : 0);
  // A chunk at work and one that is read; of a pipe all chunks that go on at the same time.
  cut.memory_bytes += input.isPipe() ? cut.chunk.back() * planeBytes(extents, value_bytes) +
                                           n_chunk + input.begun.size()
                                     : 2 * n_chunk;
  return cut;
}

/// Chunks as asked for, or smaller ones where memory is limited.
Cut chooseCut(const CompressJob& job,
              const ChunkedInput& input,
              const CompressOptions& options,
              bool decodes) {
  const std::uint64_t limit = job.common.limits.max_memory_bytes;
  const bool is_fixed = job.chunk.is_given;
  std::uint64_t chunk_bytes = job.chunk.n_bytes != 0 ? job.chunk.n_bytes : kDefaultChunkBytes;
  Cut cut = cutBy(job, input, options, decodes, chunk_bytes);
  while (limit != 0 && cut.memory_bytes > limit && !is_fixed && chunk_bytes > kLeastChunkBytes) {
    chunk_bytes /= 2;
    cut = cutBy(job, input, options, decodes, chunk_bytes);
  }
  if (limit != 0 && cut.memory_bytes > limit) {
    throw Failure(ExitCode::kMemory,
                  fmt::format("chunks of {} need about {} of memory, --max-memory allows {}; {}",
                              dimsText(cut.chunk), bytesText(static_cast<double>(cut.memory_bytes)),
                              bytesText(static_cast<double>(limit)),
                              is_fixed ? "use a smaller --chunk" : "raise it"));
  }
  checkMemory({cut.memory_bytes, fmt::format("compressing chunks of {}", dimsText(cut.chunk))},
              limit);
  return cut;
}

/// One pass over all values, for bounds that are a part of the range.
std::optional<ValueRange> findRange(const CompressJob& job,
                                    const ChunkedInput& input,
                                    const CompressOptions& options,
                                    double error_bound,
                                    Progress& progress) {
  if (job.chunk.range) {
    return job.chunk.range;
  }
  if (input.isPipe()) {
    throw Failure(ExitCode::kUsage,
                  "a bound relative to the range needs the range of all values before the first "
                  "is compressed, which a pipe cannot tell; give --range LO:HI, an absolute bound "
                  "(-b abs:E), or a file");
  }
  const AxisValues& extents = input.field.extents;
  const std::size_t value_bytes = getDataTypeSize(input.field.type);
  progress.beginBytes("finding the range", input.byteCount());
  RangeScan scan(input.field.type, options.fill, options.threads);
  const ChunkGrid grid(input.field.type, extents,
                       chooseChunk(input.field.type, extents, kScanBytes));
  std::vector<std::uint8_t> values;
  for (std::uint64_t part = 0; part < grid.count(); ++part) {
    const Box box = grid.boxOf(part);
    values.resize(valueCount(box.extents) * value_bytes);
    input.read(box, values);
    scan.add(values);
    progress.add(values.size());
  }
  progress.pause();
  if (options.suspect_fill) {
    scan.requireWithoutFill(error_bound);
  }
  return scan.range().value_or(ValueRange{});
}

/// For --strict: a bound that is not relative to the range needs no look at all values otherwise.
void requireNoFill(const CompressJob& job,
                   const ChunkedInput& input,
                   const CompressOptions& options,
                   double error_bound,
                   Progress& progress) {
  if (input.isPipe()) {
    throw Failure(ExitCode::kUsage,
                  "--strict looks at all values before it writes the first, which a pipe of this "
                  "length does not allow; give a file, or leave --strict out");
  }
  if (options.suspect_fill) {
    CompressJob without_range = job;
    without_range.chunk.range.reset();
    static_cast<void>(findRange(without_range, input, options, error_bound, progress));
  }
}

void appendStream(ArchiveWriter& writer, ChunkedInput& input, Progress& progress) {
  std::uint64_t n_appended = 0;
  const auto append = [&](ByteView bytes) {
    writer.append(bytes);
    progress.add(bytes.size());
    n_appended += bytes.size();
  };
  append(input.begun);
  input.begun = {};
  std::vector<std::uint8_t> piece(kScanBytes);
  while (const std::size_t n = input.next(piece)) {
    append(ByteView(piece).first(n));
  }
  const std::uint64_t n_wanted = input.byteCount();
  if (n_wanted != 0 && n_appended != n_wanted) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("its extents {} mean {} bytes, but {} came; check -t and -d, and that "
                    "the stream is complete",
                    dimsText(input.field.extents), n_wanted, n_appended));
  }
}

std::string boundText(const std::optional<BoundInfo>& bound) {
  if (!bound) {
    return "none (lossless)";
  }
  std::string text = fmt::format("{}:{}", boundKindName(*bound), bound->requested);
  if (bound->mode != ErrorBoundMode::ABS && !isPointwise(*bound)) {
    text += fmt::format(" = {} absolute", bound->absolute);
  }
  return text;
}

/// Writes all chunks; the bytes of the values, and of the archive.
struct Written {
  std::uint64_t n_original = 0;
  std::uint64_t n_archive = 0;
  std::uint64_t n_chunks = 0;
};

Written writeAll(ArchiveWriter& writer, ChunkedInput& input, Progress& progress) {
  progress.beginBytes("compressing", input.byteCount());
  if (input.isPipe()) {
    appendStream(writer, input, progress);
  } else {
    writer.putAll([&](const Box& box, MutableByteView values) {
      input.read(box, values);
      progress.add(values.size());
    });
  }
  Written written;
  written.n_archive = writer.finish();
  written.n_chunks = writer.chunkCount();
  const Box last = writer.chunkBox(written.n_chunks - 1);
  written.n_original = getDataTypeSize(input.field.type);
  for (std::size_t axis = 0; axis < last.extents.size(); ++axis) {
    written.n_original *= last.origin[axis] + last.extents[axis];
  }
  return written;
}

}  // namespace

double compressInChunks(const CompressJob& job,
                        const std::string& input_path,
                        const std::string& output,
                        ChunkedInput& input,
                        Progress& progress) {
  const Field& field = input.field;
  ArchiveOptions options;
  options.compress = optionsFor(job, field);
  options.compress.extents.reset();
  options.compress.dims = {0, 1, 1};
  options.extents = field.extents;
  options.verify = job.verify;
  const std::optional<ResultTarget>& target = job.pipeline.target;
  if (target) {
    options.compress.mode = ErrorBoundMode::ABS;
    options.compress.error_bound = 1.0;  // until it is found; memory does not depend on it
  }
  const bool decodes = job.verify || (target && target->kind == ResultTarget::Kind::kPsnr);
  const Cut cut = chooseCut(job, input, options.compress, decodes);
  options.chunk = cut.chunk;
  applyTarget(job.pipeline, input, job.common.quiet, options, progress);
  if (const auto bound = boundOf(field.type, options.compress);
      bound && bound->mode == ErrorBoundMode::NOA) {
    options.range = findRange(job, input, options.compress, bound->requested, progress);
  } else if (bound && job.strict) {
    requireNoFill(job, input, options.compress, bound->requested, progress);
  }
  const auto start = std::chrono::steady_clock::now();
  Written written;
  double largest_error = 0.0;
  std::optional<BoundInfo> bound;
  MissingInfo missing;
  const auto writeWith = [&](ArchiveWriter& writer) {
    written = writeAll(writer, input, progress);
    largest_error = writer.largestError();
    bound = writer.bound();
    missing = writer.missing();
  };
  if (isReplaceable(output)) {
    PartSink sink(behindLinks(output), job.common.force);
    sink.file().keepAttributesOf(input_path);
    ArchiveWriter writer(field.type, options, sink);
    writeWith(writer);
    if (!writingWith(job.common).syncs) {
      sink.file().skipSync();
    }
    sink.file().commit(existingWith(job.common.force));
  } else {
    StreamSink sink(output);
    ArchiveWriter writer(field.type, options, sink);
    writeWith(writer);
    sink.flush();
  }
  progress.end();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (job.common.quiet) {
    return seconds;
  }
  say("{} -> {}: {} -> {} bytes, ratio {:.2f}, bound {}, {} chunks of {}\n", inputName(input_path),
      output == kStandardStream ? "standard output" : output, written.n_original, written.n_archive,
      static_cast<double>(written.n_original) / static_cast<double>(written.n_archive),
      boundText(bound), written.n_chunks, dimsText(cut.chunk));
  if (missing.n_missing > 0) {
    say("  {} values missing\n", missing.n_missing);
  }
  if (job.common.verbose) {
    say("  pipeline '{}', about {} of memory, {:.3f} s, {:.3f} GB/s\n", job.pipeline.name,
        bytesText(static_cast<double>(cut.memory_bytes)), seconds,
        static_cast<double>(written.n_original) / seconds * 1e-9);
  }
  if (job.verify) {
    say("  verified: every value meets its bound, largest error {}\n", largest_error);
  }
  return seconds;
}

}  // namespace fz::cli
