// R11 for archives of chunks: threads that put chunks into one writer and read boxes of one reader,
// all at once.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "fz/error.h"
#include "support/fields.h"
#include "trust/archives.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr unsigned kThreads = 16;  // half of them write
const AxisValues kExtents = {24, 18, 10};
const AxisValues kChunk = {12, 7, 3};
constexpr std::size_t kValueBytes = 4;

/// The values of a box out of an array.
Bytes pick(const Bytes& values, const Box& box) {
  const ByteSteps steps = denseSteps(kExtents, kValueBytes);
  std::ptrdiff_t offset = 0;
  for (std::size_t axis = 0; axis < kExtents.size(); ++axis) {
    offset += static_cast<std::ptrdiff_t>(box.origin[axis]) * steps[axis];
  }
  Bytes picked(valueCount(box.extents) * kValueBytes);
  copyValues(picked.data(), denseSteps(box.extents, kValueBytes), values.data() + offset, steps,
             box.extents, kValueBytes);
  return picked;
}

/// One array, as written by one thread, and what that decodes to.
struct Truth {
  test::Field field = test::smoothField(DataType::FLOAT32, foldedDims(kExtents));
  ArchiveOptions options;
  Bytes archive;
  Bytes decoded;

  explicit Truth(const std::string& preset) : options(chunkedOptions(preset, kExtents, kChunk)) {
    BytesSink sink;
    ArchiveWriter writer(field.type, options, sink);
    for (std::uint64_t chunk = 0; chunk < writer.chunkCount(); ++chunk) {
      writer.put(chunk, pick(field.bytes, writer.chunkBox(chunk)));
    }
    writer.finish();
    archive = std::move(sink.bytes);
    decoded.resize(field.bytes.size());
    ArchiveReader(sourceOf(archive)).read({{0, 0, 0}, kExtents}, decoded, plainDecoding());
  }
};

/// Where threads say what went wrong.
class Findings {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    ++n_;
    first_ = first_.empty() ? text : first_;
  }
  void into(Report& report) const {
    report.check(n_ == 0, std::to_string(n_) + " calls went wrong: " + first_);
  }

 private:
  std::mutex mutex_;
  std::uint64_t n_ = 0;
  std::string first_;
};

bool readsRightly(const ArchiveReader& reader, const Truth& truth, std::mt19937_64& rng) {
  Box box;
  for (const std::uint64_t extent : kExtents) {
    box.origin.push_back(rng() % extent);
    box.extents.push_back(1 + rng() % (extent - box.origin.back()));
  }
  DecompressOptions options = plainDecoding();
  options.threads = 1 + rng() % 3;
  switch (rng() % 4) {
    case 0: {
      const std::uint64_t chunk = rng() % reader.info().n_chunks;
      return chunkValues(reader, chunk, options) == pick(truth.decoded, reader.chunkBox(chunk));
    }
    case 1: {
      std::atomic<bool> is_right = true;
      std::atomic<std::uint64_t> n_bytes = 0;
      reader.readParts(
          box,
          [&](const Box& part, ByteView values) {
            const Bytes expected = pick(truth.decoded, part);
            n_bytes += values.size();
            if (!std::equal(values.begin(), values.end(), expected.begin(), expected.end())) {
              is_right = false;
            }
          },
          options);
      return is_right && n_bytes == valueCount(box.extents) * kValueBytes;
    }
    case 2:
      return reader.inspect(rng() % reader.info().n_chunks).place.has_value();
    default: {
      Bytes out(valueCount(box.extents) * kValueBytes);
      reader.read(box, out, options);
      return out == pick(truth.decoded, box);
    }
  }
}

/// One archive written by several threads, each chunk offered by two of them, while others read.
void oneRound(const Truth& truth, std::uint64_t seed, Report& report) {
  BytesSink sink;
  ArchiveWriter writer(truth.field.type, truth.options, sink);
  const ArchiveReader reader(sourceOf(truth.archive));
  const std::uint64_t n_chunks = writer.chunkCount();
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::uint64_t> n_put = 0;
  std::atomic<std::uint64_t> n_refused = 0;
  std::atomic<std::uint64_t> n_read = 0;
  Findings findings;
  const auto put = [&] {
    for (std::uint64_t i = next++; i < 2 * n_chunks; i = next++) {
      const std::uint64_t chunk = i / 2 * 7 % n_chunks;
      try {
        writer.put(chunk, pick(truth.field.bytes, writer.chunkBox(chunk)));
        ++n_put;
      } catch (const InvalidArgument&) {
        ++n_refused;  // the other one was first
      }
      static_cast<void>(writer.bound());
      static_cast<void>(writer.missing());
    }
  };
  const auto read = [&](unsigned t) {
    std::mt19937_64 rng(trialSeed(seed, t));
    while (next < 2 * n_chunks) {
      if (!readsRightly(reader, truth, rng)) {
        findings.add("a read gave other values");
      }
      ++n_read;
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        t % 2 == 0 ? put() : read(t);
      } catch (const std::exception& error) {
        findings.add(error.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  writer.finish();
  findings.into(report);
  report.check(n_put == n_chunks && n_refused == n_chunks, "chunks were put twice or not at all");
  // Frames stand in the order in which they came; each is the one of one thread alone.
  const ArchiveReader made(sourceOf(sink.bytes));
  for (std::uint64_t chunk = 0; chunk < n_chunks; ++chunk) {
    const Frame frame = made.frame(chunk);
    const Frame expected = reader.frame(chunk);
    report.check(std::equal(frame.bytes().begin(), frame.bytes().end(), expected.bytes().begin(),
                            expected.bytes().end()),
                 "chunk " + std::to_string(chunk) + " has another frame");
  }
  report.add("chunks put", n_put);
  report.add("chunks refused the second time", n_refused);
  report.add("reads at the same time", n_read);
  report.add("archives");
}

const RegisterGoal kArchiveThreads(
    "R11-archives",
    "threads put chunks into one writer and read boxes of one reader at once, with the frames and "
    "values of one thread alone",
    [](const Settings& settings, Report& report) {
      const Truth truths[] = {Truth("pfpl"), Truth("balanced"), Truth("cuszp2"), Truth("lossless")};
      report.add("threads", kThreads);
      for (std::uint64_t i = 0; i < settings.trials(40, 2000); ++i) {
        oneRound(truths[i % std::size(truths)], trialSeed(settings.seed, i), report);
      }
      for (const char* what : {"chunks put", "reads at the same time"}) {
        report.check(report.counts().count(what) != 0, std::string("never: ") + what);
      }
    });

}  // namespace
}  // namespace fz::trust
